"""Brokers by hours: leaderships that went and came, and what clients met there.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.tables.columns import BROKER_HOURS

_KEY = ("day", "cluster", "node", "hour")


def hour_of(time: Column) -> Column:
    """The hour of an instant in UTC, 0 to 23, whatever the session's time zone is."""
    return (F.floor(F.unix_micros(time) / 3_600_000_000) % 24).cast("int")


def broker_hours(moves: DataFrame, recoveries: DataFrame) -> DataFrame:
    """The table of that name."""
    none, one = F.lit(0).cast("long"), F.lit(1).cast("long")
    changed = moves.where("moved")
    left = changed.select(
        "day", "cluster", F.col("leader_before").alias("node"),
        hour_of(F.col("first_seen")).alias("hour"),
        one.alias("left"), none.alias("joined"), none.alias("errors"), none.alias("hints"),
        F.lit(0.0).alias("lost_ms"),
    )  # fmt: skip
    joined = changed.select(
        "day", "cluster", F.col("leader").alias("node"),
        hour_of(F.col("first_seen")).alias("hour"),
        none.alias("left"), one.alias("joined"), none.alias("errors"), none.alias("hints"),
        F.lit(0.0).alias("lost_ms"),
    )  # fmt: skip
    met = recoveries.select(
        "day", "cluster", F.col("node_from").alias("node"),
        hour_of(F.col("first_error")).alias("hour"),
        none.alias("left"), none.alias("joined"),
        F.col("errors").cast("long").alias("errors"), F.col("hints").cast("long").alias("hints"),
        "lost_ms",
    )  # fmt: skip
    together = left.unionAll(joined).unionAll(met).where(F.col("node") >= 0)
    sums = [F.sum(name).alias(name) for name in ("left", "joined", "errors", "hints", "lost_ms")]
    return together.groupBy(*_KEY).agg(*sums).select(*BROKER_HOURS.schema.fieldNames())
