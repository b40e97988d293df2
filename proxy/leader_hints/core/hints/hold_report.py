"""Reports what came of responses, a limited number of partitions at a time.

What waits is bounded: it costs less than what is reserved for each response until it was reported.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from leader_hints.apis.leader_hint import Failure, LeaderHint
from leader_hints.core.events import Event, HintGiven, HintMissed
from leader_hints.core.hints.failed_partition import Outcome
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.miss_reason import MissReason, Settling
from leader_hints.core.link.held import Held

#: Failed partitions that are reported in one step: each costs all takers of events.
REPORTED_AT_ONCE = 200


class HoldReport:
    """The events of responses that are decided, the first to be reported first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Held, Iterator[Event]]] = deque()

    def __bool__(self) -> bool:
        """Whether there is more to report."""
        return bool(self._waiting)

    def add(self, response: HeldResponse, now: float, reason: MissReason) -> None:
        """Have a response reported, all of whose outcomes were noted; the events are made later."""
        outcomes: Iterable[Outcome] = response.outcomes
        if response.partitions.missing:
            rest = response.partitions.rest()
            outcomes = chain(outcomes, ((failure, epoch, None, reason) for failure, epoch in rest))
        # Of the response itself nothing is kept.
        held, hold_ms, observed = response.held, (now - response.since) * 1000, response.detached
        events = (
            _event(held, failure, epoch, hint, why, hold_ms, observed=observed)
            for failure, epoch, hint, why in outcomes
        )
        self._waiting.append((held, events))

    def take(self, most: int = REPORTED_AT_ONCE) -> list[Event]:
        """Return the next events, of some ``most`` partitions."""
        events: list[Event] = []
        while self._waiting and len(events) < most:
            held, waiting = self._waiting[0]
            some = [*islice(waiting, most)]
            events += some
            if len(some) < most:
                self._waiting.popleft()
                held.give_back()
        return events


def _event(
    held: Held,
    failure: Failure,
    epoch: int,
    hint: LeaderHint | None,
    reason: MissReason | Settling,
    hold_ms: float,
    *,
    observed: bool,
) -> Event:
    answered = held.link.answered(
        held.key, held.version, failure, epoch, hold_ms, observed=observed
    )
    if held.unhinted is not None:
        settling = reason if hint is None else Settling.SETTLED
        return HintMissed(answered=answered, reason=held.unhinted, settling=settling)
    if hint is not None:
        return HintGiven(answered=answered, leader=hint.leader, epoch=hint.epoch)
    return HintMissed(answered=answered, reason=reason)
