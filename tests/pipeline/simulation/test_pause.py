"""The search for a pause."""

import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arms import Arm, Mode, changed_fleet
from leader_hints_report.simulation.pause import shortest_pause
from leader_hints_report.simulation.simulate import simulate
from tests.pipeline.simulation.fleets import small


def test_the_pause_that_is_found_keeps_the_limit_and_a_shorter_one_does_not() -> None:
    event = {"kind": "rolling_restart", "pause_s": 120, "down_s": 1, "return_s": 1}
    arm = Arm(Mode.NO_PROXY, "", small(event=event))
    found = shortest_pause(arm, 0.999, 60, [1])
    assert found.pause_s is not None

    def p999(pause: float) -> float:
        fleet = changed_fleet(arm.fleet, f"pause_s={pause}")
        return simulate(fleet, Mode.NO_PROXY, 1).produce.percentile(0.999)

    assert p999(found.pause_s + 1) < 60 < p999(found.pause_s - 1)
    assert found.value == pytest.approx(p999(found.pause_s), rel=1e-6)


def test_brokers_that_lead_nothing_are_paused_for_too() -> None:
    topics = [{"name": "t", "partitions": 4}]
    event = {"kind": "rolling_restart", "pause_s": 120, "down_s": 1, "return_s": 1}
    arm = Arm(Mode.NO_PROXY, "", small(cluster={"brokers": 12}, topics=topics, event=event))
    found = shortest_pause(arm, 0.999, 30, [1])
    assert found.pause_s is not None
    assert found.pause_s > 2
    its = simulate(changed_fleet(arm.fleet, f"pause_s={found.pause_s}"), Mode.NO_PROXY, 1)
    assert found.value == pytest.approx(its.produce.percentile(0.999), rel=1e-6)
    assert found.hours == pytest.approx(its.duration_ms / 3_600_000)


def test_an_easy_limit_is_kept_with_the_shortest_pause_and_some_with_none() -> None:
    arm = Arm(Mode.NO_PROXY, "", small())
    assert shortest_pause(arm, 0.999, 1e6, [1]).pause_s == 90
    assert shortest_pause(arm, 0.999, 1, [1]).pause_s is None


@pytest.mark.parametrize("limit", [27, 34, 62])
def test_a_pause_is_one_of_whole_seconds_that_keeps_the_limit(limit: float) -> None:
    event = {"kind": "rolling_restart", "pause_s": 120, "down_s": 1, "return_s": 1.4}
    arm = Arm(Mode.NO_PROXY, "", small(topics=[{"name": "t", "partitions": 30}], event=event))
    pause = shortest_pause(arm, 0.999, limit, [1]).pause_s
    assert pause is not None
    # As it is printed.
    its = changed_fleet(arm.fleet, f"pause_s={pause:.0f}")
    assert simulate(its, Mode.NO_PROXY, 1).produce.percentile(0.999) < limit


def test_without_producers_there_is_no_latency_to_keep() -> None:
    arm = Arm(Mode.NO_PROXY, "", small(clients=[{"name": "c", "role": "consumer"}]))
    with pytest.raises(PipelineError, match="no producers"):
        shortest_pause(arm, 0.999, 1, [1])


def test_no_pause_is_shorter_than_the_batches_take() -> None:
    event = {"kind": "rolling_restart", "batch": 5, "batch_pause_s": 2}
    arm = Arm(Mode.NO_PROXY, "", small(event=event))
    # 4 s until the last batch has left, 30 s down, 60 s until the first returns, 4 s more.
    assert shortest_pause(arm, 0.999, 1e6, [1]).pause_s == 98


def test_other_events_have_no_pause() -> None:
    arm = Arm(Mode.NO_PROXY, "", small(event={"kind": "broker_loss"}))
    with pytest.raises(PipelineError, match="broker_loss has no pause"):
        shortest_pause(arm, 0.999, 1, [1])
