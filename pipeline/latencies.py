"""Percentiles of sampled latencies, exact and approximate."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.tables import LATENCIES, UNKNOWN_CLUSTER

_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: Relative rank error of the approximate ones is at most one in so many.
_ACCURACY: Final = 10_000
#: The columns of an event that are looked at.
SAMPLE: Final = ("event", "day", "cluster", "software", "software_version", "api", "latency_ms")


def latencies(events: DataFrame) -> DataFrame:
    """The table of that name; ``events`` must be free of duplicates (:func:`pipeline.runs.once`).

    Spark's exact percentile counts equal values before it moves them, and the journal has whole
    microseconds: so little is moved, also where one client has half of all samples.
    """
    shares = F.array(*(F.lit(share) for share in _SHARES.values()))
    key = ("day", "cluster", "software", "software_version", "api")
    samples = events.where(F.col("event") == "latency").withColumn(
        "cluster", F.coalesce("cluster", F.lit(UNKNOWN_CLUSTER))
    )
    value = F.col("latency_ms")
    grouped = samples.groupBy(*key).agg(
        F.count("*").alias("samples"),
        F.avg(value).alias("mean_ms"),
        F.max(value).alias("max_ms"),
        F.percentile(value, shares).alias("exact"),
        F.percentile_approx(value, shares, _ACCURACY).alias("approximate"),
    )
    for i, name in enumerate(_SHARES):
        grouped = grouped.withColumn(f"{name}_ms", F.col("exact")[i]).withColumn(
            f"{name}_approx_ms", F.col("approximate")[i]
        )
    return grouped.select(*LATENCIES.schema.fieldNames())
