"""What a broker's report about one partition's leader changes.

Only a report with a higher epoch moves a partition. One with the same leader and epoch agrees.
Where a broker reports a lower epoch of a topic without an id, or another leader at the same epoch
of any topic, the partition is in doubt (:mod:`leader_hints.core.cluster.doubts`), and no hint is
given of it. Such a report is adopted once the leaders themselves confirm it, or two polls of one
broker that most others do not contradict. A partition that two polls of most brokers lack is
forgotten: the recreated topic has fewer.

A broker that is cut off repeats what is over, and it may be what a former topic was. So what a
broker repeats of a topic without an id is no news.

With an id a lower epoch is of a broker that lags. If two polls of most brokers report it, the
second when no broker can lag any more, and no broker reports the known epoch, the cluster's
metadata was restored from a backup.
"""

from collections.abc import Collection, Iterator, Set
from typing import NamedTuple

from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.doubts import (
    Disagreements,
    Doubts,
    Place,
    Reporter,
    Sides,
    Source,
)
from leader_hints.core.cluster.known_topics import KnownTopics
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_moves import LeaderMoves
from leader_hints.core.cluster.topic_changes import TopicChanges
from leader_hints.core.cluster.topic_leaders import UNKNOWN, Contradicted, Lower, TopicLeaders
from leader_hints.core.events import EpochRose, LeaderChange, LeaderMoved
from leader_hints.core.partition_bits import PartitionBits

#: Seconds for which no broker lags that answers.
_LAG = 30.0
#: Partitions of which one step finds out whether an answer lacks them.
_MISSING_AT_ONCE = 100


class LeaderReports:
    """Takes the reports about the partitions of one cluster, one partition at a time."""

    def __init__(
        self,
        cluster_id: str,
        topics: KnownTopics,
        changes: TopicChanges,
        moves: LeaderMoves,
        doubts: Doubts,
        disagreements: Disagreements,
        clock: Clock,
    ) -> None:
        self._cluster_id = cluster_id
        self._topics = topics
        self._changes = changes
        self._moves = moves
        self._doubts = doubts
        self._disagreements = disagreements
        self._clock = clock

    def is_news(self, topic: TopicLeaders, led: Led, source: Source) -> bool:
        """Whether a higher epoch than the known one counts.

        Not if the broker reported the same before most of them contradicted it.
        """
        if topic.id or not self._disagreements:
            return True
        place, leader = (topic.key, led.partition), Leader(led.leader, led.epoch)
        return not self._disagreements.repeats(place, source, leader)

    def newer(self, topic: TopicLeaders, led: Led, source: Source) -> list[LeaderChange]:
        """Take a leader of a higher epoch than the known one; return the move, if it is one."""
        before = self._replace(topic, led)
        if self._disagreements:
            self._note(topic, led, source)
        if before.epoch == UNKNOWN:
            return []
        place, itself = (topic.key, led.partition), led.leader == source.node
        if itself:
            self._doubts.confirmed(place)
        self._moves.add(place, before, led, confirmed=itself)
        return [self._change(topic, before, led)]

    def agrees(self, topic: TopicLeaders, led: Led, source: Source) -> bool:
        """Take a leader that is no news; return whether it does not contradict the known one."""
        leader, place = topic.leaders[led.partition], (topic.key, led.partition)
        lower = led.epoch < topic.epochs[led.partition]
        other = led.epoch != topic.epochs[led.partition]
        if other or UNKNOWN != led.leader != leader != UNKNOWN:
            # Of a topic with an id a lower epoch is mostly of a broker that lags: see restored().
            if not (lower and topic.id):
                self._contradicted(topic, led, source)
            return False
        if topic.behind:
            topic.behind.pop(led.partition, None)
        if leader == UNKNOWN != led.leader:
            # A ZooKeeper broker reports -1 at the same epoch while it does not see the leader's
            # endpoint alive; a broker that names the leader knows more.
            topic.leaders[led.partition] = led.leader
            self._changes.add(topic.aliases)
        if self._disagreements:
            self._note(topic, led, source)
        if led.leader == source.node and (place in self._moves or self._doubts):
            self._confirm(topic, place)
        elif self._doubts and led.leader == leader and self._doubts.agreed(place, source):
            self._changes.add(topic.aliases)
        return True

    def persists(
        self, topic: TopicLeaders, led: Led, source: Source, known_votes: "dict[Sides, Votes]"
    ) -> list[LeaderChange]:
        """Take it that two polls of a broker contradict the known leader; return the move, if
        it counts.

        ``known_votes``: those for other partitions in the same answer. Nearly all have the same
        sides, and there may be a thousand brokers.
        """
        place, leader = (topic.key, led.partition), Leader(led.leader, led.epoch)
        sides = self._disagreements.sides(place, source, leader, topic.leader(led.partition))
        votes = known_votes.get(sides)
        if votes is None:
            votes = known_votes[sides] = _votes(sides, topic, source, self._topics)
        counts = votes.most_are_for(topic, led.partition, self._topics)
        return self.adopt(topic, led) if counts else []

    def named(self, topic: TopicLeaders, led: Led, reporter: Reporter, *, settles: bool) -> None:
        """Take note that the Metadata of a broker has this leader, if it is the known one.

        ``settles``: it is of interest which brokers' Metadata has it.
        """
        place, leader = (topic.key, led.partition), Leader(led.leader, led.epoch)
        # Most partitions have not moved lately, and a poll is about all of them.
        if place not in self._moves or topic.leader(led.partition) != leader:
            return
        self._moves.claims.pop(place, None)
        if settles and led.leader != UNKNOWN and self._moves.brokers.names(reporter, place):
            self._changes.add(topic.aliases)

    def restored(self, topic: TopicLeaders, led: Led, lower: "LowerEpochs") -> list[LeaderChange]:
        """Take a lower epoch of a topic with an id from a poll; return the move, if it counts."""
        return self.adopt(topic, led) if lower.counts(led.partition) else []

    def adopt(self, topic: TopicLeaders, led: Led) -> list[LeaderChange]:
        """Take the leader of the recreated topic in place of the former one's; return the move."""
        self._topics.recreated()
        before = self._replace(topic, led)
        # The former topic's leader never led this one.
        self._moves.drop((topic.key, led.partition))
        if topic.id:
            # No topic is another here: all that was reported before is over.
            self._disagreements.drop((topic.key, led.partition))
        return [self._change(topic, before, led)]

    def missing(
        self,
        topic: TopicLeaders,
        answer: TopicMetadata,
        source: Source,
        before: Contradicted | None,
        contradicted: PartitionBits,
    ) -> Iterator[None]:
        """Add to ``contradicted`` which known partitions a poll lacks, in steps.

        Topics never shrink, so the broker has not learnt of them yet, or they are of a former topic
        that had more: then two polls of most brokers lack them. ``before``: what the last poll of
        this one contradicted.
        """
        listed = bytearray(len(topic.leaders))
        for number, led in enumerate(answer.partitions, 1):
            if 0 <= led.partition < len(listed):
                listed[led.partition] = True
            if number % _MISSING_AT_ONCE == 0:
                yield
        for partition, is_listed in enumerate(listed, 1):
            if partition % _MISSING_AT_ONCE == 0:
                yield
            if not is_listed:
                contradicted.add(partition - 1)
                if topic.denied(before, partition - 1):
                    if _most_lack(topic, partition - 1, source, self._topics):
                        self._forget(topic, partition - 1)
                    # That looked at what each of perhaps a thousand routes lacks.
                    yield
        while dropped := topic.shrink(contradicted, _MISSING_AT_ONCE):
            self._topics.partitions -= dropped
            yield

    def _forget(self, topic: TopicLeaders, partition: int) -> None:
        """Know nothing of a partition any more, if another answer has not dropped it yet."""
        if partition < len(topic.leaders):
            topic.replace(partition, UNKNOWN, UNKNOWN)
            self._moves.drop((topic.key, partition))
            self._doubts.dropped((topic.key, partition))
            self._disagreements.drop((topic.key, partition))
            self._changes.add(topic.aliases)

    def leads(self, topic: TopicLeaders, partition: int, leader: Leader) -> list[LeaderChange]:
        """Take a node's answer that it leads at an epoch; return the move, if it is new."""
        led = Led(partition, leader.node, leader.epoch)
        place, itself = (topic.key, partition), Source(leader.node)
        if leader.epoch > topic.epochs[partition]:
            moves = self.newer(topic, led, itself)
            self._serves(place)
            if moves:
                self._moves.claims[place] = None
            return moves
        if self.agrees(topic, led, itself):
            self._serves(place)
            return []
        if leader.node == topic.leaders[partition]:
            # It leads at the lower epoch, so not at the other.
            self._doubts.denied(place)
        return self._settle(topic, partition, self._doubts.served(place, leader))

    def does_not_lead(self, topic: TopicLeaders, partition: int) -> list[LeaderChange]:
        """Take the known leader's answer that it does not lead at that epoch, or not yet.

        Return the move where that settles which node leads instead.
        """
        self.is_not_ready(topic, partition)
        return self._settle(topic, partition, self._doubts.denied((topic.key, partition)))

    def is_not_ready(self, topic: TopicLeaders, partition: int) -> None:
        """Take it that the known leader has not confirmed, and cannot yet."""
        move = self._moves.get((topic.key, partition))
        if move is not None and move.confirmed is None:
            move.confirmed = False
            self._changes.add(topic.aliases)

    def _contradicted(self, topic: TopicLeaders, led: Led, source: Source) -> None:
        place = topic.key, led.partition
        if self._doubts.contradicted(place, Leader(led.leader, led.epoch), source.name):
            self._changes.add(topic.aliases)
        self._disagreements.begin(place)
        self._note(topic, led, source)

    def _note(self, topic: TopicLeaders, led: Led, source: Source) -> None:
        """Note what a broker reports, if brokers disagree about it."""
        known = topic.leader(led.partition)
        leader = Leader(led.leader, led.epoch)
        self._disagreements.report((topic.key, led.partition), source, leader, known)

    def _serves(self, place: Place) -> None:
        move = self._moves.get(place)
        if move is not None:
            move.serves = True

    def _confirm(self, topic: TopicLeaders, place: Place) -> None:
        """Take it from the known leader itself that it leads."""
        ended, move = self._doubts.confirmed(place), self._moves.get(place)
        if move is not None:
            move.confirmed = True
        if ended or move is not None:
            self._changes.add(topic.aliases)

    def _settle(
        self, topic: TopicLeaders, partition: int, leader: Leader | None
    ) -> list[LeaderChange]:
        if leader is None:
            return []
        return self.adopt(topic, Led(partition, leader.node, leader.epoch))

    def _replace(self, topic: TopicLeaders, led: Led) -> Leader:
        """Note the new leader; return the former one."""
        self._changes.add(topic.aliases)
        if self._doubts:
            self._doubts.dropped((topic.key, led.partition))
        if topic.behind:
            topic.behind.pop(led.partition, None)
        return topic.replace(led.partition, led.leader, led.epoch)

    def _change(self, topic: TopicLeaders, before: Leader, led: Led) -> LeaderChange:
        if led.leader == before.node:
            return EpochRose(
                cluster=self._cluster_id,
                topic=topic.name,
                partition=led.partition,
                leader=led.leader,
                epoch_before=before.epoch,
                epoch=led.epoch,
            )
        return LeaderMoved(
            cluster=self._cluster_id,
            topic=topic.name,
            partition=led.partition,
            leader_before=before.node,
            epoch_before=before.epoch,
            leader=led.leader,
            epoch=led.epoch,
        )


class Votes(NamedTuple):
    """Brokers that report what one does in place of the known leader, and those that do not.

    Those that cannot be asked any more have none. ``unknown``: routes of which it is not remembered
    what they report of the partition, since there are too many of these.
    """

    backing: Set[Reporter]
    against: Set[Reporter]
    unknown: Collection[str]

    def most_are_for(self, topic: TopicLeaders, partition: int, topics: KnownTopics) -> bool:
        """Whether more brokers are for it than not."""
        backing, against = self.backing, self.against
        if self.unknown:
            more = {topics.broker(one) for one in self.unknown if topic.denies(one, partition)}
            backing = backing | more
            against = against | {topics.broker(one) for one in self.unknown} - more
        return len(backing) > len(against)


class LowerEpochs:
    """What one poll of a broker reports of a topic with an id below the known epochs.

    That counts if most brokers report it at two polls, and the second time when no broker could lag
    any more. One that is cut off may report it at two polls while the others happen to answer
    before the first and after the second one. And one that restarts reports at one poll what it
    knew before.
    """

    def __init__(
        self, topics: KnownTopics, topic: TopicLeaders, source: Source, now: float
    ) -> None:
        self._topics = topics
        self._topic = topic
        self._poller = source.poller
        self._now = now
        self._stay = topics.stay(source.poller)
        #: What is noted from now on in place of what was, and whether that counts: nearly all
        #: partitions have one history, and to look at a thousand routes for each took 70 ms.
        self._next: dict[Lower | None, tuple[Lower, bool]] = {}

    def counts(self, partition: int) -> bool:
        """Note that a partition's epoch is lower; return whether that one counts."""
        behind = self._topic.behind
        before = behind.get(partition)
        known = self._next.get(before)
        if known is None:
            lower = self._again(before or Lower(self._now))
            known = self._next[before] = lower, self._topics.outvote(self._topic, lower.twice)
        behind[partition], counts = known
        return counts

    def _again(self, before: Lower) -> Lower:
        since, once, twice = before
        by = self._poller, self._stay
        if by not in once:
            # After an outage the others may not be connected again yet.
            once = frozenset(one for one in once if one[0] != self._poller) | {by}
        elif self._now >= since + _LAG:
            twice |= {self._poller}
        return Lower(since, once, twice)


def _votes(sides: Sides, topic: TopicLeaders, source: Source, topics: KnownTopics) -> Votes:
    """Return the votes on what a broker reports, which is one of those for it."""
    silent, itself = topics.silent, topics.broker(source.name)
    backing, against = (
        {topics.broker(word.name) for words in side for word in words} - silent for side in sides
    )
    backing.add(itself)
    against.discard(itself)
    routes = topic.seen & topics.present
    unknown = [one for one in routes if topics.broker(one) not in backing | against]
    return Votes(backing, against, unknown)


def _most_lack(topic: TopicLeaders, partition: int, source: Source, topics: KnownTopics) -> bool:
    """Whether two polls of more brokers contradict a partition than show it, with those of
    ``source``.

    One that is cut off goes on to lack those that were added since. One that has lacked it once has
    no say: it may have been stopped just then, or be stopped again and again.
    """
    lacking = {one for one in topic.contradicted if topic.denies(one, partition)}
    again = {one for one in lacking if topic.denies_again(one, partition)} | {source.poller}
    return topics.brokers(again) > topics.brokers(topic.seen & topics.present - lacking - again)
