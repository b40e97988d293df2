"""Page: one HTML document that needs nothing besides itself: no script, no font, no link to follow.

All text goes through Jinja's autoescape; what control characters a name has is shown as escapes.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from leader_hints_report.kip951.document import Document, text_tables
from leader_hints_report.kip951.published import published
from leader_hints_report.report import figures, listings
from leader_hints_report.report.advice import advise
from leader_hints_report.report.drawing import Drawing
from leader_hints_report.report.format import count, milliseconds, show
from leader_hints_report.report.listings import Kind, Listing, Numbers, Row

#: Rows of a listing that the page has. JSON and CSV have all.
_MOST_ROWS: Final = 50


class _Section(NamedTuple):
    """A figure, if there is one, with what it means, and the listings it is made of."""

    title: str
    words: str
    draw: figures.DrawNumbers | None
    listings: tuple[Listing, ...]


_SECTIONS: Final = (
    _Section(
        "How long clients were without their leader",
        "A recovery is the time from a client's first error for a partition to its first success "
        "there, at any broker. Each line shows which share of the recoveries took at most the "
        "time below it: further left is better. The first error decides whether a recovery counts "
        "as one with a hint. Clients with hints and clients without are often different programs, "
        "and where a new leader is not known soon there is no hint, so the difference is not what "
        "hints save; the table by client version estimates that. Episodes without a seen success "
        "are not included.",
        figures.recovery_curves,
        (listings.RECOVERY,),
    ),
    _Section(
        "Day by day",
        "The time that clients lost on each day, by what came of the first error. Only observed: "
        "the sidecar would have given a hint. Missed: the client could have used one, and there "
        "was none in time. Could take none: its software uses none. Days without a bar had no "
        "errors or no journals.",
        figures.day_trend,
        (listings.DAYS,),
    ),
    _Section(
        "Days and hours",
        "The time that clients lost in each hour of each day, in UTC. The classes fit what is "
        "there: they begin at the least and end at the largest.",
        figures.hour_heat,
        (listings.HOURS,),
    ),
    _Section(
        "Incidents",
        "Leader moves of a cluster with less than five minutes between them are one incident. A "
        "mark shows its first move, and a line ends at its last. Rules classify an incident by its "
        "moves alone; the last column names the rule. Time lost is the sum over all clients, "
        "of those without a seen success up to their last error. Each incident opens to the "
        "topics, clients and brokers that lost the most in it.",
        figures.incident_timeline,
        (listings.INCIDENTS,),
    ),
    _Section(
        "Brokers and hours",
        "The time that clients lost through errors of a broker, by the hour of the day in UTC, "
        "summed over all days. A broker that stands out at one hour points to a job that moves "
        "leaders then; one that stands out all day may be unhealthy. Brokers without lost time are "
        "left out.",
        figures.broker_heat,
        (listings.BROKER_HOURS,),
    ),
    _Section(
        "Which clients get hints",
        "The share of each client version's errors that had a hint. Missed: the client could have "
        "used one, and there was none in time. Could take none: its software uses none. Observed: "
        "the sidecar was in mode observe, and would have given one. Versions that are not known "
        "to use hints never show any, since sidecars raise no versions for them: they are what an "
        "upgrade of clients could gain. Saved is an estimate: recoveries after a hint are "
        "compared with those that would have begun with one, in mode observe, of the same "
        "version, API and cluster. Others without a hint are no comparison: most of them had slow "
        "elections. Nothing is estimated without 20 of both, from ten different times.",
        figures.hint_coverage,
        (listings.COVERAGE, listings.MISSES),
    ),
    _Section(
        "Errors that wait for settled Metadata",
        "With the setting hold.settle an error that carries no hint waits until all brokers name "
        "the new leader, so that the client's next Metadata is fresh. By what came of the first "
        "error of each recovery.",
        None,
        (listings.SETTLED,),
    ),
    _Section(
        "Client software",
        "What a day costs the clients of each software and version. Raised: sidecars with hints on "
        "offer it the versions that have them, since it is known to use them. Would save "
        "is the forecast for turning hints on where they are only observed; upgrade saves "
        "estimates the same for clients whose software uses no hints, by other clients of the "
        "same cluster. Both are explained in docs/report.md.",
        None,
        (listings.SOFTWARE, listings.COST, listings.BEFORE_AFTER),
    ),
    _Section(
        "Clients that cannot use hints",
        "Ranked by the time that they lost: upgrade the first ones first. The sidecars' setting "
        "clients is for those that use hints under a name of their own.",
        None,
        (listings.CLIENTS,),
    ),
    _Section("Topics", "Ranked by the time that their clients lost.", None, (listings.TOPICS,)),
    _Section(
        "Bytes between racks",
        "What consumers read that name their rack (client.rack), in sidecars with the setting "
        "closest_replica. What crosses comes from a broker in another rack, which clouds bill. "
        "Avoidable was only observed: a replica in the consumer's rack had it, too. Prices are "
        "those of --price-per-gb. Other consumers, producers and replicas cross, too, and are not "
        "counted.",
        None,
        (listings.RACKS_A_DAY, listings.RACKS),
    ),
    _Section(
        "Latencies beside the moves",
        "Ordinary exchanges that the sidecars sampled, by day. Percentiles of several days cannot "
        "be combined.",
        None,
        (listings.LATENCIES,),
    ),
    _Section(
        "Ready for Kafka 4?",
        "What becomes of clients when their brokers are upgraded. Brokers of 4.0 and newer refuse "
        "the oldest versions of 18 requests (KIP-896); those of 3.7 to 3.9 refuse none. A row has "
        "the clients of one software that ask the same. Seen in part: they have neither written "
        "nor read yet; or are in a group, or ask for its offsets, and have committed none, so what "
        "is refused may come yet. Hints: from which version on the software uses them, for "
        "upgrades of clients. Clients that a sidecar does not read are missing: "
        "docs/deploy/kafka-4.md lists them.",
        figures.readiness_bars,
        (listings.READINESS,),
    ),
    _Section(
        "Whether the figures can be trusted",
        "Sidecars' clocks are compared by errors and the successes after them, and by the moves "
        "that several of them saw. Journals are checked "
        "for missing event numbers. If a journal does not report why numbers are missing, a "
        "process was killed or a file was not collected.",
        None,
        (listings.CLUSTERS, listings.SKEW, listings.JOURNALS, listings.QUARANTINE),
    ),
)


def make_page(numbers: Numbers, kip951: Document) -> str:
    """Write the page. ``kip951``: the published tables, and perhaps own ones beside them."""
    return _template().render(
        empty=numbers.empty,
        span=_span(numbers),
        asked=_asked(numbers),
        advice=advise(numbers),
        tiles=_tiles(numbers),
        sections=[_shown(section, numbers) for section in _SECTIONS],
        kip=kip951,
        kip_title=published().title,
        kip_tables=[
            _ShownTable(
                table.title,
                tuple((head, "", number > 0) for number, head in enumerate(table.head)),
                table.rows,
                table.words,
            )
            for table in text_tables(kip951)
        ],
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("leader_hints_report.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


class _ShownTable(NamedTuple):
    title: str
    heads: tuple[tuple[str, str, bool], ...]  # Head, meaning, whether it is right-aligned.
    rows: list[list[str]]
    note: str


class _Opened(NamedTuple):
    """One incident: what it was, which brokers, and what lost the most in it."""

    title: str
    brokers: str
    tables: list[_ShownTable]


class _ShownSection(NamedTuple):
    title: str
    words: str
    drawing: Drawing | None
    opened: list[_Opened]
    tables: list[_ShownTable]


def _shown(section: _Section, numbers: Numbers) -> _ShownSection:
    drawing = section.draw(numbers) if section.draw is not None else None
    opened = list(_opened(numbers)) if listings.INCIDENTS in section.listings else []
    tables = [_table(listing, numbers) for listing in section.listings]
    return _ShownSection(section.title, section.words, drawing, opened, tables)


def _opened(numbers: Numbers) -> Iterator[_Opened]:
    """The incidents that have parts, those that cost most first."""
    parts: dict[tuple[object, object], dict[str, list[Row]]] = {}
    for row in numbers.rows(listings.INCIDENT_PARTS):
        found = parts.setdefault((row["cluster"], row["began"]), {})
        found.setdefault(str(row["part"]), []).append(row)
    columns = {column.name: column for column in listings.INCIDENT_PARTS.columns}
    shown = [columns[name] for name in ("name", "episodes", "errors", "lost_ms")]
    for row in numbers.rows(listings.INCIDENTS)[: listings.MOST_OPENED]:
        of = parts.get((row["cluster"], row["began"]))
        if of is None:
            continue
        began = show(Kind.TIME, row["began"])[:16]
        cost = (
            f"{show(Kind.TEXT, row['kind'])}, {show(Kind.SECONDS, row['seconds'])}, "
            f"{show(Kind.COUNT, row['errors'])} errors, {show(Kind.MS, row['lost_ms'])} lost"
        )
        left, joined = row["brokers_left"], row["brokers_joined"]
        brokers = f"Leaders left brokers {left} and came to {joined}." if left and joined else ""
        yield _Opened(
            f"{began} {show(Kind.TEXT, row['cluster'])}: {cost}",
            show(Kind.TEXT, brokers),
            [
                _ShownTable(
                    part,
                    ((part, "", False), *((c.head, "", True) for c in shown[1:])),
                    [[show(c.kind, one[c.name]) for c in shown] for one in of[part]],
                    "",
                )
                for part in ("topic", "client", "broker")
                if part in of
            ],
        )


def _table(listing: Listing, numbers: Numbers) -> _ShownTable:
    rows = numbers.rows(listing)
    note = ""
    if len(rows) > _MOST_ROWS:
        note = f"{_MOST_ROWS} of {count(len(rows))} rows; the JSON and CSV files have all of these."
    if listing.name in numbers.listings and numbers.listings[listing.name].more:
        note += " The pipeline's tables have more."
    return _ShownTable(
        listing.title,
        tuple((c.head, c.meaning, c.kind not in _LEFT) for c in listing.shown),
        [[show(c.kind, row[c.name]) for c in listing.shown] for row in rows[:_MOST_ROWS]],
        note.strip(),
    )


_LEFT: Final = (Kind.TEXT, Kind.DAY, Kind.TIME, Kind.YES)


def _span(numbers: Numbers) -> tuple[str, str] | None:
    """The first and the last day."""
    rows = [row for row in numbers.rows(listings.CLUSTERS) if row["first_day"] is not None]
    if not rows:
        return None
    return min(str(row["first_day"]) for row in rows), max(str(row["last_day"]) for row in rows)


def _asked(numbers: Numbers) -> str:
    """Which days were asked for; empty: all."""
    words = [
        f"{word} {day}"
        for word, day in (("from", numbers.first_day), ("to", numbers.last_day))
        if day is not None
    ]
    return " ".join(words)


def _tiles(numbers: Numbers) -> list[tuple[str, str]]:
    """The few figures that come first."""
    clusters = numbers.rows(listings.CLUSTERS)
    errors = _sum(clusters, "errors")
    hints = _sum(clusters, "hints")
    return [
        ("clusters", count(len(clusters))),
        ("leader moves", count(_sum(clusters, "moved"))),
        ("incidents", count(len(numbers.rows(listings.INCIDENTS)))),
        ("errors of clients", count(errors)),
        ("of these with a hint", f"{100 * hints / errors:.1f} %" if errors else "none"),
        ("time lost by clients", milliseconds(_sum(clusters, "lost_ms"))),
        ("saved by hints, estimate", _saved(numbers.rows(listings.COVERAGE))),
        ("clients that Kafka 4 refuses", _refused(numbers.rows(listings.READINESS))),
    ]


def _saved(rows: Sequence[Row]) -> str:
    """What all client versions saved. What moves leaders may delay all versions together, so the
    ends of their intervals add up, and not their squares."""
    known = [row for row in rows if row["saved_ms"] is not None]
    if not known:
        return "not known"
    saved, low, high = (
        milliseconds(_sum(known, name)) for name in ("saved_ms", "saved_low_ms", "saved_high_ms")
    )
    return f"{saved} ({low} to {high})"


def _refused(rows: Sequence[Row]) -> str:
    """How many clients will be refused, of how many."""
    if not rows:
        return "not known"
    refused = [row for row in rows if row["verdict"] == listings.VERDICTS[0]]
    return f"{count(_sum(refused, 'clients'))} of {count(_sum(rows, 'clients'))}"


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum(float(row[name] or 0) for row in rows)
