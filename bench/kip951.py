"""The case that KIP-951 was made for: Metadata that comes late, a producer, and moving leaders."""

import csv
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import click

from bench.cost import cpu_seconds
from bench.late_metadata import Lateness
from bench.latencies import Latency
from bench.stall import settling
from tests.harness import processes
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.java import compile_java
from tests.harness.maven import PYTHONPATH, ROOT, Library
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyFleet
from tests.harness.waiting import until

Acks = Literal["1", "all"]

_SOURCES = ROOT / "bench" / "java" / "performance"
_CLIENT_ID = "kip951"
PARTITIONS = 12
RECORD_BYTES = 1000
LATE_MS = 500
#: Followers' fetches, as `make bench WHAT=stall` has them: with acks=all a record waits for them,
#: and a move breaks off their long polls, which no hint can shorten.
REPLICATION = {"replica.fetch.wait.max.ms": "10", "replica.fetch.backoff.ms": "5"}
#: Seconds of work before the first move. What is sent in them does not count: it tells how a Java
#: client starts, for which ProducerPerformance itself has --warmup-records since (KIP-1052).
_WARM = 8.0
#: Seconds of work, moves among it, that each cluster has with each acks before any run counts: with
#: less the first runs show brokers whose Java still compiles, at two thirds of the machine.
_WARM_UP = 90.0
#: A record is inside a move if it was sent to the partition from the move's beginning until so many
#: seconds after its end.
_AFTERWARDS = 0.5


@dataclass(frozen=True)
class Arm:
    """What is compared: brokers of a version, and a proxy (``hints``) or none.

    ``back_off``: the producer's ``retry.backoff.ms``, where it is not the default. ``settle``:
    errors that can carry no hint wait until all brokers name the leader. ``client``: the version of
    the producer.
    """

    label: str
    version: str
    hints: Hints | None
    back_off: int | None = None
    settle: bool = False
    client: str = "3.9.1"


ARMS = (
    Arm("hints off", "3.6.2", "off"),
    Arm("hints on", "3.6.2", "on"),
    Arm("native 3.7", "3.7.2", None),
    Arm("no back-off, hints off", "3.6.2", "off", 0),
)
#: Of a producer that uses no hints.
WITHOUT_HINTS = (
    Arm("passed on", "3.6.2", "on", client="3.6.2"),
    Arm("settled", "3.6.2", "on", settle=True, client="3.6.2"),
)


@dataclass
class Run:
    """One run. ``latencies``: of acknowledged records; ``failed``: records that were given up;
    neither of those that were sent in its first seconds.

    ``inside``: share of the records that were sent to a partition while it moved. ``rate``: records
    acknowledged in a second. ``busy``: CPU seconds of all brokers in a second, as a share of the
    machine.
    """

    latencies: list[Latency] = field(default_factory=list)
    failed: int = 0
    inside: float = 0.0
    rate: float = 0.0
    busy: float = 0.0


#: What was measured, by acks and how Metadata came late, and by arm.
Results = Mapping[tuple[Acks, Lateness], Mapping[Arm, list[Run]]]


@dataclass(frozen=True)
class _Move:
    partition: int
    begin: float
    end: float


def measure(arms: Sequence[Arm], runs: int, slow_runs: int, seconds: float, rate: int) -> Results:
    """Run every arm so many times in random order with each acks, on clusters that are warm.

    ``slow_runs``: how often besides with Metadata that is slow, and not stale.
    """
    counts: dict[Lateness, int] = {"stale": runs, "slow": slow_runs}
    rounds: list[tuple[Acks, Lateness]] = [
        (acks, late)
        for late, count in counts.items()
        for _ in range(count)
        for acks in get_args(Acks)
    ]
    results: dict[tuple[Acks, Lateness], dict[Arm, list[Run]]] = {
        each: {arm: [] for arm in arms} for each in dict.fromkeys(rounds)
    }
    with (
        tempfile.TemporaryDirectory(prefix="leader-hints-kip951-") as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        clusters = {
            version: stack.enter_context(
                RealCluster(
                    version,
                    "zk",
                    folder=folder / version,
                    jvm_options=(),
                    overrides=REPLICATION,
                )
            )
            for version in sorted({arm.version for arm in arms})
        }

        def one(what: str, arm: Arm, acks: Acks, late: Lateness, length: float) -> Run:
            place = folder / f"{what}-{acks}-{arms.index(arm)}"
            place.mkdir()
            run = _run(arm, late, clusters[arm.version], acks, length, rate, place)
            click.echo(
                f"{what}, {late}, acks={acks}, {arm.label}: {len(run.latencies)} records, "
                f"{run.inside:.2%} inside moves, {run.failed} failed, {run.busy:.0%} busy",
                err=True,
            )
            return run

        for arm in {arm.version: arm for arm in arms}.values():
            for acks in get_args(Acks):
                one("warm-up", arm, acks, "stale", _WARM_UP)
        for number, (acks, late) in enumerate(rounds, 1):
            for arm in random.sample(arms, len(arms)):
                run = one(f"round-{number}", arm, acks, late, seconds)
                results[acks, late][arm].append(run)
    return results


def _run(
    arm: Arm,
    lateness: Lateness,
    cluster: RealCluster,
    acks: Acks,
    seconds: float,
    rate: int,
    folder: Path,
) -> Run:
    admin = ClusterAdmin(cluster)
    topic = f"{_CLIENT_ID}-{folder.name}"
    nodes = [*cluster.brokers]
    layout = [nodes[number % 3 :] + nodes[: number % 3] for number in range(PARTITIONS)]
    admin.create_topic(topic, layout)
    records = folder / "records.csv"
    with _before(arm, lateness, cluster, topic, folder) as bootstrap:
        producer = processes.start(
            _producer(arm, acks, seconds, rate, bootstrap, topic, records),
            output=folder / "producer.log",
        )
        try:
            until(lambda: records.exists() and records.stat().st_size > 0, "records are sent")
            cpu, began = _cpu(cluster), time.monotonic()
            moves = _move_all(admin, topic, seconds)
            busy = (_cpu(cluster) - cpu) / (time.monotonic() - began)
            code = producer.wait(seconds + 120)
        finally:
            processes.end(producer)
    assert code == 0, (folder / "producer.log").read_text()[-2000:]
    admin.delete_topic(topic)
    return _read(records, moves, busy / (os.cpu_count() or 1))


def _cpu(cluster: RealCluster) -> float:
    return sum(cpu_seconds(broker.pid) for broker in cluster.brokers.values())


def _producer(
    arm: Arm, acks: Acks, seconds: float, rate: int, bootstrap: str, topic: str, file: Path
) -> list[str]:
    properties = {
        "bootstrap.servers": bootstrap,
        "client.id": _CLIENT_ID,
        "acks": acks,
        "linger.ms": "0",
        "batch.size": "16384",
    }
    if arm.back_off is not None:
        properties["retry.backoff.ms"] = str(arm.back_off)
        # Grows up to that (KIP-580, since 3.7).
        properties["retry.backoff.max.ms"] = str(arm.back_off)
    tools = Library("kafka-tools", arm.client).fetch()
    return [
        *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-cp", f"{compile_java(_SOURCES, tools)}:{tools.classpath}"),
        *("org.apache.kafka.tools.RecordedPerformance", str(file)),
        *("--topic", topic, "--num-records", str(int(seconds * rate))),
        *("--record-size", str(RECORD_BYTES), "--throughput", str(rate)),
        "--producer-props",
        *(f"{name}={value}" for name, value in properties.items()),
    ]


@contextmanager
def _before(
    arm: Arm, lateness: Lateness, cluster: RealCluster, topic: str, folder: Path
) -> Iterator[str]:
    """Run the relay, and behind it the proxies where the arm has them; yield the bootstrap."""
    brokers = [*cluster.brokers.values()]
    upstreams = [broker.upstream for broker in brokers]
    with ExitStack() as stack:
        if arm.hints is not None:
            listens = [("127.0.0.1", port) for port in free_ports(len(brokers))]
            routes = [*zip(listens, upstreams, strict=True)]
            arguments = settling(folder) if arm.settle else []
            stack.enter_context(
                ProxyFleet.before(
                    routes, folder, hints=arm.hints, sidecars=True, arguments=arguments
                )
            )
            upstreams = listens
        ports = [
            f"{broker.advertised[1]}={upstream[1]}={broker.upstream[1]}"
            for broker, upstream in zip(brokers, upstreams, strict=True)
        ]
        how = [str(LATE_MS), lateness, _CLIENT_ID, topic]
        relay = processes.start(
            [sys.executable, "-m", "bench.late_metadata", *how, *ports],
            output=folder / "relay.log",
            environment={"PYTHONPATH": PYTHONPATH},
        )
        stack.callback(processes.end, relay)
        for broker in brokers:
            until(partial(_listens, broker.advertised), "the relay listens")
        yield cluster.bootstrap


def _listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def _move_all(admin: ClusterAdmin, topic: str, seconds: float) -> list[_Move]:
    """Move each partition once, evenly over the run."""
    moves = []
    time.sleep(_WARM)
    pause = (seconds - 2 * _WARM) / PARTITIONS
    first = time.monotonic()
    for partition in range(PARTITIONS):
        time.sleep(max(0.0, first + partition * pause - time.monotonic()))
        begin = time.time()
        admin.move_leader(topic, partition)
        moves.append(_Move(partition, begin, time.time()))
    return moves


def _read(file: Path, moves: Sequence[_Move], busy: float) -> Run:
    run, inside, count = Run(busy=busy), 0, 0
    during: Mapping[int, _Move] = {move.partition: move for move in moves}
    with file.open(newline="") as lines:
        rows = [(int(sent) / 1000, latency, int(to)) for sent, latency, to in csv.reader(lines)]
    warm = min(sent for sent, _, _ in rows) + _WARM
    for sent, latency, partition in rows:
        if sent < warm:
            continue
        count += 1
        move = during.get(partition)
        inside += move is not None and move.begin <= sent <= move.end + _AFTERWARDS
        if latency:
            run.latencies.append((sent, float(latency)))
        else:
            run.failed += 1
    run.inside = inside / count
    last = max(sent + latency / 1000 for sent, latency in run.latencies)
    run.rate = len(run.latencies) / (last - run.latencies[0][0])
    return run
