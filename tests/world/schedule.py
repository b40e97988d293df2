"""What happens when: callbacks in the order of their times, and of their coming."""

import heapq
import itertools
from collections.abc import Callable
from typing import TypeVarTuple, Unpack

import trio

_Ts = TypeVarTuple("_Ts")


class Schedule:
    """The world's own clock, which Trio's mock clock moves where the proxy takes part.

    ``now``: seconds since the world began.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._now = 0.0
        self._begun: float | None = None
        self._sooner = trio.Event()

    @property
    def now(self) -> float:
        if self._begun is not None:
            return trio.current_time() - self._begun
        return self._now

    def after(
        self, seconds: float, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts
    ) -> None:
        """Call something later, or in a moment."""
        self.at(self.now + seconds, call, *arguments)

    def at(self, time: float, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None:
        """Call something at a time."""
        first = not self._heap or time < self._heap[0][0]
        heapq.heappush(self._heap, (time, next(self._numbers), lambda: call(*arguments)))
        if first:
            self._sooner.set()

    def run_until(self, end: float) -> None:
        """Do all that is due until ``end``, without Trio."""
        while self._heap and self._heap[0][0] <= end:
            self._now, _, call = heapq.heappop(self._heap)
            call()
        self._now = end

    async def run(self, end: float) -> None:
        """Do all that is due until ``end``, each at its time by Trio's clock."""
        self._begun = trio.current_time()
        while self.now < end:
            self._sooner = trio.Event()
            while self._heap and self._heap[0][0] <= self.now:
                heapq.heappop(self._heap)[2]()
            until = min(self._heap[0][0], end) if self._heap else end
            with trio.move_on_at(self._begun + until):
                await self._sooner.wait()
