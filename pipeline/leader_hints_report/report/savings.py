"""Savings: what hints saved, of recoveries with a hint and those that would have had one.

Tested in ``tests/pipeline/report/test_gathering.py``.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: Fewest recoveries of each kind from which a saving is estimated, and how many stretches of time
#: they must be of at least. What moves leaders makes many of them slow or quick together, so for
#: the interval those of a stretch are one observation.
LEAST: Final = 20
LEAST_STRETCHES: Final = 10
_STRETCH_S: Final = 10
#: So many standard errors on both sides have the truth in 95 of 100 cases.
CERTAIN: Final = 1.96
#: What a client version is.
CLIENT_VERSION: Final = ("software", "software_version", "api")


def stretch() -> Column:
    """The stretch of time that a recovery began in."""
    return F.floor(F.unix_micros("first_error") / (_STRETCH_S * 1_000_000))


def saved(episodes: DataFrame) -> DataFrame:
    """What hints saved, by client version, with an interval; only of those where it can be said.

    Elections are slow where a hold expires, so such recoveries are longer than any with a hint
    would have been. Those that would have had a hint, and were only observed, are alike. Clusters
    are compared with themselves alone.
    """
    kinds = {"with": F.col("hinted"), "observed": F.col("would_hint")}
    kind = F.when(kinds["with"], "with").when(kinds["observed"], "observed")
    of_cluster = (*CLIENT_VERSION, "cluster")
    stretches = (
        episodes.where(kind.isNotNull() & F.col("recovery_ms").isNotNull())
        .groupBy(*of_cluster, kind.alias("kind"), stretch().alias("stretch"))
        .agg(F.count("*").alias("n"), F.sum("recovery_ms").alias("took"))
    )
    means = stretches.groupBy(*of_cluster).agg(*(_mean_of(name).alias(name) for name in kinds))
    with_, observed = F.col("with"), F.col("observed")
    enough = reduce(
        lambda a, b: a & b,
        ((of["n"] >= LEAST) & (of["stretches"] >= LEAST_STRETCHES) for of in (with_, observed)),
    )
    gain = with_["n"] * (observed["mean"] - with_["mean"])
    variance = with_["n"] * with_["n"] * (observed["variance"] + with_["variance"])
    summed = (
        means.where(enough)
        .groupBy(*CLIENT_VERSION)
        .agg(
            F.sum(gain).alias("saved_ms"),
            (CERTAIN * F.sqrt(F.sum(variance))).alias("wide"),
        )
    )
    return summed.select(
        *CLIENT_VERSION,
        "saved_ms",
        (F.col("saved_ms") - F.col("wide")).alias("saved_low_ms"),
        (F.col("saved_ms") + F.col("wide")).alias("saved_high_ms"),
    )


def _mean_of(kind: str) -> Column:
    """Of rows by ``stretch`` with ``n`` recoveries that ``took`` so long together: ``n``,
    ``stretches``, the ``mean`` recovery, and the ``variance`` of that mean.

    That of a ratio of sums, each stretch as one observation (Cochran, Sampling Techniques, 6.4).
    """
    of_kind = F.col("kind") == kind

    def total(of: Column) -> Column:
        return F.sum(F.when(of_kind, of))

    n, took = F.col("n"), F.col("took")
    count, stretches = total(n), total(F.lit(1))
    mean = total(took) / count
    squares = total(took * took) - 2 * mean * total(took * n) + mean * mean * total(n * n)
    # Rounding may leave less than nothing.
    spread = F.greatest(squares, F.lit(0.0)) * stretches / F.nullif(stretches - 1, F.lit(0))
    return F.struct(
        count.alias("n"),
        stretches.alias("stretches"),
        mean.alias("mean"),
        (spread / (count * count)).alias("variance"),
    )
