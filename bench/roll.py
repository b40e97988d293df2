"""A rolling restart of a real cluster under load: the stalls that its clients have."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.statistics import quantile
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import Mode, RealCluster
from tests.harness.proxyproc import Hints, ProxyFleet
from tests.harness.waiting import TimedOutError

TOPICS, PARTITIONS, BROKERS = 10, 30, 3
#: Records a second of each topic's producer, over all partitions.
RATE = 20
RECORD_BYTES = 100
#: Seconds for which records count for a batch of moves, from when it was ordered.
WINDOW = 4.0
#: Seconds before the first broker stops in which latencies are those without a move.
_QUIET = 3.0
#: Milliseconds from which on a latency counts as a stall.
STALL_MS = 20.0


@dataclass
class Roll:
    """Stalls of one roll in milliseconds: for each batch of moves, client and partition the longest
    latency of a record, where that is a stall. ``quiet_p50`` and ``quiet_p99``: of the latencies of
    records before the first broker stopped, one for each roll. ``stop_seconds``: how long brokers
    took to stop."""

    produce: list[float] = field(default_factory=list)
    consume: list[float] = field(default_factory=list)
    quiet_p50: list[float] = field(default_factory=list)
    quiet_p99: list[float] = field(default_factory=list)
    stop_seconds: list[float] = field(default_factory=list)
    records: int = 0
    failed: int = 0

    def add(self, other: "Roll") -> None:
        """Pool another roll's."""
        self.produce += other.produce
        self.consume += other.consume
        self.quiet_p50 += other.quiet_p50
        self.quiet_p99 += other.quiet_p99
        self.stop_seconds += other.stop_seconds
        self.records += other.records
        self.failed += other.failed


@contextmanager
def proxies(
    cluster: RealCluster, hints: Hints | None, folder: Path, journal: Path | None
) -> Iterator[str]:
    """Run a proxy in front of each broker, or none; yield the bootstrap."""
    if hints is None:
        yield cluster.direct_bootstrap
        return
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    fleet = ProxyFleet.before(routes, folder, hints=hints, sidecars=True)
    with ExitStack() as stack:
        for number, process in enumerate(fleet.processes, 1):
            if journal is not None:
                process.environment |= {
                    "LEADER_HINTS_JOURNAL__KIND": "files",
                    "LEADER_HINTS_JOURNAL__PATH": str(journal),
                    "LEADER_HINTS_JOURNAL__SIDECAR": f"broker-{number}",
                }
            stack.enter_context(process)
        yield cluster.bootstrap


def roll(
    cluster: RealCluster, clients: ClientProcess, bootstrap: str, prefix: str, acks: str = "all"
) -> Roll:
    """Restart each broker in turn and have its leaders return, under producers and consumers."""
    admin = ClusterAdmin(cluster)
    nodes = [*cluster.brokers]
    layout = [
        [nodes[(number + place) % BROKERS] for place in range(BROKERS)]
        for number in range(PARTITIONS)
    ]
    topics = [f"{prefix}-{number}" for number in range(TOPICS)]
    for topic in topics:
        # All in one request take longer than the harness waits for an answer on a busy machine.
        admin.create_topic(topic, layout)
    everything = range(PARTITIONS)
    consumers = [
        clients.consume(ConsumerSpec(bootstrap, topic, everything, from_end=True))
        for topic in topics
    ]
    producers = [
        clients.produce(
            ProducerSpec(bootstrap, topic, everything, acks=acks, rate=RATE, size=RECORD_BYTES)
        )
        for topic in topics
    ]
    of = Roll()
    began: list[float] = []
    # All are warm by then.
    time.sleep(8)
    for node in nodes:
        led = [
            TopicPartition(topic, number)
            for topic in topics
            for number in everything
            if layout[number][0] == node
        ]
        began.append(time.time())
        cluster.brokers[node].stop()
        of.stop_seconds.append(time.time() - began[-1])
        # A JVM that starts takes the whole machine: not while stalls are measured.
        time.sleep(max(0.0, began[-1] + WINDOW - time.time()))
        _start_again(cluster, node)
        for topic in topics:
            admin.wait_in_sync(topic)
        time.sleep(2)
        began.append(time.time())
        admin.elect_preferred(dict.fromkeys(led, node))
        time.sleep(max(0.0, began[-1] + WINDOW - time.time()))
    _measure(of, began, producers, consumers)
    for topic in topics:
        admin.delete_topic(topic)
    return of


def _start_again(cluster: RealCluster, node: int) -> None:
    """Start a broker, and give it time: it has hundreds of logs to read."""
    try:
        cluster.restart(node)
    except TimedOutError:
        cluster.wait_until_ready()


def _measure(
    of: Roll,
    began: Sequence[float],
    producers: Sequence[ProducerRun],
    consumers: Sequence[ConsumerRun],
) -> None:
    quiet = []
    for producer in producers:
        producer.stop()
        of.records += len(producer.acked)
        of.failed += len(producer.failed)
        sent = [(one.partition, one.at, one.latency_ms) for one in producer.acked]
        of.produce += _longest(began, sent)
        early = (one for one in producer.acked if began[0] - _QUIET < one.at < began[0])
        quiet += [one.latency_ms for one in early]
    of.quiet_p50.append(quantile(quiet, 0.5))
    of.quiet_p99.append(quantile(quiet, 0.99))
    for consumer in consumers:
        consumer.stop()
        read = [(one.partition, one.at, one.latency_ms) for one in consumer.consumed]
        of.consume += _longest(began, read)


def _longest(began: Sequence[float], records: Sequence[tuple[int, float, float]]) -> list[float]:
    """Return the stalls, in tenths of a millisecond: the samples are to stay small.

    ``records``: partition, when it was done, and latency.
    """
    longest: dict[tuple[int, int], float] = {}
    for partition, at, latency in records:
        sent = at - latency / 1000
        for batch, begin in enumerate(began):
            if latency >= STALL_MS and begin - 0.5 <= sent < begin + WINDOW:
                place = batch, partition
                longest[place] = max(latency, longest.get(place, 0.0))
    return [round(latency, 1) for latency in longest.values()]


def cluster_of(version: str, mode: Mode, folder: Path) -> RealCluster:
    """Return the cluster, with Kafka's own settings."""
    return RealCluster(version, mode, folder=folder)
