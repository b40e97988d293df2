"""Wait for conditions instead of sleeping."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
"""Between the first looks: short beside what is waited for, and long beside one look at it."""

_LONGEST_POLL_S = 0.2
_POLL_GROWTH = 1.2
"""Looks are a load on brokers and proxies, so what takes long is looked at less and less often."""

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


def until(
    condition: Callable[[], T | None],
    what: str,
    deadline_s: float | None = None,
    *,
    longest_poll_s: float = _LONGEST_POLL_S,
) -> T:
    """Return the first true value of ``condition``.

    ``longest_poll_s``: how many seconds may pass between two looks.

    :raises TimedOutError: the condition was not true within ``deadline_s`` seconds, a minute if not
        given; see ``patience``.
    """
    if deadline_s is None:
        deadline_s = _deadline_s.get()
    deadline, pause = _Deadline(deadline_s), POLL_S
    while True:
        value = condition()
        if value:
            return value
        if deadline.passed():
            raise TimedOutError(f"not within {deadline_s:g} s: {what}")
        time.sleep(pause)
        pause = min(pause * _POLL_GROWTH, longest_poll_s)


def never(condition: Callable[[], object], what: str, span_s: float) -> None:
    """Watch for ``span_s`` seconds that a condition stays false."""
    deadline = _Deadline(span_s)
    while not deadline.passed():
        value = condition()
        assert not value, f"{what}: {value}"
        time.sleep(POLL_S)
