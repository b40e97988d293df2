"""Parameters: each has a source and a range, and a wrong one is refused in a line."""

import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.parameters import Parameters, parameters


def test_each_parameter_has_a_source_and_its_value_is_in_its_range() -> None:
    for name, field in Parameters.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        assert extra["source"], name
        assert field.description, name
        low, high = extra["low"], extra["high"]
        assert isinstance(low, int | float)
        assert isinstance(high, int | float)
        assert low <= field.default <= high, name


def test_a_value_can_be_changed() -> None:
    assert parameters({"rtt_ms": 7}, "here").rtt_ms == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rtt": 1}, "here: rtt: there is no such setting; docs/simulation.md has all"),
        ({"rtt_ms": 1e9}, "here: rtt_ms: input should be less than or equal to 300"),
        ({"rtt_ms": float("nan")}, "here: rtt_ms: input should be a finite number"),
        ({"base_p50_ms": 20}, "here: base_p50_ms 20 is more than base_p99_ms 12"),
        ({"base_e2e_p50_ms": 30}, "here: base_e2e_p50_ms 30 is more than base_e2e_p99_ms 20"),
        (
            {"kraft_wait_low_ms": 400, "kraft_wait_high_ms": 300},
            "here: kraft_wait_low_ms 400 is more than kraft_wait_high_ms 300",
        ),
    ],
)
def test_a_wrong_one_is_refused(values: dict[str, float], words: str) -> None:
    with pytest.raises(PipelineError) as refused:
        parameters(values, "here")
    assert str(refused.value) == words
