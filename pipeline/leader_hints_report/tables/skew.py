"""How far clocks of sidecars are apart, by the moves that several of them saw.

All sidecars of a cluster learn of a move from the brokers' Metadata within a short time that has
no reason to favour one of them. So the middle of a sidecar's distance from the others, over many
moves, is its clock's error, and the spread of that distance bounds what is known of it.

Tested in ``tests/pipeline/tables/test_moves.py``.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: With fewer common moves nothing is corrected.
ENOUGH: Final = 10


def clock_skew(moves: DataFrame) -> DataFrame:
    """The table of that name, from :func:`leader_hints_report.tables.moves.leader_moves`."""
    times = F.array_sort(F.transform("sights", lambda sight: sight["at"]))
    count = F.size("sights")
    # The middle one; of an even number the mean of the two in the middle.
    low = F.element_at(times, F.floor((count + 1) / 2).cast("int"))
    high = F.element_at(times, F.floor((count + 2) / 2).cast("int"))
    common = moves.where(count > 1).select(
        "day", "cluster", ((low + high) / 2).alias("middle"), F.explode("sights").alias("sight")
    )
    offsets = common.select(
        "day",
        "cluster",
        F.col("sight")["sidecar"].alias("sidecar"),
        ((F.col("sight")["at"] - F.col("middle")) / 1000).alias("offset_ms"),
    )
    spread = F.percentile("offset_ms", F.array(F.lit(0.05), F.lit(0.5), F.lit(0.95)))
    estimated = offsets.groupBy("day", "cluster", "sidecar").agg(
        F.count("*").alias("moves"), spread.alias("spread")
    )
    low_ms, middle_ms, high_ms = (F.col("spread")[i] for i in range(3))
    return estimated.select(
        "sidecar",
        "moves",
        middle_ms.alias("skew_ms"),
        F.greatest(high_ms - middle_ms, middle_ms - low_ms).alias("bound_ms"),
        (F.col("moves") >= ENOUGH).alias("corrected"),
        "day",
        "cluster",
    )


def corrections(skew: DataFrame) -> DataFrame:
    """One row for each day and cluster, small enough to be broadcast.

    ``skews`` and ``bounds``: maps from sidecars to microseconds and milliseconds.
    """
    known = skew.where("corrected")
    micros = F.round(F.col("skew_ms") * 1000).cast("long")
    return known.groupBy("day", "cluster").agg(
        F.map_from_entries(F.collect_list(F.struct("sidecar", micros))).alias("skews"),
        F.map_from_entries(F.collect_list(F.struct("sidecar", "bound_ms"))).alias("bounds"),
    )
