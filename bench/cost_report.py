"""``python -m bench cost``, ``recoding``, ``watching``, ``workers``: CPU seconds, compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import click

from bench.cost import Cost, CostArm, Costs, missing_tools, run
from bench.load import Work
from bench.plot import plot_cost
from bench.report import Verdict, finish, judge_ratio, table, target_table, with_interval
from bench.samples import Samples, from_samples_option
from tests.harness import maven

_DOCS = maven.ROOT / "docs"
_MB = 1_000_000

SMALL = Work("produce 300 MB, 16 KB batches", "produce", 300 * _MB, 16_384, "small")
LARGE = Work("produce 300 MB, 1 MB batches", "produce", 300 * _MB, 1 << 20, "large")
CONSUME = Work("consume 300 MB", "consume", 300 * _MB, 50 << 20, "large")
CONSUME_SMALL = Work("consume 300 MB, 16 KB a response", "consume", 300 * _MB, 16_384, "small")
CONSUME_LARGE = Work("consume 300 MB, 1 MB a response", "consume", 300 * _MB, 1 << 20, "large")
SINGLE = Work("6000 produces one at a time", "single", 6000, 100, "single")
CONSUME_SINGLE = Work("6000 records, one a response", "consume", 600_000, 1, "single")
FIFTY = Work("30,000 produces, 50 connections", "single", 30_000, 100, "fifty", 50)
HUNDRED = Work("60,000 produces, 100 connections", "single", 60_000, 100, "hundred", 100)

DIRECT = CostArm("direct", "3.6.2", "direct")
HAPROXY = CostArm("HAProxy", "3.6.2", "haproxy")
OFF = CostArm("hints off", "3.6.2", "proxy", "off")
ON = CostArm("hints on", "3.6.2", "proxy", "on")
RECODED = CostArm("hints on, 2.4.1", "2.4.1", "proxy", "on")

TWO_THREADS = CostArm("HAProxy, two threads", "3.6.2", "haproxy", workers=2)
TWO_WORKERS = CostArm("hints on, two workers", "3.6.2", "proxy", "on", workers=2)
WATCHED = CostArm("hints on, watched", "3.6.2", "proxy", "on", watched=True)

#: Most CPU seconds with hints on, over HAProxy's.
MOST_OF_HAPROXY = {SMALL: 1.3, LARGE: 1.1, CONSUME: 1.3, SINGLE: 1.6, FIFTY: 1.4}
#: Most latency that is added over direct with hints on, over what HAProxy adds.
MOST_ADDED = 1.5
#: Most CPU seconds where requests and responses are recoded, over where they are restamped.
MOST_OF_RESTAMPED = {
    SMALL: 1.5,
    CONSUME_SMALL: 1.5,
    LARGE: 1.2,
    CONSUME_LARGE: 1.2,
    SINGLE: 1.5,
    CONSUME_SINGLE: 1.5,
}

#: Most CPU seconds of a proxy that is watched, over one that is not.
MOST_OF_UNWATCHED = {SINGLE: 1.05}

#: Most CPU seconds with two workers, over those with one process.
MOST_OF_ONE_PROCESS = {SMALL: 1.1, FIFTY: 1.1, HUNDRED: 1.1}

_rounds = click.option("--rounds", default=5, show_default=True, help="Alternating rounds.")
_write = click.option("--write/--no-write", default=True, help="Write page, plot and samples.")


@dataclass(frozen=True)
class _Comparison:
    """One section: what is compared, and the most CPU seconds of ``above`` over ``below``."""

    section: str
    arms: Sequence[CostArm]
    most: Mapping[Work, float]
    above: CostArm
    below: CostArm


_COST = _Comparison("cost", (DIRECT, HAPROXY, OFF, ON), MOST_OF_HAPROXY, ON, HAPROXY)
_RECODING = _Comparison("recoding", (ON, RECODED), MOST_OF_RESTAMPED, RECODED, ON)
_WORKERS = _Comparison(
    "workers", (HAPROXY, TWO_THREADS, ON, TWO_WORKERS), MOST_OF_ONE_PROCESS, TWO_WORKERS, ON
)
_WATCHING = _Comparison("watching", (ON, WATCHED), MOST_OF_UNWATCHED, WATCHED, ON)


@click.command()
@_rounds
@from_samples_option
@_write
def cost(rounds: int, from_samples: bool, write: bool) -> None:
    """Compare CPU seconds and latency with HAProxy. Ends with 1 where a target is missed."""
    _report(_COST, rounds, from_samples, write)


@click.command()
@_rounds
@from_samples_option
@_write
def recoding(rounds: int, from_samples: bool, write: bool) -> None:
    """Compare CPU seconds in front of 2.4.1 and of 3.6.2. Ends with 1 on a missed target."""
    _report(_RECODING, rounds, from_samples, write)


@click.command()
@_rounds
@from_samples_option
@_write
def watching(rounds: int, from_samples: bool, write: bool) -> None:
    """Compare CPU seconds with journal and metrics to those without. Ends with 1 on a miss."""
    _report(_WATCHING, rounds, from_samples, write)


@click.command()
@_rounds
@from_samples_option
@_write
def workers(rounds: int, from_samples: bool, write: bool) -> None:
    """Compare CPU seconds of two workers with one process. Ends with 1 on a missed target."""
    _report(_WORKERS, rounds, from_samples, write)


def _report(of: _Comparison, rounds: int, from_samples: bool, write: bool) -> None:
    samples = Samples.read(of.section) if from_samples else _measured(of, rounds)
    arms, works = of.arms, list(of.most)
    costs = {
        (arm, work): samples.get(Cost, work.label, arm.label) for arm in arms for work in works
    }
    verdicts = [
        judge_ratio(
            work.label, costs[of.above, work].cpu, costs[of.below, work].cpu, most=of.most[work]
        )
        for work in works
    ]
    if DIRECT in arms:
        verdicts += [_added(costs, name) for name in ("p50", "p99")]
    plot = ["![CPU seconds over those of HAProxy](cost.svg)"] if DIRECT in arms else []
    counted = len(costs[of.below, works[0]].cpu)
    text = "\n\n".join(
        [
            f"{counted} alternating rounds; CPU seconds of the proxy, median and 95 % interval:",
            table(["work", *(arm.label for arm in arms)], _rows(costs, arms, works)),
            target_table(verdicts),
            *plot,
            "Latency of requests one at a time, microseconds, median over the rounds:",
            table(["work", *(arm.label for arm in arms)], _latencies(costs, arms, works)),
        ]
    )
    if write and plot:
        seconds = {a.label: {w.label: costs[a, w].cpu for w in works} for a in arms if a != DIRECT}
        aims = {work.label: aim for work, aim in of.most.items()}
        plot_cost(seconds, aims, _DOCS / "cost.svg")
    finish(_DOCS / "benchmarks.md", of.section, text, samples, verdicts, write=write)


def _measured(of: _Comparison, rounds: int) -> Samples:
    missing = maven.missing_tools() or missing_tools(of.arms)
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    for (arm, work), figures in run(of.arms, list(of.most), rounds).items():
        samples.add(work.label, arm.label, figures)
    return samples


def _rows(costs: Costs, arms: Sequence[CostArm], works: Sequence[Work]) -> list[list[str]]:
    return [
        [work.label, *(with_interval(costs[arm, work].cpu, 3) for arm in arms)] for work in works
    ]


def _latencies(costs: Costs, arms: Sequence[CostArm], works: Sequence[Work]) -> list[list[str]]:
    return [
        [
            f"{work.label}, {name}",
            *(f"{median(getattr(costs[arm, work], name)):.0f}" for arm in arms),
        ]
        for work in works
        if work.kind == "single"
        for name in ("p50", "p99")
    ]


def _added(costs: Costs, name: str) -> Verdict:
    """Compare what is added to the latency of requests one at a time."""
    direct, haproxy, on = (
        median(getattr(costs[arm, SINGLE], name)) for arm in (DIRECT, HAPROXY, ON)
    )
    ours, theirs = on - direct, haproxy - direct
    # Where HAProxy seems to add nothing the run is too noisy to tell.
    ratio = f"{ours / theirs:.2f} " if theirs > 0 else ""
    return (
        f"added latency one at a time, {name}",
        f"{ratio}({ours:.0f} us, HAProxy {theirs:.0f} us)",
        f"at most {MOST_ADDED}",
        ours <= MOST_ADDED * theirs,
    )
