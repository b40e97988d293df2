"""SharedWork: all who ask for something while it is made get the same."""

import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

_T = TypeVar("_T")


class _Running(Generic[_T]):
    """Work under way. ``made``: a tuple of what came of it; empty until then, and if it failed."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.made: tuple[()] | tuple[_T] = ()


class SharedWork(Generic[_T]):
    """Does ``work`` once for all who ask during it, or in the pause before it.

    Anybody may ask at any time, and it may take seconds, connections to brokers, or megabytes.
    ``pause``: seconds, at least, between two beginnings of it.
    """

    def __init__(self, work: Callable[[], Awaitable[_T]], pause: float = 0.0) -> None:
        self._work = work
        self._pause = pause
        self._begun_at = -math.inf
        self._running: _Running[_T] | None = None

    async def result(self) -> _T:
        """Return what comes of the work under way, or else of new work."""
        while (running := self._running) is not None:
            await running.over.wait()
            if running.made:
                return running.made[0]
        running = self._running = _Running()
        try:
            if self._pause:
                await trio.sleep_until(self._begun_at + self._pause)
                self._begun_at = trio.current_time()
            made = await self._work()
            running.made = (made,)
        finally:
            self._running = None
            running.over.set()
        return made
