"""``python -m bench stall``: measure the stall at a leader move; write it to docs/benchmarks.md."""

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import click

from bench import arms
from bench.latencies import write_latencies
from bench.plot import plot_stalls
from bench.report import table, write_section
from bench.stall import FAST_REPLICATION, RECORD_BYTES, Arm, Sample, clusters, measure
from bench.statistics import interval, quantile, ratio_interval
from tests.harness import maven
from tests.harness.java import java_clients
from tests.harness.proxyproc import Hints

_DOCS = maven.ROOT / "docs"
_SAMPLES = maven.BUILD / "bench"


@click.command("stall")
@click.option("--rounds", default=5, show_default=True, help="Alternating rounds of all arms.")
@click.option("--moves", default=30, show_default=True, help="Leader moves in each round and arm.")
@click.option("--write/--no-write", default=True, help="Write the page and the plot.")
def main(rounds: int, moves: int, write: bool) -> None:
    """Compare the stall at leader moves with hints off, with hints on, and on a native broker.

    Ends with 1 where a target is missed.
    """
    zookeeper = run(arms.ZOOKEEPER, rounds, moves)
    shipped = run(arms.ZOOKEEPER, 1, moves, replication={})
    kraft = run(arms.KRAFT, 1, moves)
    beside = run((arms.OFF, arms.ON), rounds, moves // 3, bystanders=arms.BYSTANDERS)
    verdicts = judge(zookeeper)
    text = "\n\n".join(
        [
            f"ZooKeeper, {rounds} alternating rounds of {moves} moves for each arm:",
            _stall_table(zookeeper),
            _hint_table(zookeeper),
            _target_table(verdicts),
            "![Distribution of the stalls](stalls.svg)",
            "ZooKeeper, brokers with the replication settings that Kafka comes with, one round of "
            f"{moves} moves for each arm:",
            _stall_table(shipped),
            _hint_table(shipped),
            f"KRaft, one round of {moves} moves for each arm:",
            _stall_table(kraft),
            _hint_table(kraft),
            f"{arms.BYSTANDERS} partitions whose leaders stay, on the same connections as one that "
            f"moves; {rounds} alternating rounds of {moves // 3} moves, ZooKeeper:",
            _beside_table(beside),
        ]
    )
    click.echo(text)
    if write:
        plot_stalls({arm.label: sample for arm, sample in zookeeper.items()}, _DOCS / "stalls.svg")
        write_section(_DOCS / "benchmarks.md", "stall", text)
    sys.exit(0 if all(met for *_, met in verdicts) else 1)


@click.command("legacy")
@click.option("--rounds", default=5, show_default=True, help="Alternating rounds of all arms.")
@click.option("--moves", default=30, show_default=True, help="Leader moves in each round and arm.")
@click.option("--write/--no-write", default=True, help="Write the page.")
def legacy(rounds: int, moves: int, write: bool) -> None:
    """Compare the same before 2.8 and 2.4. Ends with 1 where a target is missed."""
    parts = []
    verdicts = []
    for compared in arms.LEGACY:
        pools = run(compared, rounds, moves)
        judged = judge(pools)
        verdicts += judged
        parts += [
            f"{compared[0].version}, ZooKeeper, {rounds} alternating rounds of {moves} moves for "
            "each arm:",
            _stall_table(pools),
            _hint_table(pools),
            _target_table(judged),
        ]
    text = "\n\n".join(parts)
    click.echo(text)
    if write:
        write_section(_DOCS / "benchmarks.md", "legacy", text)
    sys.exit(0 if all(met for *_, met in verdicts) else 1)


def run(
    compared: Sequence[Arm],
    rounds: int,
    moves: int,
    bystanders: int = 0,
    replication: Mapping[str, str] = FAST_REPLICATION,
) -> dict[Arm, Sample]:
    """Measure all arms in alternating rounds; return the pooled samples.

    The raw samples are kept under build/bench in a folder for each comparison, such as
    zk-3.6.2-fast: stalls in stalls/, all latencies in latencies/. The first round of each arm is
    preceded by half a round that does not count, since the JVMs are cold.

    :raises click.ClickException: a tool that brokers need is missing.
    """
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    pools = {arm: Sample() for arm in compared}
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-bench-"))
    started = clusters(compared, folder / "clusters", replication)
    with started as running, java_clients(folder) as java:
        for number in range(rounds + 1):
            for arm in random.sample(compared, len(compared)):
                place = folder / f"{number}-{compared.index(arm)}"
                topic = f"stall-{number}-{compared.index(arm)}"
                count = moves if number else max(moves // 2, 5)
                cluster = running[arm.cluster]
                sample = measure(arm, cluster, java, topic, count, place, bystanders)
                click.echo(_line(number, arm, sample), err=True)
                if number:
                    pools[arm].add(sample)
    kind = "beside" if bystanders else "fast" if replication else "shipped"
    _keep(pools, kind)
    return pools


def _line(number: int, arm: Arm, sample: Sample) -> str:
    kind = f"round {number}" if number else "warm-up"
    return (
        f"{kind}, {arm.mode}, {arm.label}: produce {median(sample.produce):.0f} ms, "
        f"consume {median(sample.consume):.0f} ms, hints {sample.given}, "
        f"missed {dict(sample.missed)}, wrong {len(sample.wrong)}"
    )


def _keep(pools: Mapping[Arm, Sample], kind: str) -> None:
    folder = _emptied("stalls", pools, kind)
    for arm, sample in pools.items():
        held = f"-{arm.hold_ms}" if arm.hold_ms else ""
        name = f"{arm.mode}-{arm.version}-{arm.hints or 'native'}{held}.json"
        kept = {key: value for key, value in vars(sample).items() if key != "rounds"}
        (folder / name).write_text(json.dumps(kept))
    _keep_latencies(pools, kind)


def _keep_latencies(pools: Mapping[Arm, Sample], kind: str) -> None:
    folder = _emptied("latencies", pools, kind)
    for number, (arm, sample) in enumerate(pools.items()):
        for run, latencies in enumerate(sample.rounds, start=1):
            file = folder / f"{number}-{run}.csv.gz"
            write_latencies(file, arm.label, run, latencies, RECORD_BYTES)


def _emptied(what: str, pools: Mapping[Arm, Sample], kind: str) -> Path:
    """A folder of a comparison, named by its first arm; what an earlier run left is gone."""
    first = next(iter(pools))
    folder = _SAMPLES / what / f"{first.mode}-{first.version}-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


Verdict = tuple[str, str, str, bool]


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
            above, below = getattr(on, kind), getattr(sample, kind)
            ratio = median(above) / median(below)
            low, high = ratio_interval(above, below)
            verdicts.append(
                (
                    f"median stall, {kind}, hints on / {base.label}",
                    f"{ratio:.2f} ({low:.2f} to {high:.2f})",
                    f"at most {most}",
                    ratio <= most,
                )
            )
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
    verdicts.append(("wrong hints", str(len(on.wrong)), "0", not on.wrong))
    return verdicts


def _stall_table(pools: Mapping[Arm, Sample]) -> str:
    head = ["stall, ms", "moves", "median", "95 % interval of it", "p90", "max"]
    rows = []
    for kind in ("produce", "consume"):
        for arm, sample in pools.items():
            values = getattr(sample, kind)
            low, high = interval(values)
            rows.append(
                [
                    f"{kind}, {arm.label}",
                    str(len(values)),
                    f"{median(values):.0f}",
                    f"{low:.0f} to {high:.0f}",
                    f"{quantile(values, 0.9):.0f}",
                    f"{max(values):.0f}",
                ]
            )
    return table(head, rows)


def _hint_table(pools: Mapping[Arm, Sample]) -> str:
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
                    str(len(sample.wrong)),
                    f"{median(sample.holds):.1f}",
                    f"{quantile(sample.holds, 0.9):.1f}",
                    f"{max(sample.holds):.1f}",
                ]
            )
    return table(head, rows)


def _beside_table(pools: Mapping[Arm, Sample]) -> str:
    head = ["latency around moves, ms", "records", "median", "p99", "95 % interval of it", "max"]
    rows = []
    for kind in ("produce", "consume"):
        for arm, sample in pools.items():
            values = getattr(sample, f"beside_{kind}")
            low, high = interval(values, partial(quantile, share=0.99))
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


def _target_table(verdicts: Sequence[Verdict]) -> str:
    head = ["target", "measured", "aim", "met"]
    return table(head, [[*texts, "yes" if met else "no"] for *texts, met in verdicts])
