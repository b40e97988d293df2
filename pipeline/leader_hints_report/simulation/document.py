"""The document of `simulate`: all figures with what they were made from, as JSON and as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.simulation.clients import Rules, all_rules
from leader_hints_report.simulation.figures import ArmFigures, Interval
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.parameters import Parameters

#: The figures of the printed tables: title, and the figures' names with short ones.
TABLES: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "Latency until acknowledged, ms",
        tuple((f"produce p{p} ms", f"p{p}") for p in ("50", "99", "99.9", "99.99")),
    ),
    (
        "Latency until consumed, ms",
        tuple((f"e2e p{p} ms", f"p{p}") for p in ("50", "99", "99.9", "99.99")),
    ),
    (
        "Stalls of producers, one for each client and partition",
        (
            ("stalls", "stalls"),
            ("produce stall p50 ms", "p50 ms"),
            ("produce stall p99 ms", "p99 ms"),
            ("produce stall max ms", "max ms"),
            ("stalled s", "sum, s"),
        ),
    ),
    (
        "Records and requests",
        (
            ("produce late by 100 ms", "late by 100 ms"),
            ("produce late by 1000 ms", "by 1 s"),
            ("errors", "errors"),
            ("hinted errors", "hinted"),
            ("Metadata requests", "Metadata"),
            ("Metadata requests of proxies", "of proxies"),
            ("ListOffsets requests", "ListOffsets"),
        ),
    ),
    (
        "Load by broker, requests a second: busiest second of any broker, of the median broker, "
        "and over the event",
        (
            ("Metadata peak a second", "Metadata, busiest"),
            ("Metadata peak a second, median broker", "median"),
            ("Metadata mean a second", "mean"),
            ("Metadata polls a second", "polls in that"),
            ("ListOffsets peak a second", "ListOffsets, busiest"),
            ("ListOffsets peak a second, median broker", "median"),
            ("ListOffsets mean a second", "mean"),
        ),
    ),
)
#: Title and heads of the table of busiest seconds.
BUSIEST: Final = (
    "The busiest second of any broker",
    ("arm", "requests", "broker", "begins at, s", "in that second", "seed"),
)
#: Title and heads of the table of brokers, and of how many: those with the highest peaks.
BY_BROKER: Final = (
    "The busiest brokers, requests a second",
    ("arm", "requests", "broker", "peak", "begins at, s", "clients", "questions", "polls"),
)
_MOST_BROKERS: Final = 10


class Forecast(BaseModel):
    """What `simulate --json` writes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(description="Version of this format.")
    fleet: Fleet = Field(description="What was simulated.")
    seeds: list[int] = Field(description="The seeds of each arm.")
    arms: list[ArmFigures] = Field(description="The arms in order.")
    notes: list[str] = Field(description="What a reader is to know of it.")


def summary(fleet: Fleet) -> str:
    """Say in a line what is simulated."""
    partitions = sum(topic.partitions * topic.count for topic in fleet.topics)
    topics = {topic.name: topic.count for topic in fleet.topics}
    counts = {"producer": 0, "consumer": 0}
    for clients in fleet.clients:
        named = {*clients.topics} or {*topics}
        counts[clients.role] += clients.count * sum(topics[name] for name in named)
    return (
        f"{fleet.event.kind.replace('_', ' ')} of {fleet.cluster.brokers} brokers "
        f"({fleet.cluster.version}, {fleet.cluster.mode}), {partitions} partitions, "
        f"{counts['producer']} producers, {counts['consumer']} consumers"
    )


def markdown(forecast: Forecast) -> str:
    """Return the tables for a terminal or a page."""
    seeds = len(forecast.seeds)
    of = f"{seeds} seeds; in brackets the mean's 95 % interval" if seeds > 1 else "one seed"
    parts = [f"{summary(forecast.fleet)}; {of}."]
    for title, columns in TABLES:
        parts.append(f"{title}:\n\n{_table(forecast.arms, columns)}")
    parts.append(f"{BUSIEST[0]}:\n\n{_text([[*BUSIEST[1]], *busiest(forecast.arms)])}")
    return "\n\n".join([*parts, *forecast.notes])


def _table(arms: Sequence[ArmFigures], columns: Sequence[tuple[str, str]]) -> str:
    rows = [["arm", *(short for _, short in columns)]]
    rows += [[arm.arm, *(show(arm.figures[name]) for name, _ in columns)] for arm in arms]
    return _text(rows)


def busiest(arms: Sequence[ArmFigures]) -> list[list[str]]:
    """Return the rows of the table of busiest seconds; an API that nobody used has none."""
    return [
        [
            arm.arm,
            load.api,
            f"{load.busiest.broker}",
            f"{load.busiest.begins_s:.0f}",
            number(load.busiest.requests),
            f"{load.busiest.seed}",
        ]
        for arm in arms
        for load in arm.load
        if load.busiest.requests
    ]


def by_broker(arms: Sequence[ArmFigures]) -> list[list[str]]:
    """Return the rows of the table of brokers: of each arm and API the busiest ones."""
    rows = []
    for arm in arms:
        for load in arm.load:
            order = sorted(range(len(load.peak)), key=lambda broker: -load.peak[broker])
            for broker in order[:_MOST_BROKERS] if load.busiest.requests else ():
                columns = (load.clients, load.questions, load.polls)
                means = [number(column[broker]) for column in columns]
                begins = f"{load.begins_s[broker]:.0f}"
                peak = number(load.peak[broker])
                rows.append([arm.arm, load.api, f"{broker}", peak, begins, *means])
    return rows


def _text(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    rule = "| " + " | ".join(
        "-" * width if not place else "-" * (width - 1) + ":" for place, width in enumerate(widths)
    )
    return "\n".join([lines[0], f"{rule} |", *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if not place else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return f"| {' | '.join(cells)} |"


def show(of: Interval) -> str:
    """Return a figure as text, with its interval where that can be seen."""
    low, middle, high = number(of.low), number(of.mean), number(of.high)
    return middle if low == high else f"{middle} ({low} to {high})"


def number(value: float) -> str:
    """Return a number with as many digits as it is worth."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def parameter_table() -> str:
    """Return the table of all parameters, for docs/simulation.md."""
    lines = [
        "| parameter | value | range | unit | meaning | source |",
        "|---|---:|---:|---|---|---|",
    ]
    for name, field in Parameters.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        lines.append(
            f"| `{name}` | {field.default:g} | {extra['low']:g} to {extra['high']:g} "
            f"| {extra['unit']} | {field.description} | {extra['source']} |"
        )
    return "\n".join(lines)


def client_table() -> str:
    """Return the table of what clients do, for docs/simulation.md."""
    lines = [
        "| client | from | uses hints of | producer tries again | asks for Metadata "
        "| consumer tries again | asks for Metadata | besides |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    for software, version, rules in all_rules():
        hints = (
            api
            for api, used in (("Produce", rules.produce_hints), ("Fetch", rules.fetch_hints))
            if used
        )
        again = f"{rules.fetch_backoff:g}" if rules.fetch_backoff else "with Metadata"
        lines.append(
            f"| {software} | {version or 'all'} | {', '.join(hints) or 'none'} "
            f"| {rules.backoff:g} | {rules.refresh:g} | {again} | {rules.fetch_refresh:g} "
            f"| {'; '.join(_besides(rules))} |"
        )
    return "\n".join(lines)


def _besides(rules: Rules) -> Iterator[str]:
    """Iterate over what a client does that most do not."""
    if rules.produce_hints and not rules.skips:
        yield "backs off with a hint, too"
    if rules.fresh_skips:
        yield "its producer tries again as soon as Metadata names another leader"
    if rules.grows:
        yield "each further refusal doubles the wait, up to 1 s (KIP-580)"
    if rules.backs_off_again:
        yield "each refused Fetch begins the wait again"
    if rules.asks_late:
        yield "its consumer asks for Metadata after its wait"
    if rules.idempotent:
        yield "its producers with acks=all are idempotent"
    if not rules.by_followers:
        yield "followers do not answer its Fetch"
