"""Wait for conditions instead of sleeping."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
"""Short beside what is waited for, long beside one look at it: looks are a load on brokers."""

STILL_S = 5.0
"""From one look to the next nothing takes longer, unless the machine itself stands still: a
hypervisor held two cores for 117 seconds once, and every deadline had passed when they went on."""

#: Generous on purpose: it bounds a broken test, it measures nothing.
_deadline_s = ContextVar("_deadline_s", default=60.0)


class TimedOutError(AssertionError):
    """A condition did not come true before its deadline."""


@contextmanager
def patience(deadline_s: float) -> Iterator[None]:
    """Set how long waits take meanwhile, unless a call gives its own deadline."""
    before = _deadline_s.set(deadline_s)
    try:
        yield
    finally:
        _deadline_s.reset(before)


class _Deadline:
    """So many seconds, without those in which the machine was suspended."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._looked = time.monotonic()

    def passed(self) -> bool:
        """Look at the clock: one look counts for ``STILL_S`` seconds at most."""
        now = time.monotonic()
        self._left -= min(now - self._looked, STILL_S)
        self._looked = now
        return self._left <= 0


def until(condition: Callable[[], T | None], what: str, deadline_s: float | None = None) -> T:
    """Return the first true value of ``condition``.

    :raises TimedOutError: the condition was not true within ``deadline_s`` seconds, a minute if not
        given; see ``patience``.
    """
    if deadline_s is None:
        deadline_s = _deadline_s.get()
    deadline = _Deadline(deadline_s)
    while True:
        value = condition()
        if value:
            return value
        if deadline.passed():
            raise TimedOutError(f"not within {deadline_s:g} s: {what}")
        time.sleep(POLL_S)


def never(condition: Callable[[], object], what: str, span_s: float) -> None:
    """Watch for ``span_s`` seconds that a condition stays false."""
    deadline = _Deadline(span_s)
    while not deadline.passed():
        value = condition()
        assert not value, f"{what}: {value}"
        time.sleep(POLL_S)
