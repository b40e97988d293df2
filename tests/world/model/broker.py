"""One broker: what it has heard from the controller, and what it answers by that."""

from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from tests.world.model.releases import Release
from tests.world.model.truth import NO_LEADER, Image, Leader, Record, Topic

#: Fetch requests of consumers are served by followers from this version on (KIP-392).
_FOLLOWERS_SERVE_FROM = 11
#: They name topics by ids from this one on (KIP-516).
_IDS_FROM = 13
#: Such a topic does not exist: the error for it shows whether topics may be hidden.
_PROBE = "leader-hints-check"


class Error(IntEnum):
    """Error codes of Kafka that brokers of the model answer."""

    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REPLICA_NOT_AVAILABLE = 9
    TOPIC_AUTHORIZATION_FAILED = 29
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FETCH_SESSION_TOPIC_ID_ERROR = 106

    @property
    def hinted(self) -> bool:
        """Whether a hint may come with it (KIP-951)."""
        return self in (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


class ShownPartition(NamedTuple):
    """A partition in a Metadata answer."""

    error: int
    leader: Leader
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] = ()


class ShownTopic(NamedTuple):
    """A topic in a Metadata answer."""

    error: int
    name: str
    id: bytes
    partitions: tuple[ShownPartition, ...] = ()


class Broker:
    """``replicas``: what its replicas have heard, which decides who is served; ``metadata``: what
    its Metadata has heard, later or sooner. Both hear all records in order. ``logless``: topics of
    which it has replicas that have no log yet. ``lagging``: nodes of which no replica is in sync
    but where it leads.
    """

    def __init__(self, node: int, release: Release) -> None:
        self.node = node
        self.release = release
        self.replicas = Image()
        self.metadata = Image()
        self.logless: Collection[str] = ()
        self.lagging: Collection[int] = ()

    def hear(self, record: Record, *, metadata: bool) -> None:
        """Take the next record into the one or the other."""
        (self.metadata if metadata else self.replicas).apply(record)

    def topic(self, name: str) -> Topic | None:
        """Return the incarnation of a topic that its replicas are of."""
        return self.replicas.topics.get(name)

    # What it answers.

    def produce(self, name: str, partition: int) -> Error:
        """Answer Produce: only the leader takes records, and no epoch is given."""
        if not self._shows(name, partition):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        known = self._known(name, partition)
        if isinstance(known, Error):
            return known
        return Error.NONE if known.node == self.node else Error.NOT_LEADER_OR_FOLLOWER

    def fetch(self, name: str, partition: int, epoch: int, version: int) -> Error:
        """Answer a consumer's Fetch."""
        if not self._shows(name, partition):
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        return self._compare(name, partition, epoch, follower=version >= _FOLLOWERS_SERVE_FROM)

    def fetch_by_id(
        self, topic_id: bytes, partition: int, epoch: int, name: str | None = None
    ) -> Error:
        """Answer a consumer's Fetch of a topic that is given by its id; ``name``: in its session,
        which keeps it.
        """
        name = name or self.name_of(topic_id)
        if name is None:
            return Error.UNKNOWN_TOPIC_ID
        known = self._known(name, partition)
        if not isinstance(known, Error) and self.replicas.topics[name].id not in (b"", topic_id):
            # Its Metadata has learnt of another incarnation than its replica is of
            # (ReplicaManager.readFromLog looks at that before it looks at the epoch).
            return Error.INCONSISTENT_TOPIC_ID
        return self.fetch(name, partition, epoch, _IDS_FROM)

    def hint(self, name: str, partition: int) -> Leader:
        """Return what a broker that gives hints says: what its replica knows, or else its Metadata
        (KafkaApis.getCurrentLeader in 3.7).
        """
        known = self._known(name, partition)
        if not isinstance(known, Error):
            return known
        shown = self.metadata.topics.get(name)
        there = shown is not None and partition < len(shown.leaders)
        return shown.leaders[partition] if shown is not None and there else Leader(NO_LEADER, -1)

    def list_offsets(self, name: str, partition: int, epoch: int) -> Error:
        """Answer ListOffsets: as Fetch, by the leader alone, whatever Metadata knows."""
        return self._compare(name, partition, epoch, follower=False)

    def _shows(self, name: str, partition: int) -> bool:
        """Whether Metadata has it: Produce and Fetch look there first (KafkaApis)."""
        shown = self.metadata.topics.get(name)
        return shown is not None and partition < len(shown.leaders)

    def _compare(self, name: str, partition: int, epoch: int, *, follower: bool) -> Error:
        """Answer by the replica: the epoch is looked at before the leader (KIP-320)."""
        known = self._known(name, partition)
        if isinstance(known, Error):
            stopped = known is Error.NOT_LEADER_OR_FOLLOWER and follower
            return Error.REPLICA_NOT_AVAILABLE if stopped and self.release.not_available else known
        if 0 <= epoch < known.epoch:
            return Error.FENCED_LEADER_EPOCH
        if epoch > known.epoch:
            return Error.UNKNOWN_LEADER_EPOCH
        serves = name not in self.logless and (follower or known.node == self.node)
        return Error.NONE if serves else Error.NOT_LEADER_OR_FOLLOWER

    def _known(self, name: str, partition: int) -> Leader | Error:
        topic = self.replicas.topics.get(name)
        there = topic is not None and partition < len(topic.leaders)
        if topic is not None and there and self.node in topic.replicas[partition]:
            return topic.leaders[partition]
        if self._shows(name, partition):
            return Error.NOT_LEADER_OR_FOLLOWER
        return Error.UNKNOWN_TOPIC_OR_PARTITION

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic given by id, ``None`` for an unknown one."""
        for topic in self.metadata.topics.values():
            if topic.id == topic_id:
                return topic.name
        return None

    def describe(self, names: Collection[str] | None, hidden: Collection[str]) -> list[ShownTopic]:
        """Answer Metadata for ``names``, ``None`` for all topics; ``hidden``: from this client."""
        if names is None:
            return [
                self._shown(topic)
                for name, topic in sorted(self.metadata.topics.items())
                if name not in hidden
            ]
        shown = []
        for name in names:
            topic = self.metadata.topics.get(name)
            if name in hidden or (name == _PROBE and hidden):
                shown.append(ShownTopic(Error.TOPIC_AUTHORIZATION_FAILED, name, b""))
            elif topic is None:
                shown.append(ShownTopic(Error.UNKNOWN_TOPIC_OR_PARTITION, name, b""))
            else:
                shown.append(self._shown(topic))
        return shown

    def _shown(self, topic: Topic) -> ShownTopic:
        partitions = []
        for leader, replicas in zip(topic.leaders, topic.replicas, strict=True):
            in_sync = tuple(n for n in replicas if n == leader.node or n not in self.lagging)
            # A broker shows no leader of which it knows no endpoint.
            there = leader.node in self.metadata.alive
            if there:
                partitions.append(ShownPartition(Error.NONE, leader, replicas, in_sync))
                continue
            error = Error.LEADER_NOT_AVAILABLE
            if self.release.blames_listener and self.node in self.metadata.alive:
                error = Error.LISTENER_NOT_FOUND
            epoch = leader.epoch if self.release.leaderless_epochs else -1
            leaderless = Leader(NO_LEADER, epoch)
            partitions.append(ShownPartition(error, leaderless, replicas, in_sync))
        return ShownTopic(0, topic.name, topic.id, tuple(partitions))
