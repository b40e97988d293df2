"""Leader moves: what each sidecar saw of one, put together."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.events import day_of

#: Seconds without a sight of an epoch after which the same epoch is another one: the topic was made
#: anew under its name.
ANEW_S: Final = 3600
_KEY: Final = ("cluster", "topic", "partition", "epoch")
_MICROS: Final = 1_000_000


def leader_moves(events: DataFrame) -> DataFrame:
    """One row for each leader epoch of a partition.

    Besides the table's columns ``sights``: an array of (sidecar, at), ``at`` in microseconds since
    1970, of each sidecar's first sight. Two sights of one sidecar are one: duplicates do no harm.
    """
    sights = (
        events.where(F.col("event") == "leader_change")
        # The partitioning that the window needs serves the sums before it too.
        .repartition(*_KEY)
        .withColumn("at", F.unix_micros("time"))
    )
    in_order = Window.partitionBy(*_KEY).orderBy("at")
    since = F.col("at") - F.lag("at").over(in_order)
    generation = F.sum((since > ANEW_S * _MICROS).cast("int")).over(in_order)
    each = (
        sights.withColumn("generation", F.coalesce(generation, F.lit(0)))
        .groupBy(*_KEY, "generation", "sidecar")
        .agg(
            F.min("at").alias("at"),
            # Who knew the newest epoch before it, knows who led then.
            F.max(F.struct("epoch_before", "leader_before", "leader")).alias("change"),
        )
    )
    moves = each.groupBy(*_KEY, "generation").agg(
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        F.count("*").cast("int").alias("sidecars"),
        F.max("change").alias("change"),
        F.collect_list(F.struct("sidecar", "at")).alias("sights"),
    )
    change = F.col("change")
    return moves.select(
        *_KEY,
        change["epoch_before"].alias("epoch_before"),
        change["leader"].alias("leader"),
        change["leader_before"].alias("leader_before"),
        (change["leader"] != change["leader_before"]).alias("moved"),
        F.timestamp_micros("first_at").alias("first_seen"),
        F.timestamp_micros("last_at").alias("last_seen"),
        "sidecars",
        ((F.col("last_at") - F.col("first_at")) / 1000).alias("apart_ms"),
        "sights",
        day_of(F.timestamp_micros("first_at")).alias("day"),
    )


def apart_corrected_ms(sights: Column, skews: Column) -> Column:
    """How far sights are apart, milliseconds, once clocks are corrected.

    ``skews``: a map from sidecars to microseconds; who is not in it is taken to be right.
    """
    corrected = F.transform(
        sights,
        lambda sight: sight["at"] - F.coalesce(F.try_element_at(skews, sight["sidecar"]), F.lit(0)),
    )
    return F.greatest(F.array_max(corrected) - F.array_min(corrected), F.lit(0)) / 1000
