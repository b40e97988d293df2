"""One topic's partitions: their leaders, and their epochs."""

from array import array
from collections.abc import Callable, Collection, Container, Set
from typing import NamedTuple

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import Led
from leader_hints.core.cluster.doubts import Doubts, Reporter, Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.partition_bits import PartitionBits
from leader_hints.core.replicas.in_sync_replicas import InSyncReplicas

#: No epoch is known; no leader is known, or there is none.
UNKNOWN = -1
_NO_EPOCH = array("i", [UNKNOWN])
NO_ROUTES: frozenset[str] = frozenset()
NO_PARTITIONS = PartitionBits()
#: Seconds for which a broker may go on to serve the former topic after one was recreated: brokers
#: learn of that in tenths of a second, in a large cluster within seconds.
LAG = 10.0
Join = Callable[[frozenset[int], int], frozenset[int]]


class Claim(NamedTuple):
    """The former id that a broker's poll reported, and in which of its stays: see
    :meth:`leader_hints.core.cluster.known_topics.KnownTopics.stay`.
    """

    topic_id: bytes
    stay: int


class Contradicted(NamedTuple):
    """The partitions that a broker's poll contradicted, those of them that the one before it did as
    well, and in which of its stays; ``number``: which one it is of the polls that contradict the
    topic, from 1. It says nothing any more of partitions that were ``replaced`` since.
    """

    partitions: PartitionBits
    twice: PartitionBits
    stay: int
    number: int


class Lower(NamedTuple):
    """The brokers whose polls have reported a lower epoch ``since``, ``once`` in which of their
    stays, and ``twice`` in it.

    One for all partitions of which they have reported the same: hundreds of brokers may each have
    reported thousands.
    """

    since: float
    once: frozenset[tuple[Reporter, int]] = frozenset()
    twice: frozenset[Reporter] = frozenset()


class TopicLeaders:
    """Leaders and epochs by partition, in arrays: 100,000 partitions must stay small.

    ``key``: the id where there is one, else the name. ``aliases``: all names and ids by which
    clients may give the topic. ``since``: when the view learnt of it; ``recreated``: it knew
    another one with an id of the name before. ``knowing``: the nodes that have reported this id,
    while others may still lead a former topic of the name. ``retired``: former ids of the name;
    ``claimed``: the one of them that the last poll of each broker reported; ``elsewhere``: the
    brokers whose last report was of one, or of none where this has an id; ``former``: the routes
    whose brokers had shown such a one when the view learnt of this, and have not reported this id
    since. ``contradicted``: which partitions the last poll of each broker contradicted, ``polls``:
    how many have; ``replaced``: after how many of these a partition had another leader. ``behind``:
    by partition, which polls have reported lower epochs than the known one, while nobody reported
    that one. ``seen``: the routes whose brokers show it to the proxy; ``absent``: those whose last
    poll lacked it, if nobody has reported it since.
    ``in_sync``: its replicas in sync, ``None`` where no answer was read for those.

    Large because each way in which brokers may contradict the view has its note here.
    """

    __slots__ = (
        "absent",
        "aliases",
        "behind",
        "claimed",
        "contradicted",
        "elsewhere",
        "epochs",
        "former",
        "id",
        "in_sync",
        "key",
        "knowing",
        "leaders",
        "name",
        "polls",
        "recreated",
        "replaced",
        "retired",
        "seen",
        "since",
    )

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        retired: tuple[bytes, ...],
        synthetic_id: bytes,
        since: float = 0.0,
        *,
        recreated: bool = False,
    ) -> None:
        self.aliases: tuple[Topic, ...] = (name, synthetic_id, *([topic_id] if topic_id else ()))
        self.name = name
        self.id = topic_id
        self.key: Topic = topic_id or name
        self.retired = retired
        self.since = since
        self.recreated = recreated
        self.knowing: frozenset[int] | None = frozenset() if topic_id else None
        self.claimed: dict[Reporter, Claim] = {}
        self.elsewhere: frozenset[Reporter] = frozenset()
        self.former = NO_ROUTES
        self.leaders = array("i")
        self.epochs = array("i")
        self.contradicted: dict[Reporter, Contradicted] = {}
        self.polls = 0
        self.replaced: dict[int, int] = {}
        self.behind: dict[int, Lower] = {}
        self.seen = NO_ROUTES
        self.absent = NO_ROUTES
        self.in_sync: InSyncReplicas | None = None

    def reported_by(self, node: int | None, now: float, join: Join) -> None:
        """Take note that a node has reported the topic with its id.

        ``join``: :meth:`leader_hints.core.cluster.known_topics.KnownTopics.joined`.
        """
        if self.knowing is None:
            return
        if now >= self.since + LAG and not self.recreated:
            self.knowing = None
        elif node is not None:
            self.knowing = join(self.knowing, node)

    def was_reported_by(self, node: int) -> bool:
        """Whether a node has reported the topic with its id, as far as that is of interest."""
        return self.knowing is None or node in self.knowing

    def is_known_to(self, node: int, now: float) -> bool:
        """Whether a node that is asked by name can only mean this topic.

        A broker that is cut off from its controller leads a former topic for as long as that lasts.
        """
        knows = self.was_reported_by(node)
        if self.recreated:
            return knows and now >= self.since + LAG
        return knows or now >= self.since + LAG

    def is_another_to(self, source: Source) -> bool:
        """Whether a broker means a former topic of the name, as far as it has reported."""
        return source.route in self.former or not self.elsewhere.isdisjoint(source.names)

    def report_in_sync(self, led: Led, nodes: bytes, reporter: int | None) -> bool:
        """Take the replicas in sync that a broker reports beside the known leader.

        Return whether they are new.
        """
        if self.in_sync is None:
            self.in_sync = InSyncReplicas()
        return self.in_sync.report(led, nodes, reporter)

    def leader(self, partition: int) -> Leader:
        """Return the known leader of a partition, with its epoch."""
        return Leader(self.leaders[partition], self.epochs[partition])

    def replace(self, partition: int, leader: int, epoch: int) -> Leader:
        """Note a partition's new leader; return the former one.

        Two polls must contradict the same leader, so what they contradicted until now is over. That
        is noted once, not for each of the hundreds of brokers that may have contradicted it.
        """
        before = self.leader(partition)
        if self.contradicted and UNKNOWN not in (before.epoch, epoch):
            self.replaced[partition] = self.polls
        self.leaders[partition] = leader
        self.epochs[partition] = epoch
        return before

    def grow(self, partitions: int) -> int:
        """Have room for that many partitions; return how many were added."""
        missing = max(partitions - len(self.leaders), 0)
        self.leaders.extend(_NO_EPOCH * missing)
        self.epochs.extend(_NO_EPOCH * missing)
        return missing

    def shrink(self, absent: Container[int], most: int) -> int:
        """Drop the last partitions that are ``absent`` and unknown, ``most`` of them; return how
        many.
        """
        before = len(self.epochs)
        while (
            self.epochs[-1:] == _NO_EPOCH
            and len(self.epochs) - 1 in absent
            and before - len(self.epochs) < most
        ):
            self.leaders.pop()
            self.epochs.pop()
        return before - len(self.epochs)

    def contradicts(self, source: Source, partitions: PartitionBits, stay: int) -> None:
        """Note which partitions the last poll of a broker contradicts."""
        twice, before = NO_PARTITIONS, self.contradicted_before(source, stay)
        if before is not None:
            twice = partitions & before.partitions
            for partition in self.replaced:
                if not self._holds(before, partition):
                    twice.discard(partition)
        self.contradicted.pop(source.poller, None)
        if partitions:
            self.polls += 1
            self.contradicted[source.poller] = Contradicted(partitions, twice, stay, self.polls)
        elif not self.contradicted:
            self.replaced.clear()

    def denies(self, poller: Reporter, partition: int) -> bool:
        """Whether the last poll of a broker contradicts a partition's leader, or lacks it."""
        return self.denied(self.contradicted.get(poller), partition)

    def denies_again(self, poller: Reporter, partition: int) -> bool:
        """Whether the last two polls of a broker do."""
        last = self.contradicted.get(poller)
        return last is not None and partition in last.twice and self._holds(last, partition)

    def _holds(self, poll: Contradicted, partition: int) -> bool:
        """Whether a partition has the leader that a poll contradicted."""
        return self.replaced.get(partition, 0) < poll.number

    def contradicted_before(self, source: Source, stay: int) -> Contradicted | None:
        """Return what the last poll of a broker in the same stay contradicted."""
        before = self.contradicted.get(source.poller)
        return before if before is not None and before.stay == stay else None

    def denied(self, poll: Contradicted | None, partition: int) -> bool:
        """Whether a poll has contradicted a partition's present leader, or lacked it."""
        return poll is not None and partition in poll.partitions and self._holds(poll, partition)

    def first_led(self, doubts: Doubts) -> dict[int, int]:
        """Return by node the first partition that it leads and that is not in doubt.

        At once: to look for that of each of a thousand nodes took 15 ms, and 0.3 s where all of
        20,000 partitions are in doubt, as of a topic that was recreated.
        """
        last = len(self.leaders) - 1
        led = zip(reversed(self.leaders), range(last, -1, -1), strict=True)
        if not doubts:
            return dict(led)
        return {node: at for node, at in led if (self.key, at) not in doubts}

    def insists(
        self,
        topic_id: bytes,
        source: Source,
        present: Set[str],
        brokers: Callable[[Collection[Reporter]], int] = len,
        stay: int = 0,
    ) -> bool:
        """Take a poll that reports a former id, or none at all; return whether it counts.

        That is if two polls in a row of one broker report it, in one stay. A cluster whose brokers
        are downgraded has no ids any more, in no answer. Ids have no order. If a view learns the
        new one first and then a lagging broker's, it has taken the deleted topic for the present
        one: no broker lags for so long. But several may lag at the same time, when all are polled.
        And one that is cut off from its controller goes on to report a deleted topic: so more
        brokers must claim the id than report the present one, of the routes that are ``present``.
        After an outage of all that one may be the first to be connected again.
        ``brokers``: see :meth:`leader_hints.core.cluster.known_topics.KnownTopics.brokers`.
        """
        claim = Claim(topic_id, stay)
        again = self.claimed.get(source.poller) == claim
        self.claimed[source.poller] = claim
        others = self.seen & present - self.claimed.keys()
        claiming = [one for one, some in self.claimed.items() if some.topic_id == topic_id]
        return again and brokers(claiming) > brokers(others)
