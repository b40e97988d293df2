"""The stall at a leader move: how long a producer and a consumer wait because of it."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from bench.latencies import Latency
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, Consumed, ConsumerSpec, Outcome, ProducerSpec
from tests.harness.cluster import Mode, RealCluster
from tests.harness.history import LeaderHistory
from tests.harness.judge import judge
from tests.harness.proxyproc import Hints, ProxyFleet

#: Records a second: one each 10 ms, which is the resolution of a stall.
RATE = 100
RECORD_BYTES = 100
#: Records acknowledged and consumed after a move before the next one begins.
_SETTLED = 30
#: Seconds of a random pause before each move, so that no timer keeps step with the moves.
_PAUSE = 0.2
#: Followers ask for records again within this many milliseconds. At Kafka's own 500 and 1000 a
#: record shows to consumers only when the followers' long polls, which a move breaks off, have
#: come back: that takes longer than what is measured, and no hint can shorten it.
FAST_REPLICATION = {"replica.fetch.wait.max.ms": "10", "replica.fetch.backoff.ms": "5"}


@dataclass(frozen=True)
class Arm:
    """What is measured: brokers of a version, and a proxy (``hints``) or none.

    ``settle``: errors that can carry no hint wait until all brokers name the leader.
    """

    label: str
    version: str
    mode: Mode
    hints: Hints | None
    settle: bool = False

    @property
    def cluster(self) -> tuple[str, Mode]:
        """Arms with the same brokers share a cluster."""
        return self.version, self.mode


@dataclass
class Sample:
    """Stalls in milliseconds, one for each move; holds of given hints; misses by reason.

    ``beside_produce`` and ``beside_consume``: latencies of the records that bystanders had
    around the moves. ``wrong``: hints that were wrong. ``settled``: what came of errors that
    wait until all brokers name the leader, whose holds are in ``settled_holds``. ``lost``,
    ``doubled`` and ``reordered``: records of the partition that moves.
    """

    produce: list[float] = field(default_factory=list)
    consume: list[float] = field(default_factory=list)
    beside_produce: list[float] = field(default_factory=list)
    beside_consume: list[float] = field(default_factory=list)
    holds: list[float] = field(default_factory=list)
    given: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    settled: Counter[str] = field(default_factory=Counter)
    settled_holds: list[float] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    reordered: int = 0

    def add(self, other: "Sample") -> None:
        """Pool another round's."""
        self.produce += other.produce
        self.consume += other.consume
        self.beside_produce += other.beside_produce
        self.beside_consume += other.beside_consume
        self.holds += other.holds
        self.given += other.given
        self.missed += other.missed
        self.wrong += other.wrong
        self.settled += other.settled
        self.settled_holds += other.settled_holds
        self.lost += other.lost
        self.doubled += other.doubled
        self.reordered += other.reordered


@contextmanager
def clusters(
    arms: Sequence[Arm], folder: Path, overrides: Mapping[str, str]
) -> Iterator[dict[tuple[str, Mode], RealCluster]]:
    """Start every cluster that the arms need, with broker settings; all are up to the end.

    Their JVMs run as they come: the options that make tests start quickly change the time in
    which brokers learn of a move.
    """
    with ExitStack() as stack:
        yield {
            key: stack.enter_context(
                RealCluster(
                    *key, folder=folder / "-".join(key), jvm_options=(), overrides=overrides
                )
            )
            for key in sorted({arm.cluster for arm in arms})
        }


def measure(
    arm: Arm,
    cluster: RealCluster,
    clients: ClientProcess,
    topic: str,
    moves: int,
    folder: Path,
    bystanders: int = 0,
    producer_settings: Mapping[str, str] | None = None,
    turn: int = 0,
) -> tuple[Sample, list[Latency]]:
    """Move a partition's leader ``moves`` times under a producer (acks=1) and a consumer.

    Returns also the latency of every record that was acknowledged. ``bystanders``: further
    partitions, whose leaders stay: half of them at the broker that the first one leaves, half
    where it goes, so that they share connections with it. ``producer_settings``: what producers
    need to outlast a move, by default nothing. ``turn``: the leader moves between other two of the
    brokers, one further with each.
    """
    admin = ClusterAdmin(cluster)
    here = list(cluster.brokers)
    here = here[turn:] + here[:turn]
    there = [here[1], here[0], *here[2:]]
    layout = [here, *(here if number % 2 else there for number in range(bystanders))]
    admin.create_topic(topic, layout)
    with ExitStack() as stack:
        fleet = None
        if arm.hints is not None:
            routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
            arguments = settling(folder) if arm.settle else []
            fleet = stack.enter_context(
                ProxyFleet.before(
                    routes, folder, hints=arm.hints, sidecars=True, arguments=arguments
                )
            )
        bootstrap = cluster.direct_bootstrap if fleet is None else cluster.bootstrap
        spec = ProducerSpec(
            bootstrap,
            topic,
            range(1 + bystanders),
            acks="1",
            rate=RATE * (1 + bystanders),
            size=RECORD_BYTES,
            settings=producer_settings or {},
        )
        sample, latencies = _stalls(admin, clients, spec, moves)
        if fleet is not None:
            judgement = judge(fleet, LeaderHistory(cluster))
            sample.given, sample.missed = judgement.given, judgement.missed
            sample.wrong = len(judgement.wrong)
            sample.holds = [float(line["hold_ms"]) for line in fleet.events("hint_given")]
            waited = [line for line in fleet.events("hint_missed") if line["settling"]]
            sample.settled = Counter(line["settling"] for line in waited)
            sample.settled_holds = [float(line["hold_ms"]) for line in waited]
    # Partitions that are left over would be a load on the brokers in later rounds.
    admin.delete_topic(topic)
    return sample, latencies


def settling(folder: Path) -> list[str]:
    """Return the arguments of a proxy whose errors wait until all brokers name the leader.

    ``folder``: gets its configuration file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "leader-hints.yaml"
    # JSON is YAML.
    file.write_text(json.dumps({"hold": {"settle": True}}))
    return ["--config", str(file)]


def _stalls(
    admin: ClusterAdmin, clients: ClientProcess, spec: ProducerSpec, moves: int
) -> tuple[Sample, list[Latency]]:
    topic, numbers = spec.topic, spec.partitions
    settled = _SETTLED * len(numbers)
    consumer = clients.consume(ConsumerSpec(spec.bootstrap, topic, numbers, from_end=True))
    producer = clients.produce(spec)
    times = []
    for _ in range(moves):
        producer.wait_acked(settled)
        consumer.wait_count(len(consumer.consumed) + settled)
        time.sleep(random.uniform(0, _PAUSE))
        times.append(time.time())
        admin.move_leader(topic)
    producer.wait_acked(settled)
    producer.stop()
    last = max(outcome.seq for outcome in producer.acked)
    # Not all of them: with acks=1 a move may cost acknowledged records that no follower had.
    consumer.wait_consumed(
        lambda records: any(record.seq >= last for record in records[-settled:]), "the last record"
    )
    consumer.stop()
    moved, beside = _by_partition(producer.acked)
    read, read_beside = _by_partition(consumer.consumed)
    sample = Sample(
        produce=[max(around) for around in _around(times, moved)],
        consume=[max(around) for around in _around(times, read)],
        beside_produce=list(chain.from_iterable(_around(times, beside))),
        beside_consume=list(chain.from_iterable(_around(times, read_beside))),
    )
    _count_records(sample, producer.acked, consumer.consumed)
    return sample, moved + beside


def _count_records(sample: Sample, acked: Sequence[Outcome], consumed: Sequence[Consumed]) -> None:
    """Count what of the partition that moves was lost, doubled or came in another order.

    With acks=1 and without idempotence a move may do so without any proxy as well.
    """
    read = [record.seq for record in consumed if not record.partition]
    seen = set(read)
    sample.lost = sum(not one.partition and one.seq not in seen for one in acked)
    sample.doubled = len(read) - len(seen)
    first = list(dict.fromkeys(read))
    sample.reordered = sum(later < before for before, later in pairwise(first))


def _by_partition(
    records: Sequence[Outcome] | Sequence[Consumed],
) -> tuple[list[Latency], list[Latency]]:
    """Return the latencies on the partition that moves, and on the others."""
    moved: list[Latency] = []
    beside: list[Latency] = []
    for record in records:
        latency = (record.at - record.latency_ms / 1000, record.latency_ms)
        (beside if record.partition else moved).append(latency)
    return moved, beside


def _around(moves: Sequence[float], latencies: Sequence[Latency]) -> list[list[float]]:
    """Return for each move the latencies of the records sent until the next one.

    A record sent shortly before the move may still be under way when it comes.
    """
    early = 0.05
    ends = [*moves[1:], float("inf")]
    return [
        [latency for at, latency in latencies if begin - early <= at < end - early]
        for begin, end in zip(moves, ends, strict=True)
    ]
