"""Where a run is done, and what most runs do there: write and read while leaders move."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    Consumed,
    ConsumerSpec,
    Outcome,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet
from tests.harness.stored import read_partition

Figures = Mapping[str, int]
"""Counts by what they count."""
Numbers = Counter[tuple[int, int]]
"""How often a record is there, by its partition and its number."""

PARTITIONS = 3
#: Records a second.
RATE = 100
#: Records that are acknowledged between moves.
BETWEEN = 60
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Place:
    """``java`` gives the process of Java's clients. ``direct``: past all proxies. ``moves``: how
    often leaders move. ``folder`` gets logs.
    """

    cluster: RealCluster
    folder: Path
    java: Callable[[], ClientProcess]
    direct: bool = False
    moves: int = 1

    @cached_property
    def admin(self) -> ClusterAdmin:
        """Asks the brokers, past all proxies."""
        return ClusterAdmin(self.cluster)

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return self.cluster.direct_bootstrap if self.direct else self.cluster.bootstrap

    @contextlib.contextmanager
    def proxies(self) -> Iterator[ProxyFleet]:
        """Have a proxy in front of each broker meanwhile; none where clients come past them."""
        brokers = self.cluster.brokers.values()
        routes = [] if self.direct else [(one.advertised, one.upstream) for one in brokers]
        logs = self.folder / "proxies"
        with ProxyFleet.before(routes, logs, sidecars=True) as fleet:
            yield fleet

    def make_topic(
        self, label: str, partitions: int = PARTITIONS, settings: Mapping[str, str] | None = None
    ) -> str:
        """Make a topic of a name never used before, with three replicas, two of them in sync."""
        name = f"run-{label}-{next(_numbers)}"
        nodes = list(self.cluster.brokers)
        assignment = [nodes[at % 3 :] + nodes[: at % 3] for at in range(partitions)]
        self.admin.create_topic(name, assignment, {"min.insync.replicas": "2", **(settings or {})})
        return name

    def stored(self, topic: str) -> Numbers:
        """The records that a topic has, of one producer."""
        return Counter(
            (partition, record.seq)
            for partition in self.admin.partitions(topic)
            for record in read_partition(self.admin, topic, partition)
        )

    def move(self, *topics: str) -> None:
        """Move all leaders of topics to the next replicas."""
        partitions = [(topic, self.admin.partitions(topic)) for topic in topics]
        self.admin.move_leaders(
            {
                TopicPartition(topic, number): None
                for topic, all_of in partitions
                for number in all_of
            }
        )


@dataclass(frozen=True)
class Load:
    """What is written and read: ``rate`` is in records a second, ``size`` of one in bytes."""

    rate: float = RATE
    size: int = 100
    between: int = BETWEEN
    topic: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)


def carry(
    place: Place, label: str, load: Load | None = None, bootstrap: str | None = None
) -> Figures:
    """Write to a topic and read it in a group while leaders move: each record is there once.

    :raises AssertionError: a record was lost or doubled, or nothing goes on.
    """
    load = load or Load()
    bootstrap = bootstrap or place.bootstrap
    topic = place.make_topic(label, settings=load.topic)
    partitions = range(PARTITIONS)
    process = place.java()
    reads = ConsumerSpec(bootstrap, topic, partitions, group=f"group-{topic}")
    consumer = process.consume(reads)
    producer = process.produce(
        ProducerSpec(
            bootstrap,
            topic,
            partitions,
            rate=load.rate,
            size=load.size,
            idempotent=True,
            settings=load.producer,
        )
    )
    move_under_load(place, producer, [topic], load.between)
    check_produced(place.admin, producer.stop())
    check_consumed(place.admin, consumer)
    consumer.stop()
    return {"records": len(producer.acked)}


def move_under_load(
    place: Place, producer: ProducerRun, topics: Sequence[str], between: int = BETWEEN
) -> None:
    """Move the leaders of topics, with records acknowledged before, between and after."""
    for _ in range(place.moves):
        producer.wait_acked(between)
        place.move(*topics)
    producer.wait_acked(between)


def numbers(records: Iterable[Outcome | Consumed]) -> Numbers:
    """Which records were acknowledged, or read."""
    return Counter((record.partition, record.seq) for record in records)


def hints(fleet: ProxyFleet) -> Figures:
    """How many errors clients got, and how many of them with a hint; nothing without proxies."""
    if not fleet.processes:
        return {}
    return {
        "errors": int(fleet.metric("leader_hints_errors_seen_total")),
        "hints": int(fleet.metric("leader_hints_hints_given_total", mode="on")),
    }
