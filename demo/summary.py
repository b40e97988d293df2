"""Summary: the closing table, with and without hints side by side. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from demo.report import RoundReport

NOT_READ = "not read"
"""Stands for what the proxy cannot know with hints off: it then reads nothing."""


def summarize(reports: Sequence[RoundReport]) -> list[tuple[str, str, str]]:
    """The table's rows: a label, the value with hints off, the value with hints on."""
    off = _column([report for report in reports if not report.hints_on])
    on = _column([report for report in reports if report.hints_on])
    return [(label, off[label], on[label]) for label in off]


def _column(reports: Sequence[RoundReport]) -> dict[str, str]:
    moves = [move for report in reports for move in report.moves]
    errors = [report.errors for report in reports if report.errors is not None]
    hints = [line for report in reports for line in report.hint_lines]
    missed = Counter(line["reason"] for report in reports for line in report.missed_lines)
    return {
        "leader moves": str(len(moves)),
        "leader errors answered": str(sum(errors)) if errors else NOT_READ,
        "hints given": str(len(hints)),
        "errors without a hint": _reasons(missed) if errors else NOT_READ,
        "hold at a move, median / max": _times(move.hold_ms for move in moves if move.hints),
        "Fetch recovery, median / max": _times(move.fetch_ms for move in moves),
        "Produce recovery, median / max": _times(move.produce_ms for move in moves),
        "errors the application saw": str(sum(len(report.client_errors) for report in reports)),
        "records acknowledged": str(sum(report.acknowledged for report in reports)),
        "records lost": str(sum(report.lost for report in reports)),
        "records doubled": str(sum(report.doubled for report in reports)),
    }


def _reasons(missed: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in missed.most_common()) or "0"


def _times(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.0f} / {max(known):.0f} ms" if known else "-"
