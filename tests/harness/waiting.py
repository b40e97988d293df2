"""Wait for conditions instead of sleeping."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
"""Short beside what is waited for, long beside one look at it: looks are a load on brokers."""

#: Generous on purpose: it bounds a broken test, it measures nothing.
_deadline_s = ContextVar("_deadline_s", default=60.0)


class TimedOutError(AssertionError):
    """A condition did not come true before its deadline."""


@contextmanager
def patience(deadline_s: float) -> Iterator[None]:
    """Have all that is waited for meanwhile take so many seconds, where nothing else is said."""
    before = _deadline_s.set(deadline_s)
    try:
        yield
    finally:
        _deadline_s.reset(before)


def until(condition: Callable[[], T | None], what: str, deadline_s: float | None = None) -> T:
    """Return the first true value of ``condition``.

    Raises:
        TimedOutError: the condition was not true within ``deadline_s`` seconds, a minute if not
            given; see ``patience``.
    """
    if deadline_s is None:
        deadline_s = _deadline_s.get()
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
