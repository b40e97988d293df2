"""Brokers by hours: leaderships that went and came, and what clients met there.

Tested in ``tests/pipeline/tables/test_hours.py``.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import day_of
from leader_hints_report.tables.columns import BROKER_HOURS

_KEY = ("day", "cluster", "node", "hour")


def broker_hours(moves: DataFrame, errors: DataFrame) -> DataFrame:
    """The table of that name. ``errors``: of
    :func:`leader_hints_report.tables.recoveries.errors_in_order`; each is counted at the broker
    that answered."""
    none, one = F.lit(0).cast("long"), F.lit(1).cast("long")
    changed = moves.where("moved")
    ends = (
        F.struct(F.col(name).alias("node"), left.alias("left"), joined.alias("joined"))
        for name, left, joined in (("leader_before", one, none), ("leader", none, one))
    )
    led = changed.select(
        "day", "cluster", _hour_of(F.unix_micros("first_seen")).alias("hour"),
        F.explode(F.array(*ends)).alias("end"),
    ).select(
        "day", "cluster", "end.node", "hour", "end.left", "end.joined",
        none.alias("errors"), none.alias("hints"), F.lit(0.0).alias("lost_ms"),
    )  # fmt: skip
    counted = ~F.col("twin")
    answered = errors.where(~F.col("success")).select(
        day_of(F.timestamp_micros("at")).alias("day"), "cluster", "node",
        _hour_of(F.col("at")).alias("hour"),
        none.alias("left"), none.alias("joined"),
        counted.cast("long").alias("errors"),
        (counted & F.col("hinted")).cast("long").alias("hints"),
        (F.col("waited_us") / 1000).alias("lost_ms"),
    )  # fmt: skip
    together = led.unionAll(answered).where(F.col("node") >= 0)
    sums = [F.sum(name).alias(name) for name in ("left", "joined", "errors", "hints", "lost_ms")]
    return together.groupBy(*_KEY).agg(*sums).select(*BROKER_HOURS.schema.fieldNames())


def _hour_of(at: Column) -> Column:
    """The hour in UTC, 0 to 23, of microseconds since 1970."""
    return (F.floor(at / 3_600_000_000) % 24).cast("int")
