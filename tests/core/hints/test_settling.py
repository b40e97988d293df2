"""Errors to clients that can use no hint wait until the Metadata of all brokers is fresh."""

import math
from dataclasses import dataclass, replace

import pytest

from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_moves import SILENT
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.wire.steps import at_once
from tests.core.hold_queues import BEGIN, Counter, learn, route
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import FENCED, NOT_LEADER

T = BEGIN
OLD = MissReason.VERSION_WITHOUT_FIELD
_SETTLED = [(OLD, "settled")]


@dataclass
class _Broker:
    reporter: int
    unanswered_since: float = math.inf


def _link(mode: Mode = Mode.ON, *nodes: int) -> LinkState:
    """Return a link to node 1, which led partitions 0 and 1 at epoch 5; all brokers are awaited."""
    link = LinkState(route(mode), 1)
    learn(link.route, {0: (1, 5), 1: (1, 5)})
    _expect(link, *(nodes or (1, 2, 3)))
    return link


def _view(link: LinkState) -> LeaderView:
    assert link.route.broker.view is not None
    return link.route.broker.view


def _expect(link: LinkState, *nodes: int) -> None:
    _view(link).metadata_brokers.expect([_Broker(node) for node in nodes], T)


def test_a_produce_error_waits_until_all_brokers_name_the_leader() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, unhinted=OLD) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.004) == []
    learn(link.route, {0: (2, 6)}, source=1)
    assert counter.review(T + 0.005) == []
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.review(T + 0.006) == [[None]]
    assert counter.settled() == _SETTLED


def test_a_fetch_error_is_settled_under_the_same_leader() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 5}, error=FENCED, unhinted=OLD) is None
    for node in (3, 2):
        learn(link.route, {0: (1, 6)}, source=node)
    assert counter.review(T + 0.004) == []
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.004))
    learn(link.route, {0: (1, 6)}, source=1)
    assert counter.review(T + 0.005) == [[None]]
    assert counter.settled() == _SETTLED


def test_a_fenced_epoch_that_is_not_known_may_be_of_the_move_that_is_known() -> None:
    link, counter = _link(), Counter()
    for node in (1, 2, 3):
        learn(link.route, {0: (1, 6)}, source=node)
    assert counter.fetch(link, T, {0: -1}, error=FENCED, unhinted=OLD) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): 6}
    counter.queue.probed(link.route, {("t", 0): 0}, T + 0.001)
    assert counter.review(T + 0.002) == [[None]]
    assert counter.settled() == _SETTLED


def test_a_fenced_epoch_that_is_not_known_may_be_of_a_move_that_is_not_known() -> None:
    link, counter = _link(), Counter()
    counter.fetch(link, T, {0: -1}, error=FENCED, unhinted=OLD)
    # Metadata lags, and the broker's answer shows that it does.
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    counter.queue.probed(link.route, {("t", 0): FENCED}, T + 0.001)
    assert counter.review(T + 0.05) == []
    for node in (1, 2, 3):
        learn(link.route, {0: (2, 6)}, source=node)
    assert counter.review(T + 0.06) == [[None]]
    assert counter.settled() == _SETTLED


def test_metadata_is_not_enough_before_the_leader_serves() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    for node in (1, 3):
        learn(link.route, {0: (2, 6)}, source=node)
    _expect(link, 1, 3)
    _view(link).leader_denies("t", 0, Leader(2, 6))
    assert counter.review(T + 0.05) == []
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.06) == [[None]]


def test_an_error_of_a_move_that_all_brokers_know_goes_at_once() -> None:
    link, counter = _link(), Counter()
    for node in (1, 2, 3):
        learn(link.route, {0: (2, 6)}, source=node)
    assert counter.produce(link, T, unhinted=OLD) == [None]
    assert counter.settled() == _SETTLED


def test_nothing_is_settled_before_any_broker_is_awaited() -> None:
    link, counter = LinkState(route(), 1), Counter()
    learn(link.route, {0: (1, 5)})
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T, unhinted=OLD) is None


def test_a_broker_that_lags_costs_the_deadline_and_no_more() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    for node in (1, 2):
        learn(link.route, {0: (2, 6)}, source=node)
    assert counter.review(T + DEFAULT_RULES.deadline - 0.001) == []
    assert counter.review(T + DEFAULT_RULES.deadline) == [[None]]
    assert counter.settled() == [(OLD, "metadata_behind")]


def test_a_broker_that_is_silent_is_left_out() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    for node in (1, 2):
        learn(link.route, {0: (2, 6)}, source=node)
    brokers = [_Broker(1), _Broker(2), _Broker(3, T)]
    _view(link).metadata_brokers.expect(brokers, T + SILENT - 0.001)
    assert counter.review(T + SILENT - 0.001) == []
    _view(link).metadata_brokers.expect(brokers, T + SILENT)
    assert counter.review(T + SILENT) == [[None]]
    assert counter.settled() == _SETTLED


def test_that_others_are_awaited_is_said_once() -> None:
    brokers = _view(_link()).metadata_brokers
    awaited = [_Broker(1), _Broker(2, T)]
    assert brokers.expect(awaited, T)
    assert not brokers.expect(awaited, T + SILENT - 0.001)
    assert brokers.expect(awaited, T + SILENT)


def test_an_error_whose_leader_is_not_found_says_why() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    assert counter.review(T + DEFAULT_RULES.deadline) == [[None]]
    assert counter.settled() == [(OLD, "hold_expired")]


def test_a_produce_error_of_a_broker_that_comes_to_lead_does_not_wait() -> None:
    """Rule 9: a new leader takes what the client has sent behind the error."""
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    learn(link.route, {0: (1, 7)}, source=2)
    assert counter.produce(link, T, unhinted=OLD) == [None]
    assert counter.settled() == [(OLD, "leader_not_ready")]


def test_an_error_of_a_partition_without_a_leader_does_not_wait() -> None:
    link, counter = _link(), Counter()
    counter.fetch(link, T, {0: 5}, error=NOT_LEADER, unhinted=OLD)
    learn(link.route, {0: (-1, 6)}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.002) == [[None]]
    assert counter.settled() == [(OLD, "no_leader")]


def test_the_kill_switch_lets_errors_go() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    link.route.switch(Mode.OFF)
    assert [hints for _, hints in counter.queue.switched(link.route, T)] == [[None]]
    assert counter.settled() == [(OLD, "hints_off")]
    assert counter.produce(link, T, unhinted=OLD) == [None]
    assert counter.settled() == [(OLD, "hints_off")]


def test_observe_counts_what_would_have_been_settled() -> None:
    link, counter = _link(Mode.OBSERVE), Counter()
    assert counter.produce(link, T, unhinted=OLD) == [None]
    for node in (1, 2, 3):
        learn(link.route, {0: (2, 6)}, source=node)
    assert counter.review(T + 0.01) == []
    assert counter.settled() == _SETTLED


def test_a_link_waits_no_longer_for_metadata_than_for_hints() -> None:
    rules = replace(DEFAULT_RULES, link_second=0.05)
    link, counter = _link(), Counter(rules)
    counter.produce(link, T, unhinted=OLD)
    assert counter.review(T + 0.05) == [[None]]
    counter.settled()
    assert counter.produce(link, T + 0.1, 1, unhinted=OLD) == [None]
    assert counter.settled() == [(OLD, "link_hold_spent")]


def test_what_was_not_settled_is_sought_on() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, unhinted=OLD)
    learn(link.route, {0: (2, 6)}, source=2)
    counter.review(T + DEFAULT_RULES.deadline)
    (wanted,) = counter.queue.wanted_leaders()
    assert [node for node in (1, 2, 3) if wanted.awaits_metadata_of(node)] == [1, 3]


@pytest.mark.parametrize("unhinted", [OLD, None])
def test_hints_do_not_wait_for_metadata(unhinted: MissReason | None) -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    held = counter.produce(link, T, unhinted=unhinted) is None
    assert held == (unhinted is not None)
