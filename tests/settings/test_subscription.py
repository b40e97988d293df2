"""The subscription's settings: pauses, and times in seconds."""

import pytest
from pydantic import ValidationError

from leader_hints.settings.subscription import SubscriptionSettings
from tests.settings.samples import settings_of


def test_refuses_pauses_that_shrink() -> None:
    with pytest.raises(ValidationError, match="must be at least reconnect_min_ms 6000"):
        settings_of(subscription={"reconnect_min_ms": 6000})


def test_times_are_in_seconds() -> None:
    asking = SubscriptionSettings(
        poll_interval_ms=1500,
        refresh_interval_ms=20,
        answer_timeout_ms=30,
        reconnect_min_ms=40,
        reconnect_max_ms=50,
    )

    assert (asking.poll_interval, asking.refresh_interval) == (1.5, 0.02)
    assert (asking.answer_timeout, asking.reconnect_min, asking.reconnect_max) == (0.03, 0.04, 0.05)
