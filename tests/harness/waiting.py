"""Wait for conditions instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
"""Short beside what is waited for, long beside one look at it: looks are a load on brokers."""


class TimedOutError(AssertionError):
    """A condition did not come true before its deadline."""


def until(condition: Callable[[], T | None], what: str, deadline_s: float = 60.0) -> T:
    """Return the first true value of ``condition``.

    The deadline is generous on purpose: it bounds a broken test, it measures nothing.

    Raises:
        TimedOutError: the condition was not true within ``deadline_s`` seconds.
    """
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimedOutError(f"not within {deadline_s:g} s: {what}")
        time.sleep(POLL_S)


def never(condition: Callable[[], object], what: str, span_s: float) -> None:
    """Watch for ``span_s`` seconds that a condition stays false."""
    end = time.monotonic() + span_s
    while time.monotonic() < end:
        value = condition()
        assert not value, f"{what}: {value}"
        time.sleep(POLL_S)
