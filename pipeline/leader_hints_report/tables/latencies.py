"""Percentiles of sampled latencies, exact and approximate."""

from math import log
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.runs import word_of
from leader_hints_report.tables.columns import LATENCIES, UNKNOWN_CLUSTER

_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: An approximate percentile is no further from the exact one than this share of it.
ERROR: Final = 0.005
_KEY: Final = ("day", "cluster", "software", "software_version", "api")


def latencies(events: DataFrame, repeated: DataFrame) -> DataFrame:
    """The table of that name. ``repeated``: of :func:`leader_hints_report.journal.runs.repeated`.

    Equal values are counted before they are moved, in a table of fixed width, and the journal has
    whole microseconds: so little is moved, also where one client has half of all samples. Where a
    number may have come twice, each number is an entry of its own, and counts once.
    """
    value = F.col("latency_ms")
    marks = repeated.withColumn("marked", F.lit(True))
    counted = (
        events.where(F.col("event") == "latency")
        .withColumns(
            {
                "cluster": F.coalesce("cluster", F.lit(UNKNOWN_CLUSTER)),
                "word": word_of(F.col("seq")),
            }
        )
        .join(F.broadcast(marks), ["run", "word"], "left")
        .withColumn("number", F.when(F.col("marked"), F.struct("run", "seq")))
        .groupBy(*_KEY, value, "number")
        .agg(F.count("*").alias("lines"))
        .withColumn("n", F.when(F.col("number").isNull(), F.col("lines")).otherwise(1))
    )
    shares, n = F.array(*(F.lit(share) for share in _SHARES.values())), F.col("n")
    grouped = counted.groupBy(*_KEY).agg(
        F.sum("n").alias("samples"),
        (F.sum(value * n) / F.sum("n")).alias("mean_ms"),
        F.max(value).alias("max_ms"),
        F.percentile(value, shares, n).alias("exact"),
        F.percentile(rounded(value), shares, n).alias("approximate"),
    )
    for i, name in enumerate(_SHARES):
        grouped = grouped.withColumn(f"{name}_ms", F.col("exact")[i]).withColumn(
            f"{name}_approx_ms", F.col("approximate")[i]
        )
    return grouped.select(*LATENCIES.schema.fieldNames())


def rounded(value: Column) -> Column:
    """``value`` to :data:`ERROR`: few different ones are left, whatever there was.

    As in DDSketch (Masson, Rim and Lee, VLDB 2019) the bounds of buckets grow by a constant factor,
    and a bucket stands for the value that is equally far, as a share, from its bounds.
    """
    growth = (1 + ERROR) / (1 - ERROR)
    bucket = F.ceil(F.log(value) / log(growth))
    return F.when(value > 0, F.pow(F.lit(growth), bucket) * 2 / (growth + 1)).otherwise(0.0)
