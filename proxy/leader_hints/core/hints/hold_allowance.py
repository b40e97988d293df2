"""How long a response may be held: rules 4 and 5 of the hold queue.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

import math
from collections import OrderedDict, deque
from itertools import islice

from leader_hints.apis.fetch_response import Topic
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hold_rules import CALM, HoldRules
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH

#: Seconds for which it counts how long a link was held.
_COUNTED = 1.0
#: First errors that are remembered, of 250 bytes each. An error of one that was forgotten may be
#: held once more.
MOST_FIRST_ERRORS = 50_000
#: Those that are forgotten in one step: thousands may have come at the same time. And those that
#: one call notes of a response: more than are judged at once.
_FORGOTTEN_AT_ONCE = 500
_NOTED_AT_ONCE = 2000


class HoldAllowance:
    """When partitions began to fail, and how long links were held lately."""

    def __init__(self, rules: HoldRules) -> None:
        self._rules = rules
        #: Seconds for which a first error counts at most.
        self._longest = max(rules.deadline, rules.kraft) + CALM
        #: By route, partition, epoch, and whether the client was behind it: when its first error
        #: came. In that order.
        self._first_errors: OrderedDict[tuple[str, Topic, int, int, bool], float] = OrderedDict()
        #: By link: when each of its holds ended, and how long it was.
        self._holds: dict[int, deque[tuple[float, float]]] = {}

    def until(self, response: HeldResponse, now: float) -> tuple[float, MissReason]:
        """Return until when to hold, and the reason to give if that is not at all.

        Not the last word while it is ``counting``: the next call goes on.
        """
        route, partitions = response.route, response.partitions
        allowed = self._allowed(response.held, now)
        latest = math.inf
        if partitions.judged:
            if not route.broker.reachable:
                return now, MissReason.NO_FRESHER_VIEW
            # Only of what must wait: an error that is answered immediately begins no hold, and the
            # next one under the same epoch may be the first of another move.
            self._forget_first_errors(now)
            self._count(response, now)
            if response.counting is None:
                latest = response.latest
                if latest <= now:
                    return now, MissReason.HOLD_EXPIRED
        if latest == math.inf:
            # To judge a large one takes a while, and more among others. Without that the hints that
            # are known would be lost.
            allowed += self._rules.grace
        if allowed <= 0:
            return now, MissReason.LINK_HOLD_SPENT
        return min(latest, now + allowed), MissReason.HOLD_EXPIRED

    def _allowed(self, held: Held, now: float) -> float:
        """Return for how many seconds a link may be held for a response by rule 5."""
        rules = self._rules
        allowed = rules.link_second_of(held.link.route) - self._spent(held.link.number, now)
        if held.scanned.carries:
            allowed = min(allowed, rules.shared)
        return allowed

    def spend(self, response: HeldResponse, now: float) -> None:
        """Count a hold that ends now."""
        held_for = now - response.since
        if held_for > 0 and not response.detached:
            link = response.held.link.number
            self._holds.setdefault(link, deque())
            self._lately(link, now).append((now, held_for))

    def forget(self, link: int) -> None:
        """Drop what is known of a link that has ended."""
        self._holds.pop(link, None)

    def _forget_first_errors(self, now: float) -> None:
        first = self._first_errors
        for _ in range(_FORGOTTEN_AT_ONCE):
            if not first or now < next(iter(first.values())) + self._longest:
                break
            first.popitem(last=False)

    def _count(self, response: HeldResponse, now: float) -> None:
        """Note when some of the partitions of a response began to fail, of most responses all."""
        counting = response.counting or iter([*response.partitions.lacking])
        some = [*islice(counting, _NOTED_AT_ONCE)]
        ends = (self._deadline(response.route, partition, now) for partition in some)
        response.latest = max([response.latest, *ends])
        response.counting = counting if len(some) == _NOTED_AT_ONCE else None

    def _deadline(self, route: Route, partition: FailedPartition, now: float) -> float:
        """Return the deadline of rule 4 for one partition."""
        epoch = partition.known.epoch if partition.known else UNKNOWN_EPOCH
        # It waits for a proof of that epoch, or for one behind it: who is behind, and may fail all
        # the time, must not begin the calm of those whose leader goes.
        behind = epoch > partition.newest
        key = route.name, partition.failure.topic, partition.failure.partition, epoch, behind
        first, deadline = self._first_errors.setdefault(key, now), self._rules.deadline_of(route)
        # After that time an error is a first one again.
        if now >= first + deadline + CALM:
            # It was not forgotten yet.
            first = self._first_errors[key] = now
            self._first_errors.move_to_end(key)
        if len(self._first_errors) > MOST_FIRST_ERRORS:
            self._first_errors.popitem(last=False)
        return first + deadline

    def _spent(self, link: int, now: float) -> float:
        """Return how long a link was held, counting holds that ended within the last second."""
        return sum(held_for for _, held_for in self._lately(link, now))

    def _lately(self, link: int, now: float) -> deque[tuple[float, float]]:
        """Forget the holds of a link that ended earlier than a second ago; return the others."""
        holds = self._holds.get(link, deque())
        while holds and holds[0][0] <= now - _COUNTED:
            holds.popleft()
        return holds
