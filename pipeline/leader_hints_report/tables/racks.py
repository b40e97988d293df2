"""What consumers that name a rack read in it and elsewhere.

Tested in ``tests/pipeline/tables/test_racks.py``.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.tables.columns import RACK_READS, UNKNOWN_CLUSTER

_KEY: Final = ("day", "cluster", "topic", "client_id", "rack")


def rack_reads(events: DataFrame) -> DataFrame:
    """The table of that name. There are few such events, so each number is kept to be counted once.
    A replica that was named where it is only observed counts as none."""
    crosses = ~F.col("rack").eqNullSafe(F.col("broker_rack"))
    named = ~F.col("observed")
    sums = {
        "same_bytes": F.when(~crosses, F.col("bytes")),
        "crossing_bytes": F.when(crosses, F.col("bytes")),
        "avoidable_bytes": F.col("avoidable_bytes"),
        "named": (named & ~F.col("returned")).cast("long"),
        "returned": (named & F.col("returned")).cast("long"),
    }
    grouped = (
        events.withColumn("cluster", F.coalesce("cluster", F.lit(UNKNOWN_CLUSTER)))
        # So that neither of the two groupings needs a shuffle of its own.
        .repartition(*_KEY)
        .dropDuplicates([*_KEY, "run", "seq"])
        .groupBy(*_KEY)
        .agg(*(F.coalesce(F.sum(of), F.lit(0)).alias(name) for name, of in sums.items()))
    )
    return grouped.select(*RACK_READS.schema.fieldNames())
