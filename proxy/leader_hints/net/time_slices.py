"""Time slices on the event loop for long work."""

from collections.abc import Iterator
from time import monotonic
from typing import TypeVar

import trio

from leader_hints.wire.steps import Steps

_T = TypeVar("_T")

#: Seconds for which long work is done before other tasks get their turn.
_SLICE = 0.004


class TimeSlices:
    """Long work is done in slices of time, so that links are served in between.

    All work that is given to one object has one slice at a time, one after the other. So the
    answers of a hundred brokers, which share one, leave no less time for links than that of one
    broker. The sweep of links and the drain have one each. ``seconds``: how long a slice lasts. It
    is measured and not counted in topics or partitions: what one of them costs depends on what
    takes the events that it makes.
    """

    def __init__(self, seconds: float = _SLICE) -> None:
        self._seconds = seconds
        self._lock = trio.Lock()

    @property
    def waiting(self) -> int:
        """How many tasks wait for their slice."""
        return self._lock.statistics().tasks_waiting

    async def take(self, steps: Iterator[None]) -> None:
        """Do all ``steps``, in as many slices as they need."""
        while True:
            async with self._lock:
                over_at = monotonic() + self._seconds
                for _ in steps:
                    if monotonic() >= over_at:
                        break
                else:
                    return


async def in_turns(steps: Steps[_T]) -> _T:
    """Do all ``steps``, with others' turns in between, and return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: _T = end.value
            return done
        await trio.lowlevel.checkpoint()
