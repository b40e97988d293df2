"""Rules about a route's broker: each one, and what must not be found."""

from dataclasses import replace
from typing import Any

import pytest

from leader_hints.check.client_support import KINDS
from leader_hints.check.facts import BrokerLimits, EndpointKind, ProbeResult, RackFacts, RouteFacts
from leader_hints.check.rules import judge, must_fix
from leader_hints.core.mode import Mode
from tests.check.samples import (
    BOUNDS,
    MACHINE,
    MAXIMA,
    broker,
    changed,
    found,
    proxy,
    topics,
)


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


@pytest.mark.parametrize(
    ("racks", "codes"),
    [
        (RackFacts(nodes={1: ""}, selector="some.Selector"), set()),
        (RackFacts(mode=Mode.ON, nodes={1: "a", 2: "b"}), set()),
        (RackFacts(mode=Mode.OBSERVE, nodes={1: "a", 2: ""}), {"racks_unknown"}),
        (RackFacts(mode=Mode.ON, nodes={1: "a"}, selector="some.Selector"), {"replica_selector"}),
    ],
)
def test_the_racks_of_brokers(racks: RackFacts, codes: set[str]) -> None:
    assert found(changed(racks=racks)) == codes
    assert found(changed(racks=racks, mode=Mode.OFF)) == {"hints_not_given"}


def test_kraft_brokers_must_be_waited_for() -> None:
    offers = {kind.name: MAXIMA | {55: 0} for kind in KINDS}
    route = changed(met=ProbeResult(kind=EndpointKind.BROKER, offers=offers))

    assert found(route, kraft_hold_ms=499) == {"kraft_hold"}
    assert found(route, kraft_hold_ms=500) == set()
