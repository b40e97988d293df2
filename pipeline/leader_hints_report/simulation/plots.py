"""Plots of a forecast.

Tested in ``tests/pipeline/simulation/test_page.py``.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from leader_hints_report.report.drawing import NARROW, Drawing, Ink, draw, put_legend, set_height
from leader_hints_report.report.format import count, milliseconds
from leader_hints_report.simulation.figures import LATE, ArmFigures
from leader_hints_report.text import shorten


class _Look(NamedTuple):
    """How a mode is drawn: without colours its dashes and marks tell it."""

    ink: Ink
    dashes: Any
    mark: str


_LOOKS: Final = {
    "no-proxy": _Look(Ink.WITHOUT, "-", "s"),
    "hints": _Look(Ink.WITH, "-", "o"),
    "settled": _Look(Ink.WITH, (0, (4, 2)), "D"),
    "native": _Look(Ink.OTHER, "-", "^"),
    "no-backoff": _Look(Ink.WITHOUT, (0, (1, 1.5)), "X"),
}
#: Arms that one figure has at most.
MOST_ARMS: Final = 12
_LABEL, _NARROW_LABEL = 30, 20


def late_records(arms: Sequence[ArmFigures], kind: str) -> Drawing:
    """How many records were late by more than so much. ``kind``: produce or e2e."""
    shown = [arm for arm in arms if not arm.change][: len(_LOOKS)] or [*arms][:1]

    def into(figure: Figure, width: int) -> None:
        set_height(figure, 300)
        axes = figure.subplots()
        for arm in shown:
            look = _LOOKS[arm.mode]
            values = [arm.figures[f"{kind} late by {late} ms"].mean for late in LATE]
            some = [(late, value) for late, value in zip(LATE, values, strict=True) if value >= 1]
            axes.plot(
                [late for late, _ in some],
                [value for _, value in some],
                color=look.ink,
                linestyle=look.dashes,
                marker=look.mark,
                markersize=4,
                label=arm.arm,
            )
        if all(arm.figures[f"{kind} late by {LATE[0]} ms"].mean < 1 for arm in shown):
            # Matplotlib finds no ticks on a logarithmic axis of nothing.
            axes.set(xlim=(LATE[0], LATE[-1]), ylim=(1, 10))
        axes.set_yscale("log")
        _time_axis(axes, narrow=width == NARROW)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
        axes.grid(axis="y")
        axes.set_xlabel("later than")
        axes.set_ylabel("records")
        put_legend(axes, 2 if width == NARROW else 5)

    what = "acknowledged" if kind == "produce" else "consumed"
    return draw(f"Records that were {what} late, by how much and by arm", into)


def percentiles(arms: Sequence[ArmFigures], names: Sequence[tuple[str, str]], alt: str) -> Drawing:
    """Figures of each arm on a line. ``names``: of the figures, and how they are labelled."""
    shown = [*arms][:MOST_ARMS]
    marks = ("|", "o", "s", "D")
    inks = (Ink.TEXT, Ink.WITH, Ink.OTHER, Ink.WITHOUT)

    def into(figure: Figure, width: int) -> None:
        set_height(figure, 34 * len(shown) + 90)
        axes = figure.subplots()
        for (name, label), mark, ink in zip(names, marks, inks, strict=True):
            values = [arm.figures[name] for arm in shown]
            places = range(len(shown))
            axes.plot(
                [max(value.mean, 0.1) for value in values],
                places,
                linestyle="none",
                marker=mark,
                color=ink,
                label=label,
                markersize=7,
            )
            axes.hlines(
                places,
                [max(value.low, 0.1) for value in values],
                [max(value.high, 0.1) for value in values],
                color=ink,
                linewidth=1,
            )
        _time_axis(axes, narrow=width == NARROW)
        label_length = _NARROW_LABEL if width == NARROW else _LABEL
        axes.set_yticks(range(len(shown)), [shorten(arm.arm, label_length) for arm in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(axis="x")
        put_legend(axes, 2 if width == NARROW else 4)

    return draw(alt, into)


def _time_axis(axes: Axes, *, narrow: bool) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if narrow else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: milliseconds(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
