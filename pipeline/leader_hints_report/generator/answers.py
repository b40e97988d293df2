"""Answers: what the tables must give for a fleet.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.generator.fleet import BROKERS, Fleet, skew_us


def write_answers(
    moves: DataFrame, episodes: DataFrame, read: DataFrame, fleet: Fleet, out: str
) -> None:
    """The expected content of the tables, in their columns if they have such."""
    expected = {
        "leader_moves": moves.select(
            "cluster",
            "topic",
            "partition",
            "epoch",
            (F.col("after") + 1).alias("leader"),
            (F.col("before") + 1).alias("leader_before"),
            (F.col("before") != F.col("after")).alias("moved"),
            F.lit(BROKERS).alias("sidecars"),
        ),
        "recoveries": episodes.select(
            "cluster",
            "client_id",
            "software",
            "software_version",
            "api",
            "topic",
            "partition",
            "epoch",
            F.timestamp_micros("start").alias("first_error"),
            (F.col("recovery_us") / 1000).alias("recovery_ms"),
            "errors",
            "hinted",
            "would_hint",
            F.when(F.col("would_hint"), F.col("errors")).otherwise(0).alias("would_hints"),
            "observed",
            "reason",
            "settling",
            "uses",
            (F.col("before") + 1).alias("node_from"),
            (F.col("after") + 1).alias("node_to"),
        ),
        "incidents": moves.groupBy("cluster", "slot", "kind")
        .agg(F.timestamp_micros(F.min("at")).alias("began"), F.count("*").alias("moves"))
        .withColumn("kind", F.when(F.col("kind") == "election", "other").otherwise(F.col("kind"))),
        "clock_skew": episodes.select(F.col("sidecar_from").alias("sidecar"), "cluster")
        .distinct()
        .withColumn("skew_ms", skew_us(fleet, "sidecar") / 1000),
        "rack_reads": read.groupBy("cluster", "topic", "client_id", "rack").agg(
            F.coalesce(F.sum(F.when(~F.col("crosses"), F.col("bytes"))), F.lit(0)).alias(
                "same_bytes"
            ),
            F.coalesce(F.sum(F.when(F.col("crosses"), F.col("bytes"))), F.lit(0)).alias(
                "crossing_bytes"
            ),
            F.sum("avoidable_bytes").alias("avoidable_bytes"),
            F.count_if("named").alias("named"),
        ),
    }
    for name, frame in expected.items():
        frame.write.mode("overwrite").parquet(f"{out}/answers/{name}")
