"""Partitions of which a broker reports what contradicts the view.

Without topic ids (clusters before 2.8) a lower epoch, or another leader at the same epoch, has two
possible causes: the broker lags, or the topic was deleted and created again, and its epochs begin
with 0. With ids another leader at the same epoch means that a broker was taken for another node.
One answer does not show which one is right, so the partition is in doubt until one of these:

- the leader that the view has confirms that it leads at that epoch (ListOffsets compares the epoch,
  KIP-320), or every broker that reported another one reports the same by now: the view was right;
- that leader denies it, the one that was reported instead confirms that it leads, and no other
  broker has agreed with the view for a while: the view was wrong, and adopts that leader. (At a
  move the new leader may be the last to learn of it, and the former one serves until it does.)

If two confirm that they lead, the higher epoch counts: a former leader that is cut off from its
controller continues to serve.

A broker that is cut off goes on to report what is long over. So it is remembered what each broker
reported last of a partition about which they disagree. What most of them contradict settles
nothing, however often one broker repeats it. Of many partitions that is forgotten again: then it
counts whether the last poll of a broker contradicted the view.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Set
from itertools import islice
from typing import NamedTuple

from leader_hints.apis.fetch_response import Topic
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.leader import Leader

#: Seconds after which a doubt that was not renewed is over. Before a hint of a topic without an id
#: is given, its broker is asked, which renews it.
_LASTS = 30.0
#: Seconds for which the leader's own confirmation outweighs what others report: their Metadata
#: lags. No topic is deleted, created and moved within that time.
_CONFIRMED_FOR = 0.25
#: Seconds for which nobody must have agreed with the view before it is found to be wrong. All
#: brokers are asked more often than that while a response is held.
_STANDS = 0.5
#: Seconds within which one leader must deny and the other confirm: else it may be a move.
_TOGETHER = 1.0

#: Reports that are remembered in all, of partitions about which brokers disagree: of 25,000 of
#: these, as two of each are usual. And groups of brokers.
_REPORTS = 50_000
_MOST_GROUPS = 1000

Place = tuple[Topic, int]
#: A broker: its node, or the name of its route while that is not known.
Reporter = int | str


class Source(NamedTuple):
    """The broker that reports something: its ``node`` where it is known, its ``route`` if any."""

    node: int | None
    route: str = ""

    @property
    def name(self) -> Reporter:
        """What distinguishes it from other brokers."""
        return self.route if self.node is None else self.node

    @property
    def names(self) -> Set[Reporter]:
        """All names that its reports may stand under: which node it is may not stay proved."""
        return {self.name, self.route} - {""}

    @property
    def poller(self) -> Reporter:
        """What distinguishes its polls from others: two routes may lead to one broker, by two
        listeners, and are polled at the same time.
        """
        return self.route or self.name


class _Doubt:
    """``claim``: what was said last instead of the view's leader, ``by``: which nodes say such.

    ``since``: nobody has agreed with the view from then on.
    """

    __slots__ = ("at", "by", "claim", "confirmed", "confirmed_at", "denied_at", "since")

    def __init__(self, since: float) -> None:
        self.since = self.at = since
        self.by: set[Reporter] = set()
        self.claim: Leader | None = None
        self.confirmed: Leader | None = None
        self.confirmed_at = -math.inf
        self.denied_at = -math.inf


class Doubts:
    """The partitions of one view that are in doubt; of ``capacity`` the oldest give way."""

    def __init__(self, clock: Clock, capacity: int) -> None:
        self._clock = clock
        self._capacity = capacity
        self._doubts: OrderedDict[Place, _Doubt] = OrderedDict()
        self._confirmed: OrderedDict[Place, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._doubts)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._doubts)

    def __contains__(self, place: Place) -> bool:
        doubt = self._doubts.get(place)
        return doubt is not None and self._clock() <= doubt.at + _LASTS

    def claim(self, place: Place) -> Leader | None:
        """Return who was named last instead of the view's leader, where that is in doubt."""
        return self._doubts[place].claim if place in self else None

    def contradicted(self, place: Place, claim: Leader, reporter: Reporter) -> bool:
        """Take another leader, or a lower epoch, from a broker.

        Return whether that began a doubt.
        """
        now = self._clock()
        if now < self._confirmed.get(place, -math.inf) + _CONFIRMED_FOR:
            return False
        begins = place not in self
        if begins:
            self.dropped(place)
        doubt = self._doubts.setdefault(place, _Doubt(now))
        self._doubts.move_to_end(place)
        doubt.at, doubt.claim = now, claim
        doubt.by.add(reporter)
        if len(self._doubts) > self._capacity:
            self._doubts.popitem(last=False)
        return begins

    def agreed(self, place: Place, source: Source) -> bool:
        """Take what the view has from a broker; return whether that ended a doubt.

        It may have contradicted before it was known which node it is.
        """
        doubt = self._doubts.get(place)
        if doubt is None:
            return False
        doubt.since = self._clock()
        doubt.by.difference_update(source)
        return not doubt.by and self.dropped(place)

    def confirmed(self, place: Place) -> bool:
        """Take it from the view's leader that it leads; return whether that ended a doubt."""
        self._confirmed[place] = self._clock()
        self._confirmed.move_to_end(place)
        if len(self._confirmed) > self._capacity:
            self._confirmed.popitem(last=False)
        return self.dropped(place)

    def denied(self, place: Place) -> Leader | None:
        """Take it from the view's leader that it does not lead; return who does instead."""
        # The topic may have been recreated since that leader confirmed.
        self._confirmed.pop(place, None)
        doubt = self._doubts.get(place)
        if doubt is None:
            return None
        doubt.denied_at = self._clock()
        return self._settled(doubt)

    def served(self, place: Place, leader: Leader) -> Leader | None:
        """Take it from ``leader`` itself that it leads; return it if the view's does not."""
        doubt = self._doubts.get(place)
        if doubt is None:
            return None
        doubt.confirmed, doubt.confirmed_at = leader, self._clock()
        return self._settled(doubt)

    def dropped(self, place: Place) -> bool:
        """Forget a doubt; return whether there was one."""
        return self._doubts.pop(place, None) is not None

    def _settled(self, doubt: _Doubt) -> Leader | None:
        together = abs(doubt.denied_at - doubt.confirmed_at) <= _TOGETHER
        return doubt.confirmed if together and self._clock() >= doubt.since + _STANDS else None


class Word:
    """Under what a broker's reports are kept. ``name``: the broker's, or its route's; ``counts``:
    until they are all forgotten.
    """

    __slots__ = ("counts", "name")

    def __init__(self, name: Reporter) -> None:
        self.name = name
        self.counts = True


Words = frozenset[Word]
_NOBODY: Words = frozenset()


class Sides(NamedTuple):
    """Who reports what a broker does, or what is even further from the known leader, and who does
    not; as groups, without that broker.
    """

    backing: frozenset[Words]
    against: frozenset[Words]


class Disagreements:
    """What each broker reported last of the partitions about which brokers disagree.

    A partition is left out again as soon as all of them report the leader that is known.
    ``capacity``: reports that are remembered; what many brokers report of a partition is one. The
    oldest partitions give way.
    """

    def __init__(self, capacity: int = _REPORTS) -> None:
        self._capacity = capacity
        #: Some words may be forgotten: a broker may have reported thousands. They go, and the place
        #: with the last of them, when the place is looked at next.
        self._reports: OrderedDict[Place, dict[Leader, Words]] = OrderedDict()
        self._words: dict[Reporter, Word] = {}
        self._size = 0
        #: Groups of words with some more or less, and without those that are forgotten: nearly all
        #: partitions have the same, and hundreds of brokers may each have reported thousands.
        self._changes: dict[tuple[Words, Words], Words] = {}
        self._counted: dict[Words, Words] = {}

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._reports)

    def begin(self, place: Place) -> None:
        """Remember from now on what brokers report of a partition."""
        if self._counting(place) is None:
            self._reports[place] = {}

    def report(self, place: Place, source: Source, leader: Leader, known: Leader) -> None:
        """Take a broker's report. ``known``: the leader that is known after it."""
        reports = self._counting(place)
        if reports is None:
            return
        before = len(reports)
        # It may have reported before it was known which node it is.
        self._take_back(reports, source)
        word = self._words.setdefault(source.name, Word(source.name))
        reports[leader] = self._changed(reports.get(leader, _NOBODY), frozenset((word,)))
        self._size += len(reports) - before
        if all(one == known or one == (-1, known.epoch) for one in reports):
            self.drop(place)
        while self._size > self._capacity:
            self.drop(next(iter(self._reports)))

    def repeats(self, place: Place, source: Source, leader: Leader) -> bool:
        """Whether a broker reported this before: what others reported since is no news to it.

        It may have reported before it was known which node it is.
        """
        return leader in self._of(place, source)

    def contradicts(self, place: Place, source: Source, known: Leader) -> bool:
        """Whether a broker reported last what contradicts the known leader."""
        named = self._of(place, source)
        return any(leader not in (known, (-1, known.epoch)) for leader in named)

    def sides(self, place: Place, source: Source, leader: Leader, known: Leader) -> Sides:
        """Return which other brokers support and contradict what a broker reports in place of
        ``known``.

        A report that is even further from the known one does not contradict it.
        """
        back = leader.epoch <= known.epoch
        reports = {**(self._counting(place) or {})}
        self._take_back(reports, source)
        further = [
            other
            for other in reports
            if other == leader
            or ((other.epoch < leader.epoch) is back and other.epoch != leader.epoch)
        ]
        backing = frozenset(reports.pop(other) for other in further)
        return Sides(backing, frozenset(reports.values()))

    def topics(self, most: int) -> Set[Topic]:
        """Return topics of some partitions: of others each time, where there are more."""
        first = [*islice(self._reports, most)]
        some = [place for place in first if self._counting(place) is not None]
        for place in some:
            self._reports.move_to_end(place)
        return dict.fromkeys(topic for topic, _ in some).keys()

    def forget(self, reporters: Set[Reporter]) -> None:
        """Forget what these brokers have reported: it was others', or they have not been heard."""
        for reporter in self._words.keys() & reporters:
            self._words.pop(reporter).counts = False
            self._counted.clear()

    def withdraw(self, place: Place, source: Source) -> None:
        """Forget what a broker has reported of a partition."""
        reports = self._reports.get(place)
        if reports is None:
            return
        before = len(reports)
        self._take_back(reports, source)
        self._size -= before - len(reports)
        if not reports:
            self.drop(place)

    def drop(self, place: Place) -> None:
        """Forget a partition."""
        self._size -= len(self._reports.pop(place, ()))
        if not self._reports:
            self._words.clear()
            self._changes.clear()
            self._counted.clear()

    def _take_back(self, reports: dict[Leader, Words], source: Source) -> None:
        its = frozenset(self._words[name] for name in source if name in self._words)
        for leader, words in [*reports.items()]:
            gone = words & its
            if gone == words:
                del reports[leader]
            elif gone:
                reports[leader] = self._changed(words, gone)

    def _changed(self, words: Words, some: Words) -> Words:
        """Return a group with some more, or less; all partitions share it that have the same."""
        changed = self._changes.get((words, some))
        if changed is None:
            if len(self._changes) >= _MOST_GROUPS:
                self._changes.clear()
            changed = self._changes[words, some] = words ^ some
        return changed

    def _that_count(self, words: Words) -> Words:
        counted = self._counted.get(words)
        if counted is None:
            if len(self._counted) >= _MOST_GROUPS:
                self._counted.clear()
            counted = frozenset(word for word in words if word.counts)
            # The same group, where nothing of it is forgotten.
            counted = self._counted[words] = words if counted == words else counted
        return counted

    def _counting(self, place: Place) -> dict[Leader, Words] | None:
        """Return what is remembered of a partition, and let go what of it is forgotten."""
        reports = self._reports.get(place)
        if not reports:
            return reports
        for leader, words in [*reports.items()]:
            counted = self._that_count(words)
            if counted is not words:
                reports[leader] = counted
            if not counted:
                del reports[leader]
                self._size -= 1
        if not reports:
            self.drop(place)
        return reports or None

    def _of(self, place: Place, source: Source) -> list[Leader]:
        """Return what a broker reported last, by each of its names."""
        its = [self._words[name] for name in source if name in self._words]
        reports = self._reports.get(place, {})
        return [leader for leader, words in reports.items() for word in its if word in words]
