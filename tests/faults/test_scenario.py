from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.faults.fault import Fault, Faults
from leader_hints.faults.scenario import Scenario

_DROP = {"action": "drop"}


def test_steps_begin_and_end_faults_by_name() -> None:
    scenario = Scenario.model_validate(
        {
            "seed": 3,
            "steps": [
                {"at_ms": 0, "begin": {"a": _DROP}},
                {"at_ms": 5, "end": ["a"], "begin": {"a": _DROP}},
            ],
        }
    )
    assert [step.at_ms for step in scenario.steps] == [0, 5]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "at least 1 item"),
        ([{"at_ms": 5}, {"at_ms": 4}], "in the order of at_ms"),
        ([{"at_ms": 0, "end": ["a"]}], "ends a, which has not begun"),
        (
            [{"at_ms": 0, "begin": {"a": _DROP}}, {"at_ms": 1, "begin": {"a": _DROP}}],
            "begins a, which has begun before",
        ),
        ([{"at_ms": -1}], "greater than or equal to 0"),
        ([{"at_ms": 0, "begin": {"a": {"action": "melt"}}}], "Input should be"),
    ],
)
def test_what_makes_no_sense_is_refused(steps: list[Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Scenario.model_validate({"steps": steps})


def _chosen(seed: int) -> list[bool]:
    faults = Faults(seed)
    faults.begin(Fault.model_validate({**_DROP, "probability": 0.5}))
    (begun,) = faults
    return [faults.due(begun) for _ in range(64)]


def test_the_same_seed_chooses_the_same_messages() -> None:
    assert _chosen(1) == _chosen(1)
    assert _chosen(1) != _chosen(2)
    assert 10 < sum(_chosen(1)) < 54


def test_a_fault_is_applied_as_often_as_asked() -> None:
    faults = Faults()
    faults.begin(Fault.model_validate({**_DROP, "times": 2}))
    (begun,) = faults
    assert [faults.due(begun) for _ in range(4)] == [True, True, False, False]
    assert list(faults) == []
