"""Page: a forecast as one HTML document that needs nothing besides itself."""

from functools import cache
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from leader_hints_report.report.drawing import Drawing
from leader_hints_report.simulation.document import (
    BUSIEST,
    BY_BROKER,
    TABLES,
    Forecast,
    busiest,
    by_broker,
    show,
    summary,
)
from leader_hints_report.simulation.plots import MOST_ARMS, late_records, percentiles

_LATENCIES: Final = ("p50", "p99", "p99.9", "p99.99")
_STALLS: Final = ("p50", "p90", "p99", "max")


class _Section(NamedTuple):
    title: str
    words: str
    drawing: Drawing


class _Table(NamedTuple):
    title: str
    heads: tuple[str, ...]
    rows: list[list[str]]


def render(forecast: Forecast) -> str:
    """Return the page of a forecast."""
    arms = forecast.arms
    shown = f" Figures are of the first {MOST_ARMS} of {len(arms)} arms; tables have all."
    left_out = shown if len(arms) > MOST_ARMS else ""
    sections = [
        _Section(
            "Records that are late",
            "How many records of the event were acknowledged later than the time below. Both axes "
            "are logarithmic; arms with a changed setting are in the tables.",
            late_records(arms, "produce"),
        ),
        _Section(
            "Latency until a record is acknowledged",
            "Percentiles over all records of the event, those without a stall included. A line "
            f"through a mark is the 95 % interval over seeds.{left_out}",
            percentiles(
                arms,
                [(f"produce {name} ms", name) for name in _LATENCIES],
                "Percentiles of the produce latency by arm",
            ),
        ),
        _Section(
            "Latency until a record is consumed",
            "The same from when it was sent until all groups of consumers had it.",
            percentiles(
                arms,
                [(f"e2e {name} ms", name) for name in _LATENCIES],
                "Percentiles of the end-to-end latency by arm",
            ),
        ),
        _Section(
            "Stalls of producers",
            "One for each client and partition that met a move: from its first refused record "
            "until the next leader served it.",
            percentiles(
                arms,
                [(f"produce stall {name} ms", name) for name in _STALLS],
                "Percentiles of the producers' stalls by arm",
            ),
        ),
    ]
    return _template().render(
        summary=summary(forecast.fleet),
        seeds=len(forecast.seeds),
        notes=forecast.notes,
        sections=sections,
        tables=[
            *(_table(forecast, title, columns) for title, columns in TABLES),
            _Table(*BUSIEST, busiest(arms)),
            _Table(*BY_BROKER, by_broker(arms)),
        ],
    )


def _table(forecast: Forecast, title: str, columns: tuple[tuple[str, str], ...]) -> _Table:
    rows = [[arm.arm, *(show(arm.figures[name]) for name, _ in columns)] for arm in forecast.arms]
    return _Table(title, ("arm", *(short for _, short in columns)), rows)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("leader_hints_report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("simulation/page.html.jinja")
