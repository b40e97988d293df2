"""Responses that go on immediately: what is reported, and that no byte of them changes."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import ClientSeen, Event, HintMissed, Recovered
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.core.brokers import NAMES, route_before
from tests.core.conversation import ONE, TWO
from tests.core.links import Driven, route
from tests.core.samples import (
    BROKER_3_6,
    FENCED,
    NOT_LEADER,
    answer,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
    versions_answer,
)

P, F = ApiKey.PRODUCE, ApiKey.FETCH
#: What is asked of brokers of 2.4 to 3.6 where no hint goes, and why none.
_COUNTED = [
    *((P, version, Mode.ON, MissReason.VERSION_WITHOUT_FIELD) for version in range(3, 10)),
    *((P, version, Mode.OBSERVE, MissReason.VERSION_WITHOUT_FIELD) for version in range(3, 9)),
    *((F, version, Mode.ON, MissReason.VERSION_WITHOUT_FIELD) for version in range(4, 12)),
    *((F, version, Mode.OBSERVE, MissReason.VERSION_WITHOUT_FIELD) for version in range(4, 12)),
    *((F, version, Mode.ON, MissReason.NOT_USABLE_BY_CLIENT) for version in range(12, 16)),
]
_EACH = pytest.mark.parametrize(("key", "version", "mode", "reason"), _COUNTED)


def _asked(key: int, version: int, number: int = 1, **values: object) -> bytes:
    if key == P:
        return produce_request(version, number)
    topic = ONE if version >= 13 else "one"
    return fetch_request(version, number, {(topic, 0): 5}, **values)  # type: ignore[arg-type]


def _answered(key: int, version: int, errors: list[int], number: int = 1) -> bytes:
    if key == P:
        return produce_answer(version, number, dict(enumerate(errors)), topic="one")
    topic = ONE if version >= 13 else "one"
    partitions = [(topic, n, error, bytes(50)) for n, error in enumerate(errors)]
    return fetch_answer(version, number, partitions)


def _driven(route: Route, **options: object) -> Driven:
    return Driven(route, decide=lambda held: [None] * len(held.scanned.failures), **options)  # type: ignore[arg-type]


def _passed(driven: Driven, asked: bytes, answered: bytes, cuts: Iterable[int] = ()) -> list[Event]:
    """Let an exchange pass, byte for byte; return what was reported."""
    sent, got = len(driven.to_broker), len(driven.to_client)
    driven.up(asked)
    driven.down(answered, cuts)
    assert driven.to_broker[sent:] == asked
    assert driven.to_client[got:] == answered
    assert driven.held is None
    assert driven.budget.used == 0
    events, driven.link.state.events = driven.link.state.events, []
    return events


def _missed(events: Iterable[Event]) -> list[tuple[int, int, str]]:
    """Return partition, error and reason of the hints that were missed."""
    return [
        (event.answered.partition, event.answered.error, event.reason)
        for event in events
        if isinstance(event, HintMissed)
    ]


@_EACH
def test_errors_without_a_hint_are_reported(
    key: int, version: int, mode: Mode, reason: str
) -> None:
    driven = _driven(route_before("3.6", mode))
    answered = _answered(key, version, [0, NOT_LEADER, 3, FENCED])
    events = _passed(driven, _asked(key, version), answered)
    assert _missed(events) == [(1, NOT_LEADER, reason), (3, FENCED, reason)]
    first = events[0]
    assert isinstance(first, HintMissed)
    assert (first.answered.api, first.answered.version) == (
        "Produce" if key == P else "Fetch",
        version,
    )
    assert (first.answered.topic, first.answered.client_id) == ("one", "c")
    assert (first.answered.hold_ms, first.answered.observed) == (0.0, mode is Mode.OBSERVE)
    assert not driven.link.state.traffic.raw


@_EACH
def test_what_succeeds_shows_nothing(key: int, version: int, mode: Mode, reason: str) -> None:
    driven = _driven(route_before("3.6", mode))
    for errors in ([], [0], [3], [0, 0, 3]):
        assert _passed(driven, _asked(key, version), _answered(key, version, errors)) == []


@given(st.sampled_from(_COUNTED), st.lists(st.integers(1, 700), max_size=20), st.integers(400, 500))
def test_however_they_come(
    cell: tuple[int, int, Mode, str], cuts: list[int], buffer_size: int
) -> None:
    key, version, mode, reason = cell
    driven = _driven(route_before("3.6", mode), buffer_size=buffer_size)
    answered = _answered(key, version, [NOT_LEADER, 0, FENCED, 0])
    events = _passed(driven, _asked(key, version), answered, cuts)
    assert _missed(events) == [(0, NOT_LEADER, reason), (2, FENCED, reason)]


@pytest.mark.parametrize("cut", [None, 1])
def test_of_a_large_fetch_nothing_is_kept(cut: int | None) -> None:
    driven = _driven(route_before("3.6"), budget=Budget(0, 0), buffer_size=1000)
    large = [("one", 0, 0, random.Random(1).randbytes(50_000)), ("one", 1, FENCED, b"")]
    answered = fetch_answer(11, 1, large)
    cuts = range(1, len(answered), 777) if cut else ()
    events = _passed(driven, _asked(F, 11), answered, cuts)
    assert _missed(events) == [(1, FENCED, MissReason.VERSION_WITHOUT_FIELD)]


def test_an_error_is_reported_before_the_rest_of_the_response_has_come() -> None:
    driven = _driven(route_before("3.6"))
    driven.up(_asked(F, 11))
    partitions = [("one", 0, NOT_LEADER, b""), ("one", 1, 0, bytes(3000))]
    driven.down(fetch_answer(11, 1, partitions)[:200])
    assert len(driven.to_client) == 200
    assert len(_missed(driven.link.state.events)) == 1


def test_while_nothing_is_known_of_the_broker_it_cannot_be_asked() -> None:
    before = route_before("3.6")
    before.broker.plan = None
    driven = _driven(before)
    driven.up(_hello(name="apache-kafka-java").replace(b"1.2", b"3.9"))
    driven.link.state.exchanges.waiting.clear()
    driven.link.state.events.clear()
    driven.to_broker.clear()
    events = _passed(driven, _asked(F, 15), _answered(F, 15, [FENCED]))
    assert _missed(events) == [(0, FENCED, MissReason.NO_FRESHER_VIEW)]


@pytest.mark.parametrize("kind", ["off", "native", "very old"])
def test_plain_relays_count_nothing(kind: str) -> None:
    if kind == "native":
        before = route_before("3.7")
    else:
        before = route_before("3.6", Mode.OFF if kind == "off" else Mode.ON)
    driven = _driven(before)
    for key, version in ((P, 3), (F, 4)) if kind == "very old" else ((P, 8), (F, 11), (F, 15)):
        asked, answered = _asked(key, version), _answered(key, version, [NOT_LEADER])
        if kind == "very old":
            asked = asked[:6] + (version - 1).to_bytes(2) + asked[8:]
        assert _passed(driven, asked, answered) == []


@pytest.mark.parametrize("version", [4, 10, 11, 12, 14, 15])
@pytest.mark.parametrize("software", ["", "apache-kafka-java"])
def test_a_follower_s_fetch_is_counted_apart(version: int, software: str) -> None:
    before = route_before("3.6")
    tracker = Recovery([before])
    driven = _driven(before, recovery=tracker)
    if software:
        hello = request(18, 3, 9, client_software_name=software, client_software_version="3.9.1")
        driven.up(hello)
        driven.link.state.exchanges.waiting.clear()
        driven.link.state.events.clear()
    asked = _asked(F, version, replica_id=2)
    events = _passed(driven, asked, _answered(F, version, [FENCED, 0, NOT_LEADER]))
    assert _missed(events) == [(0, FENCED, MissReason.REPLICA), (2, NOT_LEADER, MissReason.REPLICA)]
    assert not before.awaited


@pytest.mark.parametrize(("key", "version", "sent"), [(P, 10, 9), (F, 16, 15)])
def test_errors_beyond_the_budget_are_reported(key: int, version: int, sent: int) -> None:
    driven = _driven(route_before("3.6"), budget=Budget(100, 100), buffer_size=400)
    answered = _answered(key, sent, [NOT_LEADER] + [0] * 20 + [NOT_LEADER])
    driven.up(_asked(key, version))
    driven.down(answered, [150, 300])
    assert driven.to_client == answered
    events = driven.link.state.events
    expected = [(0, NOT_LEADER, MissReason.BUDGET), (21, NOT_LEADER, MissReason.BUDGET)]
    assert _missed(events) == expected
    assert driven.link.state.traffic.raw["budget"] >= 1


@pytest.mark.parametrize(("key", "version", "release"), [(P, 9, "2.6"), (F, 12, "2.6")])
def test_errors_in_what_is_recoded_are_reported(key: int, version: int, release: str) -> None:
    driven = _driven(route_before(release))
    # librdkafka can use no hint in Fetch 12, and nobody any in Produce 9.
    hello = request(18, 3, 9, client_software_name="librdkafka", client_software_version="2.5.0")
    driven.up(hello)
    driven.link.state.exchanges.waiting.clear()
    driven.up(_asked(key, version))
    driven.down(_answered(key, {P: 8, F: 11}[ApiKey(key)], [0, NOT_LEADER]))
    assert driven.to_client == _answered(key, version, [0, NOT_LEADER])
    (_, missed) = driven.link.state.events
    assert isinstance(missed, HintMissed)
    assert (missed.answered.version, missed.answered.software) == (version, "librdkafka/2.5.0")
    assert missed.reason == (
        MissReason.NOT_USABLE_BY_CLIENT if key == F else MissReason.VERSION_WITHOUT_FIELD
    )


def test_a_response_that_ends_too_early_is_counted_and_goes_on() -> None:
    driven = _driven(route_before("3.6"))
    answered = _answered(P, 8, [NOT_LEADER, 0])[:-20]
    answered = (len(answered) - 4).to_bytes(4) + answered[4:]
    events = _passed(driven, _asked(P, 8), answered)
    assert [type(event).__name__ for event in events] == ["HintMissed", "NotUnderstood"]
    # What follows is looked at all the same.
    events = _passed(driven, _asked(P, 8), _answered(P, 8, [NOT_LEADER]))
    assert len(_missed(events)) == 1


# Who the client is.


def _hello(version: int = 3, name: str = "lib") -> bytes:
    return request(18, version, 9, "me", client_software_name=name, client_software_version="1.2")


def test_a_client_is_reported_once_with_what_it_says_of_itself() -> None:
    driven = _driven(route_before("3.6"))
    driven.up(_hello() + _hello())
    driven.down(2 * versions_answer(3, 9, BROKER_3_6))
    _serve(driven)
    _serve(driven)
    assert driven.link.state.events == [
        ClientSeen(route="route", link=1, client_id="me", software="lib", version="1.2")
    ]


def test_what_a_client_says_is_not_reported_before_its_broker_has_served_it() -> None:
    driven = _driven(route_before("3.6"))
    driven.up(_hello() + request(17, 1, 1, mechanism="PLAIN"))
    driven.down(versions_answer(3, 9, BROKER_3_6) + answer(17, 1, 1))
    assert driven.link.state.events == []
    _serve(driven)
    assert [type(event) for event in driven.link.state.events] == [ClientSeen]


def test_where_the_broker_serves_anybody_a_client_is_reported_at_once() -> None:
    at = route_before("3.6")
    at.broker.serves_anybody = True
    driven = _driven(at)
    driven.up(_hello())
    driven.down(versions_answer(3, 9, BROKER_3_6))
    assert [type(event) for event in driven.link.state.events] == [ClientSeen]


def _serve(driven: Driven) -> None:
    driven.up(request(3, 1, 3, topics=()))
    driven.down(answer(3, 1, 3))


def test_a_client_that_says_nothing_is_not_told() -> None:
    driven = _driven(route_before("3.6"))
    driven.up(request(18, 2, 9) + produce_request(8, 1))
    assert driven.link.state.events == []


def test_what_a_client_says_is_cut_where_it_has_no_end() -> None:
    driven = _driven(route_before("3.6"))
    driven.up(_hello(name="x" * 1000))
    driven.down(versions_answer(3, 9, BROKER_3_6))
    _serve(driven)
    (seen,) = driven.link.state.events
    assert isinstance(seen, ClientSeen)
    assert seen.software == "x" * 255


# Recovery.

_EXCHANGES = [
    *((P, version, Mode.ON) for version in range(3, 11)),
    *((P, version, Mode.OBSERVE) for version in range(3, 10)),
    *((F, version, Mode.ON) for version in range(4, 17)),
    *((F, version, Mode.OBSERVE) for version in range(4, 16)),
]
_SENT = {(P, 10): 9, (F, 16): 15}


def _recover(
    driven: Driven, key: int, version: int, errors: list[int], cuts: Iterable[int] = ()
) -> list[Event]:
    """Let an exchange pass that may be hinted; return what was reported."""
    driven.up(_asked(key, version))
    sent = (
        _SENT.get((ApiKey(key), version), version)
        if driven.link.state.policies.plan.rows
        else version
    )
    answered = _answered(key, sent, errors)
    at = len(driven.to_client)
    driven.down(answered, cuts)
    assert driven.to_client[at:] == answered
    events, driven.link.state.events = driven.link.state.events, []
    return [event for event in events if isinstance(event, Recovered)]


@pytest.mark.parametrize(("key", "version", "mode"), _EXCHANGES)
@pytest.mark.parametrize("cuts", [(), (11, 40, 90, 150)])
def test_the_first_success_after_an_error_is_reported(
    key: int, version: int, mode: Mode, cuts: tuple[int, ...]
) -> None:
    before = route_before("3.6", mode)
    now = [100.0]
    driven = _driven(before, recovery=Recovery([before], lambda: now[0]))
    assert _recover(driven, key, version, [0, NOT_LEADER], cuts) == []
    assert before.awaited
    now[0] += 0.25
    assert _recover(driven, key, version, [0, NOT_LEADER], cuts) == []
    now[0] += 0.25
    (recovered,) = _recover(driven, key, version, [0, 0], cuts)
    assert recovered == Recovered(
        route="route",
        link=1,
        client_id="c",
        software="",
        api="Produce" if key == P else "Fetch",
        topic="one",
        partition=1,
        epoch=6,
        recovery_ms=500.0,
        hinted=False,
    )
    assert not before.awaited
    assert _recover(driven, key, version, [0, 0], cuts) == []


@pytest.mark.parametrize(("session", "told"), [((0, -1), 1), ((4, 0), 1), ((4, 1), 0)])
@pytest.mark.parametrize("version", [7, 11, 12, 15])
def test_a_fetch_without_records_succeeds_where_all_was_asked(
    session: tuple[int, int], told: int, version: int
) -> None:
    before = route_before("3.6")
    driven = _driven(before, recovery=Recovery([before]))
    assert _recover(driven, F, version, [NOT_LEADER]) == []
    topic = ONE if version >= 13 else "one"
    driven.up(fetch_request(version, 2, {(topic, 0): 5}, session=session))
    driven.down(fetch_answer(version, 2, [(topic, 0, 0, b"")]))
    events = driven.link.state.events
    assert len([event for event in events if isinstance(event, Recovered)]) == told


def test_a_follower_does_not_recover() -> None:
    before = route_before("3.6")
    driven = _driven(before, recovery=Recovery([before]))
    assert _recover(driven, F, 11, [NOT_LEADER]) == []
    driven.up(_asked(F, 11, 2, replica_id=3))
    driven.down(_answered(F, 11, [0], 2))
    assert driven.link.state.events == []


@pytest.mark.parametrize(
    ("release", "key", "version", "sent"),
    [("2.6", P, 10, 8), ("2.6", F, 12, 11), ("2.8", F, 16, 12), ("2.8", P, 10, 9)],
)
def test_recoveries_in_what_is_recoded_are_reported(
    release: str, key: int, version: int, sent: int
) -> None:
    before = route_before(release)
    driven = _driven(before, recovery=Recovery([before]))
    driven.up(_hello(name="apache-kafka-java").replace(b"1.2", b"9.2"))
    driven.link.state.exchanges.waiting.clear()
    for errors, told in (([NOT_LEADER, 0], 0), ([0, 0], 1), ([0, 0], 0)):
        driven.link.state.events.clear()
        driven.up(_asked(key, version))
        topic = "one"
        if key == P:
            down = produce_answer(sent, 1, dict(enumerate(errors)), topic=topic)
        else:
            down = fetch_answer(sent, 1, [(topic, n, e, b"r") for n, e in enumerate(errors)])
        driven.down(down)
        recovered = [e for e in driven.link.state.events if isinstance(e, Recovered)]
        assert len(recovered) == told
        assert all((e.topic, e.partition) == ("one", 0) for e in recovered)


@pytest.mark.parametrize(
    ("key", "version", "serves"), [(P, 10, True), (P, 8, True), (F, 16, False)]
)
def test_a_produce_that_succeeds_shows_that_the_broker_serves(
    key: int, version: int, serves: bool
) -> None:
    # A Fetch may be answered by a follower.
    now = 0.0
    view = LeaderView("cluster", lambda: now)
    for leader in (Led(0, 2, 5), Led(0, 1, 6)):
        moves = view.learn(TopicMetadata(0, NAMES[ONE], ONE, (leader,)), 2)
    before = route_before("3.6")
    before.broker.view, before.broker.node = view, 1
    recovery = Recovery([before])
    for move in moves:
        recovery.take(move)
    driven = _driven(before, recovery=recovery)
    now = 0.5
    assert not view.serves("one", 0)
    assert _recover(driven, key, version, [0])
    assert view.serves("one", 0) is serves


def test_while_nothing_is_awaited_nothing_is_reported() -> None:
    before = route()
    driven = _driven(before)
    assert _recover(driven, P, 10, [0]) == []
    assert not before.awaited


def test_names_known_to_the_view() -> None:
    assert NAMES[ONE] == "one"
    before = route_before("3.6")
    driven = _driven(before)
    driven.up(fetch_request(13, 1, {(TWO, 0): 5}))
    driven.down(fetch_answer(13, 1, [(TWO, 0, FENCED, b"")]))
    (missed,) = driven.link.state.events
    assert isinstance(missed, HintMissed)
    assert missed.answered.topic == NAMES[TWO]
