"""``python -m bench pipeline``: what the pipeline costs, written to docs/pipeline.md."""

import json
import sys
from collections.abc import Iterable, Iterator
from statistics import median

import click

from bench.pipeline.figures import (
    JSON_RATE,
    LARGER_COST,
    MICRO_BATCH_S,
    PARQUET_RATE,
    SKEW,
    TIMES_DUCKDB,
    Figure,
)
from bench.pipeline.sizing import sizing
from bench.pipeline.stages import LONG_S, Stage, work_by_name
from bench.pipeline.trials import (
    AGAIN,
    COUNTED,
    FOLDER,
    WARM_UP,
    Trial,
    against_duckdb,
    journal_of,
    micro_batches,
    whole,
)
from bench.report import table, write_section
from leader_hints_report.generator import Fleet
from tests.harness.maven import ROOT

_PAGE = ROOT / "docs" / "pipeline.md"
_HOURS = 24


@click.command("pipeline")
@click.option("--events", default=5_000_000, show_default=True, help="How many in the journal.")
@click.option("--large", default=0, show_default=True, help="And in a large one; 0: none.")
@click.option("--micro", default=100_000, show_default=True, help="How many in a micro-batch.")
@click.option("--sidecars", default=24, show_default=True, help="How many; six make a cluster.")
@click.option("--cores", default=2, show_default=True, help="How many Spark and DuckDB may use.")
@click.option("--write/--no-write", default=True, help="Write the page.")
def main(events: int, large: int, micro: int, sidecars: int, cores: int, *, write: bool) -> None:
    """Measure the pipeline on Spark, and DuckDB; writes docs/pipeline.md.

    Journals are generated, and the driver has 4 GiB. Ends with 1 where a target is missed.
    """
    master = f"local[{cores}]"
    figures: list[Figure] = []

    def add(some: Iterable[Figure]) -> None:
        for figure in some:
            click.echo(f"{figure.what}: {figure.shown} ({figure.target})")
            figures.append(figure)

    def fleet(seed: int, size: int, hot: float = 0.0) -> Fleet:
        return Fleet(sidecars, _HOURS, size, seed, hot=hot)

    plain = whole(journal_of(fleet(1, events), "plain", master), "plain", master)
    add(_of_trial(plain))
    in_batches = journal_of(fleet(3, (WARM_UP + COUNTED) * micro), "micro", master)
    hot_journal = journal_of(fleet(2, events, 0.5), "hot", master)
    # Else the first task of each core has all that Java compiles, and looks skewed.
    hot = whole(hot_journal, "hot", master, warm_up=in_batches)
    add(_of_hot(hot))
    batches = micro_batches(in_batches, micro, master)
    what = f"micro-batch of {micro:,} events, s (median; {min(batches):.2f} to {max(batches):.2f})"
    add([Figure(what, median(batches), MICRO_BATCH_S)])
    asked = against_duckdb("plain", master, cores)
    add(
        Figure(f"{name}: times DuckDB's time", by_spark / by_duckdb, TIMES_DUCKDB)
        for name, (by_spark, by_duckdb) in asked.items()
    )
    if large:
        more = whole(journal_of(fleet(1, large), "large", master), "large", master)
        cost = (more.json_s / more.events) / (plain.json_s / plain.events)
        what = f"cost of an event of {large:,} from JSON, times that of {events:,}"
        add([Figure(what, cost, LARGER_COST)])
    text = _text(figures, plain, hot, asked)
    (FOLDER / "figures.json").write_text(
        json.dumps({figure.what: figure.value for figure in figures}, indent=2), encoding="utf-8"
    )
    needs = sizing(plain, cores)
    click.echo(text)
    click.echo(needs)
    if write:
        write_section(_PAGE, "pipeline", text)
        write_section(_PAGE, "sizing", needs)
    sys.exit(0 if all(figure.met for figure in figures) else 1)


def _of_trial(trial: Trial) -> Iterator[Figure]:
    count = f"{trial.events:,} events"
    yield Figure(f"JSON to all tables, {count}, events/s", trial.events / trial.json_s, JSON_RATE)
    yield Figure(
        f"stored Parquet to all tables, {count}, events/s",
        trial.events / trial.stored_s,
        PARQUET_RATE,
    )


def _of_hot(trial: Trial) -> Iterator[Figure]:
    long = [stage for stage in trial.stages if stage.seconds > LONG_S]
    if long:
        what = "one partition with half of all events: longest task over the median"
        worst = max(stage.skew for stage in long)
        yield Figure(f"{what}, stages over {LONG_S:g} s: {len(long)}", worst, SKEW)


def _text(
    figures: list[Figure],
    plain: Trial,
    hot: Trial,
    asked: dict[str, tuple[float, float]],
) -> str:
    rows = [
        [figure.what, figure.shown, str(figure.target), "yes" if figure.met else "no"]
        for figure in figures
    ]
    queries = [
        [name, f"{by_spark:.2f}", f"{by_duckdb:.2f}"]
        for name, (by_spark, by_duckdb) in asked.items()
    ]
    of_plain, of_hot = work_by_name(plain.stages), work_by_name(hot.stages)
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
    long = [
        stage
        for name, trial in (("plain", plain), ("hot", hot))
        for stage in _long(name, trial.stages)
    ]
    return "\n\n".join(
        [
            table(["work", "measured", "aim", "met"], rows),
            "The three queries, seconds:",
            table(["query", "Spark", "DuckDB"], queries),
            f"Where the time goes, seconds of all tasks together. {plain.events:,} events, and "
            f"{hot.events:,} of which one partition has half; what several tables need is made by "
            "the first of them:",
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
