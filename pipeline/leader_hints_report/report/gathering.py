"""Gathering: the rows of the listings, from the pipeline's tables."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from leader_hints_report.errors import PipelineError
from leader_hints_report.report import listings
from leader_hints_report.report.costs import (
    KINDS,
    before_after,
    cost,
    days_with_journals,
    hourly,
    kind,
    lost,
    software,
    takes_none,
)
from leader_hints_report.report.listings import Kind, Listing, Numbers, Row, Rows, Value
from leader_hints_report.report.period import Period, Tables
from leader_hints_report.report.readiness import readiness
from leader_hints_report.report.savings import CLIENT_VERSION, saved
from leader_hints_report.report.upgrades import raised, upgrade_to
from leader_hints_report.report.zones import racks, racks_a_day
from leader_hints_report.store.folder import Store, require_folder
from leader_hints_report.tables import columns
from leader_hints_report.tables.hints import OBSERVED
from leader_hints_report.tables.incidents import members

#: Ranks are right within one in so many: as good as exact for a page, in bounded memory.
_ACCURACY: Final = 10_000

#: What Spark calls files that it cannot read.
_UNREADABLE: Final = "[FAILED_READ_FILE"
#: Of a millisecond: clocks tell no less.
_DIGITS: Final = 3

_GB: Final = 1e9
#: What is made of the other columns, without Spark.
_MADE: Final = ("upgrade_to", "raised", "crossing_price", "avoidable_price")

#: No bound.
_ALL_DAYS: Final = Period()

Gather = Callable[[Tables], DataFrame]


def gather(
    session: SparkSession,
    folder: str,
    on_step: Callable[[str], None],
    period: Period = _ALL_DAYS,
    price_per_gb: float | None = None,
) -> Numbers:
    """Make the rows of all listings; each costs one query.

    ``folder``: what `batch` or `stream` wrote. ``on_step``: is called with a word for each query.
    ``period``: the days that the report is about, and those that are compared. ``price_per_gb``: of
    a billion bytes between racks, ``None`` if it is not known.

    :raises PipelineError: there is no such folder, or a table cannot be read.
    """
    require_folder(session, folder)
    tables = Tables(Store(session, folder), period)
    try:
        found = _found(tables, on_step)
    except Py4JJavaError as error:
        if _UNREADABLE not in str(error):
            raise
        raise PipelineError(
            f"--tables {folder}: a file of a table cannot be read; is `leader-hints-report batch` "
            "at work? Else make the tables again with its --rebuild"
        ) from None
    name = listings.SOFTWARE.name
    found[name] = found[name].model_copy(update={"rows": _with_upgrades(found[name].rows)})
    for name in (listings.RACKS_A_DAY.name, listings.RACKS.name):
        rows = _with_prices(found[name].rows, price_per_gb)
        found[name] = found[name].model_copy(update={"rows": rows})
    first, last, change = (None if day is None else day.isoformat() for day in period)
    return Numbers(
        listings=found,
        first_day=first,
        last_day=last,
        change_day=change,
        price_per_gb=price_per_gb,
    )


def _found(tables: Tables, on_step: Callable[[str], None]) -> dict[str, Rows]:
    hours = hourly(tables).persist()
    of_hours = {listings.COST: cost, listings.SOFTWARE: software}
    found = {}
    try:
        for listing in listings.LISTINGS:
            on_step(listing.title)
            if listing is listings.BEFORE_AFTER and tables.period.change is None:
                found[listing.name] = Rows(rows=())
                continue
            if listing is listings.READINESS:
                found[listing.name] = readiness(tables)
                continue
            if listing in of_hours:
                frame = of_hours[listing](hours, tables)
            else:
                frame = _GATHERED[listing](tables)
            found[listing.name] = _rows(listing, frame)
    finally:
        hours.unpersist()
    return found


def _with_upgrades(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(
        row | _of_client(str(row["software"]), str(row["software_version"]), str(row["uses"] or ""))
        for row in rows
    )


def _of_client(name: str, version: str, uses: str) -> Row:
    is_raised = raised(uses)
    to = "" if is_raised == "yes" else upgrade_to(name, version)
    return {"raised": is_raised, "upgrade_to": to}


def _with_prices(rows: tuple[Row, ...], price_per_gb: float | None) -> tuple[Row, ...]:
    def price(size: Value) -> float | None:
        if price_per_gb is None or not isinstance(size, int | float):
            return None
        return round(size / _GB * price_per_gb, _DIGITS)

    return tuple(
        row | {f"{what}_price": price(row[f"{what}_bytes"]) for what in ("crossing", "avoidable")}
        for row in rows
    )


def _rows(listing: Listing, frame: DataFrame) -> Rows:
    kinds = {column.name: column.kind for column in listing.columns}
    names = [name for name in kinds if name not in _MADE]
    # As numbers, times do not depend on any time zone.
    instants = {name: F.unix_micros(name) for name in names if kinds[name] is Kind.TIME}
    found = frame.withColumns(instants).select(*names).limit(listing.most + 1).collect()
    rows: list[Row] = [
        {name: _value(kinds[name], value) for name, value in row.asDict().items()} for row in found
    ]
    return Rows(rows=tuple(rows[: listing.most]), more=len(rows) > listing.most)


def _value(kind: Kind, value: Any) -> Value:
    """A value as reports have it: times as text, numbers without noise. What is no number, as NaN,
    is absent: JSON has none."""
    if kind is Kind.TIME:
        return _rfc3339(value)
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return cast(Value, value)


def _rfc3339(micros: int) -> str:
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clusters(tables: Tables) -> DataFrame:
    moves = tables.table(columns.LEADER_MOVES.name)
    of_moves = moves.groupBy("cluster").agg(
        F.min("day").alias("first_day"),
        F.max("day").alias("last_day"),
        F.count("*").alias("epochs"),
        F.count_if("moved").alias("moved"),
        F.max("sidecars").alias("sidecars"),
        _percentile("apart_corrected_ms", 0.5).alias("apart_p50_ms"),
    )
    of_clients = tables.table(columns.RECOVERIES.name).groupBy("cluster").agg(*_costs())
    return of_moves.join(of_clients, "cluster", "full").orderBy(*_dearest("cluster"))


def _recovery(tables: Tables) -> DataFrame:
    recovery = F.col("recovery_ms")
    return (
        tables.table(columns.RECOVERIES.name)
        .groupBy("api", "hinted")
        .agg(
            *_costs(),
            F.count_if(recovery.isNull()).alias("unseen"),
            F.mean(recovery).alias("mean_ms"),
            *(
                _percentile("recovery_ms", share).alias(name)
                for name, share in (
                    ("p50_ms", 0.5),
                    ("p90_ms", 0.9),
                    ("p99_ms", 0.99),
                    ("p999_ms", 0.999),
                )
            ),
            F.max(recovery).alias("max_ms"),
        )
        .orderBy("api", "hinted")
    )


def _curve(tables: Tables) -> DataFrame:
    shares = [percent / 100 for percent in range(101)]
    curve = F.percentile_approx("recovery_ms", shares, _ACCURACY)
    return (
        tables.table(columns.RECOVERIES.name)
        .where(F.col("recovery_ms").isNotNull())
        .groupBy("api", "hinted")
        .agg(curve.alias("_curve"))
        .select("api", "hinted", F.posexplode("_curve").alias("percent", "recovery_ms"))
        .orderBy("api", "hinted", "percent")
    )


def _incidents(tables: Tables) -> DataFrame:
    return tables.table(columns.INCIDENTS.name).orderBy(*_dearest("began", "cluster"))


def _incident_parts(tables: Tables) -> DataFrame:
    """What lost the most time in each incident that the page has."""
    opened = (
        _incidents(tables)
        .limit(listings.MOST_OPENED)
        .select("cluster", "incident", "began", "ended")
    )
    name = F.trim(F.concat_ws(" ", "software", "software_version"))
    called = F.when(name != "", F.concat(F.lit(" ("), name, F.lit(")"))).otherwise("")
    parts = {
        "topic": F.col("topic"),
        "client": F.concat("client_id", called),
        "broker": F.col("node_from").cast("string"),
    }
    pairs = [F.struct(F.lit(part).alias("part"), of.alias("name")) for part, of in parts.items()]
    costs = (
        members(opened, tables.table(columns.RECOVERIES.name))
        .withColumn("of", F.explode(F.array(*pairs)))
        .groupBy("cluster", "incident", "of.part", "of.name")
        .agg(*_costs())
        .where(F.col("name").isNotNull())
    )
    dearest = Window.partitionBy("cluster", "incident", "part").orderBy(*_dearest("name"))
    return (
        costs.withColumn("rank", F.row_number().over(dearest))
        .where(F.col("rank") <= listings.MOST_PARTS)
        .join(F.broadcast(opened.select("incident", "cluster", "began")), ["cluster", "incident"])
        .orderBy("began", "cluster", F.desc("part"), "rank")
    )


def _days(tables: Tables) -> DataFrame:
    of_kind = {f"{name}_ms": F.sum(F.when(kind() == name, lost())) for name in KINDS}
    episodes = (
        tables.table(columns.RECOVERIES.name)
        .groupBy("day")
        .agg(*_costs(), *(total.alias(name) for name, total in of_kind.items()))
    )
    moves = (
        tables.table(columns.LEADER_MOVES.name)
        .groupBy("day")
        .agg(F.count_if("moved").alias("moved"))
    )
    found = tables.table(columns.INCIDENTS.name).groupBy("day").agg(F.count("*").alias("incidents"))
    days = days_with_journals(tables)
    for frame in (moves, found, episodes):
        days = days.join(frame, "day", "full")
    return days.orderBy(F.desc("day"))


def _hours(tables: Tables) -> DataFrame:
    return (
        tables.table(columns.BROKER_HOURS.name)
        .groupBy("day", "hour")
        .agg(F.sum("errors").alias("errors"), F.sum("lost_ms").alias("lost_ms"))
        .orderBy(F.desc("day"), "hour")
    )


def _broker_hours(tables: Tables) -> DataFrame:
    summed = ("left", "joined", "errors", "hints", "lost_ms")
    return (
        tables.table(columns.BROKER_HOURS.name)
        .groupBy("cluster", "node", "hour")
        .agg(*(F.sum(name).alias(name) for name in summed))
        .orderBy(*_dearest("cluster", "node", "hour"))
    )


def _coverage(tables: Tables) -> DataFrame:
    summed = ("errors", "given", "would_give", "episodes", "hinted", "used")
    errors = (
        tables.table(columns.HINT_EFFECTIVENESS.name)
        .groupBy(*CLIENT_VERSION)
        .agg(*(F.sum(name).alias(name) for name in summed))
    )
    of_kind = [
        figure
        for name, kind in (
            ("with", F.col("hinted")),
            ("without", ~F.col("hinted")),
            ("observed", F.col("would_hint")),
        )
        for figure in _recoveries_of(name, kind)
    ]
    episodes = tables.table(columns.RECOVERIES.name)
    none = F.sum(F.when(takes_none(), F.col("errors")).otherwise(0)).alias("cannot")
    recoveries = episodes.groupBy(*CLIENT_VERSION).agg(none, *of_kind)
    return (
        errors.join(recoveries, [*CLIENT_VERSION], "left")
        .join(saved(episodes), [*CLIENT_VERSION], "left")
        .orderBy(F.desc("errors"), *CLIENT_VERSION)
    )


def _recoveries_of(name: str, kind: Column) -> tuple[Column, ...]:
    recovery = F.when(kind, F.col("recovery_ms"))
    return (
        F.count(recovery).alias(f"{name}_n"),
        F.mean(recovery).alias(f"{name}_mean_ms"),
        _percentile(recovery, 0.5).alias(f"{name}_p50_ms"),
    )


def _misses(tables: Tables) -> DataFrame:
    summed = ("episodes", "errors", "lost_ms")
    return (
        tables.table(columns.HINT_MISSES.name)
        .groupBy("reason")
        .agg(*(F.sum(name).alias(name) for name in summed))
        .withColumn(
            "kind",
            F.when(takes_none(), listings.TAKES_NONE)
            .when(F.col("reason") == OBSERVED, listings.OBSERVED)
            .otherwise(listings.MISSED),
        )
        .orderBy(*_dearest("reason"))
    )


def _settled(tables: Tables) -> DataFrame:
    kind = ("settling", "observed")
    return (
        tables.table(columns.RECOVERIES.name)
        .where(F.col("settling").isNotNull())
        .groupBy(*kind)
        .agg(
            *_costs(),
            _percentile("recovery_ms", 0.5).alias("p50_ms"),
            _percentile("recovery_ms", 0.95).alias("p95_ms"),
        )
        .orderBy(*_dearest(*kind))
    )


def _clients(tables: Tables) -> DataFrame:
    client = ("client_id", "software", "software_version", "cluster")
    summed = ("episodes", "errors", "lost_ms")
    return (
        tables.table(columns.CLIENTS_WITHOUT_HINTS.name)
        .groupBy(*client)
        .agg(
            *(F.sum(name).alias(name) for name in summed),
            F.max("longest_ms").alias("longest_ms"),
            F.concat_ws("; ", F.array_sort(F.collect_set("uses"))).alias("uses"),
        )
        .orderBy(*_dearest(*client))
    )


def _topics(tables: Tables) -> DataFrame:
    return (
        tables.table(columns.RECOVERIES.name)
        .groupBy("cluster", "topic")
        .agg(*_costs(), F.max(lost()).alias("longest_ms"))
        .orderBy(*_dearest("cluster", "topic"))
    )


def _latencies(tables: Tables) -> DataFrame:
    return tables.table(columns.LATENCIES.name).orderBy(
        F.desc("samples"), "day", "cluster", "software", "software_version", "api"
    )


def _skew(tables: Tables) -> DataFrame:
    return tables.table(columns.CLOCK_SKEW.name).orderBy(
        F.desc(F.abs("skew_ms")), "day", "cluster", "sidecar"
    )


def _journals(tables: Tables) -> DataFrame:
    summed = ("events", "duplicates", "missing")
    # Rows of version 0.1 have the former name alone.
    reported = F.sum(F.coalesce("reported", "told"))
    return (
        tables.table(columns.JOURNAL_RUNS.name)
        .groupBy("sidecar")
        .agg(
            F.count("*").alias("runs"),
            *(F.sum(name).alias(name) for name in summed),
            *(reported.alias(name) for name in ("reported", "told")),
        )
        .orderBy(F.desc("missing"), F.desc("duplicates"), "sidecar")
    )


def _quarantine(tables: Tables) -> DataFrame:
    return (
        tables.quarantine()
        .groupBy("reason")
        .agg(F.count("*").alias("lines"))
        .orderBy(F.desc("lines"), "reason")
    )


_GATHERED: Final[dict[Listing, Gather]] = {
    listings.BEFORE_AFTER: before_after,
    listings.DAYS: _days,
    listings.HOURS: _hours,
    listings.CLUSTERS: _clusters,
    listings.RECOVERY: _recovery,
    listings.CURVE: _curve,
    listings.INCIDENTS: _incidents,
    listings.INCIDENT_PARTS: _incident_parts,
    listings.BROKER_HOURS: _broker_hours,
    listings.COVERAGE: _coverage,
    listings.MISSES: _misses,
    listings.SETTLED: _settled,
    listings.CLIENTS: _clients,
    listings.TOPICS: _topics,
    listings.RACKS_A_DAY: racks_a_day,
    listings.RACKS: racks,
    listings.LATENCIES: _latencies,
    listings.SKEW: _skew,
    listings.JOURNALS: _journals,
    listings.QUARANTINE: _quarantine,
}


def _costs() -> tuple[Column, ...]:
    """What a group of recoveries cost."""
    return (
        F.count("*").alias("episodes"),
        F.sum("errors").alias("errors"),
        F.sum("hints").alias("hints"),
        F.sum(lost()).alias("lost_ms"),
    )


def _dearest(*then: str) -> tuple[Column | str, ...]:
    """What lost the most time first; what lost the same in an order that stays."""
    return (F.desc_nulls_last("lost_ms"), *then)


def _percentile(of: Column | str, share: float) -> Column:
    return F.percentile_approx(of, share, _ACCURACY)
