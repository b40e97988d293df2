"""What is true of a cluster: what its controller has decided, in the order of its decisions."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

#: The controller has found no replica that could lead.
NO_LEADER = -1


class Leader(NamedTuple):
    """The leader of a partition, and since which epoch."""

    node: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Topic:
    """One incarnation of a topic, as it was when the controller decided something of it.

    ``number``: its incarnation, counted over all topics. ``id``: empty in a cluster without ids.
    ``leaders`` and ``replicas``: by partition.
    """

    name: str
    number: int
    id: bytes
    leaders: tuple[Leader, ...]
    replicas: tuple[tuple[int, ...], ...]

    def led(self, partition: int, leader: Leader) -> "Topic":
        """Return it with another leader of one partition."""
        leaders = [*self.leaders]
        leaders[partition] = leader
        return replace(self, leaders=tuple(leaders))


@dataclass(frozen=True, slots=True)
class Deleted:
    """A topic is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class Alive:
    """At which address, by number, each broker is registered that is not fenced."""

    addresses: Mapping[int, int]


Record = Topic | Deleted | Alive


class Term(NamedTuple):
    """For how long somebody led: from ``since`` until before ``until``."""

    incarnation: int
    leader: Leader
    since: float
    until: float


class Image:
    """What somebody knows after some of the records."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.alive: Mapping[int, int] = {}

    def apply(self, record: Record) -> None:
        """Take the next record."""
        if isinstance(record, Topic):
            self.topics[record.name] = record
        elif isinstance(record, Deleted):
            self.topics.pop(record.name, None)
        else:
            self.alive = record.addresses

    def copy(self) -> "Image":
        """Return another one that knows the same."""
        other = Image()
        other.topics, other.alive = dict(self.topics), self.alive
        return other


class Truth:
    """The controller's log. ``decided``: called with the number and the record of each entry.

    ``ids``: topics have ids; ``issued``: all that any topic has had, with its incarnation.
    """

    def __init__(self, nodes: tuple[int, ...], *, ids: bool) -> None:
        self.now = Image()
        self.log: list[tuple[float, Record]] = []
        self.decided: Callable[[int, Record], None] = lambda number, record: None
        self.ids = ids
        self.issued: dict[str | bytes, int] = {}
        self._incarnations = 0
        self._terms: dict[tuple[str, int], list[Term]] = {}
        self._births: dict[int, float] = {}
        #: When something last changed of a topic.
        self.changed_at: dict[str, float] = {}
        self._take(0.0, Alive({node: node for node in nodes}))

    # What the controller decides.

    def create(self, at: float, name: str, replicas: tuple[tuple[int, ...], ...]) -> Topic:
        """Create a topic; the first replica that is alive leads each partition at epoch 0."""
        self._incarnations += 1
        number = self._incarnations
        leaders = tuple(Leader(self._first_alive(some), 0) for some in replicas)
        topic = Topic(name, number, self._new_id(number), leaders, replicas)
        self._births[number] = at
        for partition, leader in enumerate(leaders):
            self._begin(at, topic, partition, leader)
        self._take(at, topic)
        return topic

    def _new_id(self, number: int) -> bytes:
        if not self.ids:
            return b""
        topic_id = (0x4000 << 112 | 1 << 62 | number).to_bytes(16)
        self.issued[topic_id] = number
        return topic_id

    def assign_ids(self, at: float) -> None:
        """Give ids to all topics, as a controller does once all brokers know of ids."""
        self.ids = True
        for topic in [*self.now.topics.values()]:
            self._take(at, replace(topic, id=self._new_id(topic.number)))

    def delete(self, at: float, name: str) -> None:
        """Delete a topic."""
        for partition in range(len(self.now.topics[name].leaders)):
            self._end(at, name, partition)
        self._take(at, Deleted(name))

    def move(self, at: float, name: str, partition: int, to: int) -> None:
        """Have ``to`` lead a partition from now on, at the next epoch; it may lead already."""
        topic = self.now.topics[name]
        leader = Leader(to, topic.leaders[partition].epoch + 1)
        self._end(at, name, partition)
        self._begin(at, topic, partition, leader)
        self._take(at, topic.led(partition, leader))

    def reassign(self, at: float, name: str, partition: int, replicas: tuple[int, ...]) -> None:
        """Give a partition other replicas, at the next epoch of its leader, which is one of them.

        It is one decision: in a real cluster a new replica comes before a former one goes.
        """
        topic = self.now.topics[name]
        node, epoch = topic.leaders[partition]
        leader = Leader(node, epoch + 1)
        of_all = [*topic.replicas]
        of_all[partition] = replicas
        self._end(at, name, partition)
        self._begin(at, topic, partition, leader)
        self._take(at, replace(topic.led(partition, leader), replicas=tuple(of_all)))

    def grow(self, at: float, name: str, replicas: tuple[int, ...]) -> None:
        """Add a partition."""
        topic = self.now.topics[name]
        leader = Leader(self._first_alive(replicas), 0)
        self._begin(at, topic, len(topic.leaders), leader)
        grown = replace(
            topic, leaders=(*topic.leaders, leader), replicas=(*topic.replicas, replicas)
        )
        self._take(at, grown)

    def hand_over(self, at: float, node: int) -> None:
        """Have other replicas lead what a stopping broker leads, where there are any."""
        for topic in [*self.now.topics.values()]:
            for partition, leader in enumerate(topic.leaders):
                others = [other for other in topic.replicas[partition] if other != node]
                to = self._first_alive(tuple(others))
                if leader.node == node and to != NO_LEADER:
                    self.move(at, topic.name, partition, to)

    def left(self, at: float, node: int, *, alone: bool = False) -> None:
        """Take a broker for gone: other replicas lead what it led, or none does.

        ``alone``: no other replica is in sync, so none does in any case.
        """
        self._take(at, Alive({n: a for n, a in self.now.alive.items() if n != node}))
        for topic in [*self.now.topics.values()]:
            for partition, leader in enumerate(topic.leaders):
                if leader.node == node:
                    to = NO_LEADER if alone else self._first_alive(topic.replicas[partition])
                    self.move(at, topic.name, partition, to)

    def elect_uncleanly(self, at: float) -> None:
        """Have replicas that are not in sync lead what has no leader."""
        for topic in [*self.now.topics.values()]:
            for partition, leader in enumerate(topic.leaders):
                to = self._first_alive(topic.replicas[partition])
                if leader.node == NO_LEADER and to != NO_LEADER:
                    self.move(at, topic.name, partition, to)

    def joined(self, at: float, node: int, address: int) -> None:
        """Take a broker for back, at this address: it leads what had no leader."""
        self._take(at, Alive({**self.now.alive, node: address}))
        for topic in [*self.now.topics.values()]:
            for partition, leader in enumerate(topic.leaders):
                if leader.node == NO_LEADER and node in topic.replicas[partition]:
                    self.move(at, topic.name, partition, node)

    def _first_alive(self, replicas: tuple[int, ...]) -> int:
        return next((node for node in replicas if node in self.now.alive), NO_LEADER)

    def _begin(self, at: float, topic: Topic, partition: int, leader: Leader) -> None:
        terms = self._terms.setdefault((topic.name, partition), [])
        terms.append(Term(topic.number, leader, at, math.inf))

    def _end(self, at: float, name: str, partition: int) -> None:
        terms = self._terms[name, partition]
        terms[-1] = terms[-1]._replace(until=at)

    def _take(self, at: float, record: Record) -> None:
        self.now.apply(record)
        if not isinstance(record, Alive):
            self.changed_at[record.name] = at
        self.log.append((at, record))
        self.decided(len(self.log) - 1, record)

    # What was true.

    def terms(self, name: str, partition: int) -> Iterator[Term]:
        """Iterate over who led a partition of a topic of this name, in all incarnations."""
        return iter(self._terms.get((name, partition), ()))

    def born(self, incarnation: int) -> float:
        """Return when an incarnation was created."""
        return self._births[incarnation]
