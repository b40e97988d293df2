"""Rules about the listening address: each one, and what must not be found."""

from dataclasses import replace
from typing import Any

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.check.facts import EndpointKind, Listening, ListeningFacts, ProbeResult
from leader_hints.check.rules import judge
from leader_hints.core.mode import Mode
from tests.check.samples import (
    BOUNDS,
    GONE,
    MACHINE,
    MAXIMA,
    RUNNING,
    advertised,
    broker,
    fine,
    found,
    proxy,
    taken,
)


@pytest.mark.parametrize(
    "kind", [EndpointKind.UNREACHABLE, EndpointKind.TLS, EndpointKind.NOT_KAFKA]
)
def test_a_proxy_that_runs_is_not_blamed_for_what_is_behind_it(kind: EndpointKind) -> None:
    met, closed = ProbeResult(kind=kind), ProbeResult(kind=EndpointKind.NOT_KAFKA)
    route = replace(RUNNING, met=met, nodes=frozenset(), listening=taken(closed), brokers=())

    assert len(found(route)) == 1
    assert "listen_taken" not in found(route)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"listening": ListeningFacts(state=Listening.ANY)}, {"listen_any_port"}),
        ({"listening": ListeningFacts(state=Listening.REFUSED)}, {"listen_refused"}),
        (
            {"listening": taken(GONE), "brokers": (advertised(GONE, is_listen=True),)},
            {"listen_taken", "advertised_unreachable"},
        ),
        (
            {"listening": ListeningFacts(state=Listening.TAKEN)},
            {"listen_taken", "advertised_elsewhere"},
        ),
        (
            {
                "listening": ListeningFacts(state=Listening.TAKEN, connection="192.0.2.1:443"),
                "brokers": (advertised(GONE, is_listen=True),),
            },
            {"listen_connection", "advertised_unreachable"},
        ),
        ({"listening": taken(broker())}, {"listen_not_raised"}),
        ({"listening": taken(proxy(2))}, {"listen_other_broker"}),
        ({"listening": taken(proxy(None))}, set()),
        ({"listening": taken(broker()), "mode": Mode.OFF}, {"hints_not_given", "listen_unread"}),
        ({"met": broker(PRODUCE=10), "listening": taken(broker(PRODUCE=10))}, {"broker_native"}),
    ],
)
def test_the_listening_address(changes: dict[str, Any], codes: set[str]) -> None:
    assert found(replace(RUNNING, **changes)) == codes


@pytest.mark.parametrize("met", [GONE, broker(), proxy(2)], ids=["nothing", "broker", "other"])
def test_where_the_wrong_thing_listens_clients_are_not_said_to_be_led_rightly(
    met: ProbeResult,
) -> None:
    """`listen_taken` stood beside `advertised_right`, which says that clients come to the proxy."""
    own = advertised(replace(met, node=None), is_listen=True)
    route = replace(RUNNING, listening=taken(met), brokers=(own,))

    assert any(code.startswith("listen_") for code in found(route))
    assert "advertised_right" not in fine(route)


def test_a_port_of_an_outgoing_connection_is_named_with_where_that_leads() -> None:
    lent = ListeningFacts(state=Listening.TAKEN, connection="192.0.2.1:443")
    # Whatever is behind the route.
    for met in (broker(), GONE):
        findings = judge((replace(RUNNING, met=met, listening=lent),), MACHINE, BOUNDS)
        (one,) = [f for f in findings if f.code.startswith("listen_")]
        assert "an outgoing connection has this port, to 192.0.2.1:443" in one.text


def test_one_kind_of_client_that_is_not_offered_enough_is_named() -> None:
    less = proxy()
    offers = {**less.offers, "franz-go 1.17 or newer": MAXIMA | {ApiKey.PRODUCE: 10}}

    findings = judge(
        (replace(RUNNING, listening=taken(replace(less, offers=offers))),), MACHINE, BOUNDS
    )

    (short,) = [f for f in findings if f.code == "listen_not_raised"]
    assert "offers franz-go 1.17 or newer Fetch 15 and not 16" in short.text


def test_a_kind_of_client_as_which_nothing_was_answered_is_not_judged() -> None:
    """On a busy machine: it was said to be offered Produce -1."""
    whole = proxy()
    offers = {name: of for name, of in whole.offers.items() if name != "franz-go 1.17 or newer"}
    busy = replace(RUNNING, listening=taken(replace(whole, offers=offers)))

    assert found(busy) == {"listen_unanswered"}
    (silent,) = [f for f in judge((busy,), MACHINE, BOUNDS) if f.code == "listen_unanswered"]
    assert "did not answer the check as franz-go 1.17 or newer" in silent.text
