"""Zones: what consumers read in their rack and elsewhere, a day, before and after a change.

Tested in ``tests/pipeline/report/test_zones.py``.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.report.costs import days_with_journals
from leader_hints_report.report.period import AFTER, ALL, BEFORE, Tables
from leader_hints_report.tables import columns

_KEY: Final = ("cluster", "topic", "client_id")


def racks_a_day(tables: Tables) -> DataFrame:
    """Of all days, and of those before and after the change of the period, what was read a day.

    Where no consumer named a rack there is no row.
    """
    parts = {ALL: tables.period, **tables.period.parts}
    frames = [_a_day(name, Tables(tables.store, days)) for name, days in parts.items()]
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionAll(frame)
    return together


def _a_day(name: str, tables: Tables) -> DataFrame:
    days = days_with_journals(tables).agg(F.count("*").alias("days"))
    crossing, avoidable = F.col("crossing") / F.col("days"), F.col("avoidable") / F.col("days")
    same = F.col("same") / F.col("days")
    return (
        tables.table(columns.RACK_READS.name)
        .agg(
            *(F.sum(f"{one}_bytes").alias(one) for one in ("same", "crossing", "avoidable")),
        )
        .where(F.col("same").isNotNull())
        .crossJoin(F.broadcast(days))
        .where(F.col("days") > 0)
        .select(
            F.lit(name).alias("part"),
            "days",
            (same + crossing).alias("read_bytes"),
            crossing.alias("crossing_bytes"),
            F.try_divide(crossing, same + crossing).alias("crossing_share"),
            avoidable.alias("avoidable_bytes"),
        )
    )


def racks(tables: Tables) -> DataFrame:
    """The same by topic and client, of all days; what crosses most comes first."""
    summed = ("same_bytes", "crossing_bytes", "avoidable_bytes", "named", "returned")
    rows = (
        tables.table(columns.RACK_READS.name)
        .groupBy(*_KEY)
        .agg(*(F.sum(name).alias(name) for name in summed))
        .withColumns({f"{name}_bytes": F.lit(None).cast("double") for name in (BEFORE, AFTER)})
    )
    for name, period in tables.period.parts.items():
        rows = _with_part(rows, name, Tables(tables.store, period))
    return rows.orderBy(F.desc("crossing_bytes"), *_KEY)


def _with_part(rows: DataFrame, name: str, tables: Tables) -> DataFrame:
    """Rows with what crossed a day in a part of the days; 0 where there are days without it."""
    days = days_with_journals(tables).agg(F.count("*").alias("days")).where(F.col("days") > 0)
    part = (
        tables.table(columns.RACK_READS.name)
        .groupBy(*_KEY)
        .agg(F.sum("crossing_bytes").alias("in_part"))
    )
    return (
        rows.drop(f"{name}_bytes")
        .join(part, [*_KEY], "left")
        .join(F.broadcast(days), how="left")
        .withColumn(f"{name}_bytes", F.coalesce("in_part", F.lit(0)) / F.col("days"))
        .drop("in_part", "days")
    )
