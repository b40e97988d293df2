"""Duplicates and gaps, against sets of numbers."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from leader_hints_report.journal.runs import journal_runs, words
from tests.pipeline.lines import BEGIN, event, frame, latency

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


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(_NUMBERS, st.lists(st.integers(0, 200), max_size=3)), min_size=3, max_size=10
    ),
    st.booleans(),
)
def test_numbers_that_are_lost_over_midnight_are_missing(
    spark: SparkSession, runs: list[tuple[list[int], list[int]]], known: bool
) -> None:
    """A run of three days, whose numbers rise with time but for a few. ``known``: what is there of
    the first day is its row of the table."""
    events = [
        latency(86_400 * _day(seqs, seq, odd), seq, 1.0, run=f"run-{number}")
        for number, (seqs, odd) in enumerate(runs)
        for seq in set(seqs)
    ]
    stored = frame(spark, events)
    rows = journal_runs(words(stored), stored).collect()
    if known:
        first = stored.where(F.col("day") == F.lit(BEGIN.date()))
        others = journal_runs(words(first), first)
        later = stored.where(F.col("day") > F.lit(BEGIN.date()))
        made = journal_runs(words(later), later, others)
        rows = made.where(F.col("day") > F.lit(BEGIN.date())).collect() + others.collect()
    for number, (seqs, odd) in enumerate(runs):
        of_run = [row for row in rows if row["run"] == f"run-{number}"]
        lost = max(seqs) - min(seqs) + 1 - len(set(seqs))
        missing = sum(row["missing"] for row in of_run)
        assert missing == lost if not odd else missing >= lost
        assert all(row["missing"] >= 0 for row in of_run)


def _day(seqs: list[int], seq: int, odd: list[int]) -> int:
    """Numbers of a run are of three days; the clock was put back at the odd ones."""
    return max(0, sorted(set(seqs)).index(seq) * 3 // len(set(seqs)) - (seq in odd))


def test_a_clock_that_is_put_back_over_midnight_loses_nothing(spark: SparkSession) -> None:
    events = [latency(86_400 * (seq in (11, *range(13, 21))), seq, 1.0) for seq in range(1, 21)]
    stored = frame(spark, events)
    rows = journal_runs(words(stored), stored).collect()
    assert [row["missing"] for row in rows] == [0, 0]


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
    assert (row["missing"], row["reported"], row["duplicates"]) == (4, 3, 1)
    assert row["told"] == 3  # The name of `reported` up to version 0.1.
    assert (row["began"], row["stopped"], row["cluster"]) == (True, True, "c")
