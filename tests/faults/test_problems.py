"""What is said of a fault, or of a whole scenario, that is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.faults.fault import Fault
from leader_hints.faults.problems import problems
from leader_hints.faults.scenario import Scenario

_ACTIONS = "'error', 'delay', 'throttle', 'cut', 'drop', 'refuse' or 'stale_metadata'"


def _problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        Fault.model_validate(values)
    return problems(refused.value, "fault")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "action: it is missing"),
        ({"action": "explode"}, f"action: must be {_ACTIONS}"),
        ({"action": 5}, f"action: must be {_ACTIONS}"),
        ({"action": "drop", "colour": 1}, "colour: there is no such option"),
        ({"action": "delay", "delay_ms": -4}, "delay_ms: must be 0 or more"),
        ({"action": "delay", "delay_ms": 600_001}, "delay_ms: must be 600000 or less"),
        ({"action": "delay", "delay_ms": "soon"}, "delay_ms: must be a whole number"),
        ({"action": "delay", "delay_ms": None}, "delay_ms: must be a whole number"),
        ({"action": "delay", "delay_ms": 0.5}, "delay_ms: must be a whole number"),
        ({"action": "delay", "delay_ms": "1" * 5000}, "delay_ms: must be a whole number"),
        ({"action": "delay", "delay_ms": float("nan")}, "delay_ms: must be a whole number"),
        ({"action": "drop", "probability": 0}, "probability: must be more than 0"),
        ({"action": "drop", "probability": 4}, "probability: must be 1 or less"),
        ({"action": "drop", "probability": "often"}, "probability: must be a number"),
        ({"action": "drop", "probability": []}, "probability: must be a number"),
        ({"action": "drop", "topics": "orders"}, "topics: must be a list"),
        ({"action": "drop", "topics": [5]}, "topics.0: must be text"),
        (
            {"action": "cut", "delay_ms": 5},
            "fault: delay_ms is of action delay; cut has no such option",
        ),
        (
            {"action": "delay", "hint": "right"},
            "fault: hint is of action error; delay has no such option",
        ),
        (
            {"action": "drop", "apis": ["Produced"]},
            "apis: no such API: Produced; they are named as Produce is",
        ),
    ],
)
def test_each_is_one_sentence(values: dict[str, Any], reason: str) -> None:
    assert _problems(values) == [reason]


@pytest.mark.parametrize(("body", "reason"), [("no json", "fault: no JSON"), ("[]", "an object")])
def test_a_body_that_is_no_fault_at_all(body: str, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Fault.model_validate_json(body)
    (found,) = problems(refused.value, "fault")
    assert reason in found
    assert "Input should" not in found


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"steps": []}, "steps: must not be empty"),
        ({"steps": "now"}, "steps: must be a list"),
        ({"steps": [5]}, "steps.0: must be an object"),
        ({"steps": [{"at_ms": 0, "begin": []}]}, "steps.0.begin: must be an object"),
        ({"steps": [{"at_ms": 0, "begin": {"a": 5}}]}, "steps.0.begin.a: must be an object"),
        ([], "scenario: must be an object"),
    ],
)
def test_a_scenario(values: object, reason: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Scenario.model_validate(values)
    assert problems(refused.value, "scenario") == [reason]
