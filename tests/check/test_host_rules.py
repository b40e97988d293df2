"""Rules about the machine."""

from dataclasses import replace
from typing import Any

import pytest

from leader_hints.check.findings import Finding
from leader_hints.check.rules import judge
from tests.check.samples import BOUNDS, MACHINE


def machine(**changes: Any) -> Finding:
    """The one finding about a machine that the changes bring."""
    before = set(judge((), MACHINE, BOUNDS))
    (change,) = set(judge((), replace(MACHINE, **changes), BOUNDS)) - before
    return change


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"connections": 32641}, "descriptors_few"),
        ({"connections": 32640}, "descriptors_enough"),
        ({"connections": None}, "descriptors_enough"),
        ({"connections": None, "descriptors": 1024}, "descriptors_unknown"),
        ({"connections": 0, "descriptors": 8}, "descriptors_enough"),
        ({"synchronised": False}, "clock_not_synchronised"),
        ({"synchronised": None}, "clock_unknown"),
        ({"clock_error_ms": 3}, "clock_synchronised"),
    ],
)
def test_the_machine(changes: dict[str, Any], code: str) -> None:
    assert machine(**changes).code == code


def test_how_many_descriptors_are_needed() -> None:
    text = machine(descriptors=1024, connections=1000).text

    assert text.startswith("1024 file descriptors are allowed, and 2256 are needed for the 1000 ")
