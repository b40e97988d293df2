"""``python -m bench stall``: measure the stall at a leader move; write it to docs/benchmarks.md."""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from bench import arms
from bench.latencies import write_latencies
from bench.measured_clients import JAVA, Client
from bench.plot import plot_stalls
from bench.report import Verdict, finish, judge_ratio, table, target_table
from bench.samples import Samples, from_samples_option
from bench.stall import FAST_REPLICATION, RECORD_BYTES, Arm, Sample, clusters, measure
from bench.statistics import interval, quantile, quantile_interval
from tests.harness import maven
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints

_DOCS = maven.ROOT / "docs"
_LATENCIES = maven.BUILD / "bench" / "latencies"
_BESIDE = (arms.OFF, arms.ON)


@dataclass
class Setup:
    """How often each arm was measured."""

    rounds: int
    moves: int


_rounds = click.option("--rounds", default=5, show_default=True, help="Alternating rounds.")
_moves = click.option(
    "--moves", default=30, show_default=True, help="Leader moves in each round and arm."
)
_write = click.option("--write/--no-write", default=True, help="Write page, plot and samples.")


@click.command("stall")
@_rounds
@_moves
@from_samples_option
@_write
def main(rounds: int, moves: int, from_samples: bool, write: bool) -> None:
    """Compare the stall at leader moves with hints off, with hints on, and on a native broker.

    Ends with 1 where a target is missed.
    """
    samples = Samples.read("stall") if from_samples else _measured_stalls(rounds, moves)
    of = samples.setup(Setup)
    zookeeper = _pools(samples, "zookeeper", arms.ZOOKEEPER)
    shipped = _pools(samples, "shipped", arms.ZOOKEEPER)
    beside = _pools(samples, "beside", _BESIDE)
    verdicts = judge(zookeeper)
    text = "\n\n".join(
        [
            f"ZooKeeper, {of.rounds} alternating rounds of {of.moves} moves for each arm:",
            stall_table(zookeeper),
            hint_table(zookeeper),
            target_table(verdicts),
            "![Distribution of the stalls](stalls.svg)",
            "ZooKeeper, brokers with the replication settings that Kafka comes with, one round of "
            f"{of.moves} moves for each arm:",
            stall_table(shipped),
            hint_table(shipped),
            f"{arms.BYSTANDERS} partitions whose leaders stay, on the same connections as one that "
            f"moves; {of.rounds} alternating rounds of {of.moves // 3} moves, ZooKeeper:",
            beside_table(beside),
        ]
    )
    if write:
        plot_stalls({arm.label: sample for arm, sample in zookeeper.items()}, _DOCS / "stalls.svg")
    finish(_DOCS / "benchmarks.md", "stall", text, samples, verdicts, write=write)


@click.command("legacy")
@_rounds
@_moves
@from_samples_option
@_write
def legacy(rounds: int, moves: int, from_samples: bool, write: bool) -> None:
    """Compare the same in front of 2.8 and 2.4. Ends with 1 where a target is missed."""
    samples = Samples.read("legacy") if from_samples else _measured_legacy(rounds, moves)
    of = samples.setup(Setup)
    parts = []
    verdicts = []
    for compared in arms.LEGACY:
        version = compared[0].version
        pools = _pools(samples, version, compared)
        judged = judge(pools)
        verdicts += judged
        parts += [
            f"{version}, ZooKeeper, {of.rounds} alternating rounds of {of.moves} moves for "
            "each arm:",
            stall_table(pools),
            hint_table(pools),
            target_table(judged),
        ]
    text = "\n\n".join(parts)
    finish(_DOCS / "benchmarks.md", "legacy", text, samples, verdicts, write=write)


def _measured_stalls(rounds: int, moves: int) -> Samples:
    samples = Samples()
    samples.add_setup(Setup(rounds, moves))
    for comparison, pools in (
        ("zookeeper", run(arms.ZOOKEEPER, rounds, moves)),
        ("shipped", run(arms.ZOOKEEPER, 1, moves, replication={})),
        ("beside", run(_BESIDE, rounds, moves // 3, bystanders=arms.BYSTANDERS)),
    ):
        _add(samples, comparison, pools)
    return samples


def _measured_legacy(rounds: int, moves: int) -> Samples:
    samples = Samples()
    samples.add_setup(Setup(rounds, moves))
    for compared in arms.LEGACY:
        _add(samples, compared[0].version, run(compared, rounds, moves))
    return samples


def _add(samples: Samples, comparison: str, pools: Mapping[Arm, Sample]) -> None:
    for arm, sample in pools.items():
        samples.add(comparison, arm.label, sample)


def _pools(samples: Samples, comparison: str, compared: Sequence[Arm]) -> dict[Arm, Sample]:
    return {arm: samples.get(Sample, comparison, arm.label) for arm in compared}


def run(
    compared: Sequence[Arm],
    rounds: int,
    moves: int,
    bystanders: int = 0,
    replication: Mapping[str, str] = FAST_REPLICATION,
    client: Client = JAVA,
    turning: bool = False,
    warm_up: int | None = None,
    after: Callable[[Arm, RealCluster, str], None] = lambda arm, cluster, topic: None,
) -> dict[Arm, Sample]:
    """Measure all arms in alternating rounds; return the pooled samples.

    ``turning``: other brokers lead in each round. ``warm_up``: moves of each arm before those that
    count, since the JVMs are cold; by default half a round. ``after``: called with the arm, its
    cluster and the topic after each round that counts.

    All latencies are kept under build/bench/latencies in a folder for each comparison, such as
    zk-3.6.2-fast-java.

    :raises click.ClickException: a tool that brokers need is missing.
    """
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    if warm_up is None:
        warm_up = max(moves // 2, 5)
    pools = {arm: Sample() for arm in compared}
    kind = "beside" if bystanders else "fast" if replication else "shipped"
    latencies = _emptied(compared[0], f"{kind}-{client.name}")
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-bench-"))
    started = clusters(compared, folder / "clusters", replication)
    with started as running, client.start(folder) as process:
        for number in range(rounds + 1):
            for arm in random.sample(compared, len(compared)):
                index = compared.index(arm)
                place = folder / f"{number}-{index}"
                topic = f"stall-{number}-{index}"
                count = moves if number else warm_up
                cluster = running[arm.cluster]
                turn = number % len(cluster.brokers) if turning else 0
                sample, all_of_them = measure(
                    arm, cluster, process, topic, count, place, bystanders, client.settings, turn
                )
                click.echo(_line(number, arm, sample), err=True)
                if number:
                    pools[arm].add(sample)
                    after(arm, cluster, topic)
                    file = latencies / f"{index}-{number}.csv.gz"
                    write_latencies(file, arm.label, number, all_of_them, RECORD_BYTES)
    return pools


def _line(number: int, arm: Arm, sample: Sample) -> str:
    kind = f"round {number}" if number else "warm-up"
    return (
        f"{kind}, {arm.mode}, {arm.label}: produce {median(sample.produce):.0f} ms, "
        f"consume {median(sample.consume):.0f} ms, hints {sample.given}, "
        f"missed {dict(sample.missed)}, wrong {sample.wrong}"
    )


def _emptied(first: Arm, kind: str) -> Path:
    """Return the folder of a comparison's latencies, named by its first arm, without old files."""
    folder = _LATENCIES / f"{first.mode}-{first.version}-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def judge(pools: Mapping[Arm, Sample]) -> list[Verdict]:
    """Return figure, measured, target and whether it is met, for each target.

    ``pools`` has one arm with hints on, one with hints off and one without a proxy.
    """
    by_hints = {arm.hints: (arm, sample) for arm, sample in pools.items()}
    _, on = by_hints["on"]
    verdicts = []
    limits: tuple[tuple[Hints | None, float], ...] = (
        ("off", arms.MOST_OF_OFF),
        (None, arms.MOST_OF_NATIVE),
    )
    for hints, most in limits:
        base, sample = by_hints[hints]
        for kind in ("produce", "consume"):
            name = f"median stall, {kind}, hints on / {base.label}"
            verdicts.append(judge_ratio(name, getattr(on, kind), getattr(sample, kind), most=most))
    errors = on.given + on.missed.total()
    share = on.given / errors if errors else 0.0
    verdicts.append(
        (
            "errors that got their hint",
            f"{share:.1%} of {errors}",
            f"at least {arms.LEAST_HINTED:.0%}",
            share >= arms.LEAST_HINTED,
        )
    )
    verdicts.append(("wrong hints", str(on.wrong), "0", not on.wrong))
    return verdicts


def stall_table(pools: Mapping[Arm, Sample]) -> str:
    """Return the stalls of all arms."""
    return spread_table(
        "stall, ms",
        (
            (f"{kind}, {arm.label}", getattr(sample, kind))
            for kind in ("produce", "consume")
            for arm, sample in pools.items()
        ),
    )


def spread_table(what: str, named: Iterable[tuple[str, Sequence[float]]]) -> str:
    """Return a table of milliseconds, one for each move."""
    rows = []
    for name, values in named:
        low, high = interval(values)
        rows.append(
            [
                name,
                str(len(values)),
                f"{median(values):.0f}",
                f"{low:.0f} to {high:.0f}",
                f"{quantile(values, 0.9):.0f}",
                f"{max(values):.0f}",
            ]
        )
    return table([what, "moves", "median", "95 % interval of the median", "p90", "max"], rows)


def hint_table(pools: Mapping[Arm, Sample]) -> str:
    """Return what came of the errors of arms with hints."""
    head = ["hints", "given", "missed", "wrong", "hold median, ms", "hold p90", "hold max"]
    rows = []
    for arm, sample in pools.items():
        if arm.hints == "on":
            reasons = ", ".join(f"{reason} {count}" for reason, count in sample.missed.items())
            rows.append(
                [
                    f"{arm.version}, {arm.mode}, {arm.label}",
                    str(sample.given),
                    reasons or "0",
                    str(sample.wrong),
                    f"{median(sample.holds):.1f}",
                    f"{quantile(sample.holds, 0.9):.1f}",
                    f"{max(sample.holds):.1f}",
                ]
            )
    return table(head, rows)


def beside_table(pools: Mapping[Arm, Sample]) -> str:
    """Return the latencies of partitions beside the one that moves."""
    head = ["latency around moves, ms", "records", "median", "p99", "95 % interval of p99", "max"]
    rows = []
    for kind in ("produce", "consume"):
        for arm, sample in pools.items():
            values = getattr(sample, f"beside_{kind}")
            low, high = quantile_interval(values, 0.99)
            rows.append(
                [
                    f"{kind}, {arm.label}",
                    str(len(values)),
                    f"{median(values):.1f}",
                    f"{quantile(values, 0.99):.1f}",
                    f"{low:.1f} to {high:.1f}",
                    f"{max(values):.0f}",
                ]
            )
    return table(head, rows)
