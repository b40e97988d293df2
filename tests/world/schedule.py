"""What happens when: callbacks in the order of their times, and of their coming.

Where the proxy takes part this is Trio's clock, too. When no task can run Trio asks its clock how
long to sleep, and that is when the world goes on: until a task can run, or its deadline has come.
"""

import heapq
import itertools
import math
from collections.abc import Awaitable, Callable, Sized
from typing import TypeVarTuple, Unpack
from unittest.mock import patch

import trio

_Ts = TypeVarTuple("_Ts")
_trio_run = trio._core._run


class Schedule(trio.abc.Clock):
    """``now``: seconds since the world began."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._numbers = itertools.count()
        self.now = 0.0

    def after(self, seconds: float, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None:
        """Call something later."""
        heapq.heappush(self._heap, (self.now + seconds, next(self._numbers), call, arguments))

    def at(self, time: float, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None:
        """Call something at a time."""
        heapq.heappush(self._heap, (time, next(self._numbers), call, arguments))

    def run_until(self, end: float, woken: Sized = ()) -> None:
        """Do all that is due until ``end``, or until there is something in ``woken``."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= end:
            self.now, _, call, arguments = pop(heap)
            call(*arguments)
            if woken:
                return
        self.now = max(self.now, end)

    def run_with(self, seed: int, main: Callable[[], Awaitable[None]]) -> None:
        """Run Trio by this clock. The order in which its tasks run follows from ``seed``.

        :raises KeyboardInterrupt: as elsewhere, and in no group.
        """
        _trio_run._r.seed(seed)
        try:
            with patch.object(_trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True):
                trio.run(main, clock=self)
        except BaseExceptionGroup as group:
            _, others = group.split(KeyboardInterrupt)
            if others is not None:
                raise
            raise KeyboardInterrupt from None

    # As Trio's clock.

    def start_clock(self) -> None:
        """See :class:`trio.abc.Clock`."""

    def current_time(self) -> float:
        """See :class:`trio.abc.Clock`."""
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """See :class:`trio.abc.Clock`: the world goes on, so there is no need to sleep."""
        runnable = _trio_run.GLOBAL_RUN_CONTEXT.runner.runq
        if deadline < math.inf:
            self.run_until(deadline, runnable)
        return 0.0
