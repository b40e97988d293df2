"""Figures: what is drawn of the listings."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, NullFormatter

from leader_hints_report.report import listings
from leader_hints_report.report.drawing import (
    HEAT,
    NARROW,
    Drawing,
    Ink,
    draw,
    put_legend,
    set_height,
)
from leader_hints_report.report.format import milliseconds
from leader_hints_report.report.listings import Numbers, Row
from leader_hints_report.text import shorten

#: Draws one figure; nothing where there is nothing to be drawn.
DrawNumbers = Callable[[Numbers], Drawing | None]

#: Lines, bars and rows that one figure has at most.
_MOST_CLUSTERS: Final = 12
_MOST_BROKERS: Final = 30
_MOST_CLIENTS: Final = 20

_KINDS: Final = {
    "roll": ("o", Ink.WITH),
    "reassignment": ("s", Ink.OTHER),
    "failure": ("X", Ink.WITHOUT),
    "other": ("D", Ink.TEXT),
}
_HINTED: Final = {
    True: ("with a hint", Ink.WITH, "-"),
    False: ("without", Ink.WITHOUT, (0, (4, 2))),
}


def recovery_curves(numbers: Numbers) -> Drawing | None:
    """Which share of the recoveries took how long, with and without hints."""
    rows = numbers.rows(listings.CURVE)
    if not rows:
        return None
    apis = sorted({str(row["api"]) for row in rows})

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        set_height(figure, 230 * (len(apis) if narrow else 1) + 50)
        grid = (len(apis), 1) if narrow else (1, len(apis))
        all_axes = figure.subplots(*grid, squeeze=False, sharex=True, sharey=True).flat
        for api, axes in zip(apis, all_axes, strict=True):
            _curves(axes, [row for row in rows if row["api"] == api])
            axes.set_title(api, loc="right", fontsize=12)
            put_legend(axes, 2)
            axes.set_ylabel("share of recoveries, %")
        figure.supxlabel("from first error to first success", fontsize=11.5)

    return draw("Distribution of recovery times, with and without hints, by API.", into)


def _curves(axes: Axes, rows: Sequence[Row]) -> None:
    for hinted, (label, ink, dashes) in _HINTED.items():
        points = [
            (max(_number(row["recovery_ms"]), 0.1), _number(row["percent"]))
            for row in rows
            if row["hinted"] is hinted
        ]
        if points:
            times, percents = zip(*points, strict=True)
            axes.step(times, percents, where="post", label=label, color=ink, linestyle=dashes)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: milliseconds(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)


def incident_timeline(numbers: Numbers) -> Drawing | None:
    """When incidents were, in a line for each cluster."""
    rows = numbers.rows(listings.INCIDENTS)
    if not rows:
        return None
    clusters = list(dict.fromkeys(str(row["cluster"]) for row in rows))[:_MOST_CLUSTERS]
    heights = {cluster: -number for number, cluster in enumerate(clusters)}

    def into(figure: Figure, width: int) -> None:
        set_height(figure, 90 + 34 * len(clusters))
        axes = figure.subplots()
        for kind, (marker, ink) in _KINDS.items():
            shown = [row for row in rows if _kind(row) == kind and row["cluster"] in heights]
            if not shown:
                continue
            began = [_time(row["began"]) for row in shown]
            lines = [heights[str(row["cluster"])] for row in shown]
            ended = [
                start + _number(row["seconds"]) / 86400
                for start, row in zip(began, shown, strict=True)
            ]
            axes.hlines(lines, began, ended, colors=ink, linewidth=4)
            axes.plot(began, lines, marker, color=ink, markersize=8, linestyle="", label=kind)
        letters = 12 if width == NARROW else 30
        axes.set_yticks(list(heights.values()), [shorten(cluster, letters) for cluster in heights])
        axes.set_ylim(-len(clusters) + 0.4, 0.6)
        _time_axis(axes, 4 if width == NARROW else 8)
        axes.grid(visible=True, axis="x")
        put_legend(axes, 2 if width == NARROW else 4)

    return draw("Timeline of incidents by cluster and kind.", into)


def _kind(row: Row) -> str:
    """The kind of an incident; a pipeline of another version may know more."""
    return str(row["kind"]) if row["kind"] in _KINDS else "other"


def _time_axis(axes: Axes, ticks: int) -> None:
    locator = dates.AutoDateLocator(minticks=2, maxticks=ticks, tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))
    axes.margins(x=0.04)
    axes.set_xlabel("UTC")


class _Broker(NamedTuple):
    cluster: str
    node: int


def broker_heat(numbers: Numbers) -> Drawing | None:
    """What each broker's errors cost in each hour of the day."""
    rows = numbers.rows(listings.BROKER_HOURS)
    lost = {
        (_Broker(str(row["cluster"]), int(_number(row["node"]))), int(_number(row["hour"]))): value
        for row in rows
        if (value := _number(row["lost_ms"])) > 0
    }
    if not lost:
        return None
    # The rows come with what lost the most first, so these are the brokers that do.
    brokers = sorted(list(dict.fromkeys(broker for broker, _ in lost))[:_MOST_BROKERS])
    bounds = _bounds([value for (broker, _), value in lost.items() if broker in brokers])
    several = len({broker.cluster for broker in brokers}) > 1

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        set_height(figure, 120 + 18 * len(brokers))
        axes = figure.subplots()
        for step, ink in enumerate(HEAT):
            cells = [
                _cell(hour, brokers.index(broker))
                for (broker, hour), value in lost.items()
                if broker in brokers and sum(value > bound for bound in bounds) == step
            ]
            if cells:
                path = Path.make_compound_path(*cells)
                axes.add_patch(PathPatch(path, facecolor=ink, edgecolor=Ink.FAINT, linewidth=0.5))
        axes.set_xlim(-0.5, 23.5)
        axes.set_ylim(len(brokers) - 0.5, -0.5)
        axes.set_xticks(range(0, 24, 4 if narrow else 2))
        letters = 7 if narrow else 24
        axes.set_yticks(
            range(len(brokers)),
            [
                f"{shorten(broker.cluster, letters)} / {broker.node}"
                if several
                else f"broker {broker.node}"
                for broker in brokers
            ],
        )
        axes.set_xlabel("hour of the day, UTC")
        names = _bound_names(bounds)
        axes.legend(
            handles=[Patch(color=ink, label=name) for ink, name in zip(HEAT, names, strict=False)],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=3 if narrow else 5,
            borderaxespad=0.2,
            handlelength=1.2,
            columnspacing=1.0,
        )

    return draw("Time that clients lost, by broker and hour of the day.", into)


def _cell(column: int, row: int) -> Path:
    left, right, above, below = column - 0.46, column + 0.46, row - 0.46, row + 0.46
    corners = [(left, above), (right, above), (right, below), (left, below), (left, above)]
    return Path(corners, closed=True)


def _bounds(values: Sequence[float]) -> tuple[float, ...]:
    """Powers of ten between the classes; the last class has the largest value."""
    top = math.ceil(math.log10(max(values)))
    return tuple(10.0**power for power in range(top - len(HEAT) + 1, top))


def _bound_names(bounds: Sequence[float]) -> list[str]:
    names = [f"to {milliseconds(bound)}" for bound in bounds]
    return [*names, f"above {milliseconds(bounds[-1])}"]


def hint_coverage(numbers: Numbers) -> Drawing | None:
    """Which share of the errors of each client version had a hint."""
    rows = [row for row in numbers.rows(listings.COVERAGE) if _number(row["errors"])]
    if not rows:
        return None
    rows = rows[:_MOST_CLIENTS]

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        set_height(figure, 90 + (38 if narrow else 24) * len(rows))
        height = 0.44 if narrow else 0.72
        axes = figure.subplots()
        begin = [0.0] * len(rows)
        for label, ink, hatch, of in (
            ("hint given", Ink.WITH, "", "given"),
            ("only observed", Ink.OTHER, "///", "would_give"),
            ("none", Ink.NOTHING, "", None),
        ):
            shares = [
                100 * _number(row[of]) / _number(row["errors"]) if of else 100 - done
                for row, done in zip(rows, begin, strict=True)
            ]
            axes.barh(
                range(len(rows)),
                shares,
                left=begin,
                height=height,
                color=ink,
                hatch=hatch,
                edgecolor=Ink.TEXT,
                linewidth=0.4,
                label=label,
            )
            begin = [done + share for done, share in zip(begin, shares, strict=True)]
        names = [shorten(_client(row), 50 if narrow else 56) for row in rows]
        if narrow:
            # Beside the bars there is no room for names; above them there is.
            for number, name in enumerate(names):
                axes.text(0, number - height / 2 - 0.03, name, va="bottom")
            axes.set_yticks([])
        else:
            axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.8 if narrow else -0.6)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of errors, %")
        figure.legend(
            *axes.get_legend_handles_labels(),
            loc="outside upper left",
            ncols=3,
            handlelength=1.4,
            columnspacing=1.0,
        )

    return draw("Share of errors with a hint, by client version and API.", into)


def _client(row: Row) -> str:
    name = f"{row['software']} {row['software_version']}".strip() or "no name"
    return f"{row['api']} {name}"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _time(value: object) -> float:
    """A time as matplotlib counts it: days since 1970."""
    return float(dates.date2num(datetime.fromisoformat(str(value))))
