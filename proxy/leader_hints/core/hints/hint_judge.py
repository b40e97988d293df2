"""Judges the failed partitions of held responses, a limited number at a time.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

import math
from collections import OrderedDict
from functools import partial

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Failure, LeaderHint
from leader_hints.core.cluster.leader_moves import RECENT_MOVES
from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hint_rules import Limit
from leader_hints.core.hints.hold_rules import RECENT, HoldRules
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH

#: Failed partitions that are judged in one step, of all responses together: one response may have
#: thousands.
JUDGED_AT_ONCE = 200


class HintJudge:
    """Applies the hint rules, and remembers when each leader was found first."""

    def __init__(self, rules: HoldRules) -> None:
        self._rules = rules
        #: By route and partition: the epoch of the leader found last, and when it first was.
        self._first_found: OrderedDict[tuple[str, Topic, int], tuple[int, float]] = OrderedDict()

    def judge(self, response: HeldResponse, now: float) -> list[FailedPartition]:
        """Judge some partitions, of most responses all; return these."""
        partitions = response.partitions
        # News that comes before all were judged waits: there may be some each time.
        again = response.news and partitions.judged
        if again or now >= response.confirm_at:
            partitions.stale, response.confirm_at = len(partitions.lacking), math.inf
            response.news = False
        make = partial(_make, response)
        judged: list[FailedPartition] = []
        while len(judged) < JUDGED_AT_ONCE and not partitions.judged:
            partition = partitions.next_one(make)
            self._judge_one(response, partition, now)
            judged.append(partition)
        if partitions.judged and response.hinted and response.first_hint is None:
            response.first_hint = now
            response.deadline = min(response.deadline, now + self._rules.grace)
        return judged

    def _judge_one(self, response: HeldResponse, partition: FailedPartition, now: float) -> None:
        response.apply_answers(partition)
        self._find(response.route, partition, now)
        if now >= partition.good_at:
            partition.hint = partition.found
            response.hinted = True
        if partition.settled:
            return
        response.partitions.lacking.append(partition)
        response.confirm_at = min(response.confirm_at, partition.good_at)
        if response.is_produce and not response.sought:
            limit = hint_rules.produce_limit(response.route, partition, RECENT)
            response.exposed |= limit is Limit.NOT_AT_ALL
            if limit is Limit.GRACE:
                response.deadline = min(response.deadline, response.since + self._rules.grace)

    def _find(self, route: Route, partition: FailedPartition, now: float) -> None:
        """Look whether there is a good hint, and when it is to be given."""
        rules = self._rules
        partition.known, found, partition.reason = hint_rules.judge(route, partition, RECENT)
        if found is None:
            partition.found, partition.good_at = None, math.inf
            return
        if found != partition.found:
            partition.found = found
            partition.found_at = self._found_at(route, partition, found, now)
        confirmed = hint_rules.confirmation(route, partition, found)
        if confirmed is None:
            partition.good_at = partition.found_at + rules.confirm
        else:
            partition.good_at = now if confirmed else math.inf
        if not hint_rules.is_settled(route, partition):
            partition.good_at = math.inf

    def _found_at(
        self, route: Route, partition: FailedPartition, found: LeaderHint, now: float
    ) -> float:
        """Return when this leader was found first: a silent one is waited for once."""
        key = (route.name, *partition.failure[:2])
        epoch, first = self._first_found.get(key, (UNKNOWN_EPOCH, now))
        if epoch != found.epoch:
            first = now
            self._first_found[key] = found.epoch, now
            self._first_found.move_to_end(key)
            if len(self._first_found) > RECENT_MOVES:
                self._first_found.popitem(last=False)
        return first


def _make(response: HeldResponse, failure: Failure, epoch: int) -> FailedPartition:
    led = hint_rules.led_epoch(response.route, failure)
    settles = response.held.unhinted is not None
    return FailedPartition(failure, epoch, response.since, led, settles=settles)
