"""From facts to findings: what is right on a route and a machine, and what must be fixed.

The facts are gathered by :mod:`leader_hints.check.route_probe`; here they are judged, one rule for
each matter.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from leader_hints.apis import metadata
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.check.client_support import kinds, offered
from leader_hints.check.facts import (
    KAFKA,
    Advertised,
    EndpointKind,
    Listening,
    MachineFacts,
    ProbeResult,
    RouteFacts,
)
from leader_hints.check.findings import Finding, Severity, finding
from leader_hints.core.descriptors import connections_within, descriptors_for
from leader_hints.core.mode import Mode
from leader_hints.core.versions.plan import plan_for

#: How late a KRaft broker may learn that it leads: the fetch wait of its metadata quorum.
_KRAFT_LATE_MS = 500
#: If the number of clients is not known, so many descriptors are enough.
_PLENTY = 8192
#: A broker's default for connections from one address.
_UNLIMITED = 2**31 - 1
#: Only KRaft brokers take it.
_DESCRIBE_QUORUM = 55


class Bounds(NamedTuple):
    """What the settings allow: how long a response is held, how large a request may be."""

    hold_ms: int
    request_bytes: int


def judge(
    routes: Sequence[RouteFacts], machine: MachineFacts, bounds: Bounds
) -> tuple[Finding, ...]:
    """Return all findings."""
    found = [finding for route in routes for finding in _judge_route(route, routes, bounds)]
    return (*found, *_descriptors(machine), *_clock(machine))


def must_fix(findings: Sequence[Finding]) -> bool:
    """Whether a finding must be fixed."""
    return any(finding.severity is Severity.PROBLEM for finding in findings)


def is_kraft(maxima: Mapping[int, int]) -> bool:
    """Whether a broker of ``maxima`` is one of a KRaft cluster."""
    return _DESCRIBE_QUORUM in maxima


def _judge_route(
    route: RouteFacts, routes: Sequence[RouteFacts], bounds: Bounds
) -> Iterator[Finding]:
    yield from _mode(route)
    yield from _upstream(route)
    yield from _listen(route)
    yield from _limits(route, bounds)
    plan = plan_for(route.met.maxima)
    # If the broker gives hints, or there is none, the clients' way does not matter.
    if route.known and plan.rows:
        yield from _leaders(route, bounds.hold_ms)
        yield from _own_address(route, routes)
        yield from _other_addresses(route, routes)
        yield from _twice(route)


def _mode(route: RouteFacts) -> Iterator[Finding]:
    if route.mode is not Mode.ON:
        yield finding("hints_not_given", route.name, mode=route.mode)


_NOT_A_BROKER: Mapping[EndpointKind, str] = {
    EndpointKind.UNRESOLVED: "upstream_unresolved",
    EndpointKind.UNREACHABLE: "upstream_unreachable",
    EndpointKind.TLS: "upstream_tls",
    EndpointKind.HTTP: "upstream_http",
    EndpointKind.NOT_KAFKA: "upstream_not_kafka",
    # The settings refuse a route to one of the process, but by a name they cannot tell.
    EndpointKind.ROUTE: "upstream_is_proxy",
}


def _upstream(route: RouteFacts) -> Iterator[Finding]:
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


def _limits(route: RouteFacts, bounds: Bounds) -> Iterator[Finding]:
    """What the broker allows in all, or to one client host: the proxy is one."""
    most, now = route.limits.most_connections, route.limits.connections
    if most is not None and most < _UNLIMITED and (now is None or now > most):
        shown = "an unknown number" if now is None else now
        yield finding("connections_limited", route.name, most=most, now=shown)
    largest = route.limits.largest_request
    if largest is not None and largest > bounds.request_bytes:
        allowed = bounds.request_bytes
        yield finding("requests_limited", route.name, largest=largest, allowed=allowed)


def _leaders(route: RouteFacts, hold_ms: int) -> Iterator[Finding]:
    """What the proxy can learn from this broker."""
    maxima = route.met.maxima
    if is_kraft(maxima) and hold_ms < _KRAFT_LATE_MS:
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


def _listen(route: RouteFacts) -> Iterator[Finding]:
    listen, listening = route.listen, route.listening
    if listening.state is Listening.FREE:
        yield finding("listen_free", route.name, listen=listen)
    elif listening.state is Listening.ANY:
        yield finding("listen_any_port", route.name, listen=listen)
    elif listening.state is Listening.REFUSED:
        yield finding("listen_refused", route.name, listen=listen, reason=listening.reason)
    elif route.met.kind not in KAFKA:
        return  # Through a proxy that runs nothing better could be met than behind it.
    elif listening.met is None or listening.met.kind not in KAFKA:
        reason = listening.met.reason if listening.met else ""
        yield finding("listen_taken", route.name, listen=listen, reason=reason)
    elif route.known:
        yield from _listener(route, listening.met)


def _listener(route: RouteFacts, listener: ProbeResult) -> Iterator[Finding]:
    """What is listened on already answers as Kafka does."""
    if listener.node is not None and route.node is not None and listener.node != route.node:
        yield finding(
            "listen_other_broker",
            route.name,
            listen=route.listen,
            upstream=route.upstream,
            found=listener.node,
            node=route.node,
        )
    elif route.mode is not Mode.ON and listener.kind is EndpointKind.BROKER:
        yield finding("listen_unread", route.name, listen=route.listen)
    elif (short := _not_raised(route, listener)) is not None:
        yield finding("listen_not_raised", route.name, listen=route.listen, **short)
    elif plan_for(route.met.maxima).rows:
        yield finding("listen_proxy", route.name, listen=route.listen)


def _not_raised(route: RouteFacts, listener: ProbeResult) -> dict[str, object] | None:
    """Return words for the first kind of client that is not offered what it should be."""
    # Where ids are synthetic, that begins when all proxies of the cluster do it.
    for synthetic in (False, route.topics.synthesized):
        short = _short(route, listener, synthetic=synthetic)
        if short is None:
            break
    return short


def _short(
    route: RouteFacts, listener: ProbeResult, *, synthetic: bool
) -> dict[str, object] | None:
    for kind in kinds(route.clients):
        wanted = offered(
            route.met.maxima,
            route.clients.forms(kind.software),
            topic_ids=route.topics.have_names,
            synthetic=synthetic,
        )
        for key in (ApiKey.PRODUCE, ApiKey.FETCH):
            given = listener.offers.get(kind.name, {}).get(key, -1)
            if given != wanted.get(key, -1):
                words = {"client": kind.name, "api": api_name(key)}
                return {**words, "offered": given, "expected": wanted.get(key, -1)}
    return None


def _own_address(route: RouteFacts, routes: Sequence[RouteFacts]) -> Iterator[Finding]:
    """Whether the route's broker sends clients to this route."""
    if route.listening.state in (Listening.ANY, Listening.REFUSED) or len(route.nodes) > 1:
        return
    own = route.own
    if own is not None:
        yield from _own_broker(route, own, routes)
        if own.loopback and own.met.kind not in _LOST:
            yield finding("advertised_loopback", route.name, node=own.node, address=own.address)
        return
    candidates = [broker for broker in route.brokers if broker.node not in route.others]
    if not any(_leads_here(route, broker) for broker in candidates):
        addresses = ", ".join(f"{b.address} (node {b.node})" for b in candidates) or "none"
        yield finding(
            "advertised_none",
            route.name,
            addresses=addresses,
            listen=route.listen,
            upstream=route.upstream,
        )


#: Nothing was met there at all.
_LOST: Mapping[EndpointKind, str] = {
    EndpointKind.UNRESOLVED: "advertised_unresolved",
    EndpointKind.UNREACHABLE: "advertised_unreachable",
}


def _leads_here(route: RouteFacts, broker: Advertised) -> bool:
    met = broker.met
    if met.kind is EndpointKind.ROUTE:
        return met.route == route.name
    return route.listening.state is Listening.TAKEN and (
        broker.is_listen or met.kind is EndpointKind.PROXY
    )


def _own_broker(
    route: RouteFacts, own: Advertised, routes: Sequence[RouteFacts]
) -> Iterator[Finding]:
    words: dict[str, object] = {
        "node": own.node,
        "address": own.address,
        "listen": route.listen,
        "upstream": route.upstream,
    }
    crossed = _led_to(own.met, routes)
    if crossed is not None and crossed != own.node:
        yield finding("routes_crossed", route.name, found=crossed, **words)
    elif _leads_here(route, own):
        yield finding("advertised_right", route.name, **words)
    elif own.met.kind in _LOST:
        words |= {"reason": own.met.reason, "where": _where(own)}
        yield finding(_LOST[own.met.kind], route.name, **words)
    elif own.met.kind is not EndpointKind.BROKER:
        reason = own.met.reason or "another proxy"
        yield finding("advertised_elsewhere", route.name, reason=reason, **words)
    elif route.mode is Mode.ON or route.listening.state is Listening.FREE or own.is_upstream:
        yield finding("advertised_past_proxy", route.name, **words)
    else:
        yield finding("advertised_unsure", route.name, **words)


def _led_to(met: ProbeResult, routes: Sequence[RouteFacts]) -> int | None:
    """Return the node to which an address leads, where that is proved."""
    if met.kind is EndpointKind.ROUTE:
        return next((route.node for route in routes if route.name == met.route), None)
    return met.node


def _where(broker: Advertised) -> str:
    if broker.here:
        return "on this machine"
    return f"{', '.join(broker.addresses)}, on another machine"


def _other_addresses(route: RouteFacts, routes: Sequence[RouteFacts]) -> Iterator[Finding]:
    """What the cluster's other brokers advertise: those behind routes are judged there."""
    routed = {(other.cluster, other.node) for other in routes}
    if route.node is None:
        return
    for broker in route.brokers:
        if broker.node == route.node or (route.cluster, broker.node) in routed:
            continue
        words: dict[str, object] = {"node": broker.node, "address": broker.address}
        found = _led_to(broker.met, routes)
        if found is not None and found != broker.node:
            yield finding("routes_crossed", route.name, found=found, **words)
        elif broker.met.kind not in KAFKA | {EndpointKind.ROUTE}:
            reason = broker.met.reason
            yield finding("broker_unreachable", route.name, reason=reason, **words)
        elif (
            broker.met.kind is EndpointKind.BROKER
            and _raisable(broker.met)
            and route.mode is Mode.ON
        ):
            yield finding("broker_without_proxy", route.name, **words)


def _raisable(met: ProbeResult) -> bool:
    return bool(plan_for(met.maxima).rows)


def _twice(route: RouteFacts) -> Iterator[Finding]:
    """Brokers that advertise one and the same place, under whatever names."""
    at: dict[tuple[str, int], list[Advertised]] = {}
    for broker in route.brokers:
        for address in broker.addresses:
            at.setdefault((address, broker.port), []).append(broker)
    told: set[tuple[int, ...]] = set()
    for brokers in at.values():
        nodes = tuple(sorted(broker.node for broker in brokers))
        if len(nodes) > 1 and nodes not in told:
            told.add(nodes)
            shown = ", ".join(map(str, nodes))
            address = brokers[0].address
            yield finding("advertised_twice", route.name, nodes=shown, address=address)


def _descriptors(machine: MachineFacts) -> Iterator[Finding]:
    allowed, now = machine.descriptors, machine.connections
    clients = connections_within(allowed)
    if now is None:
        if allowed < _PLENTY:
            yield finding("descriptors_unknown", allowed=allowed, clients=clients)
        else:
            yield finding(
                "descriptors_enough", allowed=allowed, clients=clients, now="an unknown number of"
            )
    elif now > clients:
        needed = descriptors_for(now)
        yield finding("descriptors_few", allowed=allowed, needed=needed, now=now)
    else:
        yield finding("descriptors_enough", allowed=allowed, clients=clients, now=now)


def _clock(machine: MachineFacts) -> Iterator[Finding]:
    if machine.synchronised is None:
        yield finding("clock_unknown")
    elif machine.synchronised:
        yield finding("clock_synchronised", error_ms=machine.clock_error_ms)
    else:
        yield finding("clock_not_synchronised")
