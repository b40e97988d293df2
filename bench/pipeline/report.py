"""``python -m bench pipeline``: what the pipeline costs, written to docs/pipeline.md."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from bench.pipeline.figures import (
    INGEST_COST,
    JSON_RATE,
    LARGE_INGEST_COST,
    LISTED_S,
    LOG_S,
    MICRO_BATCH_S,
    SKEW,
    TABLES_COST,
    TIMES_DUCKDB,
    Figure,
    Target,
)
from bench.pipeline.listings import Listing
from bench.pipeline.listings import measure as measure_listings
from bench.pipeline.sizing import sizing
from bench.pipeline.stages import LONG_S, Stage, work_by_name
from bench.pipeline.trials import (
    AGAIN,
    COUNTED,
    WARM_UP,
    Alone,
    Cost,
    Query,
    Trial,
    against_duckdb,
    duckdb_alone,
    journal_of,
    micro_batches,
    on_cluster,
    whole,
)
from bench.report import table, write_section
from bench.samples import Samples, from_samples_option
from leader_hints_report.generator.fleet import Fleet
from tests.harness.maven import ROOT

_PAGE = ROOT / "docs" / "pipeline.md"
_HOURS = 24
_JOURNALS, _CLUSTER, _LISTINGS = _PARTS = ("journals", "cluster", "listings")


@click.command("pipeline")
@click.option("--part", "parts", multiple=True, type=click.Choice(_PARTS),
              help="Only this; what was measured of others stays. May be repeated.")  # fmt: skip
@click.option("--events", default=5_000_000, show_default=True, help="How many in the journal.")
@click.option("--large", default=0, show_default=True, help="And in a large one; 0: none.")
@click.option("--micro", default=100_000, show_default=True, help="How many in a micro-batch.")
@click.option("--sidecars", default=24, show_default=True, help="How many; six make a cluster.")
@click.option("--cores", default=2, show_default=True, help="How many Spark and DuckDB may use.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(
    parts: Sequence[str],
    events: int,
    large: int,
    micro: int,
    sidecars: int,
    cores: int,
    *,
    from_samples: bool,
    write: bool,
) -> None:
    """Measure the pipeline on Spark, and DuckDB; writes docs/pipeline.md.

    Journals are generated, and the driver has 4 GiB. Ends with 1 where a target is missed.
    """
    samples = Samples.read("pipeline") if from_samples or parts else Samples()
    if not from_samples:
        of_now = _Setup(events, large, micro, sidecars, cores)
        for part in parts or _PARTS:
            _MEASURED[part](samples, of_now)
    of = samples.setup(_Setup)
    plain = samples.get(Trial, "trials", "plain")
    asked = samples.all(Query, "queries")
    batches = samples.get(_Batches, "trials", "micro").seconds
    what = f"micro-batch of {of.micro:,} events, s (median; {min(batches):.2f} to "
    figures = [
        _rate(plain),
        *_costs(samples),
        *_of_hot(_stages(samples, "hot")),
        Figure(f"{what}{max(batches):.2f})", median(batches), MICRO_BATCH_S),
        *(
            Figure(f"{name}: times DuckDB's time", query.command_s / query.duckdb_s, TIMES_DUCKDB)
            for name, query in asked.items()
        ),
        *_listings(samples),
    ]
    text = _text(figures, samples)
    needs = sizing(plain, samples.get(Trial, _CLUSTER, "plain"), of.cores)
    click.echo(f"{text}\n\n{needs}")
    if write:
        samples.write("pipeline")
        write_section(_PAGE, "pipeline", text)
        write_section(_PAGE, "sizing", needs)
    sys.exit(0 if all(figure.met for figure in figures) else 1)


@dataclass(frozen=True)
class _Setup:
    """Numbers of events in the journals (``large``: 0 for none), of sidecars, and of cores."""

    events: int
    large: int
    micro: int
    sidecars: int
    cores: int

    @property
    def master(self) -> str:
        """Where Spark runs, but for the cluster."""
        return f"local[{self.cores}]"


@dataclass(frozen=True)
class _Batches:
    seconds: list[float]


def _journal(of: _Setup, name: str, seed: int, size: int, hot: float = 0.0) -> Path:
    fleet = Fleet(of.sidecars, _HOURS, size, seed, hot=hot)
    return journal_of(fleet, name, of.master)


def _plain(of: _Setup) -> Path:
    return _journal(of, "plain", 1, of.events)


def _measure_journals(samples: Samples, of: _Setup) -> None:
    names = ("plain", "hot", "large")
    for comparison in ("trials", "costs", "alone", "queries", *map(_stages_of, names)):
        samples.forget(comparison)
    samples.add_setup(of)

    def tried(name: str, on: Path, warm_up: Path | None = None) -> None:
        trial, cost, stages = whole(on, name, of.master, warm_up=warm_up)
        samples.add("trials", name, trial)
        if warm_up is None:
            samples.add("costs", name, cost)
            samples.add("alone", name, duckdb_alone(on, of.cores))
        for number, stage in enumerate(stages):
            samples.add(_stages_of(name), str(number), stage)

    tried("plain", _plain(of))
    in_batches = _journal(of, "micro", 3, (WARM_UP + COUNTED) * of.micro)
    # Else the first task of each core has all that Java compiles, and looks skewed.
    tried("hot", _journal(of, "hot", 2, of.events, 0.5), warm_up=in_batches)
    batches = micro_batches(in_batches, of.micro, of.master)
    samples.add("trials", "micro", _Batches(batches))
    if of.large:
        tried("large", _journal(of, "large", 1, of.large))
    largest = "large" if of.large else "plain"
    for name, query in against_duckdb(largest, of.master, of.cores).items():
        samples.add("queries", name, query)


def _measure_cluster(samples: Samples, of: _Setup) -> None:
    samples.add(_CLUSTER, "plain", on_cluster(_plain(of), _CLUSTER, of.cores))


def _measure_listings(samples: Samples, of: _Setup) -> None:
    for name, listing in measure_listings(of.master).items():
        samples.add(_LISTINGS, name, listing)


_MEASURED = {_JOURNALS: _measure_journals, _CLUSTER: _measure_cluster, _LISTINGS: _measure_listings}


def _stages_of(name: str) -> str:
    return f"stages, {name}"


def _stages(samples: Samples, name: str) -> list[Stage]:
    return [*samples.all(Stage, _stages_of(name)).values()]


def _rate(trial: Trial) -> Figure:
    what = f"JSON to all tables, {trial.events:,} events, events/s"
    return Figure(what, trial.events / trial.json_s, JSON_RATE)


#: By the name of a trial: what storing its lines may cost.
_INGEST: Final[dict[str, Target]] = {"plain": INGEST_COST, "large": LARGE_INGEST_COST}


def _costs(samples: Samples) -> Iterator[Figure]:
    """CPU seconds, times those of DuckDB for the rows of the same JSON.

    Java is started once, for the first journal. That counts for each.
    """
    start = samples.get(Cost, "costs", "plain").start_s
    for name, cost in samples.all(Cost, "costs").items():
        alone = samples.get(Alone, "alone", name).seconds
        events = f"{samples.get(Trial, 'trials', name).events:,} events: times DuckDB's CPU seconds"
        ingest = start + cost.ingest_s - cost.start_s
        yield Figure(f"JSON to stored events, {events}", ingest / alone, _INGEST[name])
        yield Figure(
            f"stored events to all tables, {events} for JSON to the same rows",
            cost.tables_s / alone,
            TABLES_COST,
        )


def _listings(samples: Samples) -> Iterator[Figure]:
    targets = (LISTED_S, LOG_S)
    for (name, of), target in zip(samples.all(Listing, _LISTINGS).items(), targets, strict=False):
        yield Figure(f"{of.count:,} {name}, s", of.seconds, target)


def _of_hot(stages: list[Stage]) -> Iterator[Figure]:
    long = [stage for stage in stages if stage.seconds > LONG_S]
    if long:
        what = "one partition with half of all events: longest task over the median"
        worst = max(stage.skew for stage in long)
        yield Figure(f"{what}, stages over {LONG_S:g} s: {len(long)}", worst, SKEW)


def _text(figures: list[Figure], samples: Samples) -> str:
    trials = [(name, samples.get(Trial, "trials", name)) for name in ("plain", "hot")]
    (_, plain), (_, hot) = trials
    stages = {name: _stages(samples, name) for name, _ in trials}
    rows = [
        [figure.what, figure.shown, str(figure.target), "yes" if figure.met else "no"]
        for figure in figures
    ]
    queries = [
        [name, f"{query.command_s:.2f}", f"{query.duckdb_s:.2f}", f"{query.spark_s:.2f}"]
        for name, query in samples.all(Query, "queries").items()
    ]
    of_plain, of_hot = work_by_name(stages["plain"]), work_by_name(stages["hot"])
    steps = [
        [
            step,
            f"{work:.1f}",
            f"{of_plain.get(step + AGAIN, 0):.1f}",
            f"{of_hot.get(step, 0):.1f}",
        ]
        for step, work in of_plain.items()
        if step and not step.endswith(AGAIN)
    ]
    long = [stage for name, of in stages.items() for stage in _long(name, of)]
    return "\n\n".join(
        [
            table(["work", "measured", "target", "met"], rows),
            "The three queries, seconds:",
            table(["query", "`query`", "DuckDB alone", "Spark"], queries),
            f"Where the time goes, seconds of all tasks together. {plain.events:,} events, and "
            f"{hot.events:,} of which one partition has half; the first table makes what "
            "several tables need:",
            table(["step", "from JSON", "from stored events", "from JSON, one hot"], steps),
            f"Stages over {LONG_S:g} s:",
            table(["stage", "seconds", "tasks", "median task, s", "longest task, s"], long)
            if long
            else "None.",
        ]
    )


def _long(name: str, stages: list[Stage]) -> list[list[str]]:
    return [
        [
            f"{name}: {stage.name}",
            f"{stage.seconds:.1f}",
            str(stage.tasks),
            f"{stage.median:.2f}",
            f"{stage.longest:.2f}",
        ]
        for stage in stages
        if stage.seconds > LONG_S
    ]
