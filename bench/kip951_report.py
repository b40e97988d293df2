"""``python -m bench kip951`` and ``late``: the case KIP-951 was made for, and it without hints."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import get_args

import click

from bench import kip951
from bench.kip951 import ARMS, WITHOUT_HINTS, Acks, Arm, Run
from bench.late_metadata import Lateness
from bench.latencies import write_latencies
from bench.report import Verdict, finish, table, target_table
from bench.samples import Samples, from_samples_option
from tests.harness import maven

_PAGE = maven.ROOT / "docs" / "benchmarks.md"
_LATENCIES = maven.BUILD / "bench" / "latencies"
#: The KIP's 88 %, which is 87.2 % of its own figures: 1675 to 215 ms.
_LEAST_GAIN = 0.87
#: Share of the records that must be inside moves, or p99.9 says nothing of moves.
_LEAST_INSIDE = 0.005
#: Share of the machine's CPU that brokers take at most: their queues are none of a move's.
_MOST_BUSY = 0.5
_MEGABYTE = 1024 * 1024
_HOW: Mapping[Lateness, str] = {
    "stale": f"Metadata that is {kip951.LATE_MS} ms old",
    "slow": f"Metadata responses, and all behind them, delayed by {kip951.LATE_MS} ms",
}


def _options(seconds: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command the options of both; ``seconds``: of each run, by default."""

    def having(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(
            (
                click.option("--runs", default=3, show_default=True, help="Runs of each arm."),
                click.option(
                    "--slow-runs", default=1, show_default=True, help="The same with slow Metadata."
                ),
                click.option("--seconds", default=seconds, show_default=True, help="Of each run."),
                click.option("--rate", default=400, show_default=True, help="Records in a second."),
                from_samples_option,
                click.option("--write/--no-write", default=True, help="Write page and samples."),
            )
        ):
            command = option(command)
        return command

    return having


@click.command("kip951")
@_options(seconds=40.0)
def main(
    runs: int, slow_runs: int, seconds: float, rate: int, from_samples: bool, write: bool
) -> None:
    """Produce through a relay that has Metadata lag, while all leaders move once, with hints off,
    with hints on, on a native broker, and without the client's back-off.

    Ends with 1 where a target is missed.
    """
    if from_samples:
        samples = Samples.read("kip951")
    else:
        samples = _measured(ARMS, runs, slow_runs, seconds, rate, keep=True)
    _finish("kip951", ARMS, samples, _judge, write=write)


@click.command("late")
@_options(seconds=30.0)
def late(
    runs: int, slow_runs: int, seconds: float, rate: int, from_samples: bool, write: bool
) -> None:
    """Produce as for kip951 with a client that uses no hints: its errors settled, and passed on.

    Ends with 1 where a target is missed.
    """
    if from_samples:
        samples = Samples.read("late")
    else:
        samples = _measured(WITHOUT_HINTS, runs, slow_runs, seconds, rate)
    _finish("late", WITHOUT_HINTS, samples, _judge_settled, write=write)


def _finish(
    name: str,
    arms: Sequence[Arm],
    samples: Samples,
    judge: Callable[["_Results", Acks], Sequence[Verdict]],
    *,
    write: bool,
) -> None:
    of = samples.setup(_Setup)
    parts: list[str] = []
    verdicts: list[Verdict] = []
    for lateness, how in _HOW.items():
        for acks in get_args(Acks):
            results = _results(samples, arms, acks, lateness)
            if not results:
                continue
            work = f"acks={acks}, {of.rate} records a second for {of.seconds:g} s a run"
            parts += [f"{how}; {work}:", _run_table(results)]
            if lateness == "stale":
                verdicts += judge(results, acks)
    text = "\n\n".join([*parts, target_table(verdicts)])
    finish(_PAGE, name, text, samples, verdicts, write=write)


@dataclass
class _Setup:
    """``seconds`` of each run, and ``rate`` in records a second."""

    seconds: float
    rate: int


@dataclass
class _Figures:
    """What the tables need of a run. ``latencies_ms``: in order of size, to hundredths."""

    latencies_ms: list[float]
    failed: int
    inside: float
    rate: float
    busy: float

    @classmethod
    def of(cls, run: Run) -> "_Figures":
        # A third digit is noise, and would make the samples half as large again.
        latencies = sorted(round(latency, 2) for _, latency in run.latencies)
        return cls(latencies, run.failed, run.inside, run.rate, run.busy)


#: By arm.
_Results = Mapping[Arm, Sequence[_Figures]]


def _measured(
    arms: Sequence[Arm],
    runs: int,
    slow_runs: int,
    seconds: float,
    rate: int,
    *,
    keep: bool = False,
) -> Samples:
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    samples.add_setup(_Setup(seconds, rate))
    for (acks, lateness), results in kip951.measure(arms, runs, slow_runs, seconds, rate).items():
        for arm, done in results.items():
            for number, run in enumerate(done, 1):
                samples.add(_comparison(acks, lateness), _run_name(arm, number), _Figures.of(run))
        if lateness == "stale" and keep:
            _keep(results, acks)
    return samples


def _comparison(acks: Acks, lateness: Lateness) -> str:
    return f"acks={acks}, {lateness} Metadata"


def _run_name(arm: Arm, number: int) -> str:
    return f"{arm.label}, run {number}"


def _results(samples: Samples, arms: Sequence[Arm], acks: Acks, lateness: Lateness) -> _Results:
    kept = samples.all(_Figures, _comparison(acks, lateness))
    runs = range(1, len(kept) // len(arms) + 1)
    return {arm: [kept[_run_name(arm, run)] for run in runs] for arm in arms if kept}


def _keep(results: Mapping[Arm, Sequence[Run]], acks: Acks) -> None:
    folder = _LATENCIES / f"kip951-acks-{acks}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (arm, runs) in enumerate(results.items()):
        for run, of in enumerate(runs, 1):
            file = folder / f"{number}-{run}.csv.gz"
            write_latencies(file, arm.label, run, of.latencies, kip951.RECORD_BYTES)


def _percentile(run: _Figures, share: float) -> float:
    """Return a percentile as kafka-producer-perf-test chooses it."""
    return run.latencies_ms[int(share * len(run.latencies_ms))]


def _run_table(results: _Results) -> str:
    head = ["arm", "run", "records/s", "MB/s", "avg ms", "max ms", "p50", "p95", "p99", "p99.9"]
    rows = [
        [
            arm.label,
            str(number),
            f"{run.rate:.1f}",
            f"{run.rate * kip951.RECORD_BYTES / _MEGABYTE:.2f}",
            f"{mean(run.latencies_ms):.2f}",
            f"{max(run.latencies_ms):.0f}",
            *(f"{_percentile(run, share):.0f}" for share in (0.5, 0.95, 0.99, 0.999)),
            f"{run.inside:.2%}",
            str(run.failed),
            f"{run.busy:.0%}",
        ]
        for arm, runs in results.items()
        for number, run in enumerate(runs, 1)
    ]
    return table([*head, "inside moves", "failed", "brokers' CPU"], rows)


def _judge(results: _Results, acks: Acks) -> list[Verdict]:
    off, on, *_ = (mean(_percentile(run, 0.999) for run in results[arm]) for arm in ARMS)
    inside = min(run.inside for runs in results.values() for run in runs)
    busy = max(run.busy for runs in results.values() for run in runs)
    gain = 1 - on / off
    return [
        (
            f"p99.9 with hints on below hints off, acks={acks}",
            f"{gain:.1%} ({off:.0f} to {on:.0f} ms)",
            f"at least {_LEAST_GAIN:.0%}",
            gain >= _LEAST_GAIN,
        ),
        (
            f"records inside moves, acks={acks}",
            f"{inside:.2%}",
            f"at least {_LEAST_INSIDE:.1%}",
            inside >= _LEAST_INSIDE,
        ),
        (
            f"brokers' CPU, acks={acks}",
            f"{busy:.0%} of the machine",
            f"at most {_MOST_BUSY:.0%}",
            busy <= _MOST_BUSY,
        ),
    ]


def _judge_settled(results: _Results, acks: Acks) -> list[Verdict]:
    passed_on, settled = (
        [_percentile(run, 0.999) for run in results[arm]] for arm in WITHOUT_HINTS
    )
    return [
        (
            f"p99.9 of settled errors, acks={acks}",
            f"{mean(settled):.0f} ms ({min(settled):.0f} to {max(settled):.0f}), passed on "
            f"{mean(passed_on):.0f} ms ({min(passed_on):.0f} to {max(passed_on):.0f})",
            "no worse: the runs' ranges meet, or less",
            min(settled) <= max(passed_on),
        )
    ]
