"""Holds: bounds, and times in seconds."""

import pytest
from pydantic import ValidationError

from leader_hints.settings.hold import HoldSettings
from tests.settings.samples import settings_of


@pytest.mark.parametrize("value", [True, "5", 5.0, -1, 10001, None])
def test_takes_only_whole_numbers_within_bounds(value: object) -> None:
    with pytest.raises(ValidationError):
        settings_of(hold={"deadline_ms": value})


def test_times_are_in_seconds() -> None:
    hold = HoldSettings(
        deadline_ms=1500,
        kraft_ms=600,
        shared_response_ms=20,
        grace_ms=30,
        link_ms_per_second=40,
        confirm_ms=50,
    )

    assert (hold.deadline, hold.shared_response, hold.grace) == (1.5, 0.02, 0.03)
    assert (hold.link_per_second, hold.confirm, hold.kraft) == (0.04, 0.05, 0.6)


@pytest.mark.parametrize(
    ("deadline", "link", "kraft", "most"),
    [
        (100, 100, 500, 500),
        (100, 700, 500, 500),
        (800, 700, 500, 700),
        (0, 100, 500, 0),
        (100, 0, 500, 0),
        (100, 50, 0, 50),
    ],
)
def test_kraft_brokers_are_waited_for_unless_nothing_is_held(
    deadline: int, link: int, kraft: int, most: int
) -> None:
    hold = HoldSettings(deadline_ms=deadline, link_ms_per_second=link, kraft_ms=kraft)
    assert hold.kraft_most_ms == most
