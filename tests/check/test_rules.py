"""Findings from facts made by hand: each rule, and what must not be found."""

from dataclasses import replace
from typing import Any

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.check.client_support import KINDS, PLAIN, offered
from leader_hints.check.facts import (
    Advertised,
    BrokerLimits,
    EndpointKind,
    Listening,
    ListeningFacts,
    MachineFacts,
    ProbeResult,
    RouteFacts,
    TopicFacts,
)
from leader_hints.check.findings import Finding, Severity
from leader_hints.check.rules import Bounds, judge, must_fix
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN

MAXIMA: dict[int, int] = {ApiKey.PRODUCE: 9, ApiKey.FETCH: 15, ApiKey.METADATA: 12}
MACHINE = MachineFacts(descriptors=65536, connections=10, synchronised=True)
BOUNDS = Bounds(hold_ms=100, request_bytes=1000)
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


def found(*routes: RouteFacts, hold_ms: int = 100) -> set[str]:
    """The codes for the routes that are not fine."""
    findings = judge(routes, MACHINE, BOUNDS._replace(hold_ms=hold_ms))
    return {f.code for f in findings if f.severity is not Severity.FINE}


def fine(route: RouteFacts) -> set[str]:
    return {f.code for f in judge((route,), MACHINE, BOUNDS) if f.severity is Severity.FINE}


def changed(**changes: Any) -> RouteFacts:
    return replace(RIGHT, **changes)


def topics(**changes: Any) -> RouteFacts:
    return changed(topics=replace(RIGHT.topics, **changes))


def test_a_route_that_is_right() -> None:
    assert found(RIGHT) == found(RUNNING) == set()
    assert fine(RIGHT) >= {"versions_raised", "listen_free", "advertised_right"}
    assert fine(RUNNING) >= {"versions_raised", "listen_proxy", "advertised_right"}
    assert not must_fix(judge((RIGHT, RUNNING), MACHINE, BOUNDS))


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (EndpointKind.UNRESOLVED, "upstream_unresolved"),
        (EndpointKind.UNREACHABLE, "upstream_unreachable"),
        (EndpointKind.TLS, "upstream_tls"),
        (EndpointKind.HTTP, "upstream_http"),
        (EndpointKind.NOT_KAFKA, "upstream_not_kafka"),
        (EndpointKind.ROUTE, "upstream_is_proxy"),
    ],
)
def test_of_an_upstream_that_is_no_broker_nothing_else_is_said(
    kind: EndpointKind, code: str
) -> None:
    route = changed(met=ProbeResult(kind=kind, reason="why"), nodes=frozenset())

    assert found(route) == {code}
    assert must_fix(judge((route,), MACHINE, BOUNDS))


@pytest.mark.parametrize(
    "kind", [EndpointKind.UNREACHABLE, EndpointKind.TLS, EndpointKind.NOT_KAFKA]
)
def test_a_proxy_that_runs_is_not_blamed_for_what_is_behind_it(kind: EndpointKind) -> None:
    met, closed = ProbeResult(kind=kind), ProbeResult(kind=EndpointKind.NOT_KAFKA)
    route = replace(RUNNING, met=met, nodes=frozenset(), listening=taken(closed), brokers=())

    assert len(found(route)) == 1
    assert "listen_taken" not in found(route)


@pytest.mark.parametrize(
    "relayed",
    [
        changed(met=ProbeResult(kind=EndpointKind.TLS)),
        changed(mechanisms=("PLAIN",), silence="closed"),
    ],
)
def test_a_plain_relay_does_not_mind_tls_and_sasl(relayed: RouteFacts) -> None:
    assert found(replace(relayed, mode=Mode.OFF)) == {"hints_not_given"}


@pytest.mark.parametrize(
    ("route", "codes"),
    [
        (changed(met=proxy()), {"upstream_is_proxy"}),
        (changed(mechanisms=("PLAIN",)), {"upstream_sasl"}),
        (changed(mechanisms=("PLAIN",), silence="closed"), {"upstream_sasl"}),
        (changed(silence="no answer"), {"upstream_metadata"}),
        (changed(nodes=frozenset({1, 2})), {"several_brokers"}),
        (changed(met=broker(METADATA=8)), {"broker_too_old"}),
        (changed(met=broker(PRODUCE=10)), {"broker_native"}),
        (changed(met=broker(METADATA=9)), {"no_topic_ids"}),
        (topics(without_ids=3), {"topic_ids_off"}),
        (topics(without_ids=3, synthesized=True), {"topic_ids_made_up"}),
        (topics(synthesized=True), set()),
        (topics(visible=0), {"no_topics"}),
        (topics(visible=0, hidden=True), {"topics_hidden"}),
        (topics(hidden=True), {"topics_partly_hidden"}),
        (changed(mode=Mode.OBSERVE), {"hints_not_given"}),
    ],
)
def test_the_broker(route: RouteFacts, codes: set[str]) -> None:
    assert found(route) == codes


@pytest.mark.parametrize(
    ("limits", "codes"),
    [
        ({"most_connections": 50, "connections": 50}, set()),
        ({"most_connections": 50, "connections": 51}, {"connections_limited"}),
        ({"most_connections": 50, "connections": None}, {"connections_limited"}),
        ({"most_connections": 2147483647, "connections": None}, set()),
        ({"most_connections": None, "connections": 51}, set()),
        ({"largest_request": 1000}, set()),
        ({"largest_request": 1001}, {"requests_limited"}),
    ],
)
def test_what_the_broker_allows(limits: dict[str, Any], codes: set[str]) -> None:
    assert found(changed(limits=BrokerLimits(**limits))) == codes


def test_kraft_is_held_for_longer() -> None:
    offers = {kind.name: MAXIMA | {55: 0} for kind in KINDS}
    route = changed(met=ProbeResult(kind=EndpointKind.BROKER, offers=offers))

    assert found(route, hold_ms=499) == {"kraft_hold"}
    assert found(route, hold_ms=500) == set()


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"listening": ListeningFacts(state=Listening.ANY)}, {"listen_any_port"}),
        ({"listening": ListeningFacts(state=Listening.REFUSED)}, {"listen_refused"}),
        ({"listening": taken(GONE)}, {"listen_taken"}),
        ({"listening": ListeningFacts(state=Listening.TAKEN)}, {"listen_taken"}),
        ({"listening": taken(broker())}, {"listen_not_raised"}),
        ({"listening": taken(proxy(2))}, {"listen_other_broker"}),
        ({"listening": taken(proxy(None))}, set()),
        ({"listening": taken(broker()), "mode": Mode.OFF}, {"hints_not_given", "listen_unread"}),
        ({"met": broker(PRODUCE=10), "listening": taken(broker(PRODUCE=10))}, {"broker_native"}),
    ],
)
def test_the_listening_address(changes: dict[str, Any], codes: set[str]) -> None:
    assert found(replace(RUNNING, **changes)) == codes


def test_one_kind_of_client_that_is_not_offered_enough_is_named() -> None:
    less = proxy()
    offers = {**less.offers, "franz-go 1.17 or newer": MAXIMA | {ApiKey.PRODUCE: 10}}

    findings = judge(
        (replace(RUNNING, listening=taken(replace(less, offers=offers))),), MACHINE, BOUNDS
    )

    (short,) = [f for f in findings if f.code == "listen_not_raised"]
    assert "offers franz-go 1.17 or newer Fetch 15 and not 16" in short.text


@pytest.mark.parametrize(
    ("own", "code"),
    [
        (advertised(broker()), "advertised_past_proxy"),
        (advertised(GONE), "advertised_unreachable"),
        (
            advertised(ProbeResult(kind=EndpointKind.UNRESOLVED), addresses=()),
            "advertised_unresolved",
        ),
        (advertised(ProbeResult(kind=EndpointKind.HTTP)), "advertised_elsewhere"),
        (advertised(proxy()), "advertised_elsewhere"),
        (advertised(ARRIVED, loopback=True), "advertised_loopback"),
        (advertised(broker(2)), "routes_crossed"),
        (advertised(proxy(2)), "routes_crossed"),
    ],
)
def test_where_the_broker_sends_clients(own: Advertised, code: str) -> None:
    assert found(changed(brokers=(own,))) == {code}


@pytest.mark.parametrize(
    ("own", "code"),
    [
        (advertised(broker()), "advertised_unsure"),
        (advertised(broker(), is_upstream=True), "advertised_past_proxy"),
        (advertised(broker(), is_listen=True), None),
        (advertised(proxy()), None),
    ],
)
def test_where_it_sends_them_while_a_proxy_observes(own: Advertised, code: str | None) -> None:
    route = replace(RUNNING, mode=Mode.OBSERVE, listening=taken(broker()), brokers=(own,))

    assert found(route) - {"hints_not_given", "listen_unread"} == ({code} if code else set())


def test_an_address_that_is_not_reached_says_on_which_machine() -> None:
    def text(here: bool) -> str:
        findings = judge((changed(brokers=(advertised(GONE, here=here),)),), MACHINE, BOUNDS)
        return next(f.text for f in findings if f.code == "advertised_unreachable")

    assert "(on this machine)" in text(True)
    assert "(10.0.0.1, on another machine)" in text(False)


def test_where_the_node_is_not_proved_one_right_address_is_enough() -> None:
    unknown = changed(nodes=frozenset(), others=frozenset())
    some = replace(unknown, brokers=(advertised(broker(None)), advertised(ARRIVED, 2)))
    none = replace(unknown, brokers=(advertised(broker(None)), advertised(GONE, 2)))

    assert found(some) == {"broker_not_identified"}
    assert found(none) == {"broker_not_identified", "advertised_none"}
    # Node 2's address does not count where that is proved to be another broker.
    assert "advertised_none" in found(replace(some, others=frozenset({2})))


def test_two_routes_that_are_crossed() -> None:
    one = changed(
        brokers=(
            advertised(replace(ARRIVED, route="two")),
            advertised(ARRIVED, 2),
        )
    )
    two = replace(one, name="two", met=broker(2), nodes=frozenset({2}))

    findings = judge((one, two), MACHINE, BOUNDS)

    crossed = [(f.route, f.text) for f in findings if f.severity is Severity.PROBLEM]
    assert crossed == [
        ("one", "the address that node 1 advertises, b1:19092, leads to node 2"),
        ("two", "the address that node 2 advertises, b2:19093, leads to node 1"),
    ]


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (advertised(proxy(2), 2), None),
        (advertised(broker(2), 2), "broker_without_proxy"),
        (advertised(broker(2, PRODUCE=10), 2), None),
        (advertised(GONE, 2), "broker_unreachable"),
        (advertised(ProbeResult(kind=EndpointKind.TLS), 2), "broker_unreachable"),
        (advertised(proxy(3), 2), "routes_crossed"),
        (advertised(proxy(2), 2, addresses=("10.0.0.1",), port=19092), "advertised_twice"),
    ],
)
def test_other_brokers(other: Advertised, code: str | None) -> None:
    route = changed(brokers=(advertised(ARRIVED), other))

    assert found(route) == ({code} if code else set())


def test_while_hints_are_not_given_other_brokers_need_no_proxy() -> None:
    route = changed(mode=Mode.OBSERVE, brokers=(advertised(ARRIVED), advertised(broker(2), 2)))

    assert found(route) == {"hints_not_given"}


@pytest.mark.parametrize(
    ("visible", "without_ids", "has"), [(3, 0, True), (3, 1, False), (3, 3, False), (0, 0, False)]
)
def test_a_cluster_has_topic_ids_if_all_its_topics_do(
    visible: int, without_ids: int, has: bool
) -> None:
    assert TopicFacts(visible=visible, without_ids=without_ids).have_ids is has


def test_a_name_with_several_addresses_is_reported_once() -> None:
    addresses = ("::1", "127.0.0.1")
    own = advertised(ARRIVED, addresses=addresses)
    other = advertised(proxy(2), 2, addresses=addresses, port=own.port)

    findings = judge((changed(brokers=(own, other)),), MACHINE, BOUNDS)

    assert [f.text for f in findings if f.code == "advertised_twice"] == [
        "nodes 1, 2 advertise the same address b1:19092"
    ]


def machine(**changes: Any) -> Finding:
    """The one finding about a machine that the changes bring."""
    before = set(judge((), MACHINE, BOUNDS))
    (change,) = set(judge((), replace(MACHINE, **changes), BOUNDS)) - before
    return change


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"connections": 32641}, "descriptors_few"),
        ({"connections": 32640}, "descriptors_enough"),
        ({"connections": None}, "descriptors_enough"),
        ({"connections": None, "descriptors": 1024}, "descriptors_unknown"),
        ({"connections": 0, "descriptors": 8}, "descriptors_enough"),
        ({"synchronised": False}, "clock_not_synchronised"),
        ({"synchronised": None}, "clock_unknown"),
        ({"clock_error_ms": 3}, "clock_synchronised"),
    ],
)
def test_the_machine(changes: dict[str, Any], code: str) -> None:
    assert machine(**changes).code == code


def test_how_many_descriptors_are_needed() -> None:
    text = machine(descriptors=1024, connections=1000).text

    assert text.startswith("1024 file descriptors are allowed, and 2256 are needed for the 1000 ")


def test_what_a_broker_offers_is_what_it_offers_to_clients_without_hints() -> None:
    assert proxy().maxima == MAXIMA
    assert proxy().offers[PLAIN.name] == MAXIMA
    assert ProbeResult(kind=EndpointKind.UNREACHABLE).maxima == {}
