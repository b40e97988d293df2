"""Leaders are sought for errors that went on without a hint, of a bounded number of partitions."""

import gc
import tracemalloc

import pytest

from leader_hints.core.hints.hint_judge import JUDGED_AT_ONCE
from leader_hints.core.hints.hold_rules import CALM
from leader_hints.core.hints.sought_leaders import MOST_SOUGHT
from leader_hints.core.link.link_state import LinkState
from tests.core.hold_queues import BEGIN, Counter, hint, learn, route
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import NOT_LEADER

T = BEGIN
_OVER = T + 0.2


def _decide(counter: Counter, now: float) -> None:
    """Let all be judged, and all go on whose time is over then, and be reported."""
    for at in (now - 0.15, now):
        counter.review(at)
        while counter.queue.unfinished:
            counter.review(at)
    counter.take_events()


def _sought(counter: Counter) -> int:
    return sum(map(len, counter.queue.wanted_leaders()))


def test_only_so_many_partitions_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.hints.sought_leaders.MOST_SOUGHT", 5)
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(9), (1, 5)))
    assert counter.produce(LinkState(on, 1), T, 0, 1, 2) is None
    assert counter.produce(LinkState(on, 2), T, 2, 3, 4, 5, 6) is None
    assert counter.produce(LinkState(on, 3), T, 7) is None
    _decide(counter, _OVER)
    (wanted,) = counter.queue.wanted_leaders()
    assert {partition for _, partition in wanted.epochs} == {0, 1, 2, 3, 4}
    # One that is found makes room for another one.
    learn(on, {0: (2, 6)}, source=2)
    counter.review(_OVER)
    assert counter.produce(LinkState(on, 4), _OVER, 8) is None
    _decide(counter, _OVER + 0.2)
    (wanted,) = counter.queue.wanted_leaders()
    assert {partition for _, partition in wanted.epochs} == {1, 2, 3, 4, 8}
    # After a while all make room. What was not sought may be held again.
    later = _OVER + 0.2 + CALM
    _decide(counter, later)
    assert counter.queue.wanted_leaders() == []
    assert counter.produce(LinkState(on, 5), later, *range(9)) is None
    _decide(counter, later + 0.2)
    assert _sought(counter) == 5


def test_of_a_large_response_only_what_is_sought_is_kept() -> None:
    """All but one partition are sought for another response already."""
    each = 1000
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(each + 10), (1, 5)))
    assert counter.produce(LinkState(on, 1), T, *range(each)) is None
    _decide(counter, _OVER)
    assert _sought(counter) == each
    tracemalloc.start()
    try:
        for number in range(10):
            link = LinkState(on, 2 + number)
            assert counter.produce(link, _OVER, *range(each), each + number) is None
            del link
            _decide(counter, _OVER + 0.2)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert _sought(counter) == each + 10
    assert kept < 10 * 20_000


def test_what_is_sought_costs_no_more_than_is_said() -> None:
    """Each of another link and topic, which costs most."""
    each = 2000
    counter, on = Counter(), route()
    for number in range(each):
        learn(on, {0: (1, 5)}, topic=f"topic-{number}")
    links = [LinkState(on, number) for number in range(each)]
    tracemalloc.start()
    try:
        for number, link in enumerate(links):
            counter.produce(link, T, topic=f"topic-{number}")
        _decide(counter, _OVER)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert _sought(counter) == each
    assert MOST_SOUGHT * kept / each < 50_000_000


def test_what_is_sought_of_a_response_keeps_what_its_broker_answered() -> None:
    """The answer came too late for all of a large response to be judged once more."""
    counter, on = Counter(), route()
    count = JUDGED_AT_ONCE + 1
    learn(on, dict.fromkeys(range(count), (1, 6)))
    at = BEGIN + 10
    # Whether this broker leads by now, only itself can say.
    link = LinkState(on, 1)
    assert counter.fetch(link, at, dict.fromkeys(range(count), 5), error=NOT_LEADER) is None
    while counter.review(at) or counter.queue.unfinished:
        pass
    over = at + DEFAULT_RULES.deadline
    counter.queue.probed(on, {("t", number): 0 for number in range(count)}, at + 0.001)
    (hints,) = counter.review(over)
    assert hints == [hint(1, 6)] * JUDGED_AT_ONCE + [None]
    while counter.review(over) or counter.queue.unfinished:
        pass
    assert counter.queue.wanted_leaders() == []
