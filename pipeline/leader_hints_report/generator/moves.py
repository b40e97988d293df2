"""Leader moves of a fleet: every leader epoch of every partition.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.generator.fleet import BEGIN, BROKERS, KINDS, SECOND, SLOT_S, Fleet, chance

#: Epochs that one incident may use.
_EPOCHS: Final = 4


def made_moves(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Every leader epoch: where, from whom to whom, and when (``at``, by the right time)."""
    number = F.col("number")
    start = BEGIN + (F.col("slot") * SLOT_S + 60).cast("long") * SECOND
    one = F.col("one")
    return (
        _places(session, fleet)
        .withColumn("one", F.explode(_steps(fleet)))
        .select(
            "cluster_number",
            F.format_string("cluster-%03d", "cluster_number").alias("cluster"),
            "slot",
            "kind",
            "number",
            F.format_string("topic-%02d", (number / 20).cast("int")).alias("topic"),
            (number % 20).cast("int").alias("partition"),
            (F.col("slot") * _EPOCHS + one["step"]).cast("int").alias("epoch"),
            one["before"].alias("before"),
            one["after"].alias("after"),
            (start + F.round(one["seconds"] * SECOND)).cast("long").alias("at"),
        )
    )


def _places(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Each partition in each slot: the event, its preferred leader, and the next leader."""
    slots = session.range(fleet.clusters * fleet.slots).select(
        (F.col("id") % fleet.clusters).cast("int").alias("cluster_number"),
        F.floor(F.col("id") / fleet.clusters).cast("int").alias("slot"),
    )
    kind = F.element_at(F.array(*(F.lit(name) for name in KINDS)), F.col("slot") % len(KINDS) + 1)
    # A reassignment moves each third partition for good, by one broker.
    shift = F.floor((F.col("slot") + len(KINDS) - 2) / len(KINDS)).cast("int")
    plan = slots.withColumns({"kind": kind, "shift": shift})
    number = F.col("number")
    each = session.range(fleet.partitions).withColumnRenamed("id", "number")
    moves = plan.crossJoin(each).withColumn(
        "home",
        F.pmod(number + F.when(number % 3 == 0, F.col("shift")).otherwise(0), F.lit(BROKERS)),
    )
    place = ("cluster_number", "slot", "number")
    return moves.withColumns(
        {
            "next": F.pmod(
                F.col("home") + 1 + F.pmod(F.floor(number / BROKERS), F.lit(BROKERS - 1)),
                F.lit(BROKERS),
            ),
            "jitter": chance(fleet.seed, "jitter", *place) * 5,
            "failing": F.floor(F.col("slot") / len(KINDS)) % BROKERS,
        }
    )


def _steps(fleet: Fleet) -> Column:
    """What a partition goes through in a slot: an array of moves, null where there is none."""
    number = F.col("number")
    home, after, jitter = F.col("home"), F.col("next"), F.col("jitter")

    def step(seconds: Column, number: int, before: Column, leader: Column) -> Column:
        return F.struct(
            seconds.cast("double").alias("seconds"),
            F.lit(number).alias("step"),
            before.cast("int").alias("before"),
            leader.cast("int").alias("after"),
        )

    return (
        F.when(
            F.col("kind") == "roll",
            F.array(
                step(home * 60 + jitter, 1, home, after),
                step(home * 60 + 40 + jitter, 2, after, home),
            ),
        )
        .when(
            (F.col("kind") == "reassignment") & (number % 3 == 0),
            F.array(
                step(number * 120 / fleet.partitions, 1, home, home),
                step(number * 120 / fleet.partitions + 1, 2, home, F.pmod(home + 1, F.lit(6))),
            ),
        )
        .when(
            (F.col("kind") == "failure") & (home == F.col("failing")),
            F.array(step(jitter, 1, home, after)),
        )
        .when(
            (F.col("kind") == "election") & (home == F.col("failing")),
            F.array(step(jitter, 1, after, home)),
        )
    )
