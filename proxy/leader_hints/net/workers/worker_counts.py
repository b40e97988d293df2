"""What workers have counted, added up.

Tested in ``tests/net/workers/test_sides.py``.
"""

import math
from collections.abc import Callable
from typing import Final

import trio

from leader_hints.core.workers.messages import LoadReported, ReportAsked, ToWorker

#: Seconds that the newest counts are waited for: a worker may have a long step.
_PATIENCE: Final = 0.5


class Counting:
    """What one worker says of its load, about every second.

    ``answered``: the number of its last answer; ``at``: when it last sent something.
    """

    def __init__(self) -> None:
        self.answered = 0
        self.at = -math.inf
        self.load = LoadReported(0, 0, 0, 0, 0)

    def begin(self) -> None:
        """Take it that the worker lives, before it has said anything of its load."""
        self.at = trio.current_time()

    def take(self, reported: LoadReported) -> None:
        """Take what it says."""
        self.load, self.at = reported, trio.current_time()
        self.answered = max(self.answered, reported.number)


class WorkerCounts:
    """Asks for the newest counts. ``ask``: sends a message to all workers, and returns them."""

    def __init__(self, ask: Callable[[ToWorker], list[Counting]]) -> None:
        self._ask = ask
        self._asked = 0
        self._answered = trio.Event()

    def take(self, counting: Counting, reported: LoadReported) -> None:
        """Take a worker's answer; what it has counted came before."""
        counting.take(reported)
        # Several may wait, each for another answer.
        answered, self._answered = self._answered, trio.Event()
        answered.set()

    async def fresh(self) -> None:
        """Return when all workers have said what they have counted by now.

        Of one that does not answer in time the last counts stand.
        """
        self._asked += 1
        number, asked = self._asked, self._ask(ReportAsked(self._asked))
        with trio.move_on_after(_PATIENCE):
            while any(one.answered < number for one in asked):
                await self._answered.wait()
