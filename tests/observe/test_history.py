"""What happened in the last hour; times are Unix times."""

import dataclasses

import pytest

from leader_hints.core.events import ClientSeen, HintGiven, HintMissed, Recovered
from leader_hints.observe.history import SLOT, SPAN, History, Percentiles
from tests.observe.watching import ANSWERED, MOVED

_START = 1_800_000_000


class _Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = float(_START)

    def __call__(self) -> float:
        return self.now


def _given(hold_ms: float) -> HintGiven:
    return HintGiven(answered=dataclasses.replace(ANSWERED, hold_ms=hold_ms), leader=2, epoch=2)


def _recovered(api: str, recovery_ms: float | None, hinted: bool) -> Recovered:
    return Recovered(
        route="a",
        link=7,
        client_id="c",
        software="",
        api=api,
        topic="t",
        partition=3,
        epoch=5,
        recovery_ms=recovery_ms,
        hinted=hinted,
    )


def test_slots_count_what_happened_when() -> None:
    clock = _Clock()
    history = History(clock)
    history.take(MOVED)
    history.take(_given(1.0))
    clock.now += SLOT - 0.1
    history.take(HintMissed(answered=ANSWERED, reason="no_leader"))
    clock.now += 3 * SLOT
    history.take(MOVED)

    found = [(s.start - _START, s.moves, s.given, s.missed) for s in history.slots()]
    assert found == [(0, 1, 1, 1), (3 * SLOT, 1, 0, 0)]


def test_what_is_older_than_the_span_is_forgotten() -> None:
    clock = _Clock()
    history = History(clock)
    history.take(MOVED)
    history.take(_given(1.0))
    history.take(_recovered("Fetch", 5.0, True))
    clock.now += SPAN - 1
    assert history.slots()
    assert history.moves()
    assert history.holds("a")
    assert [*history.recoveries("a")]
    clock.now += 1 + SLOT
    assert history.slots() == []
    assert history.moves() == []
    assert history.holds("a") is None
    assert [*history.recoveries("a")] == []


def test_moves_are_the_newest_first_and_bounded() -> None:
    history = History(_Clock())
    for number in range(5000):
        history.take(dataclasses.replace(MOVED, partition=number))

    assert [move.moved.partition for move in history.moves()] == [*range(4999, 4899, -1)]
    assert sum(slot.moves for slot in history.slots()) == 5000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], Percentiles(1, 7.0, 7.0, 7.0, 7.0)),
        ([2.0, 1.0], Percentiles(2, 1.0, 2.0, 2.0, 2.0)),
        ([*map(float, range(100, 0, -1))], Percentiles(100, 50.0, 90.0, 99.0, 100.0)),
        ([*map(float, range(5000))], Percentiles(1000, 4499.0, 4899.0, 4989.0, 4999.0)),
    ],
)
def test_percentiles_are_of_the_newest_times(values: list[float], expected: Percentiles) -> None:
    history = History(_Clock())
    for value in values:
        history.take(_given(value))

    assert history.holds("a") == expected
    assert history.holds("b") is None


def test_what_is_only_observed_was_not_held() -> None:
    history = History(_Clock())
    observed = dataclasses.replace(ANSWERED, observed=True)
    history.take(HintMissed(answered=observed, reason="no_leader"))

    assert history.holds("a") is None
    assert [slot.missed for slot in history.slots()] == [1]


def test_recoveries_are_distinguished_by_api_and_hint() -> None:
    history = History(_Clock())
    history.take(_recovered("Produce", 30.0, True))
    history.take(_recovered("Produce", 130.0, False))
    history.take(_recovered("Fetch", 20.0, True))
    history.take(_recovered("Fetch", None, False))

    found = [(api, hinted, times.most) for api, hinted, times in history.recoveries("a")]
    assert found == [("Fetch", True, 20.0), ("Produce", False, 130.0), ("Produce", True, 30.0)]


def test_when_a_client_was_last_seen() -> None:
    clock = _Clock()
    history = History(clock)
    seen = ClientSeen(route="a", link=1, client_id="c", software="kgo", version="v1.18.0")
    history.take(seen)
    clock.now += 10
    history.take(seen)

    assert history.last_seen(("kgo", "v1.18.0")) == _START + 10
    assert history.last_seen(("kgo", "v1.19.0")) is None


def test_a_clock_that_is_set_back_puts_nothing_into_the_future() -> None:
    clock = _Clock()
    history = History(clock)
    for event in (MOVED, _given(1.0), _recovered("Produce", 5.0, hinted=True)):
        history.take(event)
    clock.now -= 86_400
    assert (history.slots(), history.moves(), history.holds("a")) == ([], [], None)
    assert [*history.recoveries("a")] == []
    history.take(MOVED)
    history.take(_given(2.0))
    (slot,) = history.slots()
    assert (slot.start, slot.moves, slot.given) == (clock.now // SLOT * SLOT, 1, 1)
    assert [at for at, _ in history.moves()] == [clock.now]
    assert history.holds("a") == Percentiles(1, 2.0, 2.0, 2.0, 2.0)
