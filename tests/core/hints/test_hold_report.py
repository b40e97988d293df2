"""What came of responses is reported in steps, completely, and within the budget meanwhile."""

import gc
import tracemalloc

from leader_hints.apis.keys import ApiKey
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.held import Held, cost
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.core.hold_queues import BEGIN, failed, learn, route
from tests.core.rules import DEFAULT_RULES

T = BEGIN
_RESPONSES = 20
_EACH = 950
#: Events that one step reports at most.
_STEP = 400


class _Held:
    """Responses whose failures are reserved of a budget, and a hold queue that holds them."""

    def __init__(self, mode: Mode = Mode.ON) -> None:
        self.queue = HoldQueue(DEFAULT_RULES)
        self.budget = Budget(1 << 20, 1 << 30)
        self.reported = 0
        on = route(mode)
        learn(on, dict.fromkeys(range(_EACH), (1, 5)))
        self.each = [self._submit(on, number) for number in range(_RESPONSES)]
        self.cost = cost(self.each[0].scanned)

    def _submit(self, on: Route, number: int) -> Held:
        held = failed(LinkState(on, number), dict.fromkeys(range(_EACH), -1), ApiKey.PRODUCE)
        account = Account(self.budget)
        account.trust()
        held.account, held.reserved = account, cost(held.scanned)
        assert account.take(0, held.reserved)
        self.queue.submit(held, T)
        self.review(T)
        return held

    def review(self, now: float) -> int:
        """Review once; return how many responses go on."""
        decided = len(self.queue.review(now))
        assert len(self.queue.events) <= _STEP
        self.reported += len(self.queue.events)
        self.queue.events.clear()
        return decided


def _failed_partitions() -> int:
    return sum(isinstance(one, FailedPartition) for one in gc.get_objects())


def test_what_is_decided_counts_until_it_was_reported() -> None:
    held = _Held()
    assert held.budget.used == _RESPONSES * held.cost
    decided = 0
    while held.queue.held:
        decided += held.review(T + 0.2)
    assert decided == _RESPONSES
    assert held.budget.used > (_RESPONSES - 10) * held.cost
    while held.queue.unfinished:
        # Each is given back once its last partition was reported.
        left = _RESPONSES - held.reported // _EACH
        assert (left - 1) * held.cost <= held.budget.used <= left * held.cost
        held.review(T + 0.2)
    assert held.reported == _RESPONSES * _EACH
    assert held.budget.used == 0


def test_what_waits_to_be_reported_costs_less_than_is_reserved_for_it() -> None:
    gc.collect()
    others = _failed_partitions()
    tracemalloc.start()
    try:
        held = _Held()
        while held.queue.held:
            held.review(T + 0.2)
        held.each.clear()
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held.reported < _RESPONSES * _EACH / 2
    # What is known of the cluster is among it.
    assert kept < held.budget.used
    # Only of those that are sought is kept what was known of their leaders.
    assert _failed_partitions() - others <= _EACH


def test_what_a_link_waited_for_that_is_gone_is_given_back() -> None:
    held = _Held()
    for one in held.each[:5]:
        held.queue.forget(one.link.number)
    assert held.budget.used == (_RESPONSES - 5) * held.cost
    while held.queue.held or held.queue.unfinished:
        held.review(T + 0.2)
    assert held.reported == (_RESPONSES - 5) * _EACH
    assert held.budget.used == 0


def test_what_is_only_counted_is_reserved_until_then() -> None:
    held = _Held(Mode.OBSERVE)
    assert held.budget.used == _RESPONSES * held.cost
    while held.queue.held or held.queue.unfinished:
        assert held.review(T + 0.2) == 0
    assert held.reported == _RESPONSES * _EACH
    assert held.budget.used == 0
