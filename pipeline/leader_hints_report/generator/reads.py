"""What consumers that name a rack read, and the replicas that are named to them.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.generator.fleet import (
    BEGIN,
    BROKERS,
    RACKS,
    READERS,
    SECOND,
    SLOT_S,
    Fleet,
    chance,
    observes,
    sidecar_name,
)

_CLUSTER: Final = "cluster_number"


def made_reads(session: SparkSession, fleet: Fleet) -> DataFrame:
    """What each of them reads of each broker in each half hour, in ``bytes``.

    A consumer stays at a leader in another rack only where the sidecar observes. Else it reads one
    response there, and its ``replica`` is named in it.
    """
    number = F.col("id")
    broker = F.floor(number / READERS) % BROKERS
    rows = session.range(fleet.sidecars * READERS * fleet.slots).select(
        (number % READERS).cast("int").alias("client"),
        broker.cast("int").alias("broker"),
        (F.floor(number / READERS / BROKERS) % fleet.clusters).cast("int").alias(_CLUSTER),
        F.floor(number / READERS / fleet.sidecars).cast("int").alias("slot"),
    )
    of = (_CLUSTER, "broker", "client", "slot")
    much = (chance(fleet.seed, "bytes", *of) * 1e9).cast("long") + 1
    crosses, observed = F.col("client") % RACKS != F.col("broker") % RACKS, F.col("observed")
    return rows.withColumns(
        {
            "observed": observes(fleet, F.col("broker")),
            "crosses": crosses,
            "bytes": F.when(crosses & ~observed, 1_048_576).otherwise(much),
            "avoidable_bytes": F.when(crosses & observed, much - 1).otherwise(0),
            "named": crosses & ~observed,
            # The next broker in its rack.
            "replica": F.when(crosses, F.pmod(F.col("client"), F.lit(RACKS)) + 1).cast("int"),
            # At its end.
            "at": BEGIN + (F.col("slot").cast("long") + 1) * SLOT_S * SECOND - SECOND,
            "cluster": F.format_string("cluster-%03d", _CLUSTER),
            "topic": F.format_string("read-%d", F.col("client") % 2),
            "client_id": F.format_string("zoned-%d", "client"),
            "rack": _rack(F.col("client")),
            "broker_rack": _rack(F.col("broker")),
        }
    )


def _rack(number: Column) -> Column:
    return F.format_string("rack-%d", (number % RACKS).cast("int"))


def _on_a_link() -> list[Column | str]:
    return [
        sidecar_name(F.col(_CLUSTER), F.col("broker")).alias("sidecar"),
        "at",
        F.format_string("broker-%d", F.col("broker") + 1).alias("route"),
        F.col("client").cast("long").alias("link"),
        (F.col("broker") + 1).alias("node"),
        *(F.col(name) for name in ("cluster", "client_id", "topic", "rack")),
        F.lit("apache-kafka-java").alias("software"),
        F.lit("3.9.1").alias("software_version"),
    ]


def reads(made: DataFrame) -> DataFrame:
    """The events of what was read."""
    return made.select(
        F.lit("read").alias("event"),
        *_on_a_link(),
        "broker_rack",
        "bytes",
        "avoidable_bytes",
    )


def replicas(made: DataFrame) -> DataFrame:
    """The events of replicas that were named; where it is observed, once for each consumer."""
    return made.where(F.col("named") | (F.col("crosses") & (F.col("slot") == 0))).select(
        F.lit("replica").alias("event"),
        *_on_a_link(),
        F.lit(0).alias("partition"),
        "replica",
        F.lit(False).alias("returned"),
        "observed",
    )
