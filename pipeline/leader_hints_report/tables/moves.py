"""Leader moves: what each sidecar saw of one, put together."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import day_of
from leader_hints_report.tables.skew import ENOUGH, ahead_us, by_sights

#: Seconds without a sighting of an epoch after which the same epoch is a different one: the topic
#: was recreated.
RECREATED_S: Final = 3600
_KEY: Final = ("cluster", "topic", "partition", "epoch")
_MICROS: Final = 1_000_000
_PAUSE: Final = RECREATED_S * _MICROS
#: A clock that is wrong by more seconds is corrected before sights are put together.
_WRONG_S: Final = 60


def sighted(events: DataFrame) -> DataFrame:
    """The leader epochs of partitions; ``sights``: all of each, those of recreated topics too."""
    sight = F.struct("at", "sidecar", "epoch_before", "leader_before", "leader")
    # No more than a cluster has sidecars, so they fit into one row, and none is sorted by words.
    return (
        events.where(F.col("event") == "leader_change")
        .withColumn("at", F.unix_micros("time"))
        .groupBy(*_KEY)
        .agg(F.sort_array(F.collect_list(sight)).alias("sights"))
    )


def leader_moves(epochs: DataFrame, wrong: DataFrame) -> DataFrame:
    """One row for each leader epoch of a partition, from :func:`sighted` and :func:`wrong_clocks`.

    Besides the table's columns ``sights``: an array of (sidecar, at), ``at`` in microseconds since
    1970, of each sidecar's first sight. Two sights of one sidecar are one: duplicates do no harm.
    Times are as clocks were.
    """
    sights = _roughly_corrected(F.col("sights"), F.col("wrong"))
    moves = (
        epochs.join(F.broadcast(wrong), "cluster", "left")
        .select(*_KEY, sights.alias("sights"))
        .select(*_KEY, F.explode_outer(_generations(F.col("sights"))).alias("sights"))
    )
    # A sidecar that knew the epoch just before knows its leader. Of a recreated topic another one
    # may know the former topic's only, which mostly are higher.
    change = F.transform(
        "sights",
        lambda sight: F.struct(
            (sight["epoch_before"] < F.col("epoch")).alias("of_topic"),
            *(sight[name].alias(name) for name in ("epoch_before", "leader_before", "leader")),
        ),
    )
    moves = moves.select(
        *_KEY,
        F.array_max(change).alias("change"),
        _of_each(F.col("sights")).alias("sights"),
        F.element_at("sights", 1)["rough_at"].alias("rough_at"),
    )
    change, times = F.col("change"), F.col("sights")["at"]
    first_at, last_at = F.array_min(times), F.array_max(times)
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
        day_of(F.timestamp_micros("rough_at")).alias("day"),
    )


def corrected(moves: DataFrame, corrections: DataFrame) -> DataFrame:
    """Take skews away from the times of moves, which ``sights`` are no part of any more.

    ``corrections``: of :func:`leader_hints_report.tables.skew.corrections`. A clock that is not in
    it is taken to be right.
    """
    times = F.transform(
        "sights",
        lambda sight: sight["at"] - ahead_us(F.col("skews"), sight["sidecar"]),
    )
    known = moves.join(F.broadcast(corrections), ["day", "cluster"], "left")
    known = known.withColumn("times", times)
    first_at, last_at = F.array_min("times"), F.array_max("times")
    return known.withColumns(
        {
            "first_seen": F.timestamp_micros(first_at),
            "last_seen": F.timestamp_micros(last_at),
            "apart_corrected_ms": (last_at - first_at) / 1000,
            "day": day_of(F.timestamp_micros(first_at)),
        }
    ).drop("sights", "skews", "bounds", "times")


def on_true_days(events: DataFrame, wrong: DataFrame) -> DataFrame:
    """Events with the day that it was, by :func:`wrong_clocks`: clocks are compared by days."""
    known = events.join(F.broadcast(wrong), "cluster", "left")
    at = F.unix_micros("time") - ahead_us(F.col("wrong"), F.col("sidecar"))
    true_day = day_of(F.timestamp_micros(at))
    return known.withColumn(
        "day", F.when(F.col("wrong").isNull(), F.col("day")).otherwise(true_day)
    ).drop("wrong")


def wrong_clocks(epochs: DataFrame) -> DataFrame:
    """Clocks that are wrong by minutes, so that a move would look like one of a recreated topic.

    ``wrong``: a map from sidecars to microseconds, for each cluster that has such.
    """
    lasted = F.element_at("sights", -1)["at"] - F.element_at("sights", 1)["at"]
    far = epochs.where(lasted > _PAUSE)
    # Nobody saw them twice, so no topic was recreated.
    once = epochs.join(F.broadcast(far.select("cluster").distinct()), "cluster", "left_semi").where(
        F.size("sights") == F.size(F.array_distinct(F.col("sights")["sidecar"]))
    )
    clocks = by_sights(once.withColumn("sights", _of_each(F.col("sights"))), "cluster")
    middle = F.round(F.col("spread")[1]).cast("long")
    return (
        clocks.where((F.col("apart") >= ENOUGH) & (F.abs(middle) > _WRONG_S * _MICROS))
        .groupBy("cluster")
        .agg(F.map_from_entries(F.collect_list(F.struct("sidecar", middle))).alias("wrong"))
    )


def _roughly_corrected(sights: Column, wrong: Column) -> Column:
    """Sights in the order of ``rough_at``, their times by clocks that are right to the minute."""
    names = ("at", "sidecar", "epoch_before", "leader_before", "leader")
    rough = F.transform(
        sights,
        lambda sight: F.struct(
            (sight["at"] - ahead_us(wrong, sight["sidecar"])).alias("rough_at"),
            *(sight[name].alias(name) for name in names),
        ),
    )
    # They are in the order of ``at``, which is that of right clocks.
    return F.when(wrong.isNull(), rough).otherwise(F.sort_array(rough))


def _generations(sights: Column) -> Column:
    """Sights of one epoch, in order, as an array of those of each topic that had the name."""

    def begins(number: Column) -> Column:
        at, before = (
            F.element_at(sights, n)["rough_at"] for n in (number, F.greatest(number - 1, one))
        )
        return (number == one) | (at - before > _PAUSE)

    one, count = F.lit(1), F.size(sights)
    beginnings = F.filter(F.sequence(one, count), begins)
    parts = F.transform(
        beginnings,
        lambda begin, number: F.slice(
            sights, begin, F.coalesce(F.try_element_at(beginnings, number + 2), count + 1) - begin
        ),
    )
    lasted = F.element_at(sights, -1)["rough_at"] - F.element_at(sights, 1)["rough_at"]
    return F.when(lasted <= _PAUSE, F.array(sights)).otherwise(parts)


def _of_each(sights: Column) -> Column:
    """The first sight of each sidecar, as (sidecar, at), from sights in order."""
    sidecars = sights["sidecar"]
    first = F.filter(
        sights, lambda sight, number: F.array_position(sidecars, sight["sidecar"]) == number + 1
    )
    each = F.when(F.size(F.array_distinct(sidecars)) == F.size(sights), sights).otherwise(first)
    return F.transform(
        each, lambda sight: F.struct(*(sight[name].alias(name) for name in ("sidecar", "at")))
    )
