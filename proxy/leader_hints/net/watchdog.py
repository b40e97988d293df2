"""Notices when the event loop stands still, and says where."""

import sys
import threading
import time
import traceback
from collections.abc import Callable

import trio

#: So often within the patience the loop says that it turns, and the thread looks whether it did.
_PARTS = 5


class Watchdog:
    """A thread that looks whether a task still gets its turn.

    ``patience``: seconds. ``stuck``: told once each time, in the thread, for how many seconds the
    loop has stood still and where: lines of code, no values. ``stood``: told by the loop itself
    for how long it had stood still, once it turns again.
    """

    def __init__(
        self,
        patience: float,
        stuck: Callable[[float, str], None],
        stood: Callable[[float], None],
    ) -> None:
        self._patience = patience
        self._stuck = stuck
        self._stood = stood
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
                    self._stood(self._beat - before)
        finally:
            # It ends by itself within a part of the patience: nothing waits for it.
            self._over.set()

    def _watch(self, watched: int) -> None:
        told = 0.0
        while not self._over.wait(self._patience / _PARTS):
            beat = self._beat
            still = time.monotonic() - beat
            if still >= self._patience and told != beat:
                told = beat
                self._stuck(still, _stack(watched))


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""
