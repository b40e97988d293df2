"""Limits: their bounds, and their times in seconds."""

import math

import pytest
from pydantic import ValidationError

from leader_hints.settings.limits import LimitSettings
from tests.settings.samples import settings_of


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"link_buffer_bytes": 2**27}, "must be at least link_buffer_bytes 134217728"),
        # A default broker takes 100 MiB; the proxy must not refuse what the broker would take.
        ({"request_bytes": 104857599}, "greater than or equal to 104857600"),
        ({"request_bytes": 2**31}, "less than or equal to 2147483647"),
    ],
)
def test_refuses_limits_that_make_no_sense(settings: dict[str, int], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings_of(limits=settings)


def test_times_are_in_seconds_and_zero_is_never() -> None:
    limits = LimitSettings(first_bytes_ms=0, idle_ms=1500, linger_ms=2000)

    assert (limits.first_bytes, limits.idle, limits.linger) == (math.inf, 1.5, 2.0)
