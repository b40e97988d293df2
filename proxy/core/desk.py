"""Decides when an error response goes on, and with which hints.

The rules, in order; "now" means that the response goes on at once:

1. Every failed partition has a hint that satisfies the epoch rules: now.
2. The client cannot use one, it is a replica, or the error is another: never comes here.
3. A fresh answer says that nobody leads, or nobody can be asked: now, without a hint.
4. A deadline runs from the first error of (partition, broker, epoch). After it, such errors
   are not held for about a second: hints must not make a long outage longer.
5. A link is held for a bounded part of each second, since a held response blocks all behind
   it; more briefly where other partitions in the response brought something.
6. After the first hint the others of the response have a short grace.
7. Client gone or hints switched off: now. What was asked while they were not on gets none.
8. As many responses are held as may be: now, with the hints that are known.

A hint is good when leader and epoch come from one answer and its epoch is above the one that
the client used (an epoch also rises while the leader stays: a rule that waits for another
leader waits in vain). A Produce request says no epoch. There the leader must be another broker
than the one that answered, which must be known to have led before or to have been asked after
the error; or the epoch must be above the last one under which that broker was known to lead.

A hint that arrives before the leader knows of its office costs the client an attempt and a
longer back-off. So a hint waits for the leader's own word: a little where the leader says
nothing, and as long as the response may be held where it says that it does not lead yet.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.apis.error_codes import ErrorCode
from proxy.apis.fetch import Topic
from proxy.apis.leader_hint import Failure, LeaderHint
from proxy.apis.list_offsets import Partition
from proxy.core.events import Event, HintGiven, HintMissed
from proxy.core.held import Held
from proxy.core.mode import Mode
from proxy.core.reason import Reason
from proxy.core.route import Route
from proxy.core.sessions import UNKNOWN_EPOCH
from proxy.core.view import RECENT_MOVES, Leader

#: ListOffsets errors of a broker that has seen no newer epoch than the one asked for.
_AT_MOST_AT_EPOCH = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


#: Why there is no hint, where nothing that is waited for would change it.
_FINAL = (Reason.NO_LEADER, Reason.NOT_AUTHORIZED)
#: Failed partitions that one review judges at most, as each is told to all takers of events.
_JUDGED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class HoldRules:
    """Bounds in seconds; see the rules above.

    ``deadline``: rule 4. ``calm``: how long errors are not held after it, while the leader is
    still looked for. ``link_second``:
    most hold of a link in each second, ``shared``: most hold where other partitions brought
    something (rule 5). ``grace``: rule 6. ``confirm``: how long a hint waits for a leader that
    says nothing. ``most``: responses held at once (rule 8).
    """

    deadline: float = 0.1
    calm: float = 1.0
    link_second: float = 0.1
    shared: float = 0.02
    grace: float = 0.02
    confirm: float = 0.025
    most: int = 10_000


@dataclass(slots=True)
class Wants:
    """What would bring hints for the held responses of a route.

    ``topics`` (names or ids): of which Metadata is wanted. ``epochs``: at which epoch the leader
    of a partition is looked for, by asking each broker whether it leads.
    """

    route: Route
    topics: set[Topic] = field(default_factory=set)
    epochs: dict[Partition, int] = field(default_factory=dict)


class _Wanted:
    """One failed partition that waits for its hint.

    ``led``: the epoch under which the answering broker was known to lead at the time of the
    error, -1 where it was not. ``asked``: the answering broker was asked after the error.
    ``serves``: whether it has said since that it leads. ``found``: a good hint, first seen at
    ``found_at``. ``hint``: the one that is given.
    """

    __slots__ = (
        "asked",
        "client_epoch",
        "failure",
        "found",
        "found_at",
        "hint",
        "led",
        "reason",
        "serves",
    )

    def __init__(self, failure: Failure, client_epoch: int, led: int) -> None:
        self.failure = failure
        self.client_epoch = client_epoch
        self.led = led
        self.asked = False
        self.serves: bool | None = None
        self.found: LeaderHint | None = None
        self.found_at = 0.0
        self.hint: LeaderHint | None = None
        self.reason: Reason | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.hint is not None or self.reason in _FINAL

    @property
    def newest(self) -> int:
        """The newest epoch that client and answering broker are known to have been at."""
        return self.client_epoch if self.client_epoch >= 0 else self.led


class _Waiting:
    """A response that is held: ``deadline`` by rules 4 and 5, lowered by 6.

    ``basis``: what it was judged by last; ``told``: how often a broker's word was noted. Thousands
    of partitions may wait, so only those are judged again of which there is news, or that are due
    at ``confirm_at``.
    ``detached``: hints are only counted. It has gone on already; what would have come of it is
    told all the same.
    """

    __slots__ = (
        "basis",
        "confirm_at",
        "deadline",
        "detached",
        "first_hint",
        "held",
        "since",
        "told",
        "topics",
        "wanted",
    )

    def __init__(self, held: Held, wanted: list[_Wanted], since: float, *, detached: bool) -> None:
        self.held = held
        self.wanted = wanted
        self.since = since
        self.deadline = math.inf
        self.first_hint: float | None = None
        self.detached = detached
        self.topics = frozenset(w.failure.topic for w in wanted)
        self.told = 0
        self.basis: object = None
        self.confirm_at = math.inf


class _Sought(NamedTuple):
    """A failed partition whose response went on without a hint: for the next one it is looked for.

    A client that got no hint comes back soon, and may come back often.
    """

    route: Route
    wanted: _Wanted
    since: float
    until: float


class Desk:
    """Holds error responses of all links of a process until their hints are good.

    ``events``: what was given and missed; whoever calls takes them out. ``unfinished``: a review
    ended before all was judged, since that would take too long: it is to be gone on with.
    """

    def __init__(self, rules: HoldRules) -> None:
        self.rules = rules
        self.events: list[Event] = []
        self.unfinished = False
        self._waiting: list[_Waiting] = []
        self._sought: dict[tuple[str, Topic, int], _Sought] = {}
        self._episodes: OrderedDict[tuple[str, Topic, int, int], float] = OrderedDict()
        #: By route and partition: the epoch of the leader found last, and when it first was.
        self._first_found: OrderedDict[tuple[str, Topic, int], tuple[int, float]] = OrderedDict()
        self._holds: dict[int, deque[tuple[float, float]]] = {}

    @property
    def busy(self) -> bool:
        """Whether something is held, or looked for."""
        return bool(self._waiting or self._sought)

    def submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        """Take an error response; return its hints, or ``None`` while it is held.

        A response that is held comes back from :meth:`review`.
        """
        route = held.link.route
        wanted = [
            _Wanted(failure, epoch, self._led(route, failure))
            for failure, epoch in zip(held.scanned.failures, held.epochs, strict=True)
        ]
        waiting = _Waiting(held, wanted, now, detached=route.mode is Mode.OBSERVE)
        if not held.link.hintable(held.key, held.version):
            return self._finish(waiting, now, Reason.HINTS_OFF)
        if self._ready(waiting, now):
            return self._finish(waiting, now, Reason.HOLD_EXPIRED)
        deadline, reason = self._deadline(waiting, now)
        waiting.deadline = min(waiting.deadline, deadline)
        if now >= waiting.deadline:
            return self._finish(waiting, now, reason)
        if len(self._waiting) >= self.rules.most:
            return self._finish(waiting, now, Reason.BUDGET)
        self._waiting.append(waiting)
        return [None] * len(wanted) if waiting.detached else None

    def review(self, now: float) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Return the responses whose hints are good, or whose time is over."""
        done = []
        waiting, self._waiting = self._waiting, []
        left = _JUDGED_AT_ONCE
        self.unfinished = False
        for item in waiting:
            if not self._due(item, now):
                self._waiting.append(item)
                continue
            if left <= 0:
                self.unfinished = True
                self._waiting.append(item)
                continue
            left -= len(item.wanted)
            if self._ready(item, now) or now >= item.deadline:
                hints = self._finish(item, now, Reason.HOLD_EXPIRED)
                if not item.detached:
                    done.append((item.held, hints))
            else:
                self._waiting.append(item)
        for key, sought in list(self._sought.items()):
            self._judge(sought.route, sought.wanted, now)
            if sought.wanted.settled or now >= sought.until:
                del self._sought[key]
        return done

    def asked(self, route: Route, topics: Collection[Topic], since: float) -> None:
        """Note that the broker behind ``route`` answered for ``topics`` (names or ids).

        ``since``: when it was asked. Only errors from before that moment are concerned.
        """
        for wanted in self._concerned(route, since):
            topic = wanted.failure.topic
            key = route.view.key(topic) if route.view is not None else topic
            wanted.asked = wanted.asked or topic in topics or key in topics

    def probed(self, route: Route, errors: Mapping[Partition, int], since: float) -> None:
        """Note whether the broker behind ``route`` leads what it was asked about at ``since``.

        ``errors``: by partition, 0 where it leads at the epoch of :class:`Wants`.
        """
        for wanted in self._concerned(route, since):
            name = route.view.name(wanted.failure.topic) if route.view else None
            error = errors.get((name, wanted.failure.partition)) if name else None
            if error in _AT_MOST_AT_EPOCH:
                wanted.asked = True
                wanted.serves = error == ErrorCode.NONE

    def _concerned(self, route: Route, since: float) -> Iterator[_Wanted]:
        """Iterate over what a word of the broker behind ``route`` may be about."""
        for item in self._waiting:
            if item.held.link.route is route and item.since <= since:
                item.told += 1
                yield from (wanted for wanted in item.wanted if wanted.hint is None)
        for sought in self._sought.values():
            if sought.route is route and sought.since <= since:
                yield sought.wanted

    def _wanted(self) -> Iterator[tuple[Route, _Wanted]]:
        """Iterate over route and partition of every failure that has no hint yet."""
        for item in self._waiting:
            for wanted in item.wanted:
                if wanted.hint is None:
                    yield item.held.link.route, wanted
        for sought in self._sought.values():
            yield sought.route, sought.wanted

    def switched(self, route: Route, now: float) -> list[tuple[Held, list[LeaderHint | None]]]:
        """Return what is held of a route whose mode was changed: it goes on without a hint."""
        mine = [item for item in self._waiting if item.held.link.route is route]
        self._waiting = [item for item in self._waiting if item.held.link.route is not route]
        self._sought = {key: s for key, s in self._sought.items() if s.route is not route}
        for item in mine:
            for wanted in item.wanted:
                wanted.hint = wanted.found = None
                wanted.reason = Reason.HINTS_OFF
        done = [(item, self._finish(item, now, Reason.HINTS_OFF)) for item in mine]
        return [(item.held, hints) for item, hints in done if not item.detached]

    def forget(self, link: int) -> None:
        """Drop what is held for a link that is gone."""
        self._waiting = [w for w in self._waiting if w.held.link.number != link]
        self._holds.pop(link, None)

    @property
    def held(self) -> int:
        """How many responses wait now, those whose hints are only counted among them."""
        return len(self._waiting)

    def next_deadline(self) -> float | None:
        """Return when :meth:`review` has something to do even if nothing is learnt."""
        # They are in the order in which they are to be given up.
        first = next(iter(self._sought.values()), None)
        times = [first.until] if first is not None else []
        times += [min(item.deadline, item.confirm_at) for item in self._waiting]
        return min(times, default=None)

    def waiting_for(self) -> list[Wants]:
        """Return what would help the responses that wait or will come, route by route."""
        wants: dict[str, Wants] = {}
        for route, wanted in self._wanted():
            mine = wants.setdefault(route.name, Wants(route))
            mine.topics.add(wanted.failure.topic)
            self._look_for(mine, wanted)
        return [*wants.values()]

    def _look_for(self, wants: Wants, wanted: _Wanted) -> None:
        """Note at which epoch to look for a leader: the view's, or if that is no news the next.

        Each move raises the epoch by one, so who leads at the next one is told by the leader
        itself as soon as it serves, where Metadata lags.
        """
        topic, partition = wanted.failure[:2]
        view = wants.route.view
        name = view.name(topic) if view is not None else None
        known = view.leader(topic, partition) if view is not None else None
        if name is not None and known is not None:
            wants.epochs[name, partition] = max(known.epoch, wanted.newest + 1)

    # How long.

    def _deadline(self, waiting: _Waiting, now: float) -> tuple[float, Reason]:
        """Return until when to hold, and the reason to give if that is not at all."""
        held, rules = waiting.held, self.rules
        route = held.link.route
        if not route.reachable:
            return now, Reason.NO_FRESHER_VIEW
        # Only of what must wait: an error that is answered at once begins no hold, and the next
        # one under the same epoch may be the first of another move.
        begun = (self._episode(route, w, now) for w in waiting.wanted if not w.settled)
        latest = max(begun, default=now)
        if latest <= now:
            return now, Reason.HOLD_EXPIRED
        allowed = rules.link_second - self._spent_lately(held.link.number, now)
        if held.scanned.carries:
            allowed = min(allowed, rules.shared)
        if allowed <= 0:
            return now, Reason.LINK_HOLD_SPENT
        return min(latest, now + allowed), Reason.HOLD_EXPIRED

    def _episode(self, route: Route, wanted: _Wanted, now: float) -> float:
        """Return the deadline of rule 4 for one partition."""
        rules, episodes = self.rules, self._episodes
        while episodes and next(iter(episodes.values())) + rules.deadline + rules.calm <= now:
            episodes.popitem(last=False)
        known = route.view.leader(*wanted.failure[:2]) if route.view else None
        epoch = known.epoch if known else UNKNOWN_EPOCH
        key = (route.name, wanted.failure.topic, wanted.failure.partition, epoch)
        return episodes.setdefault(key, now) + rules.deadline

    def _spent_lately(self, link: int, now: float) -> float:
        """Return how long a link was held, as far as a hold ended within the last second."""
        holds = self._holds.get(link, deque())
        while holds and holds[0][0] <= now - 1.0:
            holds.popleft()
        return sum(held_for for _, held_for in holds)

    def _spend(self, waiting: _Waiting, now: float) -> None:
        held_for = now - waiting.since
        if held_for > 0 and not waiting.detached:
            self._holds.setdefault(waiting.held.link.number, deque()).append((now, held_for))

    # Which hint.

    def _led(self, route: Route, failure: Failure) -> int:
        """Return the epoch under which the answering broker is known to have led last."""
        if route.view is None:
            return UNKNOWN_EPOCH
        known = route.view.leader(failure.topic, failure.partition)
        before = route.view.before(failure.topic, failure.partition)
        for leader in (known, before):
            if leader is not None and route.is_self(leader.node):
                return leader.epoch
        return UNKNOWN_EPOCH

    def _due(self, waiting: _Waiting, now: float) -> bool:
        """Whether there is news of it, or its time has come."""
        at = min(waiting.deadline, waiting.confirm_at)
        return now >= at or waiting.basis != _basis(waiting)

    def _ready(self, waiting: _Waiting, now: float) -> bool:
        """Look for hints; whether nothing is left to wait for."""
        route = waiting.held.link.route
        waiting.basis, waiting.confirm_at = _basis(waiting), math.inf
        missing = False
        for wanted in waiting.wanted:
            if not wanted.settled:
                self._judge(route, wanted, now)
                waiting.confirm_at = min(waiting.confirm_at, self._confirm_at(route, wanted))
            if wanted.hint is not None and waiting.first_hint is None:
                waiting.first_hint = now
                waiting.deadline = min(waiting.deadline, now + self.rules.grace)
            missing |= not wanted.settled
        return not missing

    def _judge(self, route: Route, wanted: _Wanted, now: float) -> None:
        """Set the hint of ``wanted``, where there is a good one that need not wait."""
        found = self._find(route, wanted)
        if found is None:
            wanted.found = None
            return
        if found != wanted.found:
            wanted.found, wanted.found_at = found, self._found_at(route, wanted, found, now)
        word = self._word(route, wanted, found)
        if word or (word is None and now >= wanted.found_at + self.rules.confirm):
            wanted.hint = found

    def _confirm_at(self, route: Route, wanted: _Wanted) -> float:
        """Return when the hint that was found is good although the leader is silent."""
        found = wanted.found
        if wanted.hint is not None or found is None or self._word(route, wanted, found) is not None:
            return math.inf
        return wanted.found_at + self.rules.confirm

    def _found_at(self, route: Route, wanted: _Wanted, found: LeaderHint, now: float) -> float:
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

    def _find(self, route: Route, wanted: _Wanted) -> LeaderHint | None:
        """Return the hint that the view has, or set the reason why there is none so far."""
        wanted.reason = None
        leader = route.view.leader(*wanted.failure[:2]) if route.view else None
        if leader is None or not self._fresher(route, wanted, leader):
            if route.view is not None and route.view.is_hidden(wanted.failure.topic):
                # To ask would tell nothing. What is known was told to clients.
                wanted.reason = Reason.NOT_AUTHORIZED
            return None
        if leader.node < 0:
            wanted.reason = Reason.NO_LEADER
            return None
        endpoint = route.endpoint(leader.node)
        if endpoint is None:
            wanted.reason = Reason.NO_ENDPOINT
            return None
        return LeaderHint(leader.node, leader.epoch, endpoint)

    def _word(self, route: Route, wanted: _Wanted, found: LeaderHint) -> bool | None:
        """Whether the leader itself says that it leads; ``None``: it has said nothing."""
        topic, partition, error, _, _ = wanted.failure
        if route.is_self(found.leader):
            # FENCED_LEADER_EPOCH is the word of a leader, NOT_LEADER_OR_FOLLOWER of none.
            return True if error == ErrorCode.FENCED_LEADER_EPOCH else wanted.serves
        return route.view.in_office(topic, partition) if route.view else None

    def _fresher(self, route: Route, wanted: _Wanted, leader: Leader) -> bool:
        """Whether what the view says is news to the client, and can be relied upon."""
        if wanted.client_epoch >= 0:
            if leader.epoch <= wanted.client_epoch:
                return False
            if route.is_self(leader.node) and wanted.failure.error != ErrorCode.FENCED_LEADER_EPOCH:
                # A KRaft broker may learn only up to 500 ms later that it leads.
                return wanted.asked
            return True
        if leader.node < 0:
            return leader.epoch > wanted.led and wanted.asked
        if route.is_self(leader.node) is False:
            return leader.epoch > wanted.led and (wanted.led >= 0 or wanted.asked)
        return route.is_self(leader.node) is True and leader.epoch > wanted.led and wanted.asked

    # What came of it.

    def _finish(self, waiting: _Waiting, now: float, reason: Reason) -> list[LeaderHint | None]:
        self._spend(waiting, now)
        route = waiting.held.link.route
        for wanted in waiting.wanted:
            if wanted.hint is None and wanted.found is not None:
                if self._word(route, wanted, wanted.found) is False:
                    wanted.reason = Reason.LEADER_NOT_READY
                else:
                    wanted.hint = wanted.found
        self.events += self._tell(waiting, now, reason)
        if route.mode is not Mode.OFF and route.reachable:
            self._seek(waiting, now)
        if waiting.detached:
            return [None] * len(waiting.wanted)
        return [wanted.hint for wanted in waiting.wanted]

    def _seek(self, waiting: _Waiting, now: float) -> None:
        route = waiting.held.link.route
        for wanted in waiting.wanted:
            if not wanted.settled:
                key = (route.name, *wanted.failure[:2])
                sought = _Sought(route, wanted, waiting.since, now + self.rules.calm)
                self._sought.setdefault(key, sought)

    def _tell(self, waiting: _Waiting, now: float, reason: Reason) -> Iterable[Event]:
        held = waiting.held
        for wanted in waiting.wanted:
            failure, hint = wanted.failure, wanted.hint
            hold_ms = (now - waiting.since) * 1000
            epoch = wanted.client_epoch
            answered = held.link.answered(
                held.key, held.version, failure, epoch, hold_ms, observed=waiting.detached
            )
            if hint is not None:
                yield HintGiven(answered=answered, leader=hint.leader, epoch=hint.epoch)
            else:
                yield HintMissed(answered=answered, reason=wanted.reason or reason)


def _basis(waiting: _Waiting) -> tuple[object, ...]:
    """Return what the judgement of a response rests on, beside the time."""
    route = waiting.held.link.route
    changed = route.view.changed(waiting.topics) if route.view is not None else 0
    return changed, waiting.told, route.view, route.endpoints, route.node, route.others
