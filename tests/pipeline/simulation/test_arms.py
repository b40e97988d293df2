"""Arms: modes, and changed settings."""

import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arms import Mode, arms, changed_fleet
from leader_hints_report.simulation.fleet import RollingRestart
from tests.pipeline.simulation.fleets import small


def test_each_change_is_made_to_each_mode() -> None:
    made = arms(small(), (Mode.HINTS, Mode.NATIVE), ("pause_s=600",))
    assert [arm.name for arm in made] == [
        "hints",
        "native",
        "hints, pause_s=600",
        "native, pause_s=600",
    ]
    event = made[2].fleet.event
    assert isinstance(event, RollingRestart)
    assert event.pause_s == 600


def test_what_is_given_twice_is_simulated_once() -> None:
    made = arms(small(), (Mode.HINTS, Mode.HINTS), ("batch=5", "batch=5"))
    assert [arm.name for arm in made] == ["hints", "hints, batch=5"]


def test_parameters_and_clients_may_be_changed() -> None:
    assert changed_fleet(small(), "deadline_ms=7").parameters.deadline_ms == 7
    clients = changed_fleet(small(), "retry_backoff_ms=50").clients
    assert {one.retry_backoff_ms for one in clients} == {50}


def test_null_is_what_it_is_in_the_file() -> None:
    event = changed_fleet(small(), "return_s=null").event
    assert isinstance(event, RollingRestart)
    assert event.return_s is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("pause_s", "it is no NAME=VALUE"),
        ("kind=x", "there is no such setting"),
        ("paus=1", "of this event there are pause_s"),
        ("pause_s=soon", "should be a valid number"),
        ("pause_s=1", "the next broker would stop"),
    ],
)
def test_a_wrong_change_is_refused(change: str, words: str) -> None:
    with pytest.raises(PipelineError) as refused:
        changed_fleet(small(), change)
    assert str(refused.value).startswith(f"--change {change}: ")
    assert words in str(refused.value)
