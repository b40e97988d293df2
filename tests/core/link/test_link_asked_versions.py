"""The versions that a link's client asks are noted, once the broker has answered some request."""

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.core.events import ClientSeen
from leader_hints.core.versions.asked_versions import ClientName
from tests.apis.messages import element, plain, request_type
from tests.core.brokers import route_before
from tests.core.links import Driven, route
from tests.core.samples import (
    answer,
    produce_answer,
    produce_request,
    request,
    versions_answer,
)

_SARAMA = {"client_software_name": "sarama", "client_software_version": "1.27.0"}
_HEARTBEAT = 12


def _asked(driven: Driven) -> dict[ClientName, dict[int, tuple[int, int]]]:
    return {name: one.versions for name, one in driven.link.state.route.asked}


def test_what_was_answered_is_noted_under_the_name_of_the_client() -> None:
    driven = Driven(route())
    driven.up(request(18, 3, 0, **_SARAMA))
    driven.down(versions_answer(3, 0, {}))
    driven.up(produce_request(7, 1) + request(_HEARTBEAT, 0, 2))
    assert not _asked(driven)
    driven.down(produce_answer(7, 1, {0: 0}) + answer(_HEARTBEAT, 0, 2))
    driven.up(produce_request(3, 3))
    driven.down(produce_answer(3, 3, {0: 0}))

    asked = {ApiKey.PRODUCE: (3, 7), _HEARTBEAT: (0, 0)}
    assert _asked(driven) == {ClientName("sarama/1.27.0", "c"): asked}


def test_a_client_whose_first_request_is_not_there_at_once_is_noted_by_its_id() -> None:
    driven = Driven(route())
    topic = element(request_type(ApiKey.METADATA, 1), "topics")
    asked = request(3, 1, 0, topics=tuple(plain(topic, name=f"topic-{n}") for n in range(999)))
    driven.up(asked[:4096])
    driven.up(asked[4096:])
    driven.down(answer(3, 1, 0))

    assert _asked(driven) == {ClientName("", "c"): {ApiKey.METADATA: (1, 1)}}


def test_what_was_noted_is_noted_again_once_it_is_asked_for() -> None:
    driven = Driven(route())
    asked = driven.link.state.route.asked

    def reported(version: int, number: int) -> list[tuple[tuple[int, int, int], ...]]:
        driven.up(produce_request(version, number))
        driven.down(produce_answer(version, number, {0: 0}))
        return [event.asked for events in asked.changes("r") for event in events]

    asked.begin_day("2026-01-01")
    assert reported(7, 1) == [((0, 7, 7),)]
    assert not reported(7, 2)
    asked.begin_day("2026-01-02")
    driven.link.state.policies.note_again()
    assert reported(7, 3) == [((0, 7, 7),)]
    assert not reported(7, 4)


def test_what_a_broker_answers_to_anybody_is_noted_only_behind_something_else() -> None:
    driven = Driven(route())
    driven.up(request(17, 0, 0, mechanism="PLAIN") + request(17, 0, 1, mechanism="PLAIN"))
    driven.down(answer(17, 0, 0))
    assert not _asked(driven)
    driven.down(answer(17, 0, 1))
    assert not _asked(driven)


def test_a_client_that_never_asks_for_versions_is_noted_without_a_name() -> None:
    driven = Driven(route())
    driven.up(request(_HEARTBEAT, 2, 1))
    driven.down(answer(_HEARTBEAT, 2, 1))

    assert _asked(driven) == {ClientName("", "c"): {_HEARTBEAT: (2, 2)}}


def test_what_is_answered_by_nobody_is_noted_where_the_broker_serves_any_client() -> None:
    before = route_before("2.6")
    before.broker.serves_anybody = True
    driven = Driven(before)
    driven.up(produce_request(3, 1, acks=0))

    assert _asked(driven) == {ClientName("", "c"): {ApiKey.PRODUCE: (3, 3)}}


def test_where_a_client_comes_from_is_noted_without_its_port() -> None:
    for address, host in (("192.0.2.1:50123", "192.0.2.1"), ("[2001:db8::1]:5", "2001:db8::1")):
        driven = Driven(route(), address=address, principal="CN=c")
        driven.up(request(_HEARTBEAT, 2, 1))
        driven.down(answer(_HEARTBEAT, 2, 1))
        ((_, asked),) = driven.link.state.route.asked
        assert (asked.addresses, asked.principals) == ((host,), ("CN=c",))


def test_a_client_that_was_not_authenticated_leaves_nothing() -> None:
    """Names and versions of anybody would fill what is kept, and the journal."""
    driven = Driven(route())
    for number in range(50):
        driven.up(request(18, 3, number, client_software_name=f"x{number}"))
        driven.down(versions_answer(3, number, {}))
    driven.up(request(17, 1, 50, mechanism="PLAIN"))
    driven.down(answer(17, 1, 50))
    assert not _asked(driven)
    assert not [*driven.link.state.route.asked.changes("r")]


def _begins_sasl(driven: Driven) -> None:
    driven.up(request(18, 3, 1, **_SARAMA) + request(17, 1, 2, mechanism="PLAIN"))
    driven.down(versions_answer(3, 1, {}) + answer(17, 1, 2))


def test_a_client_that_its_broker_refuses_leaves_nothing() -> None:
    """After SaslHandshake v1 a broker answers one request with an error, and ends the connection:
    SaslServerAuthenticator."""
    driven = Driven(route())
    _begins_sasl(driven)
    driven.up(produce_request(7, 3) + produce_request(3, 4, acks=0))
    driven.down(produce_answer(7, 3, {0: 34}))
    driven.up(produce_request(3, 5, acks=0))
    driven.link.responses.ended()
    driven.link.close()
    assert not _asked(driven)
    assert driven.link.state.events == []


def test_behind_sasl_all_is_noted_once_two_requests_were_answered() -> None:
    driven = Driven(route())
    _begins_sasl(driven)
    driven.up(produce_request(7, 3))
    driven.down(produce_answer(7, 3, {0: 0}))
    assert not _asked(driven)
    driven.up(request(_HEARTBEAT, 0, 4))
    driven.down(answer(_HEARTBEAT, 0, 4))
    asked = {ApiKey.PRODUCE: (7, 7), _HEARTBEAT: (0, 0)}
    assert _asked(driven) == {ClientName("sarama/1.27.0", "c"): asked}
    assert [type(event) for event in driven.link.state.events] == [ClientSeen]


def test_a_client_that_asks_one_kind_of_thing_behind_sasl_is_reported_once() -> None:
    driven = Driven(route())
    _begins_sasl(driven)
    for number in range(4):
        driven.up(produce_request(7, number))
        driven.down(produce_answer(7, number, {0: 0}))
    assert _asked(driven) == {ClientName("sarama/1.27.0", "c"): {ApiKey.PRODUCE: (7, 7)}}
    assert [type(event) for event in driven.link.state.events] == [ClientSeen]


@pytest.mark.parametrize("resets", [False, True])
def test_one_answer_behind_sasl_is_enough_where_the_client_ends_first(resets: bool) -> None:
    """As commands do that ask each broker for one thing."""
    driven = Driven(route())
    _begins_sasl(driven)
    driven.up(request(_HEARTBEAT, 0, 3))
    driven.down(answer(_HEARTBEAT, 0, 3))
    if not resets:
        driven.link.requests.ended()
        driven.link.responses.ended()
    driven.link.close()
    assert _asked(driven) == {ClientName("sarama/1.27.0", "c"): {_HEARTBEAT: (0, 0)}}
