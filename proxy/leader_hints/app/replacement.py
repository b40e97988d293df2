"""Starts this program once more, so that it takes over.

Tested in ``tests/app/test_replacement.py`` and, with real processes, in
``tests/cli/test_takeover.py``.
"""

import subprocess  # this very program, as it was started  # nosec B404
import sys
from collections.abc import Callable

import trio

from leader_hints.core.events import Event, TakeoverFailed
from leader_hints.net.child_process import ended


class Replacement:
    """A new process, started as this one was: with its arguments, environment and folder.

    ``replaced``: set when one has taken over.
    """

    def __init__(self, replaced: trio.Event | None, emit: Callable[[Event], None]) -> None:
        self._replaced = replaced
        self._emit = emit
        self._runs = False

    async def start(self) -> None:
        """Start one, and report it if it ends before it has taken over. One at a time."""
        if self._replaced is None:
            self._emit(TakeoverFailed(error="SIGUSR2 came, but the setting takeover is not set"))
        elif self._runs:
            self._emit(TakeoverFailed(error="SIGUSR2 came while a new process begins already"))
        else:
            self._runs = True
            try:
                await self._run(self._replaced)
            except (OSError, RuntimeError) as error:
                # Trio starts it in a thread, of which the system may have no more (RuntimeError).
                reason = error.strerror if isinstance(error, OSError) else error
                self._emit(TakeoverFailed(error=f"no new process can be started: {reason}"))
            finally:
                self._runs = False

    async def _run(self, replaced: trio.Event) -> None:
        command = [sys.executable, *sys.orig_argv[1:]]
        process = await trio.lowlevel.open_process(command, stdin=subprocess.DEVNULL)
        try:
            code = await ended(process)
        finally:
            # This process ends: if not for the new one, then both are to.
            if not replaced.is_set() and process.returncode is None:
                process.terminate()
        self._emit(TakeoverFailed(error=f"the new process ended with {code}: see its own log"))
