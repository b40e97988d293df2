"""Whether journals are whole: numbers that came twice, and numbers that are missing.

A run numbers its events without gaps. So 63 numbers fit into a word of bits. A word and a count for
each 63 lines are exact, and Spark moves little data between machines.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
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


def journal_runs(words_: DataFrame, events: DataFrame) -> DataFrame:
    """The table of that name, from :func:`words`; of ``events`` only gaps are looked at."""
    run = ("day", "sidecar", "run")
    told = (
        events.where(F.col("event") == "gap")
        .dropDuplicates([*run, "seq"])
        .groupBy(*run)
        .agg(F.sum("dropped").alias("told"))
    )
    different = F.sum(F.bit_count("seen"))
    counted = words_.groupBy(*run).agg(
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        different.alias("events"),
        (F.sum("lines") - different).alias("duplicates"),
        (F.max("last_seq") - F.min("first_seq") + 1 - different).alias("missing"),
        F.max("began").alias("began"),
        F.max("stopped").alias("stopped"),
        F.coalesce(F.max("cluster"), F.lit(UNKNOWN_CLUSTER)).alias("cluster"),
    )
    return counted.join(told, [*run], "left").withColumn("told", F.coalesce("told", F.lit(0)))
