"""Percentiles, against values that were sorted and counted off."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from leader_hints_report.journal.runs import repeated, words
from leader_hints_report.tables.latencies import ERROR, latencies
from tests.pipeline.lines import BEGIN, Event, frame, latency

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_MICROS = st.one_of(st.integers(0, 20), st.integers(0, 100_000_000))
#: Microseconds, and how often the line came.
_SAMPLE = st.tuples(_MICROS, st.sampled_from([1, 1, 1, 1, 2, 3]))


def _percentile(values: list[float], share: float) -> float:
    """Between the two values around it, as far as it is from each."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


def _told(spark: SparkSession, events: list[Event]) -> list[Row]:
    stored = frame(spark, events)
    return latencies(stored, repeated(words(stored))).collect()


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(_SAMPLE, min_size=1, max_size=100), min_size=10, max_size=20))
def test_percentiles_are_those_of_all_samples(
    spark: SparkSession, clients: list[list[tuple[int, int]]]
) -> None:
    """Whatever came twice counts once, beside what happens to be equal."""
    events = [
        latency(0, seq, micros / 1000, software_version=f"{client}", run=f"run-{client}")
        for client, samples in enumerate(clients)
        for seq, (micros, copies) in enumerate(samples)
        for _ in range(copies)
    ]
    rows = {row["software_version"]: row for row in _told(spark, events)}
    assert len(rows) == len(clients)
    for client, samples in enumerate(clients):
        row, values = rows[f"{client}"], sorted(micros / 1000 for micros, _ in samples)
        assert (row["day"], row["cluster"], row["api"]) == (BEGIN.date(), "c", "Produce")
        assert (row["samples"], row["max_ms"]) == (len(values), values[-1])
        assert abs(row["mean_ms"] - sum(values) / len(values)) <= 1e-9 * values[-1]
        for name, share in _SHARES.items():
            exact = _percentile(values, share)
            assert abs(row[f"{name}_ms"] - exact) <= 1e-9 * exact
            assert abs(row[f"{name}_approx_ms"] - exact) <= (ERROR + 1e-9) * exact


def test_samples_from_no_known_cluster_have_a_row(spark: SparkSession) -> None:
    rows = _told(spark, [latency(0, 0, 1.5, cluster=None)])
    assert [(row["cluster"], row["p999_ms"]) for row in rows] == [("unknown", 1.5)]
