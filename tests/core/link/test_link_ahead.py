"""Responses whose heads are looked at where they are, in place of being received."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.core.events import Event, NotUnderstood
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from tests.core.brokers import route_before
from tests.core.conversation import ONE, TWO
from tests.core.links import Driven
from tests.core.samples import FENCED, NOT_LEADER, fetch_answer, fetch_request

_HINT = LeaderHint(2, 7, Endpoint("two", 9092, None))
_KNOWN = [(ONE, 0), (ONE, 1), (TWO, 0), (TWO, 1)]
_RECORDS = st.sampled_from([3000, 9000, 300, 40, 1, 0]).map(bytes)
#: Half of all responses have no error that a hint answers; of the others some have.
_PARTITIONS = st.sampled_from([[0, 3], [0] * 20 + [1, NOT_LEADER, FENCED]]).flatmap(
    lambda errors: st.lists(
        st.tuples(st.sampled_from(_KNOWN), st.sampled_from(errors), _RECORDS),
        min_size=2,
        max_size=6,
    )
)
_ROOMS = st.sampled_from([1, 500, 1 << 20])

Partitions = Sequence[tuple[tuple[bytes, int], int, bytes]]


def _answer(number: int, partitions: Partitions) -> bytes:
    listed = [(topic, n, error, records) for (topic, n), error, records in partitions]
    return fetch_answer(15, number, listed, session_id=7)


class _Link(Driven):
    """A link that has asked as often as is to be answered."""

    def __init__(self, count: int, *, awaited: bool = False, **settings: Any) -> None:
        route = route_before("3.6", settings.pop("mode", Mode.ON))
        self.seen: list[tuple[bytes, object]] = []
        super().__init__(route, decide=self._give, **settings)
        for number in range(count):
            self.up(fetch_request(16, number, dict.fromkeys(_KNOWN, 5)))
        route.awaited = awaited

    def _give(self, held: Held) -> Sequence[LeaderHint | None]:
        self.seen.append((bytes(held.frame), (held.scanned, held.epochs)))
        return [_HINT] * len(held.scanned.failures)

    @property
    def done(self) -> tuple[object, ...]:
        """What can be seen of it from outside."""
        state = self.link.state
        events: list[Event] = [e for e in state.events if not isinstance(e, NotUnderstood)]
        traffic = state.traffic
        return bytes(self.to_client), self.seen, events, traffic.raw, traffic.responses


@given(
    st.lists(_PARTITIONS, min_size=1, max_size=4),
    st.lists(st.integers(1, 40_000), max_size=8),
    _ROOMS,
    st.sampled_from([1, 100, 5000]),
    st.sampled_from([600, 4096, 30_000]),
    st.sampled_from([Mode.ON, Mode.OBSERVE]),
    st.booleans(),
)
@settings(max_examples=200)
def test_does_what_it_does_where_all_is_received(
    answers: Sequence[Partitions],
    cuts: Sequence[int],
    room: int,
    looks_from: int,
    buffer_size: int,
    mode: Mode,
    awaited: bool,
) -> None:
    stream = b"".join(_answer(number, answer) for number, answer in enumerate(answers))
    shape: dict[str, Any] = {"buffer_size": buffer_size, "mode": mode, "awaited": awaited}
    links = [
        _Link(len(answers), **shape),
        _Link(len(answers), looks_from=looks_from, room=room, **shape),
    ]
    for link in links:
        link.down(stream, cuts)
        assert link.link.responses.fault is None
        link.end()
        link.link.close()
        assert link.budget.used == 0
    plain, looking = links
    assert looking.done == plain.done


@given(
    _PARTITIONS,
    st.lists(st.integers(1, 40_000), max_size=6),
    st.integers(0, 40_000),
    _ROOMS,
    st.sampled_from([(0, 0), (700, 1400), (70_000, 70_000)]),
)
def test_a_stream_that_ends_early_and_a_budget_that_is_used_up_lose_no_byte(
    partitions: Partitions,
    cuts: Sequence[int],
    end: int,
    room: int,
    bounds: tuple[int, int],
) -> None:
    stream = _answer(0, [(at, 0, records) for at, _, records in partitions])[:end]
    link = _Link(1, looks_from=1, room=room, buffer_size=600, budget=Budget(*bounds))
    link.down(stream, cuts)
    link.end()
    assert link.to_client == stream
    link.link.close()
    assert link.budget.used == 0


_THREE = [(at, 0, bytes(9000)) for at in _KNOWN[:3]]


def test_records_of_a_response_without_errors_are_not_received() -> None:
    link = _Link(1, looks_from=1000, buffer_size=600)
    responses = link.link.responses
    taken = 0
    frame = _answer(0, _THREE)
    buffer = responses.buffer()
    buffer[:] = frame[: len(buffer)]
    assert responses.received(len(buffer)) == []
    taken += len(buffer)
    pieces = []
    while responses.ahead is not None:
        distance, least, most = responses.ahead
        assert least < 50
        pieces = responses.looked(frame[taken + distance : taken + distance + most])
    assert b"".join(pieces) == frame[:taken]
    assert responses.passing == len(frame) - taken
    responses.passed(responses.passing)
    # Of the next one little is received: it may be like this one.
    assert not responses.begun
    assert len(responses.buffer()) <= 4096


def test_what_does_not_come_is_waited_for_once() -> None:
    link = _Link(1, looks_from=1000, buffer_size=600)
    responses = link.link.responses
    frame = _answer(0, _THREE)
    buffer = responses.buffer()
    buffer[:] = frame[: len(buffer)]
    responses.received(len(buffer))
    ahead = responses.ahead
    assert ahead is not None
    assert responses.looked(b"") == []
    assert responses.ahead is ahead
    assert responses.looked(frame[: ahead.least - 1]) == []
    assert responses.ahead is None
    link.link.close()


def test_a_head_that_was_waited_for_does_not_count_for_the_next() -> None:
    link = _Link(1, looks_from=1000, buffer_size=600)
    responses = link.link.responses
    frame = _answer(0, _THREE)
    taken = len(responses.buffer())
    responses.buffer()[:] = frame[:taken]
    responses.received(taken)
    ahead, heads = responses.ahead, 0
    while ahead is not None:
        responses.looked(b"")
        assert responses.ahead is ahead
        at = taken + ahead.distance
        responses.looked(frame[at : at + ahead.most])
        ahead, heads = responses.ahead, heads + 1
    assert responses.passing
    assert heads == 2
    link.link.close()


@pytest.mark.parametrize("failed", range(3))
def test_only_a_response_with_an_error_is_received(failed: int) -> None:
    partitions = [
        (at, NOT_LEADER if number == failed else 0, records)
        for number, (at, _, records) in enumerate(_THREE)
    ]
    link = _Link(1, looks_from=1000, buffer_size=600)
    frame = _answer(0, partitions)
    link.down(frame)
    ((held, _),) = link.seen
    assert held == frame
    assert len(link.to_client) > len(frame)


def test_nothing_is_looked_at_unless_the_driver_can() -> None:
    link = _Link(1, buffer_size=600)
    link.down(_answer(0, _THREE)[:2000])
    assert link.link.responses.ahead is None
