"""All records in closed form: each counts once, and percentiles are those of drawn records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints_report.simulation.latencies import Base, Latencies

_BASE = Base(p50=3, p99=12, tail=3.3)
_STALLS = st.lists(
    st.tuples(st.floats(1, 10_000), st.floats(0, 5), st.sampled_from([0.0, 1.0])), max_size=20
)


def _latencies(records: float, stalls: list[tuple[float, float, float]]) -> Latencies:
    columns = np.array(stalls, dtype=np.float64).reshape(-1, 3)
    return Latencies(records, _BASE, columns[:, 0], columns[:, 1], columns[:, 2])


def test_the_base_has_its_percentiles() -> None:
    assert _BASE.beyond(3) == pytest.approx(0.5)
    assert _BASE.beyond(12) == pytest.approx(0.01)
    assert _BASE.beyond(24) == pytest.approx(0.01 / 2**3.3)
    quiet = _latencies(1e6, [])
    assert quiet.percentile(0.5) == pytest.approx(3, rel=1e-6)
    assert quiet.percentile(0.99) == pytest.approx(12, rel=1e-6)


@settings(max_examples=200, deadline=None)
@given(records=st.floats(1e5, 1e9), stalls=_STALLS)
def test_each_record_is_counted_once(
    records: float, stalls: list[tuple[float, float, float]]
) -> None:
    all_records = _latencies(records, stalls)
    assert all_records.late(0) == pytest.approx(all_records.records)
    assert all_records.late_by_stall(0) == pytest.approx(all_records.stalled)


@settings(max_examples=100, deadline=None)
@given(records=st.floats(1e5, 1e9), stalls=_STALLS)
def test_percentiles_rise(records: float, stalls: list[tuple[float, float, float]]) -> None:
    all_records = _latencies(records, stalls)
    found = [all_records.percentile(share) for share in (0.5, 0.9, 0.99, 0.999, 0.9999)]
    assert found == sorted(found)


def test_a_stall_delays_records_as_they_come() -> None:
    all_records = _latencies(1e6, [(100, 2, 1)])
    # One waits for all of it, and two a millisecond come while it lasts.
    assert all_records.stalled == 201
    assert all_records.late_by_stall(90) == pytest.approx(21)
    assert all_records.late_by_stall(100) == 0


def test_percentiles_are_those_of_drawn_records() -> None:
    random = np.random.default_rng(1)
    lengths = random.exponential(500, 300)
    stalls = [(float(length), 1.0, 0.0) for length in lengths]
    records = 1e6
    drawn = np.concatenate([random.uniform(0, length, int(length)) for length in lengths])
    rest = np.sort(
        3 * np.exp(np.log(4) / 2.3263 * random.standard_normal(int(records) - len(drawn)))
    )
    rest = rest[rest < 12]
    everything = np.sort(np.concatenate([rest, drawn]))
    wanted = everything[-int(0.001 * records)]
    assert _latencies(records, stalls).percentile(0.999) == pytest.approx(wanted, rel=0.05)


def test_no_records_have_no_latency() -> None:
    assert _latencies(0, []).percentile(0.999) == 0


def test_more_records_make_a_stall_count_less() -> None:
    few = _latencies(1e5, [(1000, 1, 1)])
    assert few.of_records(1e8).percentile(0.999) < few.percentile(0.999)
