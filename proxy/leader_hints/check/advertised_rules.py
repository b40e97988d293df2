"""Rules about the addresses that brokers advertise: where they lead clients."""

from collections.abc import Iterator, Mapping, Sequence

from leader_hints.check.facts import (
    KAFKA,
    Advertised,
    EndpointKind,
    Listening,
    ProbeResult,
    RouteFacts,
)
from leader_hints.check.findings import Finding, finding
from leader_hints.check.listening_rules import listens_rightly
from leader_hints.core.mode import Mode
from leader_hints.core.versions.plan import plan_for

#: Nothing was met there at all.
_LOST: Mapping[EndpointKind, str] = {
    EndpointKind.UNRESOLVED: "advertised_unresolved",
    EndpointKind.UNREACHABLE: "advertised_unreachable",
}


def judge_own_address(route: RouteFacts, routes: Sequence[RouteFacts]) -> Iterator[Finding]:
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


def _leads_here(route: RouteFacts, broker: Advertised) -> bool:
    met, listening = broker.met, route.listening
    if met.kind is EndpointKind.ROUTE:
        return met.route == route.name
    runs = listening.state is Listening.TAKEN and listening.met and listening.met.kind in KAFKA
    return bool(runs) and (broker.is_listen or met.kind is EndpointKind.PROXY)


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
        # If the wrong thing listens there, that is what is found.
        if listens_rightly(route):
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


def judge_other_addresses(route: RouteFacts, routes: Sequence[RouteFacts]) -> Iterator[Finding]:
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


def judge_shared_addresses(route: RouteFacts) -> Iterator[Finding]:
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
