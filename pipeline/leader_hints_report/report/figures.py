"""Figures: what is drawn of the listings."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
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

#: Percentiles that are marked in curves.
_MARKED: Final = (50, 99)
_MARK: Final = {Ink.WITH: "o", Ink.WITHOUT: "s"}
#: Draws one figure; nothing where there is nothing to be drawn.
DrawNumbers = Callable[[Numbers], Drawing | None]

#: Lines, bars and rows that one figure has at most.
_MOST_CLUSTERS: Final = 12
_MOST_BROKERS: Final = 30
_MOST_CLIENTS: Final = 20
_MOST_HEAT_DAYS: Final = 31
_MOST_TREND_DAYS: Final = 60
_MOST_TICKS: Final = 6
#: Narrower parts of a bar have no number, percent.
_LEAST_LABELLED: Final = 8
#: Times that people read easily, milliseconds.
_ROUND_MS: Final = (
    *(step * 10.0**power for power in range(-1, 4) for step in (1, 2, 5)),
    *(1000.0 * step for step in (10, 20, 30)),
    *(60_000.0 * step for step in (1, 2, 5, 10, 20, 30)),
    *(3_600_000.0 * step for step in (1, 2, 5, 12)),
    *(86_400_000.0 * step * 10**power for power in range(4) for step in (1, 2, 5)),
)
#: What may come of an error: label, colour, hatch, name.
_OUTCOMES: Final = (
    ("with a hint", Ink.WITH, "", "hinted"),
    ("only observed", Ink.OTHER, "///", "observed"),
    ("missed", Ink.WITHOUT, "\\\\", "missed"),
    ("could take none", Ink.NOTHING, "", "cannot"),
)

_KINDS: Final = {
    "roll": ("o", Ink.WITH),
    "reassignment": ("s", Ink.OTHER),
    "failure": ("X", Ink.WITHOUT),
    "other": ("D", Ink.TEXT),
}
_VERDICTS: Final = dict(
    zip(
        listings.VERDICTS,
        ((Ink.WITHOUT, "\\\\"), (Ink.OTHER, "///"), (Ink.WITH, "")),
        strict=True,
    )
)
#: Of bars: label, colour, hatch, and the share of each bar in percent.
_Part = tuple[str, Ink, str, Sequence[float]]
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
            _mark(axes, times, ink)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: milliseconds(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)


def _mark(axes: Axes, times: Sequence[float], ink: Ink) -> None:
    """Mark the median and the 99th percentile, and say what they are."""
    for percent in _MARKED:
        if len(times) <= percent:
            continue
        axes.plot(times[percent], percent, _MARK[ink], color=ink, markersize=6)
        axes.annotate(
            f"p{percent} {milliseconds(times[percent])}",
            (times[percent], percent),
            xytext=(6 if ink is Ink.WITHOUT else -6, -4 if percent == _MARKED[0] else -9),
            textcoords="offset points",
            ha="left" if ink is Ink.WITHOUT else "right",
            fontsize=10,
            color=Ink.TEXT,
        )


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
    several = len({broker.cluster for broker in brokers}) > 1
    numbered = {broker: number for number, broker in enumerate(brokers)}
    cells = {
        (numbered[broker], hour): value
        for (broker, hour), value in lost.items()
        if broker in numbered
    }

    def name(number: int, letters: int) -> str:
        broker = brokers[number]
        if several:
            return f"{shorten(broker.cluster, letters)} / {broker.node}"
        return f"broker {broker.node}"

    alt = "Time that clients lost, by broker and hour of the day."
    return _heat(alt, cells, len(brokers), name)


def hour_heat(numbers: Numbers) -> Drawing | None:
    """What errors cost in each hour of each day; the last days."""
    rows = numbers.rows(listings.HOURS)
    lost = {
        (str(row["day"]), int(_number(row["hour"]))): value
        for row in rows
        if (value := _number(row["lost_ms"])) > 0
    }
    if not lost:
        return None
    last = max(date.fromisoformat(day) for day, _ in lost)
    first = min(date.fromisoformat(day) for day, _ in lost)
    shown = min((last - first).days + 1, _MOST_HEAT_DAYS)
    days = [(last - timedelta(days=shown - 1 - number)).isoformat() for number in range(shown)]
    numbered = {day: number for number, day in enumerate(days)}
    cells = {(numbered[day], hour): value for (day, hour), value in lost.items() if day in numbered}
    alt = "Time that clients lost, by day and hour."
    return _heat(alt, cells, len(days), lambda number, _: days[number][5:])


def _heat(
    alt: str,
    cells: dict[tuple[int, int], float],
    lines: int,
    name: Callable[[int, int], str],
) -> Drawing:
    """A line for each of something, a column for each hour. ``cells``: by line and hour; ``name``:
    of a line, and how many letters there are for it."""
    bounds = _bounds(list(cells.values()))
    inks = HEAT[-len(bounds) - 1 :]

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        set_height(figure, 120 + 18 * lines)
        axes = figure.subplots()
        for step, ink in enumerate(inks):
            paths = [
                _cell(hour, line)
                for (line, hour), value in cells.items()
                if sum(value > bound for bound in bounds) == step
            ]
            if paths:
                path = Path.make_compound_path(*paths)
                axes.add_patch(PathPatch(path, facecolor=ink, edgecolor=Ink.FAINT, linewidth=0.5))
        axes.set_xlim(-0.5, 23.5)
        axes.set_ylim(lines - 0.5, -0.5)
        axes.set_xticks(range(0, 24, 4 if narrow else 2))
        letters = 7 if narrow else 24
        axes.set_yticks(range(lines), [name(line, letters) for line in range(lines)])
        axes.set_xlabel("hour of the day, UTC")
        axes.legend(
            handles=[
                Patch(color=ink, label=label)
                for ink, label in zip(inks, _bound_names(bounds), strict=True)
            ],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=3 if narrow else 5,
            borderaxespad=0.2,
            handlelength=1.2,
            columnspacing=1.0,
        )

    return draw(alt, into)


def _cell(column: int, row: int) -> Path:
    left, right, above, below = column - 0.46, column + 0.46, row - 0.46, row + 0.46
    corners = [(left, above), (right, above), (right, below), (left, below), (left, above)]
    return Path(corners, closed=True)


def _bounds(values: Sequence[float]) -> tuple[float, ...]:
    """Round times between the classes, in about equal ratios from the least value to the
    largest."""
    least, largest = min(values), max(values)
    wanted = (least * (largest / least) ** (number / len(HEAT)) for number in range(1, len(HEAT)))
    near = (min(_ROUND_MS, key=lambda one: abs(math.log(one / bound))) for bound in wanted)
    return tuple(sorted(set(near)))


def _bound_names(bounds: Sequence[float]) -> list[str]:
    names = [f"to {milliseconds(bound)}" for bound in bounds]
    return [*names, f"above {milliseconds(bounds[-1])}"]


def day_trend(numbers: Numbers) -> Drawing | None:
    """What each of the last days cost, by what came of the errors."""
    rows = [row for row in numbers.rows(listings.DAYS) if row["day"] is not None]
    if not any(_number(row["lost_ms"]) for row in rows):
        return None
    by_day = {str(row["day"]): row for row in rows}
    last = date.fromisoformat(max(by_day))
    first = date.fromisoformat(min(by_day))

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        most = _MOST_TREND_DAYS // (3 if narrow else 1)
        shown = min((last - first).days + 1, most)
        days = [(last - timedelta(days=shown - 1 - number)).isoformat() for number in range(shown)]
        set_height(figure, 260)
        axes = figure.subplots()
        below = [0.0] * shown
        for label, ink, hatch, name in _OUTCOMES:
            values = [_number(by_day.get(day, {}).get(f"{name}_ms")) for day in days]
            axes.bar(
                range(shown),
                values,
                bottom=below,
                width=0.8,
                color=ink,
                hatch=hatch,
                edgecolor=Ink.TEXT,
                linewidth=0.4,
                label=label,
            )
            below = [done + value for done, value in zip(below, values, strict=True)]
        if shown <= (5 if narrow else 14):
            for number, total in enumerate(below):
                if not total:
                    continue
                axes.text(number, total, milliseconds(total), ha="center", va="bottom")
        step = max(1, math.ceil(shown / (4 if narrow else 12)))
        axes.set_xticks(range(0, shown, step), [day[5:] for day in days[::step]])
        _time_ticks(axes, max(below))
        axes.margins(y=0.12)
        axes.set_ylabel("time lost")
        _put_legend(figure, axes, columns=2 if narrow else 4)

    return draw("Time that clients lost on each day, by what came of their errors.", into)


def _time_ticks(axes: Axes, most: float) -> None:
    """Put ticks at times that people read easily, up to ``most`` milliseconds."""
    step = next((one for one in _ROUND_MS if most / one <= _MOST_TICKS), _ROUND_MS[-1])
    ticks = [step * number for number in range(math.floor(most / step) + 1)]
    axes.set_yticks(ticks, [milliseconds(tick) for tick in ticks])


def _put_legend(figure: Figure, axes: Axes, *, columns: int) -> None:
    """Put the legend of ``axes`` above the figure."""
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper left",
        ncols=columns,
        handlelength=1.4,
        columnspacing=1.0,
    )


def hint_coverage(numbers: Numbers) -> Drawing | None:
    """Which share of the errors of each client version had a hint."""
    rows = [row for row in numbers.rows(listings.COVERAGE) if _number(row["errors"])]
    if not rows:
        return None
    rows = rows[:_MOST_CLIENTS]
    parts = [
        (label, ink, hatch, [_share(row, name) for row in rows])
        for label, ink, hatch, name in _OUTCOMES
    ]
    alt = "Share of errors with a hint, by client version and API."
    return _bars(alt, "share of errors, %", [_client(row) for row in rows], parts)


def readiness_bars(numbers: Numbers) -> Drawing | None:
    """What becomes of the clients of each software version at Kafka 4; that of which the most are
    refused comes first."""
    clients: dict[str, Counter[str]] = {}
    for row in numbers.rows(listings.READINESS):
        counted = clients.setdefault(_software(row), Counter())
        counted[str(row["verdict"])] += int(_number(row["clients"]))
    if not clients:
        return None
    refused, in_part = listings.VERDICTS[:2]
    order = sorted(clients, key=lambda of: (-clients[of][refused], -clients[of][in_part], of))
    order = order[:_MOST_CLIENTS]
    parts = [
        (label, *_VERDICTS[label], [100 * clients[of][label] / clients[of].total() for of in order])
        for label in listings.VERDICTS
    ]
    totals = [clients[of].total() for of in order]
    names = [
        f"{of} ({total:,} client{'' if total == 1 else 's'})"
        for of, total in zip(order, totals, strict=True)
    ]
    alt = "Share of clients that brokers of Kafka 4 refuse, by client version."
    return _bars(alt, "share of clients, %", names, parts)


def _bars(alt: str, label: str, names: Sequence[str], parts: Sequence[_Part]) -> Drawing:
    """A bar for each name, of parts that make up 100 percent."""

    def into(figure: Figure, width: int) -> None:
        narrow = width == NARROW
        set_height(figure, 90 + (38 if narrow else 24) * len(names))
        height = 0.44 if narrow else 0.72
        axes = figure.subplots()
        begin = [0.0] * len(names)
        for part, ink, hatch, shares in parts:
            axes.barh(
                range(len(names)),
                shares,
                left=begin,
                height=height,
                color=ink,
                hatch=hatch,
                edgecolor=Ink.TEXT,
                linewidth=0.4,
                label=part,
            )
            for number, (share, left) in enumerate(zip(shares, begin, strict=True)):
                if share >= _LEAST_LABELLED * (2 if narrow else 1):
                    _put_number(axes, left + share / 2, number, f"{share:.0f} %")
            begin = [done + share for done, share in zip(begin, shares, strict=True)]
        shown = [shorten(name, 50 if narrow else 56) for name in names]
        if narrow:
            # Beside the bars there is no room for names; above them there is.
            for number, name in enumerate(shown):
                axes.text(0, number - height / 2 - 0.03, name, va="bottom")
            axes.set_yticks([])
        else:
            axes.set_yticks(range(len(shown)), shown)
        axes.set_ylim(len(shown) - 0.4, -0.8 if narrow else -0.6)
        axes.set_xlim(0, 100)
        axes.set_xlabel(label)
        _put_legend(figure, axes, columns=2 if narrow else 4)

    return draw(alt, into)


def _share(row: Row, name: str) -> float:
    """Which share of the errors had this outcome, percent. A few of those that could take none had
    one all the same, where a later error of an episode did."""
    errors = _number(row["errors"])
    parts = {"hinted": _number(row["given"]), "observed": _number(row["would_give"])}
    rest = max(errors - sum(parts.values()), 0.0)
    parts["cannot"] = min(_number(row["cannot"]), rest)
    parts["missed"] = rest - parts["cannot"]
    return 100 * parts[name] / errors


def _put_number(axes: Axes, x: float, y: float, number: str) -> None:
    """Put a number on a bar, on a patch of the page's own colour: it is read on any hatch."""
    patch = {"boxstyle": "round,pad=0.15", "facecolor": Ink.NOTHING, "edgecolor": "none"}
    axes.text(x, y, number, ha="center", va="center", fontsize=10, bbox=patch)


def _client(row: Row) -> str:
    return f"{row['api']} {_software(row)}"


def _software(row: Row) -> str:
    return f"{row['software']} {row['software_version']}".strip() or "no name"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _time(value: object) -> float:
    """A time as matplotlib counts it: days since 1970."""
    return float(dates.date2num(datetime.fromisoformat(str(value))))
