"""Facts made by hand for the tests of rules, and the codes of what is found of them."""

from dataclasses import replace
from typing import Any

from leader_hints.apis.keys import ApiKey
from leader_hints.check.client_support import KINDS, offered
from leader_hints.check.facts import (
    Advertised,
    EndpointKind,
    Listening,
    ListeningFacts,
    MachineFacts,
    ProbeResult,
    RouteFacts,
    TopicFacts,
)
from leader_hints.check.findings import Severity
from leader_hints.check.rules import Bounds, judge
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN

MAXIMA: dict[int, int] = {ApiKey.PRODUCE: 9, ApiKey.FETCH: 15, ApiKey.METADATA: 12}
MACHINE = MachineFacts(descriptors=65536, connections=10, synchronised=True)
BOUNDS = Bounds(kraft_hold_ms=500, request_bytes=1000)
GONE = ProbeResult(kind=EndpointKind.UNREACHABLE, reason="connection refused")
ARRIVED = ProbeResult(kind=EndpointKind.ROUTE, route="one")


def broker(node: int | None = 1, **maxima: int) -> ProbeResult:
    taken: dict[int, int] = MAXIMA | {ApiKey[name]: version for name, version in maxima.items()}
    return ProbeResult(
        kind=EndpointKind.BROKER, offers={kind.name: taken for kind in KINDS}, node=node
    )


def proxy(node: int | None = 1) -> ProbeResult:
    offers = {
        kind.name: offered(MAXIMA, BUILT_IN.forms(kind.software), topic_ids=True) for kind in KINDS
    }
    return ProbeResult(kind=EndpointKind.PROXY, offers=offers, node=node)


def advertised(met: ProbeResult, node: int = 1, **changes: Any) -> Advertised:
    port = 19091 + node
    return replace(
        Advertised(node=node, address=f"b{node}:{port}", met=met, addresses=(f"10.0.0.{node}",)),
        **{"port": port, **changes},
    )


def taken(met: ProbeResult) -> ListeningFacts:
    return ListeningFacts(state=Listening.TAKEN, met=met)


#: A route before node 1 that is as it should be, while no proxy runs.
RIGHT = RouteFacts(
    name="one",
    listen="0.0.0.0:19092",
    upstream="127.0.0.1:9092",
    mode=Mode.ON,
    met=broker(),
    cluster="k",
    topics=TopicFacts(visible=3),
    nodes=frozenset({1}),
    others=frozenset({2}),
    brokers=(advertised(ARRIVED),),
)
#: The same while the proxy runs.
RUNNING = replace(
    RIGHT,
    listening=taken(proxy()),
    brokers=(advertised(proxy()),),
)


def found(*routes: RouteFacts, kraft_hold_ms: int = 500) -> set[str]:
    """The codes for the routes that are not fine."""
    findings = judge(routes, MACHINE, BOUNDS._replace(kraft_hold_ms=kraft_hold_ms))
    return {f.code for f in findings if f.severity is not Severity.FINE}


def fine(route: RouteFacts) -> set[str]:
    return {f.code for f in judge((route,), MACHINE, BOUNDS) if f.severity is Severity.FINE}


def changed(**changes: Any) -> RouteFacts:
    return replace(RIGHT, **changes)


def topics(**changes: Any) -> RouteFacts:
    return changed(topics=replace(RIGHT.topics, **changes))
