"""Decides when an error response goes on, and with which hints.

The rules, in order; "now" means that the response goes on immediately:

1. Every failed partition has a hint that satisfies the hint rules: now.
2. It is a replica, or the error is another one: never comes here. If the client cannot use a hint,
   the response comes here only to be settled: it waits as for hints, and until the Metadata of all
   brokers names the leader, and goes on byte for byte (the setting `hold.settle`).
3. A fresh answer reports that there is no leader, or no broker can be asked: now, without a hint.
4. A deadline runs from the first error of (partition, broker, epoch), apart for clients that were
   behind that epoch. After it, such errors are not held for about a second: hints must not make a
   long outage longer. The deadline comes a little earlier if reviews come late, and so do those of
   5 and 6.
5. A link is held for a bounded part of each second, since a held response blocks all responses
   behind it; more briefly if other partitions in the response brought something. One that is
   large may be judged for as long as the grace of 6 besides.
6. After the first hint the other partitions of the response have a short grace.
7. The client is gone, or hints are switched off: now. What was requested while hints were off gets
   none.
8. As many responses are held as may be: now, with the hints that are known.
9. A Produce error of a broker that comes to lead, and has served no client so far: now, with the
   hints that are known. If it may, since it is not known to have led until a second ago: after its
   answer, or after the grace.
   A new leader takes what the client sends behind a held error, or answers with
   OUT_OF_ORDER_SEQUENCE_NUMBER: records change their order, and an idempotent librdkafka begins a
   new producer epoch, in which it writes a record again that the former leader had replicated
   before it answered NOT_LEADER_OR_FOLLOWER (rd_kafka_handle_idempotent_Produce_error; seen in
   front of 3.6.2 with KRaft).

:mod:`leader_hints.core.hints.hint_rules` says when a hint is good.
"""

from collections import deque
from collections.abc import Collection, Mapping
from itertools import count, cycle, islice

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.events import Event
from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.held_index import HeldIndex
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hint_judge import JUDGED_AT_ONCE, HintJudge
from leader_hints.core.hints.hold_allowance import HoldAllowance
from leader_hints.core.hints.hold_report import REPORTED_AT_ONCE, HoldReport
from leader_hints.core.hints.hold_rules import CALM, HoldRules
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.review_queue import ReviewQueue
from leader_hints.core.hints.sought_leaders import SoughtLeaders
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.wire.steps import Steps

#: Failed partitions for which one call looks up what would help them.
_WANTED_AT_ONCE = 10_000
#: Topics of responses of a link that is gone that are dropped in one step. Where hints are only
#: counted one link may have very many.
_DROPPED_AT_ONCE = 500
#: Failed partitions of a response that goes on of which one step notes what comes of them.
_ENDED_AT_ONCE = 2000
#: To take note that so many responses may be over costs as much as to judge a partition.
_PASSED_FOR_ONE = 2


class HoldQueue:
    """Holds error responses of all links of a process until their hints are good.

    ``events``: hints given and missed; the caller takes them out. ``unfinished``: a review ended
    before all was judged, since that would take too long: it must be called again. ``report``: what
    came of responses, as far as it is not reported yet.
    """

    def __init__(self, rules: HoldRules) -> None:
        self.rules = rules
        self.events: list[Event] = []
        self.unfinished = False
        self._numbers = count()
        self._held: dict[HeldResponse, None] = {}
        self._sought = SoughtLeaders()
        self._reviews = ReviewQueue()
        #: Those of links that are gone, some of which may be held still.
        self._gone: deque[HeldResponse] = deque()
        #: Where the last look at what is wanted ended.
        self._looked = 0
        self._index = HeldIndex()
        self._judge = HintJudge(rules)
        self._allowance = HoldAllowance(rules)
        self.report = HoldReport()

    @property
    def busy(self) -> bool:
        """Whether something is held, or sought."""
        return bool(self._held or self._sought)

    @property
    def held(self) -> int:
        """How many responses are held now, including those whose hints are only counted."""
        return len(self._held)

    def submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        """Take an error response; return its hints, or ``None`` while it is held.

        A response that is held comes back from :meth:`review`.
        """
        hints = self._submit(held, now)
        # Many may come in one step, while very much is left of others: that is for the reviews.
        self._report_some(1 + len(held.scanned.failures))
        return hints

    def _submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        detached = held.observed
        # A large one is judged for as long as the grace: hints may be known for all of it.
        deadline = now + max(self.rules.deadline_of(held.link.route), self.rules.grace)
        response = HeldResponse(
            held, next(self._numbers), now, detached=detached, deadline=deadline
        )
        if (refusal := held.refusal) is not None:
            return self._finish(response, now, refusal)
        judged = self._judge.judge(response, now)
        reason = self._why_not(response, now)
        if reason is None and len(self._held) >= self.rules.most:
            reason = MissReason.BUDGET
        if reason is not None:
            return self._finish(response, now, reason)
        self._held[response] = None
        self._index.add(response)
        self._index.judged(response, judged)
        self._reviews.deadlines.enter(response)
        if not response.partitions.judged:
            self._reviews.add(response)
            self.unfinished = True
        return [None] * len(held.scanned.failures) if detached else None

    def review(self, now: float, ahead: float = 0.0) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Return the responses whose hints are good, or whose time is over.

        ``ahead``: how many seconds late the next call may come. A response that would be held for
        too long then goes on now.
        """
        done = []
        for response in self._index.some_news():
            self._reviews.add_news(response)
        left = JUDGED_AT_ONCE
        while (due := self._reviews.next(now, ahead)) is not None and left > 0:
            looked, hints = self._review(due, now, ahead)
            left -= looked + self._reviews.passed // _PASSED_FOR_ONE
            if hints is not None and not due.detached:
                done.append((due.held, hints))
        self.unfinished = due is not None
        self._drop_gone()
        for response in self._sought.over(now):
            self._give_up(response)
        self._index.drop_some()
        self.unfinished |= self._sought.is_over(now) or self._index.unfinished
        self._report_some()
        return done

    def _review(
        self, response: HeldResponse, now: float, ahead: float
    ) -> tuple[int, list[LeaderHint | None] | None]:
        """Judge a response; return how much work that was, and its hints if it goes on."""
        if response.gone:
            work = len(response.topics)
            self._drop(response)
            return work, None
        if response.switched and response.sought:
            self._give_up(response)
            return 1, None
        if response.switched and response.ending is not MissReason.HINTS_OFF:
            for partition in response.partitions.seen:
                partition.hint = partition.found = None
                partition.reason = MissReason.HINTS_OFF
            response.outcomes.clear()
            work = len(response.held.scanned.failures)
            return work, self._finish(response, now, MissReason.HINTS_OFF)
        if response.ending is not None:
            return JUDGED_AT_ONCE, self._finish(response, now, response.ending)
        begins = response.partitions.missing > 0 or response.counting is not None
        judged = self._judge.judge(response, now)
        self._index.judged(response, judged)
        if response.answers:
            for one in judged:
                if one.asked and hint_rules.is_contradicted(response.route, one):
                    self._index.contradicted(response, one.failure.topic)
        if response.partitions.judged:
            self._reviews.judged(response)
        if response.news or not response.partitions.judged:
            self._reviews.add(response)
        if response.sought:
            self._sought.found(response.route, (one for one in judged if one.settled))
            if response.ready:
                self._give_up(response)
            else:
                self._reviews.deadlines.enter(response)
            return len(judged), None
        over = response.ready or now >= response.over_at(ahead)
        reason = response.end_reason if over else None
        if begins and response.partitions.judged:
            reason = self._why_not(response, now) or reason
        if reason is None:
            self._reviews.deadlines.enter(response)
            if response.counting is None:
                return len(judged), None
            self._reviews.add(response)
            return JUDGED_AT_ONCE, None
        work = len(judged) + len(response.partitions.lacking)
        return work, self._finish(response, now, reason)

    def asked(self, route: Route, topics: Collection[Topic], since: float) -> Steps[None]:
        """Note, in steps, that the broker behind ``route`` answered for ``topics`` (names or ids).

        ``since``: when it was asked. Only errors from before that time are concerned.
        """
        for news in self._index.asked(route, topics, since):
            for response in news:
                self._reviews.add_news(response)
            yield

    def probed(self, route: Route, errors: Mapping[Partition, int], since: float) -> None:
        """Note whether the broker behind ``route`` leads what it was asked about at ``since``.

        ``errors``: by partition, 0 if it leads at the epoch of :class:`WantedLeaders`.
        """
        self._index.probed(route, errors, since)

    def switched(self, route: Route, now: float) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Have all that is held of a route whose mode was changed go on without a hint.

        Return what goes on now, as :meth:`review`; what would take too long comes back from that.
        """
        for response in self._index.of_route(route):
            response.switched = True
            self._reviews.add_news(response)
        return self.review(now)

    def forget(self, link: int) -> None:
        """Drop what is held for a link that is gone: some now, the rest at the next reviews."""
        for response in self._index.of_link(link):
            if not response.sought:
                response.gone = True
                self._gone.append(response)
        self._allowance.forget(link)
        self._drop_gone()

    def next_deadline(self, ahead: float = 0.0) -> float | None:
        """Return when :meth:`review` has something to do even if nothing is learnt.

        ``ahead``: as there.
        """
        times = [self._sought.first.deadline] if self._sought else []
        if self._held or self._sought:
            times.append(self._reviews.deadlines.next(ahead))
        return min(times, default=None)

    def wanted_leaders(self) -> list[WantedLeaders]:
        """Return what would help the responses that are held or will come, route by route.

        If they are very many: some of them, and the next ones at the next call.
        """
        wanted: dict[str, WantedLeaders] = {}
        responses = [*self._held, *self._sought]
        begin, left = self._looked % len(responses) if responses else 0, _WANTED_AT_ONCE
        turns = islice(cycle(responses), begin, begin + len(responses))
        for number, response in enumerate(turns):
            if left <= 0:
                self._looked = begin + number
                break
            lacking, route = response.partitions.lacking, response.route
            if lacking:
                left -= len(lacking)
                of_route = wanted.get(route.name)
                if of_route is None:
                    of_route = wanted[route.name] = WantedLeaders(route)
                of_route.add(lacking)
        return [*wanted.values()]

    def _why_not(self, response: HeldResponse, now: float) -> MissReason | None:
        """Return why a response is not held, or not judged any further; ``None`` if it is.

        Its time runs from when it came: judging a large one takes some of that.
        """
        if response.ready:
            return response.end_reason
        deadline, reason = self._allowance.until(response, response.since)
        response.deadline = min(response.deadline, deadline)
        return reason if now >= response.deadline else None

    def _finish(
        self, response: HeldResponse, now: float, reason: MissReason
    ) -> list[LeaderHint | None] | None:
        """Let a response go on, and return its hints; ``None``: that takes one more review."""
        response.ending = reason
        route, seen, outcomes = response.route, response.partitions.seen, response.outcomes
        begin = len(outcomes)
        for partition in seen[begin : begin + _ENDED_AT_ONCE]:
            if partition.hint is None and partition.found is not None:
                response.apply_answers(partition)
                if hint_rules.confirmation(route, partition, partition.found) is False:
                    partition.reason = MissReason.LEADER_NOT_READY
                elif not partition.settles:
                    partition.hint = partition.found
            # Its leader may be sought after that.
            outcomes.append(partition.outcome(reason))
        if len(outcomes) < len(seen):
            self._reviews.add(response)
            return None
        self._allowance.spend(response, now)
        self.report.add(response, now, reason)
        if route.mode is not Mode.OFF and route.broker.reachable:
            self._seek(response, now)
        # What is sought of it keeps its broker's answers.
        self._drop(response)
        failures = len(response.held.scanned.failures)
        if response.detached or response.held.unhinted is not None:
            return [None] * failures
        hints = [hint for _, _, hint, _ in outcomes]
        return hints + [None] * (failures - len(hints))

    def _seek(self, response: HeldResponse, now: float) -> None:
        """Have leaders sought that a response went on without, and that are not sought yet."""
        new = self._sought.new(response)
        if new:
            sought = HeldResponse(
                response.held.without_failures(),
                next(self._numbers),
                response.since,
                detached=True,
                deadline=now + CALM,
                sought=new,
            )
            # Its grace is over: a hint that comes now shortens nothing.
            sought.first_hint = now
            self._sought.add(sought)
            self._index.add(sought)
            # So that what the broker has answered about these topics is kept.
            self._index.judged(sought, new[:JUDGED_AT_ONCE])
            # Its leaders were not confirmed, so they are judged again.
            self._reviews.add_news(sought)

    def _give_up(self, response: HeldResponse) -> None:
        """Seek the leaders of a response no longer."""
        self._sought.give_up(response)
        self._index.remove(response)
        self._reviews.remove(response)

    def _drop(self, response: HeldResponse) -> None:
        """Hold a response no longer, if it is held."""
        if response in self._held:
            del self._held[response]
            self._index.remove(response)
            self._reviews.remove(response)

    def _drop_gone(self) -> None:
        left = _DROPPED_AT_ONCE
        while self._gone and left > 0:
            response = self._gone.popleft()
            left -= len(response.topics)
            self._drop(response)
            response.held.give_back()
        self.unfinished |= bool(self._gone)

    def _report_some(self, most: int = REPORTED_AT_ONCE) -> None:
        """Report some of the decisions, and the rest at the next review."""
        self.events += self.report.take(min(most, REPORTED_AT_ONCE))
        self.unfinished |= bool(self.report)
