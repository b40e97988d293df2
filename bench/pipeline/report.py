"""``python -m bench pipeline``: what the pipeline costs, written to docs/pipeline.md."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from bench.pipeline.figures import (
    INGEST_COST,
    JSON_RATE,
    LARGE_INGEST_COST,
    MICRO_BATCH_S,
    SKEW,
    TABLES_COST,
    TIMES_DUCKDB,
    Figure,
    Target,
)
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
    whole,
)
from bench.report import table, write_section
from bench.samples import Samples, from_samples_option
from leader_hints_report.generator.fleet import Fleet
from tests.harness.maven import ROOT

_PAGE = ROOT / "docs" / "pipeline.md"
_HOURS = 24


@click.command("pipeline")
@click.option("--events", default=5_000_000, show_default=True, help="How many in the journal.")
@click.option("--large", default=0, show_default=True, help="And in a large one; 0: none.")
@click.option("--micro", default=100_000, show_default=True, help="How many in a micro-batch.")
@click.option("--sidecars", default=24, show_default=True, help="How many; six make a cluster.")
@click.option("--cores", default=2, show_default=True, help="How many Spark and DuckDB may use.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(
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
    samples = (
        Samples.read("pipeline")
        if from_samples
        else _measured(_Setup(events, large, micro, sidecars, cores))
    )
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
            Figure(f"{name}: times DuckDB's time", query.spark_s / query.duckdb_s, TIMES_DUCKDB)
            for name, query in asked.items()
        ),
    ]
    text, needs = _text(figures, samples), sizing(plain, of.cores)
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


@dataclass(frozen=True)
class _Batches:
    seconds: list[float]


def _measured(of: _Setup) -> Samples:
    master, samples = f"local[{of.cores}]", Samples()
    samples.add_setup(of)

    def journal(name: str, seed: int, size: int, hot: float = 0.0) -> Path:
        return journal_of(Fleet(of.sidecars, _HOURS, size, seed, hot=hot), name, master)

    def tried(name: str, on: Path, warm_up: Path | None = None) -> None:
        trial, cost, stages = whole(on, name, master, warm_up=warm_up)
        samples.add("trials", name, trial)
        if warm_up is None:
            samples.add("costs", name, cost)
            samples.add("alone", name, duckdb_alone(on, of.cores))
        for number, stage in enumerate(stages):
            samples.add(f"stages, {name}", str(number), stage)

    tried("plain", journal("plain", 1, of.events))
    in_batches = journal("micro", 3, (WARM_UP + COUNTED) * of.micro)
    # Else the first task of each core has all that Java compiles, and looks skewed.
    tried("hot", journal("hot", 2, of.events, 0.5), warm_up=in_batches)
    batches = micro_batches(in_batches, of.micro, master)
    samples.add("trials", "micro", _Batches(batches))
    if of.large:
        tried("large", journal("large", 1, of.large))
    for name, query in against_duckdb("large" if of.large else "plain", master, of.cores).items():
        samples.add("queries", name, query)
    return samples


def _stages(samples: Samples, name: str) -> list[Stage]:
    return [*samples.all(Stage, f"stages, {name}").values()]


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
        [name, f"{query.spark_s:.2f}", f"{query.duckdb_s:.2f}"]
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
            table(["query", "Spark", "DuckDB"], queries),
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
