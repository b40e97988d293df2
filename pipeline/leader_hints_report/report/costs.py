"""Costs: what leader moves cost a day, and what hints or an upgrade would gain, by client software.

A recovery that was only observed says how long its response would have been held until there was
a hint. With hints on it would have taken that long, and the client's own time from the hint to the
success. That is the mean of recoveries after a hint of the same client version and API. Where there
are none it is the quickest tenth of the observed recoveries, which found fresh Metadata at once.
docs/report.md says what this leaves out.

Sums are of hours: what moves leaders costs many clients together, so the hours of the days with
journals are the observations of which an interval is made.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.report.period import Period, Tables
from leader_hints_report.report.savings import (
    CERTAIN,
    CLIENT_VERSION,
    LEAST,
    LEAST_STRETCHES,
    stretch,
)
from leader_hints_report.report.upgrades import ON_FETCH_ALONE
from leader_hints_report.store.folder import Store
from leader_hints_report.tables import columns
from leader_hints_report.tables.hints import CANNOT, REPLICA

_HOUR_US: Final = 3_600_000_000
_HOURS_A_DAY: Final = 24
#: The share of observed recoveries that are taken to have found fresh Metadata at once.
_QUICK: Final = 0.1
#: What makes slower ones than this share slow is mostly nothing that a hint shortens.
_SLOW: Final = 0.95
_ACCURACY: Final = 10_000
#: What may come of a recovery's first error, see :func:`kind`.
KINDS: Final = ("hinted", "observed", "missed", "cannot")
_SOFTWARE: Final = ("software", "software_version")
#: Where clients of different software are alike: the same elections, and the same kind of request.
_ALIKE: Final = ("cluster", "api")
#: Counted by hour, and summed up.
_COUNTED: Final = (
    *("episodes", "hinted", "observed", "missed", "cannot", "errors", "unseen"),
    *("forecast_n", "forecast_bare"),
)
#: In milliseconds.
_SUMMED: Final = ("lost_ms", "saved", "in_vain", "upgraded")


def takes_none() -> Column:
    """Whether an error could take no hint: the client's software uses none, or it is a replica."""
    return F.coalesce(F.col("reason").isin(*CANNOT, REPLICA), F.lit(False))


def lost() -> Column:
    """What an episode cost. Tables of version 0.1 have it only where a success was seen."""
    return F.coalesce("lost_ms", "recovery_ms")


def kind() -> Column:
    """What came of a recovery's first error: `hinted`, `observed`, `missed` or `cannot`."""
    return (
        F.when(F.col("hinted"), "hinted")
        .when(F.col("would_hint"), "observed")
        .when(takes_none(), "cannot")
        .otherwise("missed")
    )


def cost(hours: DataFrame, tables: Tables) -> DataFrame:
    """One row: of all clients; none where no client met an error. ``hours``: of :func:`hourly`."""
    sums = [F.sum(name).alias(name) for name in (*_COUNTED, *_SUMMED)]
    together = hours.groupBy("hour_number").agg(*sums)
    return _a_day(together, tables).where(F.col("episodes") > 0)


def before_after(tables: Tables) -> DataFrame:
    """The cost a day before the change of the period and from it on; what has no days is absent."""
    before, after = (_lost_a_day(tables.store, *part) for part in tables.period.parts.items())
    return before.unionAll(after)


def _lost_a_day(store: Store, name: str, days: Period) -> DataFrame:
    tables = Tables(store, days)
    counted = ("episodes", "errors", "lost_ms")
    of_hours = (
        tables.table(columns.RECOVERIES.name)
        .groupBy(_hour())
        .agg(
            F.count("*").alias("episodes"),
            F.sum("errors").alias("errors"),
            F.coalesce(F.sum(lost()), F.lit(0.0)).alias("lost_ms"),
        )
    )
    none = {"lost_ms_sum": F.lit(0.0), "lost_ms_squares": F.lit(0.0)}
    total = of_hours.agg(
        *(F.coalesce(F.sum(one), F.lit(0)).alias(one) for one in counted), *_sums_of("lost_ms")
    ).withColumns({column: F.coalesce(column, zero) for column, zero in none.items()})
    all_days = days_with_journals(tables).agg(F.count("*").alias("days"))
    lost_day, wide = _rate("lost_ms")
    return (
        total.crossJoin(F.broadcast(all_days))
        .where(F.col("days") > 0)
        .select(
            F.lit(name).alias("part"),
            *("days", *counted),
            lost_day.alias("lost_day_ms"),
            _least(lost_day, wide).alias("lost_low_ms"),
            (lost_day + wide).alias("lost_high_ms"),
        )
    )


def software(hours: DataFrame, tables: Tables) -> DataFrame:
    """The same of each client software and version, and what an upgrade would gain."""
    clients = hours.groupBy(*_SOFTWARE).agg(
        F.hll_sketch_estimate(F.hll_union_agg("clients")).alias("clients"),
        F.concat_ws("; ", F.array_sort(F.array_distinct(F.flatten(F.collect_list("uses"))))).alias(
            "uses"
        ),
    )
    costs = _a_day(hours, tables, *_SOFTWARE)
    return costs.join(clients, [*_SOFTWARE]).orderBy(F.desc("lost_day_ms"), *_SOFTWARE)


def hourly(tables: Tables) -> DataFrame:
    """What clients of each software and version met in each hour that had anything."""
    of_kind = {name: F.count_if(F.col("kind") == name) for name in KINDS}
    counts = {
        "episodes": F.count("*"),
        **of_kind,
        "errors": F.sum("errors"),
        "unseen": F.count_if(F.col("recovery_ms").isNull()),
        "forecast_n": F.count("saved"),
        "forecast_bare": F.count_if(F.col("saved").isNotNull() & F.col("after_ms").isNull()),
        "lost_ms": F.sum(lost()),
        **{name: F.sum(name) for name in _SUMMED if name != "lost_ms"},
        "clients": F.hll_sketch_agg("client_id"),
        "uses": F.collect_set("uses"),
    }
    return (
        _episodes(tables)
        .groupBy(*_SOFTWARE, _hour().alias("hour_number"))
        .agg(*(value.alias(name) for name, value in counts.items()))
    )


def days_with_journals(tables: Tables) -> DataFrame:
    """The days of which there are journals, or at least clients' errors."""
    return (
        tables.table(columns.JOURNAL_RUNS.name)
        .select("day")
        .union(tables.table(columns.RECOVERIES.name).select("day"))
        .distinct()
    )


def _episodes(tables: Tables) -> DataFrame:
    """Recoveries, with ``kind``; and each in milliseconds, absent where it does not apply:
    ``saved``, what hints would have saved; ``in_vain``, for how long it would have been held for
    nothing; ``upgraded``, what hints would have saved if the software used them."""
    episodes = tables.table(columns.RECOVERIES.name)
    episodes = episodes.join(F.broadcast(_after_hints(episodes)), [*CLIENT_VERSION], "left")
    hold, recovery = F.coalesce("hold_ms", F.lit(0.0)), F.col("recovery_ms")
    predicted = hold + F.coalesce("after_ms", F.lit(0.0))
    episodes = episodes.withColumns(
        {
            "kind": kind(),
            "hold": hold,
            "with_ms": F.when(F.col("hinted"), recovery).when(
                F.col("would_hint") & recovery.isNotNull(), predicted
            ),
        }
    )
    episodes = episodes.join(F.broadcast(_with_hints(episodes)), [*_ALIKE], "left")
    return episodes.withColumns(
        {
            "saved": F.when(
                F.col("would_hint") & recovery.isNotNull(),
                F.least(recovery, "most_ms") - predicted,
            ),
            "in_vain": F.when(F.col("observed") & (F.col("kind") == "missed"), hold),
            "upgraded": F.when(
                F.col("reason").isin(*CANNOT) & _could_take_one(),
                F.col("share") * (recovery - F.col("alike_ms")),
            ),
        }
    )


def _could_take_one() -> Column:
    """Whether an error could take a hint in some version of the client's software, if in any."""
    return (F.col("api") == "Fetch") | ~F.col("software").isin(*ON_FETCH_ALONE)


def _after_hints(episodes: DataFrame) -> DataFrame:
    """By client version and API ``after_ms``, the client's own time from a hint to the success;
    absent where too little is known. ``most_ms``: what a recovery counts at most; absent: all."""
    recovery = F.col("recovery_ms")
    after = F.when(F.col("hinted"), recovery - F.coalesce("hold_ms", F.lit(0.0)))
    observed = F.when(F.col("would_hint"), recovery)
    found = episodes.groupBy(*CLIENT_VERSION).agg(
        F.when(F.count(after) >= LEAST, F.avg(after)).alias("measured_ms"),
        F.when(
            F.count(observed) >= LEAST,
            F.percentile_approx(observed, [_QUICK, _SLOW], _ACCURACY),
        ).alias("ends"),
    )
    measured, ends = F.col("measured_ms"), F.col("ends")
    return found.select(
        *CLIENT_VERSION,
        F.coalesce(measured, ends[0]).alias("after_ms"),
        F.when(measured.isNull(), ends[1]).alias("most_ms"),
    )


def _with_hints(episodes: DataFrame) -> DataFrame:
    """Of clients that can use hints, by cluster and API: ``alike_ms``, how long recoveries with a
    hint take, or would; ``share``: of their episodes, those that began with a hint, or would."""
    has = F.col("kind").isin("hinted", "observed")
    return (
        episodes.where(F.col("kind") != "cannot")
        .groupBy(*_ALIKE)
        .agg(
            F.avg("with_ms").alias("alike_ms"),
            F.avg(has.cast("double")).alias("share"),
            F.count_distinct(F.when(F.col("with_ms").isNotNull(), stretch())).alias("stretches"),
            F.count("with_ms").alias("n"),
        )
        .where((F.col("n") >= LEAST) & (F.col("stretches") >= LEAST_STRETCHES))
        .select(*_ALIKE, "alike_ms", "share")
    )


def _a_day(hours: DataFrame, tables: Tables, *of: str) -> DataFrame:
    """Sums of hours, and by day, with intervals."""
    days = days_with_journals(tables).agg(F.count("*").alias("days"))
    sums = hours.groupBy(*of).agg(
        *(F.sum(name).alias(name) for name in _COUNTED),
        F.sum("in_vain").alias("in_vain"),
        F.sum("lost_ms").alias("lost_ms"),
        *(total for name in ("lost_ms", "saved", "upgraded") for total in _sums_of(name)),
    )
    a_day = sums.crossJoin(F.broadcast(days))
    lost_day, lost_wide = _rate("lost_ms")
    saved_day, saved_wide = _rate("saved")
    upgrade_day, upgrade_wide = _rate("upgraded")
    in_vain = F.coalesce("in_vain", F.lit(0.0)) / F.col("days")
    return a_day.select(
        *of,
        "days",
        *_COUNTED,
        "lost_ms",
        lost_day.alias("lost_day_ms"),
        _least(lost_day, lost_wide).alias("lost_low_ms"),
        (lost_day + lost_wide).alias("lost_high_ms"),
        (F.col("observed") / F.col("days")).alias("reach_day"),
        saved_day.alias("gain_day_ms"),
        (_least(saved_day, saved_wide) - in_vain).alias("gain_low_ms"),
        (saved_day + saved_wide).alias("gain_high_ms"),
        upgrade_day.alias("upgrade_day_ms"),
        _least(upgrade_day, upgrade_wide).alias("upgrade_low_ms"),
        (upgrade_day + upgrade_wide).alias("upgrade_high_ms"),
    )


def _hour() -> Column:
    return F.floor(F.unix_micros("first_error") / _HOUR_US)


def _sums_of(name: str) -> tuple[Column, Column]:
    """What :func:`_rate` is made of."""
    value = F.col(name)
    return F.sum(value).alias(f"{name}_sum"), F.sum(value * value).alias(f"{name}_squares")


def _rate(name: str) -> tuple[Column, Column]:
    """A sum by day, and how far the truth may be off it: what the hours of these days vary, those
    without anything too."""
    total, squares, days = F.col(f"{name}_sum"), F.col(f"{name}_squares"), F.col("days")
    hours = days * _HOURS_A_DAY
    # Rounding may leave less than nothing.
    variance = F.greatest(squares - total * total / hours, F.lit(0.0)) * hours / (hours - 1)
    return total / days, CERTAIN * F.sqrt(variance) / days


def _least(rate: Column, wide: Column) -> Column:
    """The lower end of an interval. Few hours make it wide; what is gained in them is no loss."""
    low = rate - wide
    return F.when(rate > 0, F.greatest(low, F.lit(0.0))).otherwise(low)
