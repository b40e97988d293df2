"""What a proxy costs: CPU seconds of its process for work that is the same in every arm."""

import os
import random
import shutil
import socket
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import click

from bench.load import Work, do
from tests.harness import processes
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints, ProxyFleet, ProxyProcess
from tests.harness.waiting import until

Via = Literal["direct", "haproxy", "proxy"]

_HAPROXY = """global
  nbthread {threads}
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen relay
  bind {listen}
  server broker {upstream}
"""
#: Data of a round must not stay in memory through all rounds; and batches of 1 MiB are more than a
#: broker of 2.4 takes by default.
TOPIC = {"file.delete.delay.ms": "1000", "max.message.bytes": "2000000"}


@dataclass(frozen=True)
class CostArm:
    """What is measured: a broker of a version, and the relay in front of it.

    ``watched``: the proxy writes a journal with one latency of a hundred, and its metrics and
    status are read every second. ``workers``: processes that serve connections.
    """

    label: str
    version: str
    via: Via
    hints: Hints = "on"
    watched: bool = False
    workers: int = 1


@dataclass
class Cost:
    """One figure for each round: CPU seconds of the proxy and of the client, and latencies."""

    cpu: list[float] = field(default_factory=list)
    client_cpu: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)


Costs = Mapping[tuple[CostArm, Work], Cost]


def run(arms: Sequence[CostArm], works: Sequence[Work], rounds: int) -> Costs:
    """Do all works in every arm, in alternating rounds after one that does not count."""
    costs: dict[tuple[CostArm, Work], Cost] = defaultdict(Cost)
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-cost-"))
    with ExitStack() as stack:
        clusters = {
            version: stack.enter_context(
                RealCluster(version, "zk", folder=folder / version, brokers=1, jvm_options=())
            )
            for version in sorted({arm.version for arm in arms})
        }
        for number, arm, place in alternating(arms, rounds, folder):
            for work, cost in _round(arm, works, clusters[arm.version], place):
                if number:
                    into = costs[arm, work]
                    into.cpu += cost.cpu
                    into.client_cpu += cost.client_cpu
                    into.p50 += cost.p50
                    into.p99 += cost.p99
                report(
                    number,
                    arm,
                    work,
                    f"{cost.cpu[0]:.3f} s, client {cost.client_cpu[0]:.1f} s, "
                    f"p50 {cost.p50[0]:.0f} us, p99 {cost.p99[0]:.0f} us",
                )
    shutil.rmtree(folder)
    return costs


def alternating(
    arms: Sequence[CostArm], rounds: int, folder: Path
) -> Iterator[tuple[int, CostArm, Path]]:
    """Iterate over the number of each round, each arm, and a new folder for it.

    The arms have another order in each round. Round 0 does not count.
    """
    for number in range(rounds + 1):
        for arm in random.sample(arms, len(arms)):
            place = folder / f"{number}-{arms.index(arm)}"
            place.mkdir()
            yield number, arm, place


def report(number: int, arm: CostArm, work: Work, figures: str) -> None:
    """Show what came of a work."""
    kind = f"round {number}" if number else "warm-up"
    click.echo(f"{kind}, {arm.label}, {work.label}: {figures}", err=True)


def _round(
    arm: CostArm, works: Sequence[Work], cluster: RealCluster, folder: Path
) -> Iterator[tuple[Work, Cost]]:
    admin = ClusterAdmin(cluster)
    partitions = max(work.connections for work in works)
    topics = {work: f"c-{folder.name}-{work.topic}" for work in works}
    for name in sorted(set(topics.values())):
        admin.create_topics({name: [[1]] * partitions}, TOPIC)
    with relay(arm, cluster, folder) as pid:
        bootstrap = cluster.direct_bootstrap if pid is None else cluster.bootstrap
        for work in works:
            before = cpu_seconds(pid)
            result = do(work, bootstrap, topics[work])
            cpu = cpu_seconds(pid) - before
            yield (
                work,
                Cost([cpu], [result["cpu_seconds"]], [result["p50_us"]], [result["p99_us"]]),
            )
    for name in sorted(set(topics.values())):
        admin.delete_topic(name)


@contextmanager
def relay(arm: CostArm, cluster: RealCluster, folder: Path) -> Iterator[int | None]:
    """Run the relay in front of the broker; yield its process id."""
    (broker,) = cluster.brokers.values()
    if arm.via == "direct":
        yield None
    elif arm.via == "haproxy":
        listen, upstream = (":".join(map(str, a)) for a in (broker.advertised, broker.upstream))
        file = folder / "haproxy.cfg"
        file.write_text(_HAPROXY.format(threads=arm.workers, listen=listen, upstream=upstream))
        process = processes.start(
            ["haproxy", "-db", "-f", str(file)], output=folder / "haproxy.log"
        )
        try:
            until(lambda: _listens(broker.advertised), "HAProxy listens")
            yield process.pid
        finally:
            processes.end(process)
    else:
        routes = [(broker.advertised, broker.upstream)]
        with ExitStack() as stack:
            settings = {"LEADER_HINTS_WORKERS": str(arm.workers)}
            if arm.watched:
                settings |= _journal_to(folder)
            stack.enter_context(_environment(settings))
            fleet = stack.enter_context(
                ProxyFleet.before(
                    routes,
                    folder,
                    hints=arm.hints,
                    arguments=["--log-level", "info"],
                )
            )
            (proxy,) = fleet.processes
            if arm.watched:
                stack.enter_context(_watching(proxy))
            yield proxy.pid


def _journal_to(folder: Path) -> dict[str, str]:
    """Return the settings of a proxy that writes a journal."""
    (folder / "journal").mkdir()
    return {
        "LEADER_HINTS_JOURNAL__KIND": "files",
        "LEADER_HINTS_JOURNAL__PATH": str(folder / "journal"),
        "LEADER_HINTS_JOURNAL__SAMPLE_LATENCIES": "100",
    }


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Have proxies that are started meanwhile get these settings."""
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


@contextmanager
def _watching(process: ProxyProcess) -> Iterator[None]:
    """Read metrics and status every second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            process.get("/metrics")
            process.get("/status")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def cpu_seconds(pid: int | None) -> float:
    """Return the CPU time of all threads of a process and its children so far, 0 for none.

    Children that have ended count for nothing.
    """
    if pid is None:
        return 0.0
    threads = [*Path(f"/proc/{pid}/task").iterdir()]
    own = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    children = (child for thread in threads for child in (thread / "children").read_text().split())
    return own + sum(cpu_seconds(int(child)) for child in children)


def missing_tools(arms: Sequence[CostArm]) -> str | None:
    """Say what the arms need and this machine lacks."""
    if any(arm.via == "haproxy" for arm in arms) and shutil.which("haproxy") is None:
        return "the comparison needs haproxy on the PATH (Debian package haproxy)"
    return None
