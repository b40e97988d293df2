"""Decides when an error response goes on, and with which hints.

The rules, in order; "now" means that the response goes on at once:

1. Every failed partition has a hint that satisfies the epoch rules: now.
2. The client cannot use one, it is a replica, or the error is another: never comes here.
3. A fresh answer says that nobody leads, or nobody can be asked: now, without a hint.
4. A deadline runs from the first error of (partition, broker, epoch). After it, such errors
   are not held for about a second: hints must not make a long outage longer. It comes a little
   earlier where reviews come late, and so do those of 5 and 6.
5. A link is held for a bounded part of each second, since a held response blocks all behind
   it; more briefly where other partitions in the response brought something.
6. After the first hint the others of the response have a short grace.
7. Client gone or hints switched off: now. What was asked while they were not on gets none.
8. As many responses are held as may be: now, with the hints that are known.
9. A Produce error of a broker that comes to lead: now, with the hints that are known. Where it may,
   since it is not known to have led until a moment ago: once it has answered, or after the grace.
   What the client sends behind a held error a new leader takes, or answers with
   OUT_OF_ORDER_SEQUENCE_NUMBER: records change their order, and an idempotent librdkafka begins a
   new producer epoch, in which it writes a record again that the former leader had replicated
   before it answered NOT_LEADER_OR_FOLLOWER (rd_kafka_handle_idempotent_Produce_error; seen in
   front of 3.6.2 with KRaft).

A hint is good when leader and epoch come from one answer and its epoch is above the one that
the client used (an epoch also rises while the leader stays: a rule that waits for another
leader waits in vain). A Produce request says no epoch. There the leader must be another broker
than the one that answered, which must be known to have led until a moment ago or to have been
asked after the error; or the epoch must be above the last one under which that broker was known
to lead. A moment ago, since later it may have come back and gone again with nobody to tell it
here; a client that knows of that takes no older epoch.

A topic may have been deleted and created again with nobody to tell it here, and then its epochs
begin with 0: an epoch above the client's may be of the former topic. Only a client that gives the
topic's own id cannot mean another. So a Fetch by name, or by a synthetic id, needs a move of a
moment ago, too, or the answering broker's Metadata after the error. What brokers
contradict (:mod:`leader_hints.core.cluster.doubts`) is no hint until that is settled.

A hint that arrives before the leader knows of its office costs the client an attempt and a
longer back-off. So a hint waits for the leader's own word: a little where the leader says
nothing, and as long as the response may be held where it says that it does not lead yet.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, islice

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure, LeaderHint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import RECENT_MOVES
from leader_hints.core.events import Event, HintGiven, HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH

#: ListOffsets errors that tell whether a broker leads at the epoch asked for.
_OF_THE_EPOCH = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


#: Why there is no hint, where nothing that is waited for would change it.
_FINAL = (MissReason.NO_LEADER, MissReason.NOT_AUTHORIZED)
#: Failed partitions that are judged in one go, of all responses together: one response may have
#: thousands. So many are reported to all takers of events in one go, too.
_JUDGED_AT_ONCE = 200
#: Failed partitions for which is looked at once what would help them.
_WANTED_AT_ONCE = 10_000
#: The largest share of a hold, or of the grace, that is cut off where reviews come late.
_MOST_CUT = 0.25


@dataclass(frozen=True, slots=True)
class HoldRules:
    """Bounds in seconds; see the rules above.

    ``deadline``: rule 4. ``calm``: how long errors are not held after it, while the leader is
    still looked for. ``link_second``:
    most hold of a link in each second, ``shared``: most hold where other partitions brought
    something (rule 5). ``grace``: rule 6. ``confirm``: how long a hint waits for a leader that
    says nothing. ``most``: responses held at once (rule 8). ``recent``: how long after a leader
    went an error of its broker is taken for one of that move, and not of a later one.
    """

    deadline: float = 0.1
    calm: float = 1.0
    link_second: float = 0.1
    shared: float = 0.02
    grace: float = 0.02
    confirm: float = 0.025
    most: int = 10_000
    recent: float = 1.0


class _FailedPartition:
    """One failed partition that waits for its hint.

    ``since``: when the error came. ``led``: the epoch under which the answering broker was known
    to lead at that time, -1 where it was not. ``asked``: the answering broker was asked after the
    error, and what it answered cannot be of another topic of the name. ``serves``: whether it has
    said since that it leads. ``known``: who leads as the view has it. ``found``: a good hint, first
    seen at ``found_at``, that is given at ``good_at`` although its leader has said nothing.
    ``hint``: the one that is given.
    """

    __slots__ = (
        "asked",
        "client_epoch",
        "failure",
        "found",
        "found_at",
        "good_at",
        "hint",
        "known",
        "led",
        "reason",
        "serves",
        "since",
    )

    def __init__(self, failure: Failure, client_epoch: int, since: float, led: int) -> None:
        self.failure = failure
        self.client_epoch = client_epoch
        self.since = since
        self.led = led
        self.asked = False
        self.serves: bool | None = None
        self.known: Leader | None = None
        self.found: LeaderHint | None = None
        self.found_at = 0.0
        self.good_at = math.inf
        self.hint: LeaderHint | None = None
        self.reason: MissReason | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.hint is not None or self.reason in _FINAL

    @property
    def newest(self) -> int:
        """The newest epoch that client and answering broker are known to have been at."""
        return self.client_epoch if self.client_epoch >= 0 else self.led


class WantedLeaders:
    """What would bring hints for the held responses of a route."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self._wanted: list[_FailedPartition] = []

    def add(self, wanted: Iterable[_FailedPartition]) -> None:
        """Have these failed partitions helped as well."""
        self._wanted += wanted

    def __len__(self) -> int:
        """Failed partitions, each as often as it is waited for."""
        return len(self._wanted)

    @property
    def topics(self) -> set[Topic]:
        """The topics (names or ids) of which Metadata is wanted."""
        return {wanted.failure.topic for wanted in self._wanted}

    @property
    def epochs(self) -> dict[Partition, int]:
        """At which epoch each leader is looked for, by asking each broker whether it leads."""
        return self.epochs_of(self._wanted)

    # For storms, in which all of it is too much.

    def single(self) -> None:
        """Have each partition once, however many wait for it."""
        self._wanted = [*{wanted.failure[:2]: wanted for wanted in self._wanted}.values()]

    @property
    def unknown(self) -> set[Topic]:
        """As ``topics``, where it is not known yet who leads now."""
        return {wanted.failure.topic for wanted in self._wanted if wanted.found is None}

    def questions(self, most: int) -> list[tuple[int, Sequence[_FailedPartition]]]:
        """Return who is named as leader, and of what: of at most so many partitions at a time."""
        by_leader: dict[int, list[_FailedPartition]] = {}
        for wanted in self._wanted:
            if wanted.found is not None:
                by_leader.setdefault(wanted.found.leader, []).append(wanted)
        return [
            (node, of[begin : begin + most])
            for node, of in by_leader.items()
            for begin in range(0, len(of), most)
        ]

    @property
    def claims(self) -> dict[Partition, Leader]:
        """Who is to be asked whether it leads, besides, where the view's leader is in doubt."""
        view = self.route.broker.view
        claims: dict[Partition, Leader] = {}
        if view is None:
            return claims
        for wanted in self._wanted:
            topic, partition = wanted.failure[:2]
            name, claim = view.name(topic), view.claim(topic, partition)
            if name is not None and claim is not None:
                claims[name, partition] = claim
        return claims

    def epochs_of(self, some: Iterable[_FailedPartition]) -> dict[Partition, int]:
        """As ``epochs``: the view's epoch, or if that is no news the next.

        Each move raises the epoch by one, so who leads at the next one is told by the leader
        itself as soon as it serves, where Metadata lags. In doubt the view's leader is asked
        whether it leads at all.
        """
        view = self.route.broker.view
        epochs: dict[Partition, int] = {}
        if view is None:
            return epochs
        for wanted in some:
            topic, partition = wanted.failure[:2]
            name, known = view.name(topic), view.leader(topic, partition)
            if name is not None and known is not None:
                doubtful = view.in_doubt(topic, partition)
                next_one = known.epoch if doubtful else wanted.newest + 1
                epochs[name, partition] = max(known.epoch, next_one)
        return epochs


class _HeldResponse:
    """A response that is held: ``deadline`` by rules 4 and 5, lowered by 6.

    ``missing``: failed partitions that nobody has looked at yet; the others are ``wanted``.
    ``lacking``: those of them that are not settled, the next to be judged first; ``stale``: of how
    many the judgement is out of date. ``basis``: what they were judged by last; ``news``: a word
    of its broker that came since. Thousands of partitions may wait, so only those are judged again
    of which there is news, or that are due at ``confirm_at``.
    ``exposed``: rule 9.
    ``detached``: hints are only counted. It has gone on already; what would have come of it is
    told all the same. ``sought``: it is looked for and no longer held.
    """

    __slots__ = (
        "basis",
        "coming",
        "confirm_at",
        "deadline",
        "detached",
        "exposed",
        "first_hint",
        "held",
        "hinted",
        "lacking",
        "missing",
        "news",
        "since",
        "sought",
        "stale",
        "topics",
        "wanted",
    )

    def __init__(
        self,
        held: Held,
        since: float,
        *,
        detached: bool,
        deadline: float,
        sought: Sequence[_FailedPartition] = (),
    ) -> None:
        failures = () if sought else held.scanned.failures
        self.held = held
        self.coming = zip(failures, () if sought else held.epochs, strict=True)
        self.missing = len(failures)
        self.wanted = [*sought]
        self.lacking = deque(sought)
        self.stale = 0
        self.since = since
        self.deadline = deadline
        self.first_hint: float | None = None
        self.hinted = False
        self.detached = detached
        self.exposed = False
        self.sought = bool(sought)
        topics = {failure.topic for failure in failures}
        self.topics = frozenset(topics.union(wanted.failure.topic for wanted in sought))
        self.news = False
        self.basis: object = None
        self.confirm_at = math.inf

    @property
    def judged(self) -> bool:
        """Whether all of it was looked at, by what is known now."""
        return not (self.stale or self.missing)

    @property
    def ready(self) -> bool:
        """Whether nothing is left to wait for, or that must not be waited for."""
        return self.exposed or not (self.lacking or self.missing)

    @property
    def route(self) -> Route:
        return self.held.link.route

    def over_at(self, ahead: float) -> float:
        """Return when it goes on, where the next look at it may be ``ahead`` seconds late.

        A hint that comes in the time that is cut off is lost, so most of a hold is left, and of the
        grace.
        """
        begin = self.since if self.first_hint is None else self.first_hint
        return self.deadline - min(ahead, _MOST_CUT * (self.deadline - begin))


class HoldQueue:
    """Holds error responses of all links of a process until their hints are good.

    ``events``: what was given and missed; whoever calls takes them out. ``unfinished``: a review
    ended before all was judged, since that would take too long: it is to be gone on with.
    """

    def __init__(self, rules: HoldRules) -> None:
        self.rules = rules
        self.events: list[Event] = []
        self.unfinished = False
        self._waiting: list[_HeldResponse] = []
        #: What went on without a hint: for the next error it is looked for. A client that got
        #: none comes back soon, and may come back often. In the order in which it is given up.
        self._sought: list[_HeldResponse] = []
        self._sought_places: set[tuple[str, Topic, int]] = set()
        #: Where the last look at what is wanted ended.
        self._looked = 0
        self._episodes: OrderedDict[tuple[str, Topic, int, int], float] = OrderedDict()
        #: By route and partition: the epoch of the leader found last, and when it first was.
        self._first_found: OrderedDict[tuple[str, Topic, int], tuple[int, float]] = OrderedDict()
        self._holds: dict[int, deque[tuple[float, float]]] = {}
        #: What came of responses, and is to be reported.
        self._untold: deque[Iterator[Event]] = deque()

    @property
    def busy(self) -> bool:
        """Whether something is held, or looked for."""
        return bool(self._waiting or self._sought)

    def submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        """Take an error response; return its hints, or ``None`` while it is held.

        A response that is held comes back from :meth:`review`.
        """
        hints = self._submit(held, now)
        self._tell_some()
        return hints

    def _submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        detached = held.link.route.mode is Mode.OBSERVE
        waiting = _HeldResponse(held, now, detached=detached, deadline=now + self.rules.deadline)
        if not held.link.hintable(held.key, held.version):
            return self._finish(waiting, now, MissReason.HINTS_OFF)
        self._look(waiting, now, {})
        reason = self._why_not(waiting, now) if waiting.judged or waiting.exposed else None
        if reason is None and len(self._waiting) >= self.rules.most:
            reason = MissReason.BUDGET
        if reason is not None:
            return self._finish(waiting, now, reason)
        self._waiting.append(waiting)
        self.unfinished |= not waiting.judged
        return [None] * len(held.scanned.failures) if detached else None

    def review(self, now: float, ahead: float = 0.0) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Return the responses whose hints are good, or whose time is over.

        ``ahead``: how many seconds late the next call may come. What would be held for too long
        then goes on now.
        """
        done = []
        bases: _Bases = {}
        left = _JUDGED_AT_ONCE
        self.unfinished = False
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            due = self._due(item, now, ahead, bases)
            if not due or left <= 0:
                self.unfinished |= due
                self._waiting.append(item)
                continue
            begins = item.missing > 0
            left -= self._look(item, now, bases)
            over = item.ready or now >= item.over_at(ahead)
            reason = _at_its_end(item) if over else None
            if begins and item.judged:
                reason = self._why_not(item, now) or reason
            if reason is None:
                self.unfinished |= not item.judged
                self._waiting.append(item)
                continue
            left -= len(item.lacking)
            hints = self._finish(item, now, reason)
            if not item.detached:
                done.append((item.held, hints))
        self._review_sought(now, bases, left)
        self._tell_some()
        return done

    def _review_sought(self, now: float, bases: "_Bases", left: int) -> None:
        sought, self._sought = self._sought, []
        for item in sought:
            due = self._due(item, now, 0.0, bases)
            if not due or left <= 0:
                self.unfinished |= due
                self._sought.append(item)
                continue
            left -= self._look(item, now, bases)
            if now >= item.deadline:
                places = (_place(item.route, wanted) for wanted in item.lacking)
                self._sought_places.difference_update(places)
            elif not item.ready:
                self.unfinished |= not item.judged
                self._sought.append(item)

    def asked(self, route: Route, topics: Collection[Topic], since: float) -> None:
        """Note that the broker behind ``route`` answered for ``topics`` (names or ids).

        ``since``: when it was asked. Only errors from before that moment are concerned.
        """
        for item in self._concerned(route, since):
            view = route.broker.view
            told = {t for t in item.topics if t in topics or (view and view.key(t) in topics)}
            for wanted in item.lacking if told else ():
                if not wanted.asked and wanted.failure.topic in told:
                    wanted.asked = item.news = True

    def probed(self, route: Route, errors: Mapping[Partition, int], since: float) -> None:
        """Note whether the broker behind ``route`` leads what it was asked about at ``since``.

        ``errors``: by partition, 0 where it leads at the epoch of :class:`WantedLeaders`.
        """
        view = route.broker.view
        for item in self._concerned(route, since) if view is not None else ():
            names = {topic: view.name(topic) for topic in item.topics} if view else {}
            for wanted in item.lacking:
                name = names[wanted.failure.topic]
                error = errors.get((name, wanted.failure.partition)) if name else None
                if error in _OF_THE_EPOCH:
                    serves = error == ErrorCode.NONE
                    # One at a newer epoch may lead at that. Of a recreated topic a broker has not
                    # heard of the former one's epoch either.
                    asked = serves or (
                        error != ErrorCode.FENCED_LEADER_EPOCH
                        and not (view and view.may_be_former(wanted.failure.topic))
                    )
                    item.news |= asked > wanted.asked or wanted.serves is not serves
                    wanted.asked, wanted.serves = asked or wanted.asked, serves

    def _concerned(self, route: Route, since: float) -> Iterator[_HeldResponse]:
        """Iterate over what a word of the broker behind ``route`` may be about."""
        for item in chain(self._waiting, self._sought):
            if item.route is route and item.since <= since:
                yield item

    def switched(self, route: Route, now: float) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Return what is held of a route whose mode was changed: it goes on without a hint."""
        mine = [item for item in self._waiting if item.route is route]
        self._waiting = [item for item in self._waiting if item.route is not route]
        self._sought = [item for item in self._sought if item.route is not route]
        self._sought_places = {p for p in self._sought_places if p[0] != route.name}
        for item in mine:
            for wanted in item.wanted:
                wanted.hint = wanted.found = None
                wanted.reason = MissReason.HINTS_OFF
        done = [(item, self._finish(item, now, MissReason.HINTS_OFF)) for item in mine]
        self._tell_some()
        return [(item.held, hints) for item, hints in done if not item.detached]

    def forget(self, link: int) -> None:
        """Drop what is held for a link that is gone."""
        self._waiting = [w for w in self._waiting if w.held.link.number != link]
        self._holds.pop(link, None)

    @property
    def held(self) -> int:
        """How many responses wait now, those whose hints are only counted among them."""
        return len(self._waiting)

    def next_deadline(self, ahead: float = 0.0) -> float | None:
        """Return when :meth:`review` has something to do even if nothing is learnt.

        ``ahead``: as there.
        """
        times = [self._sought[0].deadline] if self._sought else []
        times += [min(item.over_at(ahead), item.confirm_at) for item in self._waiting]
        return min(times, default=None)

    def wanted_leaders(self) -> list[WantedLeaders]:
        """Return what would help the responses that wait or will come, route by route.

        Where they are very many: some of them, and the next ones at the next call.
        """
        wanted: dict[str, WantedLeaders] = {}
        items = [*self._waiting, *self._sought]
        begin, left = self._looked % len(items) if items else 0, _WANTED_AT_ONCE
        for number, item in enumerate(islice(cycle(items), begin, begin + len(items))):
            if left <= 0:
                self._looked = begin + number
                break
            if item.lacking:
                left -= len(item.lacking)
                wanted.setdefault(item.route.name, WantedLeaders(item.route)).add(item.lacking)
        return [*wanted.values()]

    # How long.

    def _why_not(self, waiting: _HeldResponse, now: float) -> MissReason | None:
        """Return why a response is not held, of which all was looked at; ``None`` where it is.

        Its time runs from when it came: to look at a large one takes some of that.
        """
        if waiting.ready:
            return _at_its_end(waiting)
        deadline, reason = self._deadline(waiting, waiting.since)
        waiting.deadline = min(waiting.deadline, deadline)
        return reason if now >= waiting.deadline else None

    def _deadline(self, waiting: _HeldResponse, now: float) -> tuple[float, MissReason]:
        """Return until when to hold, and the reason to give if that is not at all."""
        held, rules = waiting.held, self.rules
        route = held.link.route
        if not route.broker.reachable:
            return now, MissReason.NO_FRESHER_VIEW
        # Only of what must wait: an error that is answered at once begins no hold, and the next
        # one under the same epoch may be the first of another move.
        self._forget_episodes(now)
        begun = (self._episode(route, wanted, now) for wanted in waiting.lacking)
        latest = max(begun, default=now)
        if latest <= now:
            return now, MissReason.HOLD_EXPIRED
        allowed = rules.link_second - self._spent_lately(held.link.number, now)
        if held.scanned.carries:
            allowed = min(allowed, rules.shared)
        if allowed <= 0:
            return now, MissReason.LINK_HOLD_SPENT
        return min(latest, now + allowed), MissReason.HOLD_EXPIRED

    def _forget_episodes(self, now: float) -> None:
        rules, episodes = self.rules, self._episodes
        while episodes and next(iter(episodes.values())) + rules.deadline + rules.calm <= now:
            episodes.popitem(last=False)

    def _episode(self, route: Route, wanted: _FailedPartition, now: float) -> float:
        """Return the deadline of rule 4 for one partition."""
        epoch = wanted.known.epoch if wanted.known else UNKNOWN_EPOCH
        key = (route.name, wanted.failure.topic, wanted.failure.partition, epoch)
        return self._episodes.setdefault(key, now) + self.rules.deadline

    def _spent_lately(self, link: int, now: float) -> float:
        """Return how long a link was held, as far as a hold ended within the last second."""
        holds = self._holds.get(link, deque())
        while holds and holds[0][0] <= now - 1.0:
            holds.popleft()
        return sum(held_for for _, held_for in holds)

    def _spend(self, waiting: _HeldResponse, now: float) -> None:
        held_for = now - waiting.since
        if held_for > 0 and not waiting.detached:
            self._holds.setdefault(waiting.held.link.number, deque()).append((now, held_for))

    # Which hint.

    def _led(self, route: Route, failure: Failure) -> int:
        """Return the epoch under which the answering broker is known to have led last."""
        if route.broker.view is None or route.broker.view.in_doubt(
            failure.topic, failure.partition
        ):
            return UNKNOWN_EPOCH
        known = route.broker.view.leader(failure.topic, failure.partition)
        before = route.broker.view.before(failure.topic, failure.partition)
        for leader in (known, before):
            if leader is not None and route.broker.is_self(leader.node):
                return leader.epoch
        return UNKNOWN_EPOCH

    def _due(self, waiting: _HeldResponse, now: float, ahead: float, bases: "_Bases") -> bool:
        """Whether there is news of it, its time has come, or not all of it was looked at."""
        return (
            waiting.news
            or not waiting.judged
            or now >= waiting.over_at(ahead)
            or now >= waiting.confirm_at
            or waiting.basis != _basis(waiting, bases)
        )

    def _look(self, waiting: _HeldResponse, now: float, bases: "_Bases") -> int:
        """Look for hints of some partitions, in most responses of all; return of how many."""
        basis = _basis(waiting, bases)
        if waiting.news or waiting.basis != basis or now >= waiting.confirm_at:
            waiting.stale, waiting.confirm_at = len(waiting.lacking), math.inf
        waiting.basis, waiting.news = basis, False
        looked = 0
        while looked < _JUDGED_AT_ONCE and not waiting.judged:
            self._look_at(waiting, self._next(waiting), now)
            looked += 1
        if waiting.judged and waiting.hinted and waiting.first_hint is None:
            waiting.first_hint = now
            waiting.deadline = min(waiting.deadline, now + self.rules.grace)
        return looked

    def _next(self, waiting: _HeldResponse) -> _FailedPartition:
        """Return the partition that is to be judged next."""
        if waiting.stale:
            waiting.stale -= 1
            return waiting.lacking.popleft()
        failure, epoch = next(waiting.coming)
        wanted = _FailedPartition(failure, epoch, waiting.since, self._led(waiting.route, failure))
        waiting.wanted.append(wanted)
        waiting.missing -= 1
        return wanted

    def _look_at(self, waiting: _HeldResponse, wanted: _FailedPartition, now: float) -> None:
        self._judge(waiting.route, wanted, now)
        if now >= wanted.good_at:
            wanted.hint = wanted.found
            waiting.hinted = True
        if not wanted.settled:
            waiting.lacking.append(wanted)
            waiting.confirm_at = min(waiting.confirm_at, wanted.good_at)
            self._expose(waiting, wanted)
        elif waiting.sought:
            self._sought_places.discard(_place(waiting.route, wanted))

    def _judge(self, route: Route, wanted: _FailedPartition, now: float) -> None:
        """Look whether there is a good hint, and when it is to be given."""
        found = self._find(route, wanted)
        if found is None:
            wanted.found, wanted.good_at = None, math.inf
            return
        if found != wanted.found:
            wanted.found, wanted.found_at = found, self._found_at(route, wanted, found, now)
        word = self._word(route, wanted, found)
        if word is None:
            wanted.good_at = wanted.found_at + self.rules.confirm
        else:
            wanted.good_at = now if word else math.inf

    def _found_at(
        self, route: Route, wanted: _FailedPartition, found: LeaderHint, now: float
    ) -> float:
        """Return when this leader was first found: a silent one is waited for once."""
        key = (route.name, *wanted.failure[:2])
        epoch, first = self._first_found.get(key, (UNKNOWN_EPOCH, now))
        if epoch != found.epoch:
            first = now
            self._first_found[key] = found.epoch, now
            self._first_found.move_to_end(key)
            if len(self._first_found) > RECENT_MOVES:
                self._first_found.popitem(last=False)
        return first

    def _find(self, route: Route, wanted: _FailedPartition) -> LeaderHint | None:
        """Return the hint that the view has, or set the reason why there is none so far."""
        wanted.reason = None
        failure, view = wanted.failure, route.broker.view
        wanted.known = leader = view.leader(failure.topic, failure.partition) if view else None
        if leader is None or not self._fresher(route, wanted, leader):
            if view is not None and view.is_hidden(failure.topic):
                # To ask would tell nothing. What is known was told to clients.
                wanted.reason = MissReason.NOT_AUTHORIZED
            return None
        if leader.node < 0:
            wanted.reason = MissReason.NO_LEADER
            return None
        endpoint = route.endpoint(leader.node)
        if endpoint is None:
            wanted.reason = MissReason.NO_ENDPOINT
            return None
        return LeaderHint(leader.node, leader.epoch, endpoint)

    def _word(self, route: Route, wanted: _FailedPartition, found: LeaderHint) -> bool | None:
        """Whether the leader itself says that it leads; ``None``: it has said nothing.

        False where brokers contradict it, and that is not settled.
        """
        topic, partition, error, _, _ = wanted.failure
        if route.broker.view is not None and route.broker.view.in_doubt(topic, partition):
            return False
        if route.broker.is_self(found.leader):
            # NOT_LEADER_OR_FOLLOWER is the word of no leader, FENCED_LEADER_EPOCH may be of one.
            fenced = error == ErrorCode.FENCED_LEADER_EPOCH
            return True if fenced and wanted.serves is None else wanted.serves
        return route.broker.view.is_confirmed(topic, partition) if route.broker.view else None

    def _fresher(self, route: Route, wanted: _FailedPartition, leader: Leader) -> bool:
        """Whether what the view says is news to the client, and can be relied upon."""
        if wanted.client_epoch >= 0:
            if leader.epoch <= wanted.client_epoch:
                return False
            if route.broker.is_self(leader.node):
                # A KRaft broker may learn only up to 500 ms later that it leads. And one that
                # fences an epoch may have been overtaken since: it compares epochs before it looks
                # at who leads.
                fenced = wanted.failure.error == ErrorCode.FENCED_LEADER_EPOCH
                return wanted.asked or (fenced and self._has_just_gone(route, wanted))
            former = route.broker.view is not None and route.broker.view.may_be_former(
                wanted.failure.topic
            )
            return not former or wanted.asked or self._has_just_gone(route, wanted)
        itself = route.broker.is_self(leader.node) if leader.node >= 0 else False
        if leader.epoch <= wanted.led or itself is None:
            return False
        went = leader.node >= 0 and not itself and wanted.led >= 0
        return wanted.asked or (went and self._has_just_gone(route, wanted))

    def _expose(self, waiting: _HeldResponse, wanted: _FailedPartition) -> None:
        """Have a response wait no longer than its broker is sure not to come to lead (rule 9)."""
        if waiting.held.key != ApiKey.PRODUCE or waiting.sought:
            return
        route, leader = waiting.route, wanted.known
        itself = (
            route.broker.is_self(leader.node) if leader is not None and leader.node >= 0 else None
        )
        just = self._has_just_gone(route, wanted)
        if leader is not None and itself:
            waiting.exposed |= just and not (
                route.broker.view and route.broker.view.serves(*wanted.failure[:2])
            )
        elif itself is None or wanted.led < 0 or not just:
            # The client may know of a move that the view does not; its broker's Metadata tells.
            waiting.exposed |= wanted.asked
            waiting.deadline = min(waiting.deadline, waiting.since + self.rules.grace)

    def _has_just_gone(self, route: Route, wanted: _FailedPartition) -> bool:
        """Whether the error can be one of the last move that the view knows."""
        topic, partition = wanted.failure[:2]
        moved_at = route.broker.view.moved_at(topic, partition) if route.broker.view else None
        return moved_at is not None and moved_at > wanted.since - self.rules.recent

    # What came of it.

    def _finish(
        self, waiting: _HeldResponse, now: float, reason: MissReason
    ) -> list[LeaderHint | None]:
        self._spend(waiting, now)
        route = waiting.route
        for wanted in waiting.wanted:
            if wanted.hint is None and wanted.found is not None:
                if self._word(route, wanted, wanted.found) is False:
                    wanted.reason = MissReason.LEADER_NOT_READY
                else:
                    wanted.hint = wanted.found
        self._untold.append(self._tell(waiting, now, reason))
        if route.mode is not Mode.OFF and route.broker.reachable:
            self._seek(waiting, now)
        count = len(waiting.held.scanned.failures)
        if waiting.detached:
            return [None] * count
        hints = [wanted.hint for wanted in waiting.wanted]
        return hints + [None] * (count - len(hints))

    def _seek(self, waiting: _HeldResponse, now: float) -> None:
        route, places = waiting.route, self._sought_places
        lacking = [wanted for wanted in waiting.wanted if not wanted.settled]
        new = [wanted for wanted in lacking if _place(route, wanted) not in places]
        if new:
            places.update(_place(route, wanted) for wanted in new)
            until = now + self.rules.calm
            sought = _HeldResponse(
                waiting.held, waiting.since, detached=True, deadline=until, sought=new
            )
            # Its grace is over: what has its hint by now shortens nothing.
            sought.first_hint = now
            self._sought.append(sought)

    def _tell(self, waiting: _HeldResponse, now: float, reason: MissReason) -> Iterator[Event]:
        """Return the events of a response, which are made when they are asked for.

        What came of it is noted now: it may be looked for further.
        """
        outcomes = [
            (wanted.failure, wanted.client_epoch, wanted.hint, wanted.reason or reason)
            for wanted in waiting.wanted
        ]
        rest = ((failure, epoch, None, reason) for failure, epoch in waiting.coming)
        held, hold_ms = waiting.held, (now - waiting.since) * 1000
        return (
            _event(held, failure, epoch, hint, why, hold_ms, observed=waiting.detached)
            for failure, epoch, hint, why in chain(outcomes, rest)
        )

    def _tell_some(self) -> None:
        """Have some of what came of responses reported, and the rest at the next review."""
        left = _JUDGED_AT_ONCE
        while self._untold and left > 0:
            some = [*islice(self._untold[0], _JUDGED_AT_ONCE)]
            self.events += some
            if len(some) < _JUDGED_AT_ONCE:
                self._untold.popleft()
            left -= len(some)
        self.unfinished |= bool(self._untold)


def _event(
    held: Held,
    failure: Failure,
    epoch: int,
    hint: LeaderHint | None,
    reason: MissReason,
    hold_ms: float,
    *,
    observed: bool,
) -> Event:
    answered = held.link.answered(
        held.key, held.version, failure, epoch, hold_ms, observed=observed
    )
    if hint is not None:
        return HintGiven(answered=answered, leader=hint.leader, epoch=hint.epoch)
    return HintMissed(answered=answered, reason=reason)


def _at_its_end(waiting: _HeldResponse) -> MissReason:
    return MissReason.LEADER_NOT_READY if waiting.exposed else MissReason.HOLD_EXPIRED


#: What judgements rest on beside the time, as far as it was looked up in one review.
_Bases = dict[tuple[str, frozenset[Topic]], tuple[object, ...]]


def _basis(waiting: _HeldResponse, bases: _Bases) -> tuple[object, ...]:
    """Return what the judgement of a response rests on, beside the time."""
    route = waiting.route
    key = route.name, waiting.topics
    basis = bases.get(key)
    if basis is None:
        changed = route.broker.view.changed(waiting.topics) if route.broker.view is not None else 0
        basis = (
            changed,
            route.broker.view,
            route.broker.endpoints,
            route.broker.node,
            route.broker.others,
        )
        bases[key] = basis
    return basis


def _place(route: Route, wanted: _FailedPartition) -> tuple[str, Topic, int]:
    return route.name, wanted.failure.topic, wanted.failure.partition
