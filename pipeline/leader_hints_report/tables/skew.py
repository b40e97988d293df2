"""How far clocks of sidecars are apart.

Errors and successes compare two clocks within what a quick recovery takes: see
:mod:`leader_hints_report.tables.clock_pairs`. Where there are too few, sights of moves do: sidecars
learn of a move within a minute, by an error or at their next poll. What is learned by one poll is
one sight, however many partitions moved. Only what is larger than the spread of these sights is a
clock's error.

Tested in ``tests/pipeline/tables/test_skew.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from leader_hints_report.tables.clock_pairs import clocks_by_pairs

#: With fewer sights apart from each other nothing is corrected.
ENOUGH: Final = 10
_DAY: Final = ("day", "cluster")
_MICROS: Final = 1_000_000
#: Nine of ten sights are between these.
_SHARES: Final = (0.05, 0.5, 0.95)


def clock_skew(moves: DataFrame, encounters: DataFrame) -> DataFrame:
    """The table of that name.

    ``moves``: of :func:`leader_hints_report.tables.moves.leader_moves`. ``encounters``: errors and
    successes.
    """
    clocks = by_sights(moves, *_DAY)
    low, high = F.col("spread")[0], F.col("spread")[2]
    # Else it may be no error at all, and nothing is corrected; but so much it may be.
    clear = F.greatest(low, -high) >= high - low
    sights = clocks.select(
        *_DAY,
        "sidecar",
        "moves",
        F.when(clear, (low + high) / 2).otherwise(0.0).alias("seen_us"),
        F.when(clear, (high - low) / 2)
        .otherwise(F.greatest(F.abs(low), F.abs(high)))
        .alias("seen_within_us"),
        (F.col("apart") >= ENOUGH).alias("enough"),
    )
    for name in ("seen_us", "seen_within_us"):
        sights = sights.withColumn(name, F.when(F.col("enough"), F.col(name)))
    return _together(sights.join(clocks_by_pairs(encounters), [*_DAY, "sidecar"], "full"))


def _together(clocks: DataFrame) -> DataFrame:
    """Rows of the table, from what sights and pairs say of each clock."""
    all_ = Window.partitionBy(*_DAY)
    best = F.coalesce("best", F.lit(False))
    compared = F.max(best).over(all_)

    def of_best(name: str) -> Column:
        """What sights say of the clock that pairs are compared with; null: they do not."""
        value = F.max(F.when(best, F.col(name))).over(all_)
        return F.when(compared, value).otherwise(0.0)

    others = F.min(F.when(~best, F.col("within_us"))).over(all_)
    clocks = clocks.withColumns(
        {
            "of": F.coalesce("ahead_us", F.col("seen_us") - of_best("seen_us")),
            "within": F.coalesce(
                F.when(best, others),
                "within_us",
                F.col("seen_within_us") + of_best("seen_within_us"),
            ),
        }
    )
    middle = F.percentile("of", F.lit(0.5)).over(all_)
    return clocks.select(
        "sidecar",
        F.coalesce("moves", F.lit(0)).cast("long").alias("moves"),
        ((F.col("of") - middle) / 1000).alias("skew_ms"),
        (F.col("within") / 1000).alias("bound_ms"),
        (F.col("of").isNotNull() & F.col("within").isNotNull()).alias("corrected"),
        *_DAY,
    )


def by_sights(moves: DataFrame, *of: str) -> DataFrame:
    """How far each sidecar's sights are from the middle ones of their moves.

    ``moves``: with ``sights``, arrays of (sidecar, at). ``of``: by which columns. Rows have
    ``sidecar``, ``moves``, ``apart``, how many sights are seconds apart from each other, and
    ``spread``, microseconds.
    """
    times = F.sort_array(F.col("sights")["at"])
    count = F.size("sights")
    # The middle one; of an even number the mean of the two in the middle.
    low = F.element_at(times, F.floor((count + 1) / 2).cast("int"))
    high = F.element_at(times, F.floor((count + 2) / 2).cast("int"))
    common = moves.where(count > 1).select(
        *of, ((low + high) / 2).alias("middle"), F.explode("sights").alias("sight")
    )
    at = F.col("sight")["at"]
    # Many partitions that one poll was about are one sight.
    once = common.groupBy(
        *of,
        F.col("sight")["sidecar"].alias("sidecar"),
        F.floor(at / _MICROS).alias("own_second"),
        F.floor(F.col("middle") / _MICROS).alias("middle_second"),
    ).agg(F.count("*").alias("moves"), F.avg(at - F.col("middle")).alias("offset"))
    own, middle = (F.size(F.collect_set(name)) for name in ("own_second", "middle_second"))
    return once.groupBy(*of, "sidecar").agg(
        F.sum("moves").alias("moves"),
        F.least(own, middle).alias("apart"),
        F.percentile("offset", F.array(*(F.lit(share) for share in _SHARES))).alias("spread"),
    )


def ahead_us(skews: Column, sidecar: Column) -> Column:
    """By how many microseconds a sidecar's clock is ahead, from a map of such; one that is not in
    it is taken to be right."""
    return F.coalesce(F.try_element_at(skews, sidecar), F.lit(0))


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
