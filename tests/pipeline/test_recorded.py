"""Journals of three real proxies, each before one broker of the embedded cluster, hints on.

Thirty leader moves of two partitions, a producer and a consumer of librdkafka. Recorded with
``make demo-report`` and packed; they are read packed.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from leader_hints_report.batch import run
from leader_hints_report.store.folder import Store

RECORDED = Path(__file__).parent / "recorded"


def test_what_real_proxies_wrote_is_understood(spark: SparkSession, tmp_path: Path) -> None:
    taken = run(spark, str(RECORDED), str(tmp_path / "out"))
    assert (taken.batches, taken.events, taken.bad) == (1, 1067, 0)
    store = Store(spark, str(tmp_path / "out"))

    moves = store.table("leader_moves").collect()
    assert len(moves) == 30
    assert sum(row["sidecars"] for row in moves) == 88
    met = store.table("recoveries").collect()
    assert len(met) == 60
    assert sum(row["errors"] for row in met) == 63
    assert all(row["hinted"] and row["recovered"] is not None for row in met)
    assert all(0 <= row["recovery_ms"] < 2000 for row in met)
    # Refused by one sidecar, served at another.
    assert all(row["sidecar_from"] != row["sidecar_to"] for row in met)
    assert all(row["software"] == "confluent-kafka-python" for row in met)
    # All of them ran on one machine.
    clocks = store.table("clock_skew").collect()
    assert len(clocks) == 3
    assert all(abs(row["skew_ms"]) < 30 and row["bound_ms"] < 60 for row in clocks)
    # Most errors came before the first sidecar knew of the move.
    assert sum(row["errors"] for row in store.table("incidents").collect()) == 63
    runs = store.table("journal_runs").collect()
    assert [(row["missing"], row["duplicates"]) for row in runs] == [(0, 0)] * 3
    assert all(row["began"] and row["stopped"] for row in runs)
    assert sum(row["samples"] for row in store.table("latencies").collect()) == 835
