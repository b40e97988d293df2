"""Starts this program once more, so that it takes over.

Tested in ``tests/app/test_replacement.py`` and, with real processes, in
``tests/cli/test_takeover.py``.
"""

import subprocess  # this very program, as it was started  # nosec B404
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from leader_hints.core.events import Event, TakeoverFailed
from leader_hints.net.child_process import ended

#: Seconds for a new process to ask for the listening sockets, which takes a few. Before that it
#: reads its settings and TLS files, whose disk may hang for good: the next one may find it well.
_TO_ASK: Final = 120.0


class Replacement:
    """A new process, started as this one was: with its arguments, environment and folder.

    ``replaced``: set when one has taken over.
    """

    def __init__(self, replaced: trio.Event | None, emit: Callable[[Event], None]) -> None:
        self._replaced = replaced
        self._emit = emit
        self._runs = False
        #: Which process has asked last, by its number.
        self._asker = 0
        self._asked = trio.Event()

    def asked(self, process: int) -> None:
        """Take it that a process has asked for the listening sockets, by its number."""
        self._asker = process
        self._asked.set()

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
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_if_it_hangs, process)
                code = await ended(process)
                nursery.cancel_scope.cancel()
        finally:
            # This process ends: if not for the new one, then both are to.
            if not replaced.is_set() and process.returncode is None:
                process.terminate()
        self._emit(TakeoverFailed(error=f"the new process ended with {code}: see its own log"))

    async def _end_if_it_hangs(self, process: trio.Process) -> None:
        """Have others be started then."""
        with trio.move_on_after(_TO_ASK):
            while self._asker != process.pid:
                self._asked = trio.Event()
                await self._asked.wait()
            return
        error = f"the new process has asked for nothing within {_TO_ASK:g} s; does a disk hang?"
        self._emit(TakeoverFailed(error=error))
        with suppress(ProcessLookupError):
            process.kill()
