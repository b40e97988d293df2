"""Leader moves: what each sidecar saw of one, put together."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import day_of

#: Seconds without a sighting of an epoch after which the same epoch is a different one: the topic
#: was recreated.
RECREATED_S: Final = 3600
_KEY: Final = ("cluster", "topic", "partition", "epoch")
_MICROS: Final = 1_000_000


def leader_moves(events: DataFrame) -> DataFrame:
    """One row for each leader epoch of a partition.

    Besides the table's columns ``sights``: an array of (sidecar, at), ``at`` in microseconds since
    1970, of each sidecar's first sight. Two sights of one sidecar are one: duplicates do no harm.
    """
    sight = F.struct("at", "sidecar", "epoch_before", "leader_before", "leader")
    # No more than a cluster has sidecars, so they fit into one row, and none is sorted by words.
    moves = (
        events.where(F.col("event") == "leader_change")
        .withColumn("at", F.unix_micros("time"))
        .groupBy(*_KEY)
        .agg(F.array_sort(F.collect_list(sight)).alias("sights"))
        .select(*_KEY, F.explode(_generations(F.col("sights"))).alias("sights"))
    )
    # A sidecar that knew the epoch just before knows its leader.
    change = F.transform(
        "sights",
        lambda sight: F.struct(
            *(sight[name].alias(name) for name in ("epoch_before", "leader_before", "leader"))
        ),
    )
    moves = moves.select(
        *_KEY, F.array_max(change).alias("change"), _of_each(F.col("sights")).alias("sights")
    )
    change = F.col("change")
    first_at, last_at = F.element_at("sights", 1)["at"], F.element_at("sights", -1)["at"]
    return moves.select(
        *_KEY,
        change["epoch_before"].alias("epoch_before"),
        change["leader"].alias("leader"),
        change["leader_before"].alias("leader_before"),
        (change["leader"] != change["leader_before"]).alias("moved"),
        F.timestamp_micros(first_at).alias("first_seen"),
        F.timestamp_micros(last_at).alias("last_seen"),
        F.size("sights").alias("sidecars"),
        ((last_at - first_at) / 1000).alias("apart_ms"),
        "sights",
        day_of(F.timestamp_micros(first_at)).alias("day"),
    )


def _generations(sights: Column) -> Column:
    """Sights of one epoch, in order, as an array of those of each topic that had the name."""
    pause = RECREATED_S * _MICROS

    def begins(number: Column) -> Column:
        at, before = (F.element_at(sights, n)["at"] for n in (number, F.greatest(number - 1, one)))
        return (number == one) | (at - before > pause)

    one, count = F.lit(1), F.size(sights)
    beginnings = F.filter(F.sequence(one, count), begins)
    parts = F.transform(
        beginnings,
        lambda begin, number: F.slice(
            sights, begin, F.coalesce(F.try_element_at(beginnings, number + 2), count + 1) - begin
        ),
    )
    lasted = F.element_at(sights, -1)["at"] - F.element_at(sights, 1)["at"]
    return F.when(lasted <= pause, F.array(sights)).otherwise(parts)


def _of_each(sights: Column) -> Column:
    """The first sight of each sidecar, as (sidecar, at), from sights in order."""
    sidecars = F.transform(sights, lambda sight: sight["sidecar"])
    first = F.filter(
        sights, lambda sight, number: F.array_position(sidecars, sight["sidecar"]) == number + 1
    )
    each = F.when(F.size(F.array_distinct(sidecars)) == F.size(sights), sights).otherwise(first)
    return F.transform(
        each, lambda sight: F.struct(*(sight[name].alias(name) for name in ("sidecar", "at")))
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
