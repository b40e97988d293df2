"""Incidents: moves of a cluster that belong together, and what they were.

Moves without a pause of five minutes between them are one incident; a pause is measured in whole
seconds. The first rule of :data:`RULES` that holds tells its kind.

What the rules go by: a reassignment raises a partition's epoch once under the same leader before
the election that moves it. A broker that is restarted in order is left by its partitions, and they
come back to it. A broker that has failed is left by all of them in one go, and none comes back.
Leaders of a recreated topic, whose epochs are lower, left nobody.

Tested in ``tests/pipeline/tables/test_moves.py``.
"""

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from leader_hints_report.journal.events import day_of
from leader_hints_report.tables.recoveries import PATIENCE_S

PAUSE_S: Final = 300
#: Errors so many seconds after the last move are counted to an incident.
AFTERMATH_S: Final = 60
#: Brokers refuse clients before a sidecar knows of the move, which it asks for each minute. Errors
#: so many seconds before the first move are counted too if they lasted until then.
LEAD_S: Final = 60


class Rule(NamedTuple):
    """``holds``: an SQL condition over the columns of the table and of :func:`_facts`."""

    kind: str
    words: str
    holds: str


RULES: Final = (
    Rule("failure", "a partition had no leader", "leaderless > 0"),
    Rule(
        "reassignment",
        "at least half of the partitions that moved had their epoch raised under the same leader "
        "before",
        "prepared * 2 >= away and away > 0",
    ),
    Rule(
        "roll",
        "at least half of the partitions that moved came back to their first leader",
        "returned * 2 >= away and away > 0",
    ),
    Rule(
        "roll",
        "two or more brokers were left by their partitions, one after the other",
        "size(brokers_left) >= 2 and in_turn",
    ),
    Rule(
        "failure",
        "one broker was left by two or more partitions within 30 seconds, and none came back",
        "size(brokers_left) = 1 and away >= 2 and returned = 0 and left_seconds <= 30",
    ),
    Rule("other", "none of the other rules holds", "true"),
)


def named(moves: DataFrame) -> DataFrame:
    """Add ``incident`` and ``began_s`` to moves.

    Seconds with moves are far fewer than moves, so the one sort for a cluster is a small one.
    """
    second = F.floor(F.unix_micros("first_seen") / 1_000_000)
    moves = moves.withColumn("second", second)
    in_order = Window.partitionBy("cluster").orderBy("second")
    pause = F.col("second") - F.lag("second").over(in_order)
    begins = F.when(pause.isNull() | (pause > PAUSE_S), F.col("second"))
    seconds = (
        moves.select("cluster", "second")
        .distinct()
        .withColumn("begins", begins)
        .withColumn("began_s", F.last("begins", ignorenulls=True).over(in_order))
        .drop("begins")
    )
    name = F.concat("cluster", F.lit("@"), F.col("began_s").cast("string"))
    return moves.join(seconds, ["cluster", "second"]).withColumn("incident", name).drop("second")


def incidents(moves: DataFrame, recoveries: DataFrame) -> DataFrame:
    """The table of that name, from moves of :func:`named`, and what clients met meanwhile."""
    facts = _facts(moves)
    kind, words = F.lit(None).cast("string"), F.lit(None).cast("string")
    for rule in reversed(RULES):
        holds = F.expr(rule.holds)
        kind = F.when(holds, rule.kind).otherwise(kind)
        words = F.when(holds, rule.words).otherwise(words)
    judged = facts.withColumns({"kind": kind, "rule": words})
    meanwhile = _encounters(moves, recoveries)
    # A broker that is down answers nobody, so nothing was measured.
    measured = (F.col("kind") != "failure") | F.col("errors").isNotNull()

    def of(name: str, none: Column) -> Column:
        return F.when(measured, F.coalesce(name, none)).alias(name)

    return judged.join(meanwhile, ["cluster", "incident"], "left").select(
        "incident",
        "kind",
        "rule",
        "began",
        "ended",
        ((F.unix_micros("ended") - F.unix_micros("began")) / 1_000_000).alias("seconds"),
        "moves",
        "moved",
        "kept",
        "returned",
        "leaderless",
        "partitions",
        "brokers_left",
        "brokers_joined",
        of("errors", F.lit(0)),
        of("clients", F.lit(0)),
        of("lost_ms", F.lit(0.0)),
        day_of(F.col("began")).alias("day"),
        "cluster",
    )


def _facts(moves: DataFrame) -> DataFrame:
    """What the rules go by, one row for each incident.

    ``away``: partitions that moved; ``prepared``: those of them whose epoch was raised under the
    same leader first; ``in_turn``: no two brokers were left at the same time; ``left_seconds``: how
    long it took that partitions left.
    """
    whole = _by_incident(_by_broker(_by_partition(moves)))
    pairs = F.arrays_zip(
        F.slice("left", 1, F.greatest(F.size("left") - 1, F.lit(0))).alias("a"),
        F.slice("left", 2, F.size("left")).alias("b"),
    )
    return whole.withColumns(
        {
            "kept": F.col("moves") - F.col("moved"),
            "brokers_left": F.array_sort(F.transform("left", lambda one: one["node"])),
            "in_turn": F.forall(pairs, lambda two: two["a"]["left_until"] < two["b"]["left_from"]),
            "left_seconds": (
                F.array_max(F.transform("left", lambda one: one["left_until"]))
                - F.array_min(F.transform("left", lambda one: one["left_from"]))
            )
            / 1_000_000,
        }
    )


def _by_partition(moves: DataFrame) -> DataFrame:
    """What became of each partition in each incident."""
    partition = ("cluster", "incident", "topic", "partition")
    in_order = Window.partitionBy(*partition).orderBy("epoch", "first_seen")
    moved = F.col("moved")
    home = F.first(F.col("leader_before")).over(in_order)
    # Else the topic was recreated: its former leader was left by nobody.
    rose = F.col("epoch") > F.col("epoch_before")
    # A move back is not a departure: a broker that led for a while has not failed.
    away = moved & rose & (F.col("leader_before") == home) & (F.col("leader_before") >= 0)
    steps = moves.withColumns({"home": home, "away": away})
    return steps.groupBy(*partition).agg(
        F.count("*").alias("moves"),
        F.sum(moved.cast("int")).alias("moved"),
        F.sum((F.col("leader") == -1).cast("int")).alias("leaderless"),
        F.max("away").alias("away"),
        F.max(moved & rose & (F.col("leader") == F.col("home"))).alias("returned"),
        (F.min(F.when(~moved & rose, F.col("epoch"))) < F.min(F.when(moved, F.col("epoch")))).alias(
            "prepared"
        ),
        F.min("first_seen").alias("began"),
        F.max("first_seen").alias("ended"),
        F.first("home").alias("home"),
        F.min(F.when(F.col("away"), F.col("first_seen"))).alias("left"),
        F.collect_set(F.when(moved & (F.col("leader") >= 0), F.col("leader"))).alias("joined"),
    )


def _by_broker(partitions: DataFrame) -> DataFrame:
    """What became of the partitions of each broker, rows of :func:`_by_partition`."""
    return partitions.groupBy("cluster", "incident", "home").agg(
        F.sum("moves").alias("moves"),
        F.sum("moved").alias("moved"),
        F.sum("leaderless").alias("leaderless"),
        F.count("*").alias("partitions"),
        F.sum(F.col("away").cast("int")).alias("away"),
        F.sum(F.col("returned").cast("int")).alias("returned"),
        F.sum(F.coalesce(F.col("prepared") & F.col("away"), F.lit(False)).cast("int")).alias(
            "prepared"
        ),
        F.min("began").alias("began"),
        F.max("ended").alias("ended"),
        F.unix_micros(F.min("left")).alias("left_from"),
        F.unix_micros(F.max("left")).alias("left_until"),
        F.array_distinct(F.flatten(F.collect_set("joined"))).alias("joined"),
    )


def _by_incident(brokers: DataFrame) -> DataFrame:
    """The rows of :func:`_by_broker` put together; ``left``: when partitions left which broker."""
    left = F.collect_list(
        F.when(F.col("away") > 0, F.struct("left_from", "left_until", F.col("home").alias("node")))
    )
    return brokers.groupBy("cluster", "incident").agg(
        *(
            F.sum(name).cast("int").alias(name)
            for name in (
                "moves",
                "moved",
                "leaderless",
                "partitions",
                "away",
                "returned",
                "prepared",
            )
        ),
        F.min("began").alias("began"),
        F.max("ended").alias("ended"),
        F.array_sort(left).alias("left"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("joined")))).alias("brokers_joined"),
    )


def members(spans: DataFrame, recoveries: DataFrame) -> DataFrame:
    """Recoveries that clients had to wait for in each incident: their columns, and ``incident``.

    ``spans``: has ``cluster``, ``incident``, ``began`` and ``ended``. They are joined by stretches
    of five minutes, so that a recovery is compared with few incidents. Incidents are further apart
    than lead and aftermath together, so a recovery is in one at most.
    """
    began, ended = F.unix_micros("began"), F.unix_micros("ended") + AFTERMATH_S * 1_000_000
    earliest = began - LEAD_S * 1_000_000
    stretch = PAUSE_S * 1_000_000
    bounds = spans.select(
        "cluster",
        "incident",
        earliest.alias("from_at"),
        began.alias("began_at"),
        ended.alias("until_at"),
        F.explode(
            F.sequence(
                F.floor(earliest / stretch).cast("long"), F.floor(ended / stretch).cast("long")
            )
        ).alias("stretch"),
    )
    at = F.unix_micros("first_error")
    # A client that was not seen to recover failed for as long as its success was waited for.
    unseen_ms = F.when(F.col("recovery_ms").isNull(), PATIENCE_S * 1000).otherwise(0)
    lasted_ms = F.greatest(F.col("lost_ms") + unseen_ms, "hold_ms")
    lasting = recoveries.withColumns(
        {
            "at": at,
            "over_at": at + lasted_ms * 1000,
            "stretch": F.floor(at / stretch).cast("long"),
        }
    )
    inside = lasting.join(F.broadcast(bounds), ["cluster", "stretch"]).where(
        F.col("at").between(F.col("from_at"), F.col("until_at"))
        & (F.col("over_at") >= F.col("began_at"))
    )
    return inside.select(*recoveries.columns, "incident")


def _encounters(moves: DataFrame, recoveries: DataFrame) -> DataFrame:
    """What clients met in each incident."""
    # From :func:`_facts` these two would be worked out once more by way of partitions and brokers.
    spans = moves.groupBy("cluster", "incident").agg(
        F.min("first_seen").alias("began"), F.max("first_seen").alias("ended")
    )
    return (
        members(spans, recoveries)
        .groupBy("cluster", "incident")
        .agg(
            F.sum("errors").alias("errors"),
            F.count_distinct("client_id").alias("clients"),
            F.sum("lost_ms").alias("lost_ms"),
        )
    )
