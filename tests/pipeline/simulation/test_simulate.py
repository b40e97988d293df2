"""One simulation."""

import numpy as np
import pytest

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.simulate import simulate
from tests.pipeline.simulation.fleets import small


@pytest.mark.parametrize("mode", Mode)
def test_the_same_seed_gives_the_same_outcome(mode: Mode) -> None:
    one, again, other = (simulate(small(), mode, seed) for seed in (1, 1, 2))
    assert (one.stalls.lengths == again.stalls.lengths).all()
    assert one.counts == again.counts
    assert one.produce.percentile(0.999) == again.produce.percentile(0.999)
    assert not np.array_equal(one.stalls.lengths, other.stalls.lengths)


def test_all_records_of_the_event_are_counted() -> None:
    of = simulate(small(), Mode.NO_PROXY, 1)
    assert of.moves == 84
    assert of.duration_ms == 330_000 + 60_000
    assert of.records == pytest.approx(390 * 1650)
    for latencies in (of.produce, of.consume):
        assert latencies.late(0) == pytest.approx(of.records)


def test_figures_are_of_at_least_the_duration_that_is_given() -> None:
    assert simulate(small(duration_s=4200), Mode.NO_PROXY, 1).duration_ms == 4_200_000


def test_a_roll_takes_as_long_with_brokers_that_lead_nothing() -> None:
    topics = [{"name": "t", "partitions": 4}]
    of = simulate(small(cluster={"brokers": 12}, topics=topics), Mode.NO_PROXY, 1)
    # The last of them stops after eleven pauses, 30 s later it is started, and leaders would
    # return after 60 s more.
    assert of.duration_ms == 11 * 120_000 + 90_000 + 60_000
    assert of.records == pytest.approx(of.duration_ms * 0.55)


def test_a_longer_pause_makes_no_stall_longer() -> None:
    def median(pause: float) -> float:
        event = {"kind": "rolling_restart", "pause_s": pause}
        return float(np.median(simulate(small(event=event), Mode.NO_PROXY, 1).stalls.lengths))

    assert median(120) == median(1200)


def test_late_metadata_makes_stalls_longer_and_hints_save_them() -> None:
    def mean(mode: Mode, late: float) -> float:
        clients = [{"name": "p", "role": "producer", "version": "3.9", "records_per_second": 500}]
        fleet = small(clients=clients, parameters={"late_metadata_ms": late})
        return float(simulate(fleet, mode, 1).stalls.lengths.mean())

    assert mean(Mode.NO_PROXY, 3000) > 2 * mean(Mode.NO_PROXY, 0)
    assert mean(Mode.NATIVE, 3000) < 0.5 * mean(Mode.NO_PROXY, 3000)


def test_a_lost_broker_costs_its_session() -> None:
    of = simulate(small(event={"kind": "broker_loss"}), Mode.NO_PROXY, 1)
    assert of.stalls.lengths.max() > 15_000
