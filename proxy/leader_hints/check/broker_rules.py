"""Rules about the broker behind a route: whether it is one, what it allows, what can be learnt."""

from collections.abc import Iterator, Mapping

from leader_hints.apis import metadata
from leader_hints.apis.keys import ApiKey
from leader_hints.check.facts import EndpointKind, RouteFacts
from leader_hints.check.findings import Finding, finding
from leader_hints.core.mode import Mode
from leader_hints.core.versions.plan import plan_for

#: How late a KRaft broker may learn that it leads: with the next record of the metadata log.
_KRAFT_LATE_MS = 500
#: A broker's default for connections from one address.
_UNLIMITED = 2**31 - 1
_NOT_A_BROKER: Mapping[EndpointKind, str] = {
    EndpointKind.UNRESOLVED: "upstream_unresolved",
    EndpointKind.UNREACHABLE: "upstream_unreachable",
    EndpointKind.TLS: "upstream_tls",
    EndpointKind.HTTP: "upstream_http",
    EndpointKind.NOT_KAFKA: "upstream_not_kafka",
    # The settings refuse a route to one of the process, but by a name they cannot tell.
    EndpointKind.ROUTE: "upstream_is_proxy",
}


def judge_upstream(route: RouteFacts) -> Iterator[Finding]:
    """Whether a single broker is behind the route, and answers the proxy."""
    met, upstream = route.met, route.upstream
    if route.mode is Mode.OFF and (met.kind is EndpointKind.TLS or route.mechanisms is not None):
        return  # A plain relay does not mind.
    if met.kind in _NOT_A_BROKER:
        code = _NOT_A_BROKER[met.kind]
        yield finding(code, route.name, upstream=upstream, reason=met.reason)
        return
    if met.kind is EndpointKind.PROXY:
        yield finding("upstream_is_proxy", route.name, upstream=upstream)
    produce, newest = met.maxima.get(ApiKey.PRODUCE), met.maxima.get(ApiKey.METADATA, -1)
    if plan_for(met.maxima).native:
        yield finding("broker_native", route.name, produce=produce)
    elif newest < metadata.OLDEST:
        yield finding("broker_too_old", route.name, metadata=newest)
    elif route.mechanisms is not None:
        mechanisms = ", ".join(route.mechanisms) or "no mechanism is enabled"
        yield finding("upstream_sasl", route.name, upstream=upstream, mechanisms=mechanisms)
    elif route.silence is not None:
        yield finding("upstream_metadata", route.name, upstream=upstream, reason=route.silence)
    elif len(route.nodes) > 1:
        nodes = ", ".join(map(str, sorted(route.nodes)))
        yield finding("several_brokers", route.name, upstream=upstream, nodes=nodes)
    elif met.kind is EndpointKind.BROKER:
        yield finding(
            "versions_raised",
            route.name,
            node="?" if route.node is None else route.node,
            cluster=route.cluster,
            produce=produce,
            fetch=met.maxima.get(ApiKey.FETCH),
        )


def judge_limits(route: RouteFacts, request_bytes: int) -> Iterator[Finding]:
    """What the broker allows in all, or to one client host: the proxy is one."""
    most, now = route.limits.most_connections, route.limits.connections
    if most is not None and most < _UNLIMITED and (now is None or now > most):
        shown = "an unknown number" if now is None else now
        yield finding("connections_limited", route.name, most=most, now=shown)
    largest = route.limits.largest_request
    if largest is not None and largest > request_bytes:
        yield finding("requests_limited", route.name, largest=largest, allowed=request_bytes)


def judge_leaders(route: RouteFacts, hold_ms: int) -> Iterator[Finding]:
    """What the proxy can learn from this broker."""
    maxima = route.met.maxima
    if plan_for(maxima).kraft and hold_ms < _KRAFT_LATE_MS:
        yield finding("kraft_hold", route.name, hold_ms=hold_ms)
    topics = route.topics
    if topics.hidden and not topics.visible:
        yield finding("topics_hidden", route.name)
    elif topics.hidden:
        yield finding("topics_partly_hidden", route.name, topics=topics.visible)
    elif not topics.visible:
        yield finding("no_topics", route.name)
    if topics.synthesized and not topics.have_ids:
        yield finding("topic_ids_made_up", route.name)
    elif maxima[ApiKey.METADATA] < metadata.TOPIC_IDS_FROM:
        yield finding("no_topic_ids", route.name)
    elif topics.without_ids:
        words = {"without": topics.without_ids, "topics": topics.visible}
        yield finding("topic_ids_off", route.name, **words)
    if not route.nodes:
        yield finding("broker_not_identified", route.name, upstream=route.upstream)


def judge_racks(route: RouteFacts) -> Iterator[Finding]:
    """What there is to send consumers to a replica in their rack by."""
    racks, mode = route.racks, route.racks.mode
    if mode is Mode.OFF or route.mode is Mode.OFF:
        return
    unknown = sorted(node for node, rack in racks.nodes.items() if not rack)
    if racks.selector:
        yield finding("replica_selector", route.name, mode=mode, selector=racks.selector)
    elif unknown:
        yield finding("racks_unknown", route.name, mode=mode, nodes=", ".join(map(str, unknown)))
    else:
        named = ", ".join(f"{node} {rack}" for node, rack in sorted(racks.nodes.items()))
        yield finding("racks_known", route.name, mode=mode, racks=named)
