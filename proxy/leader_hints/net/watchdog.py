"""Detects stalls of the event loop, and where the code is meanwhile."""

import sys
import threading
import time
import traceback
from collections.abc import Callable

import trio

#: So often within the patience the loop reports that it runs, and the thread checks that it did.
_PARTS = 5


class Watchdog:
    """A thread that checks whether a task still gets its turn.

    ``patience``: seconds. ``stuck``: called once for each stall, in the thread, with the seconds
    that it has lasted and the stack: lines of code, no values. ``stalled``: called in the loop
    itself after a stall, with the seconds that it lasted.
    """

    def __init__(
        self,
        patience: float,
        stuck: Callable[[float, str], None],
        stalled: Callable[[float], None],
    ) -> None:
        self._patience = patience
        self._stuck = stuck
        self._stalled = stalled
        self._beat = 0.0
        self._over = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        watched = threading.get_ident()
        self._over.clear()
        self._beat = time.monotonic()
        thread = threading.Thread(target=self._watch, args=(watched,), daemon=True)
        thread.start()
        try:
            while True:
                await trio.sleep(self._patience / _PARTS)
                before, self._beat = self._beat, time.monotonic()
                if self._beat - before >= self._patience:
                    self._stalled(self._beat - before)
        finally:
            # It ends by itself within a part of the patience: nothing waits for it.
            self._over.set()

    def _watch(self, watched: int) -> None:
        reported = 0.0
        while not self._over.wait(self._patience / _PARTS):
            beat = self._beat
            seconds = time.monotonic() - beat
            if seconds >= self._patience and reported != beat:
                reported = beat
                self._stuck(seconds, _stack(watched))


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""
