"""Whether journals are whole: numbers that came twice, and numbers that are missing.

A run numbers its events without gaps. So 63 numbers fit into a word of bits. A word and a count for
each 63 lines are exact, and Spark moves little data between machines.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from leader_hints_report.tables.columns import UNKNOWN_CLUSTER

_BITS: Final = 63


def word_of(seq: Column) -> Column:
    """The number of the word that holds ``seq``."""
    return F.floor(seq / F.lit(_BITS))


def words(events: DataFrame) -> DataFrame:
    """One row for each day, run, cluster and word: ``seen``, its bits, and ``lines``, how many.

    All that is summed up is of fixed width, so that Spark counts in a hash table, without sorting.
    The same event has the same day and cluster each time it comes.
    """
    kind = F.col("event")
    key = ("day", "sidecar", "run", "cluster")
    return events.groupBy(*key, word_of(F.col("seq")).alias("word")).agg(
        F.expr(f"bit_or(shiftleft(1L, int(seq % {_BITS})))").alias("seen"),
        F.count("*").alias("lines"),
        F.min("seq").alias("first_seq"),
        F.max("seq").alias("last_seq"),
        F.max(kind == "start").alias("began"),
        F.max(kind == "stop").alias("stopped"),
    )


def repeated(words_: DataFrame) -> DataFrame:
    """The words in which a number came twice: columns ``run`` and ``word``."""
    return words_.where(F.col("lines") > F.bit_count("seen")).select("run", "word").distinct()


def journal_runs(
    words_: DataFrame, events: DataFrame, others: DataFrame | None = None
) -> DataFrame:
    """The table of that name, from :func:`words`; of ``events`` only gaps are looked at.

    ``others``: rows of it of other days. A run's numbers go on from day to day, so what was lost
    over midnight is missing on the later day.
    """
    run = ("day", "sidecar", "run")
    reported = (
        events.where(F.col("event") == "gap")
        # So that neither of the two groupings needs a shuffle of its own.
        .repartition(*run)
        .dropDuplicates([*run, "seq"])
        .groupBy(*run)
        .agg(F.sum("dropped").alias("reported"))
    )
    different = F.sum(F.bit_count("seen"))
    counted = words_.groupBy(*run).agg(
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        different.alias("events"),
        (F.sum("lines") - different).alias("duplicates"),
        F.max("began").alias("began"),
        F.max("stopped").alias("stopped"),
        F.coalesce(F.max("cluster"), F.lit(UNKNOWN_CLUSTER)).alias("cluster"),
    )
    if others is not None:
        counted = counted.unionByName(others.select(*counted.columns))
    counted = counted.withColumn("missing", _missing())
    number = F.coalesce("reported", F.lit(0))
    return counted.join(reported, [*run], "left").withColumns({"reported": number, "told": number})


def _missing() -> Column:
    """How many numbers are missing on each day of a run: between its own ones, and from the largest
    of earlier days on."""
    in_order = Window.partitionBy("sidecar", "run").orderBy("first_seq", "day")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    from_ = F.coalesce(F.max("last_seq").over(earlier), F.col("first_seq") - 1)
    lacks = F.greatest(F.col("last_seq"), from_) - from_ - F.col("events")
    # A clock that was put back over midnight has put numbers of one day among those of the other.
    found_later = F.least(F.coalesce(F.lead(lacks).over(in_order), F.lit(0)), F.lit(0))
    return F.greatest(lacks + found_later, F.lit(0))
