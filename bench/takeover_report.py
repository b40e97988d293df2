"""``python -m bench takeover``: what clients notice while proxies take over from each other."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from bench.report import finish, judge_ratio, table, target_table, with_interval
from bench.samples import Samples, from_samples_option
from bench.statistics import quantile
from tests.harness import maven
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ProducerRun
from tests.harness.cluster import RealCluster
from tests.harness.java import NEWEST, java_clients
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON, python_clients
from tests.harness.takeovers import Takeovers

_SECTION = "takeover"
_VERSION = "3.6.2"
_JAVA = "java"
LIBRARIES = (_JAVA, CONFLUENT, KAFKA_PYTHON)
WITH, WITHOUT = "takeovers", "none"
#: Most of p99 with takeovers over that without.
MOST = 2.0


@dataclass
class Setup:
    """``rounds``: each with so many ``takeovers``, and seconds of ``pause`` after each; then one
    as long without any.
    """

    rounds: int
    takeovers: int
    pause: float


@dataclass
class Latencies:
    """Of producers, in ms, round by round; ``records`` in all."""

    records: int = 0
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)

    def add(self, run: ProducerRun, begin: float, end: float) -> None:
        """Add a round: what was acknowledged between two times, in seconds since 1970."""
        found = [one.latency_ms for one in run.acked if begin <= one.at < end]
        self.records += len(found)
        self.p50.append(quantile(found, 0.5))
        self.p99.append(quantile(found, 0.99))
        self.longest.append(max(found))


@click.command(_SECTION)
@click.option("--rounds", default=10, show_default=True, help="Alternating rounds.")
@click.option("--takeovers", default=10, show_default=True, help="Takeovers in each round.")
@click.option("--pause", default=12.0, show_default=True, help="Seconds after each takeover.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(rounds: int, takeovers: int, pause: float, from_samples: bool, write: bool) -> None:
    """Let proxies take over from each other under load. Ends with 1 on a missed target.

    librdkafka's pause before it connects again grows while its connections end often
    (reconnect.backoff.max.ms, 10 s), so a shorter pause measures that as well.
    """
    setup = Setup(rounds, takeovers, pause)
    samples = Samples.read(_SECTION) if from_samples else _measured(setup)
    setup = samples.setup(Setup)
    figures = {
        (library, arm): samples.get(Latencies, library, arm)
        for library in LIBRARIES
        for arm in (WITH, WITHOUT)
    }
    verdicts = [
        judge_ratio(
            f"p99, {library}", figures[library, WITH].p99, figures[library, WITHOUT].p99, most=MOST
        )
        for library in LIBRARIES
    ]
    rows = [_row(library, arm, of) for (library, arm), of in figures.items()]
    text = "\n\n".join(
        [
            f"{_VERSION}, ZooKeeper; {setup.rounds * setup.takeovers} takeovers in {setup.rounds} "
            f"rounds, {setup.pause:g} s between two, and as long without any after each round; "
            "latency of producers in ms, median over rounds and 95 % interval:",
            table(["client", "takeovers", "records", "p50", "p99", "longest"], rows),
            target_table(verdicts),
        ]
    )
    finish(maven.ROOT / "docs" / "benchmarks.md", _SECTION, text, samples, verdicts, write=write)


def _row(library: str, arm: str, of: Latencies) -> Sequence[str]:
    figures = (with_interval(values, 1) for values in (of.p50, of.p99, of.longest))
    return library, "yes" if arm == WITH else "no", str(of.records), *figures


def _measured(setup: Setup) -> Samples:
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    samples.add_setup(setup)
    figures = {(library, arm): Latencies() for library in LIBRARIES for arm in (WITH, WITHOUT)}
    with TemporaryDirectory() as folder, ExitStack() as processes:
        for arm, producers, begin, end in _rounds(setup, Path(folder), processes):
            for library, run in producers.items():
                figures[library, arm].add(run, begin, end)
    for (library, arm), of in figures.items():
        samples.add(library, arm, of)
    return samples


def _rounds(
    setup: Setup, folder: Path, processes: ExitStack
) -> Iterator[tuple[str, dict[str, ProducerRun], float, float]]:
    """Yield of each round whether it has takeovers, its producers, its beginning and its end.

    :raises AssertionError: something was lost, doubled or reordered, or a client met an error.
    """
    cluster = processes.enter_context(RealCluster(_VERSION, "zk", folder=folder / "cluster"))
    admin = ClusterAdmin(cluster)
    topics = {library: f"takeover-{library}" for library in LIBRARIES}
    nodes = list(cluster.brokers)
    assignment = [nodes[at:] + nodes[:at] for at in range(len(nodes))]
    admin.create_topics(dict.fromkeys(topics.values(), assignment), {"min.insync.replicas": "2"})

    def clients(library: str) -> ClientProcess:
        place = folder / library
        place.mkdir()
        of_java = library == _JAVA
        process = java_clients(place, NEWEST) if of_java else python_clients(place, library)
        processes.callback(process.close)
        return process

    with Takeovers(cluster, clients, topics, folder) as takeovers:
        takeovers.flow()
        for number in range(1, setup.rounds + 1):
            begin = time.time()
            for _ in range(setup.takeovers):
                takeovers.take_over()
                takeovers.flow()
                time.sleep(setup.pause)
            middle = time.time()
            time.sleep(middle - begin)
            end = time.time()
            yield WITH, takeovers.producers, begin, middle
            yield WITHOUT, takeovers.producers, middle, end
            click.echo(f"round {number}: {middle - begin:.1f} s", err=True)
        takeovers.finish(admin)
