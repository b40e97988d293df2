"""Duplicates and gaps, against sets of numbers."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from leader_hints_report.journal.runs import journal_runs, words
from tests.pipeline.lines import event, frame, latency

_NUMBERS = st.lists(st.integers(0, 200), min_size=1, max_size=40)


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(_NUMBERS, min_size=3, max_size=10))
def test_numbers_are_counted_exactly(spark: SparkSession, runs: list[list[int]]) -> None:
    events = [
        latency(0, seq, 1.0, run=f"run-{number}")
        for number, seqs in enumerate(runs)
        for seq in seqs
    ]
    stored = frame(spark, events)
    counted = words(stored)
    rows = {row["run"]: row for row in journal_runs(counted, stored).collect()}
    for number, seqs in enumerate(runs):
        row, different = rows[f"run-{number}"], set(seqs)
        assert row["events"] == len(different)
        assert row["duplicates"] == len(seqs) - len(different)
        assert (row["first_seq"], row["last_seq"]) == (min(seqs), max(seqs))
        assert row["missing"] == len(set(range(min(seqs), max(seqs) + 1)) - different)


def test_gaps_are_reported_once_and_ends_are_seen(spark: SparkSession) -> None:
    gap: dict[str, Any] = {"reason": "full", "dropped": 3, "first_seq": 1, "last_seq": 3}
    events = [
        event("start", 0, 0, software="leader-hints", software_version="1", hints="on"),
        event("gap", 1, 4, **gap),
        event("gap", 1, 4, **gap),
        latency(2, 6, 1.0),
        event("stop", 3, 7),
    ]
    stored = frame(spark, events)
    (row,) = journal_runs(words(stored), stored).collect()
    assert (row["missing"], row["told"], row["duplicates"]) == (4, 3, 1)
    assert (row["began"], row["stopped"], row["cluster"]) == (True, True, "c")
