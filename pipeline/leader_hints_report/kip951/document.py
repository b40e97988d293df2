"""The document of `leader-hints-report kip951`: as JSON, as CSV and as Markdown."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.kip951.comparison import Change, Comparison, compare
from leader_hints_report.kip951.published import Check, RollRow, checks, published
from leader_hints_report.kip951.run_figures import COLUMNS, RunFigures
from leader_hints_report.text import escape, to_csv

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


class TextTable(NamedTuple):
    """One table, as it is shown. All columns but the first are right-aligned."""

    title: str
    words: str
    head: list[str]
    rows: list[list[str]]


def text_tables(document: Document) -> Iterator[TextTable]:
    """Yield the tables as they are shown. Names of arms are escaped."""
    if document.measured is not None:
        yield from _of_comparison("Own samples", "", document.measured)
    setup = f"{published().micro.setup}."
    yield from _of_comparison("Published: micro-benchmark", setup, document.published)
    yield TextTable(
        "Published: roll simulation",
        f"{published().roll.setup}.",
        ["", "baseline, ms", "KIP-951, ms", "gain"],
        [
            [row.name, f"{row.baseline_ms}", f"{row.kip_ms}", f"{row.gain_percent} %"]
            for row in document.roll
        ],
    )
    yield TextTable(
        "Published: the arithmetic, worked out again",
        "Each stated figure beside what its own data give, held to the digits that were stated.",
        ["figure", "stated", "worked out", ""],
        [_check_row(check) for check in document.checks],
    )


def markdown(document: Document) -> str:
    """Return the tables as Markdown."""
    parts = [f"{published().title}, <{document.source}>"]
    for shown in text_tables(document):
        parts += [f"## {shown.title}", *([shown.words] if shown.words else []), _markdown(shown)]
    return "\n\n".join(parts)


def _markdown(shown: TextTable) -> str:
    rule = ["---"] + ["---:"] * (len(shown.head) - 1)
    cells = ([cell.replace("|", "\\|") for cell in row] for row in shown.rows)
    return "\n".join("| " + " | ".join(row) + " |" for row in (shown.head, rule, *cells))


def _of_comparison(title: str, words: str, comparison: Comparison) -> Iterator[TextTable]:
    rows = [
        row
        for mean in comparison.averages
        for row in (
            *(_run_row(f"run {run.run}", run) for run in comparison.runs if run.arm == mean.arm),
            _run_row("average", mean),
        )
    ]
    yield TextTable(title, words, ["arm", "run", "records", "failed", *COLUMNS.values()], rows)
    if comparison.changes:
        yield TextTable(
            f"{title}: change of the averages against {escape(str(comparison.baseline))}",
            "",
            ["arm", *COLUMNS.values()],
            [
                [escape(change.arm), *(_percent(change, name) for name in COLUMNS)]
                for change in comparison.changes
            ],
        )


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


def _check_row(check: Check) -> list[str]:
    # One digit more than was published shows what was rounded.
    digits = Decimal(1).scaleb(int(check.stated.as_tuple().exponent) - 1)
    computed = check.computed.quantize(digits)
    return [check.what, f"{check.stated} {check.unit}", f"{computed} {check.unit}", check.verdict]
