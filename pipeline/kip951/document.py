"""The document of `leader-hints-report kip951`: as JSON, as CSV and as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from pipeline.kip951.comparison import Change, Comparison, compare
from pipeline.kip951.published import Check, RollRow, checks, published
from pipeline.kip951.run_figures import COLUMNS, RunFigures
from pipeline.text import escape, to_csv

_DIGITS: Final = {"records_per_s": 6, "mb_per_s": 2, "avg_ms": 2}


class Document(BaseModel):
    """All tables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measured: Comparison | None = Field(description="Of one's own samples; null without any.")
    published: Comparison = Field(description="Of the KIP's micro-benchmark.")
    roll: tuple[RollRow, ...] = Field(description="The KIP's roll simulation, as stated.")
    checks: tuple[Check, ...] = Field(description="The KIP's figures, worked out again.")
    source: str = Field(description="Where the published figures stand.")


def make_document(runs: Sequence[RunFigures] | None, baseline: str | None = None) -> Document:
    """Put own runs, if there are any, beside what was published.

    :raises NoSuchArmError: no run is of ``baseline``.
    """
    data = published()
    return Document(
        measured=compare(runs, baseline) if runs else None,
        published=compare(data.runs),
        roll=data.roll.rows,
        checks=checks(data),
        source=data.url,
    )


def csv_files(document: Document) -> dict[str, str]:
    """Return the tables as CSV, by file name."""
    of = {"published": document.published, "measured": document.measured}
    return {
        "kip951-runs.csv": to_csv(
            ["source", *RunFigures.model_fields],
            (
                [source, *run.model_dump().values()]
                for source, comparison in of.items()
                if comparison is not None
                for run in (*comparison.runs, *comparison.averages)
            ),
        ),
        "kip951-changes.csv": to_csv(
            ["source", "arm", "baseline", *(f"{name}_percent" for name in COLUMNS)],
            (
                [source, change.arm, comparison.baseline, *change.percent.values()]
                for source, comparison in of.items()
                if comparison is not None
                for change in comparison.changes
            ),
        ),
        "kip951-checks.csv": to_csv(
            Check.model_fields, (check.model_dump().values() for check in document.checks)
        ),
    }


def markdown(document: Document) -> str:
    """Return the tables as Markdown."""
    parts = []
    if document.measured is not None:
        parts += ["## Own samples", *_comparison(document.measured)]
    parts += [
        f"## Published: {published().title}",
        f"<{document.source}>",
        f"Micro-benchmark: {published().micro.setup}.",
        *_comparison(document.published),
        f"Roll simulation: {published().roll.setup}.",
        table(
            ["", "baseline, ms", "KIP-951, ms", "gain"],
            [
                [row.name, f"{row.baseline_ms}", f"{row.kip_ms}", f"{row.gain_percent} %"]
                for row in document.roll
            ],
        ),
        "### Its arithmetic, worked out again",
        table(["figure", "stated", "worked out", ""], _check_rows(document.checks)),
    ]
    return "\n\n".join(parts)


def run_rows(comparison: Comparison) -> Iterator[list[str]]:
    """Yield the cells of a comparison's table: each arm's runs, then their average."""
    for mean in comparison.averages:
        for run in comparison.runs:
            if run.arm == mean.arm:
                yield _run_row(f"run {run.run}", run)
        yield _run_row("average", mean)


def change_rows(comparison: Comparison) -> Iterator[list[str]]:
    """Yield the cells of the table of changes."""
    for change in comparison.changes:
        yield [escape(change.arm), *(_percent(change, name) for name in COLUMNS)]


RUN_HEAD: Final = ["arm", "run", "records", "failed", *COLUMNS.values()]
CHANGE_HEAD: Final = ["arm", *COLUMNS.values()]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are right-aligned."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *cells))


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield table(RUN_HEAD, run_rows(comparison))
    if comparison.changes:
        yield f"Change of the averages against {escape(str(comparison.baseline))}:"
        yield table(CHANGE_HEAD, change_rows(comparison))


def _run_row(name: str, run: RunFigures) -> list[str]:
    figures = [_figure(column, getattr(run, column)) for column in COLUMNS]
    return [escape(run.arm), name, f"{run.records:.0f}", f"{run.failed:.0f}", *figures]


def _figure(column: str, value: float) -> str:
    """Format a figure as kafka-producer-perf-test does, but keep parts of a millisecond."""
    if column in _DIGITS:
        return f"{value:.{_DIGITS[column]}f}"
    return f"{value:.2f}".removesuffix("0").removesuffix(".0")


def _percent(change: Change, column: str) -> str:
    value = change.percent[column]
    return "" if value is None else f"{value:+.1f} %"


def _check_rows(found: Iterable[Check]) -> Iterator[list[str]]:
    for check in found:
        # One digit more than was published shows what was rounded.
        digits = Decimal(1).scaleb(int(check.stated.as_tuple().exponent) - 1)
        computed = check.computed.quantize(digits)
        yield [
            check.what,
            f"{check.stated} {check.unit}",
            f"{computed} {check.unit}",
            check.verdict,
        ]
