"""What hints do: given, used, missed, and for whom there can be none.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from leader_hints_report.tables.columns import (
    CLIENTS_WITHOUT_HINTS,
    HINT_EFFECTIVENESS,
    HINT_MISSES,
)

_ON_A_DAY: Final = ("day", "cluster")
_OF_CLIENTS: Final = (*_ON_A_DAY, "software", "software_version", "api", "topic")
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
#: Reasons that lie in the client's software alone.
NOT_USABLE: Final = "not_usable_by_client"
CANNOT: Final = ("version_without_field", NOT_USABLE)
#: The reason of a follower's fetch.
REPLICA: Final = "replica"
#: In place of a reason: a hint was only counted.
OBSERVED: Final = "observed"


def hint_effectiveness(recoveries: DataFrame) -> DataFrame:
    """The table of that name."""
    sums = [
        F.sum("errors").alias("errors"),
        F.sum("hints").cast("long").alias("given"),
        F.sum("would_hints").cast("long").alias("would_give"),
        F.count("*").alias("episodes"),
        _count("hinted").alias("hinted"),
        _count("used").alias("used"),
        F.count("recovery_ms").alias("recovered"),
        *_times("with", F.col("hinted")),
        *_times("without", ~F.col("hinted")),
    ]
    grouped = recoveries.groupBy(*_OF_CLIENTS).agg(*sums)
    for which in ("with", "without"):
        for i, name in enumerate(_PERCENTILES):
            grouped = grouped.withColumn(f"{which}_{name}_ms", F.get(f"{which}_all", F.lit(i)))
    return grouped.select(*HINT_EFFECTIVENESS.schema.fieldNames())


def _count(flag: str) -> Column:
    return F.sum(F.col(flag).cast("int")).cast("long")


def _times(which: str, chosen: Column) -> list[Column]:
    time = F.when(chosen, F.col("recovery_ms"))
    shares = F.array(*(F.lit(share) for share in _PERCENTILES.values()))
    return [
        F.count(time).alias(f"{which}_n"),
        F.avg(time).alias(f"{which}_mean_ms"),
        F.percentile(time, shares).alias(f"{which}_all"),
    ]


def hint_misses(recoveries: DataFrame) -> DataFrame:
    """The table of that name."""
    missed = recoveries.where(~F.col("hinted")).withColumn(
        "reason", F.when(F.col("would_hint"), OBSERVED).otherwise(F.col("reason"))
    )
    grouped = missed.groupBy(*_OF_CLIENTS, "reason").agg(
        F.count("*").alias("episodes"),
        F.sum("errors").alias("errors"),
        F.sum("lost_ms").alias("lost_ms"),
    )
    return grouped.select(*HINT_MISSES.schema.fieldNames())


def clients_without_hints(recoveries: DataFrame) -> DataFrame:
    """The table of that name."""
    grouped = (
        recoveries.where(F.col("reason").isin(*CANNOT))
        .groupBy(*_ON_A_DAY, "client_id", "software", "software_version")
        .agg(
            F.count("*").alias("episodes"),
            F.sum("errors").alias("errors"),
            F.sum("lost_ms").alias("lost_ms"),
            F.max("lost_ms").alias("longest_ms"),
            F.max("uses").alias("uses"),
        )
    )
    # Equal losses are ranked by name, so that a second run has the same result.
    by_loss = Window.partitionBy(*_ON_A_DAY).orderBy(
        F.desc("lost_ms"), "client_id", "software", "software_version"
    )
    ranked = grouped.withColumn("rank", F.row_number().over(by_loss))
    return ranked.select(*CLIENTS_WITHOUT_HINTS.schema.fieldNames())
