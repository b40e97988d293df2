"""Rules about advertised addresses: each one, and what must not be found."""

from dataclasses import replace

import pytest

from leader_hints.check.facts import Advertised, EndpointKind, ProbeResult
from leader_hints.check.findings import Severity
from leader_hints.check.rules import judge
from leader_hints.core.mode import Mode
from tests.check.samples import (
    ARRIVED,
    BOUNDS,
    GONE,
    MACHINE,
    RUNNING,
    advertised,
    broker,
    changed,
    found,
    proxy,
    taken,
)


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


def test_a_name_with_several_addresses_is_reported_once() -> None:
    addresses = ("::1", "127.0.0.1")
    own = advertised(ARRIVED, addresses=addresses)
    other = advertised(proxy(2), 2, addresses=addresses, port=own.port)

    findings = judge((changed(brokers=(own, other)),), MACHINE, BOUNDS)

    assert [f.text for f in findings if f.code == "advertised_twice"] == [
        "nodes 1, 2 advertise the same address b1:19092"
    ]
