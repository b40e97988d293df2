"""Turns on the event loop for long work."""

from collections.abc import Iterator
from time import monotonic

import trio


class Turns:
    """Long work is done in turns, so that links are served in between.

    All tasks together have one turn at a time, one after the other: answers of a hundred brokers at
    once leave no less for links than that of one. ``seconds``: how long a turn lasts. It is
    measured and not counted in topics or partitions: what one of them costs depends on who takes
    the events that it makes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = trio.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._lock.statistics().tasks_waiting

    async def take(self, steps: Iterator[None]) -> None:
        """Do all ``steps``, in as many turns as they need."""
        while True:
            async with self._lock:
                over_at = monotonic() + self._seconds
                for _ in steps:
                    if monotonic() >= over_at:
                        break
                else:
                    return
