"""Consumers that read in their rack: by proxies, and by the brokers' own selector."""

import itertools
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click

from bench.cost import TOPIC, cpu_seconds
from bench.load import Work, do
from bench.statistics import quantile
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerRun, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.java import java_clients
from tests.harness.proxyproc import Hints
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON, python_clients
from tests.harness.rack_fleet import RackFleet
from tests.harness.waiting import patience, until
from tests.matrix.brokers import CLOSEST_REPLICA

VERSION = "3.6.2"
JAVA = "java"
#: kafka-python is the only one out of whose responses records are taken.
LIBRARIES = (JAVA, CONFLUENT, KAFKA_PYTHON)
NODES = (1, 2, 3)
#: The follower that dies, and the rack of the consumers that are looked at then.
_DIES = 3
_PARTITIONS = 9
_RATE, _SIZE = 300, 1000
#: Brokers are declared dead after so long. As long a dead follower is in sync, and consumers get
#: nothing new from anybody.
_SESSION_MS = "6000"
_MB = 1_000_000
_READ = Work("consume 300 MB", "consume", 300 * _MB, 50 << 20, "closest-fill", rack=f"rack-{_DIES}")
_FILL = Work("fill", "produce", 300 * _MB, 1 << 20, "closest-fill")
_RECOVERED_S = 120.0
_AFTERWARDS_S = 3.0


@dataclass(frozen=True)
class ClosestArm:
    """``mode``: of ``closest_replica``. ``selector``: the brokers have their own."""

    label: str
    mode: Hints
    selector: bool = False


OFF = ClosestArm("off", "off")
ON = ClosestArm("on", "on")
#: Nothing is changed by the proxies, which count the bytes.
SELECTOR = ClosestArm("brokers' selector", "observe", selector=True)
#: Those in which consumers read in their rack.
NEARBY = (ON, SELECTOR)


@dataclass
class Setup:
    """``rounds``; seconds ``after`` the consumers' start, and of the ``window`` from then on."""

    rounds: int
    after: float
    window: float


@dataclass
class Bytes:
    """Of all consumers in a window, round by round: in their rack, and crossing."""

    same: list[float] = field(default_factory=list)
    crossing: list[float] = field(default_factory=list)


@dataclass
class Followed:
    """Of a library's consumers, round by round: latencies from producer to consumer in ms, and
    seconds without a record after their follower has died.
    """

    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    recovery: list[float] = field(default_factory=list)


@dataclass
class Spent:
    """CPU seconds of all proxies for one consumer's 300 MB, round by round."""

    cpu: list[float] = field(default_factory=list)


@dataclass
class Measured:
    """What was measured, by arm; ``followed`` by library, too."""

    bytes: dict[ClosestArm, Bytes] = field(default_factory=lambda: defaultdict(Bytes))
    spent: dict[ClosestArm, Spent] = field(default_factory=lambda: defaultdict(Spent))
    followed: dict[tuple[str, ClosestArm], Followed] = field(
        default_factory=lambda: defaultdict(Followed)
    )


def run(setup: Setup) -> Measured:
    """Measure all arms in alternating rounds. CPU has one more at first that does not count.

    :raises AssertionError: a client or a proxy failed.
    """
    measured = Measured()
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-closest-"))
    with ExitStack() as stack:
        clusters = {
            selector: stack.enter_context(started(folder / f"cluster-{selector}", selector))
            for selector in (False, True)
        }
        admin = ClusterAdmin(clusters[False])
        admin.create_topics({_FILL.topic: [[1, _DIES, 2]]}, TOPIC)
        do(_FILL, clusters[False].direct_bootstrap, _FILL.topic)
        admin.wait_in_sync(_FILL.topic)
        for number in range(setup.rounds + 1):
            for arm in random.sample((OFF, ON), 2):
                place = folder / f"{number}-{arm.label}-cpu"
                cpu = _cpu(arm, clusters[arm.selector], place)
                if number:
                    measured.spent[arm].cpu.append(cpu)
                _show(number, arm, f"{cpu:.3f} s for {_READ.label}")
        for number in range(1, setup.rounds + 1):
            for arm in random.sample(NEARBY, len(NEARBY)):
                place = folder / f"{number}-{'selector' if arm.selector else arm.label}"
                _round(arm, clusters[arm.selector], place, number, setup, measured)
    shutil.rmtree(folder)
    return measured


def started(folder: Path, selector: bool) -> RealCluster:
    """Return three brokers in three racks, with a ``selector`` of their own or none."""
    overrides = {"zookeeper.session.timeout.ms": _SESSION_MS}
    overrides |= CLOSEST_REPLICA if selector else {}
    return RealCluster(VERSION, "zk", folder=folder, overrides=overrides, jvm_options=())


def _fleet(arm: ClosestArm, cluster: RealCluster, folder: Path) -> RackFleet:
    return RackFleet(cluster, folder, arm.mode, arguments=["--log-level", "info"])


def _show(number: int, arm: ClosestArm, figures: str) -> None:
    kind = f"round {number}" if number else "warm-up"
    click.echo(f"{kind}, {arm.label}: {figures}", err=True)


def _cpu(arm: ClosestArm, cluster: RealCluster, folder: Path) -> float:
    fleet = _fleet(arm, cluster, folder)
    with fleet.proxies as proxies:
        for process in proxies.processes:
            process.wait_plans(1)

        def spent() -> float:
            return sum(cpu_seconds(process.pid) for process in proxies.processes)

        before = spent()
        do(_READ, fleet.bootstrap, _READ.topic)
        return spent() - before


def _round(
    arm: ClosestArm,
    cluster: RealCluster,
    folder: Path,
    number: int,
    setup: Setup,
    measured: Measured,
) -> None:
    admin = ClusterAdmin(cluster)
    topic = f"closest-{number}"
    nodes = [*NODES]
    layout = [nodes[n % 3 :] + nodes[: n % 3] for n in range(_PARTITIONS)]
    admin.create_topics({topic: layout})
    fleet = _fleet(arm, cluster, folder)
    with ExitStack() as stack:
        stack.enter_context(fleet.proxies)
        processes = {
            library: stack.enter_context(
                java_clients(folder) if library == JAVA else python_clients(folder, library)
            )
            for library in LIBRARIES
        }
        consumers = _consumers(processes, fleet.bootstrap, topic)
        producer = processes[JAVA].produce(
            ProducerSpec(
                fleet.bootstrap, topic, range(_PARTITIONS), acks="1", rate=_RATE, size=_SIZE
            )
        )
        for runs in consumers.values():
            for consumer in runs.values():
                consumer.wait_count(_PARTITIONS)
        time.sleep(setup.after)
        same, crossing, begin = fleet.read("same"), fleet.read("crossing"), time.time()
        time.sleep(setup.window)
        read = fleet.read("same") - same, fleet.read("crossing") - crossing
        measured.bytes[arm].same.append(read[0])
        measured.bytes[arm].crossing.append(read[1])
        died = time.time()
        cluster.brokers[_DIES].kill()
        for library, runs in consumers.items():
            figures = _figures(runs, begin, died)
            for name, figure in figures.items():
                getattr(measured.followed[library, arm], name).append(figure)
            shown = ", ".join(f"{name} {figure:.3g}" for name, figure in figures.items())
            _show(number, arm, f"{read[0] / sum(read):.1%} in the rack; {library}: {shown}")
        producer.ask_to_stop()
        for runs in consumers.values():
            for consumer in runs.values():
                consumer.ask_to_stop()
    with patience(_RECOVERED_S):
        cluster.restart(_DIES)
    admin.delete_topic(topic)


def _consumers(
    processes: Mapping[str, ClientProcess], bootstrap: str, topic: str
) -> dict[str, dict[int, ConsumerRun]]:
    """A consumer of each library in each rack; by library, and node whose rack it is."""
    return {
        library: {
            node: process.consume(
                ConsumerSpec(
                    bootstrap,
                    topic,
                    range(_PARTITIONS),
                    from_end=True,
                    settings={"client.rack": f"rack-{node}"},
                )
            )
            for node in NODES
        }
        for library, process in processes.items()
    }


def _figures(runs: Mapping[int, ConsumerRun], begin: float, died: float) -> dict[str, float]:
    """Wait until the consumer of the dead follower goes on; return what each round has.

    Its own partitions have another leader then, and are left out.
    """
    latencies = [
        record.latency_ms
        for consumer in runs.values()
        for record in consumer.consumed
        if begin <= record.at < died
    ]
    followed = [n for n in range(_PARTITIONS) if NODES[n % len(NODES)] != _DIES]
    consumer = runs[_DIES]

    def gone_on() -> bool:
        # What was sent after its death cannot be read before it is out of sync.
        sent = {r.partition for r in consumer.consumed if r.at - r.latency_ms / 1000 > died + 1}
        return sent >= {*followed}

    until(gone_on, f"{consumer.name} goes on", _RECOVERED_S)
    time.sleep(_AFTERWARDS_S)
    return {
        "p50": quantile(latencies, 0.5),
        "p99": quantile(latencies, 0.99),
        "recovery": max(_longest_gap(consumer, n, died) for n in followed),
    }


def _longest_gap(consumer: ConsumerRun, partition: int, died: float) -> float:
    times = sorted(
        record.at
        for record in consumer.consumed
        if record.partition == partition and record.at > died - 1
    )
    return max(later - earlier for earlier, later in itertools.pairwise(times))


def arms() -> Iterator[tuple[str, ClosestArm]]:
    """Iterate over what has latencies and recoveries: each library in each arm."""
    return itertools.product(LIBRARIES, NEARBY)


def share(read: Bytes) -> float:
    """Return the share of all bytes that were read in the rack."""
    return sum(read.same) / (sum(read.same) + sum(read.crossing))


def shares(read: Bytes) -> Sequence[float]:
    """Return the same, round by round."""
    return [
        same / (same + crossing) for same, crossing in zip(read.same, read.crossing, strict=True)
    ]
