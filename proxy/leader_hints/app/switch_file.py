"""Keeps what the kill switch has set in a file, so that it survives a restart.

Tested in ``tests/cli/test_switch_file.py``.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import trio

from leader_hints.core.events import Event, SwitchNotKept
from leader_hints.core.mode import Mode
from leader_hints.errors import ConfigurationError
from leader_hints.net.journal.journal_files import sync

#: Seconds before a file that could not be written is tried again: twice as long for each further
#: attempt in a row that hangs. Each keeps a thread and a descriptor, and a disk may hang for weeks.
_AGAIN: Final = 10.0
#: Seconds for writing it.
_PATIENCE: Final = 60.0
#: Seconds between two looks whether it is written.
_MOMENT: Final = 0.01


class SwitchFile:
    """The modes of routes whose mode is not that of the settings, by the routes' names.

    ``path``: of the file, "" where nothing is kept.
    """

    def __init__(self, path: str, emit: Callable[[Event], None]) -> None:
        self._path = path
        self._emit = emit
        self._modes: dict[str, Mode] = {}
        #: Set when there is something to write.
        self._changed = trio.Event()
        self._is_written = True
        #: How many attempts to write were given up, and how many of them in a row at last; those
        #: whose threads go on.
        self._number = self._in_a_row = 0
        self._hung: set[threading.Event] = set()
        #: Set when the present attempt is to leave the file as it is.
        self._given_up = threading.Event()
        self._handed_over = False
        self._scope = trio.CancelScope()

    def keep(self, modes: Mapping[str, Mode]) -> None:
        """Have :meth:`run` write these."""
        if not self._path:
            return
        self._modes = dict(modes)
        self._is_written = False
        self._changed.set()

    async def written(self) -> None:
        """Wait until all that is to be kept is written."""
        while not self._is_written:  # noqa: ASYNC110 - it may fail, and be tried again
            await trio.sleep(_MOMENT)

    def hand_over(self) -> Mapping[str, Mode] | None:
        """Leave the file to another process: nothing is written here any more.

        Return what is to be kept and may not be written; ``None``: there is nothing. A write that
        is under way is given up. One that is replacing the file at this very moment comes before
        the other process's next one: the system renames in a folder one after the other.
        """
        self._handed_over = True
        self._given_up.set()
        self._scope.cancel()
        return None if self._is_written else self._modes

    async def run(self) -> None:
        """Write what is to be kept, until cancelled or :meth:`hand_over`.

        What cannot be written is tried again.
        """
        with trio.CancelScope() as self._scope:
            while not self._handed_over:
                await self._changed.wait()
                self._changed = trio.Event()
                reason = await self._try()
                if reason:
                    self._emit(SwitchNotKept(reason=reason))
                    await self._pause()
                    self._changed.set()
                else:
                    self._is_written = not self._changed.is_set()

    async def _pause(self) -> None:
        hung = len(self._hung)
        for _ in range(2 ** max(self._in_a_row - 1, 0)):
            await trio.sleep(_AGAIN)
            # One that has ended may say that the disk works again.
            if len(self._hung) < hung:
                return

    async def _try(self) -> str:
        """Write what is to be kept; return why that was in vain, "" if it was not."""
        given_up = self._given_up = threading.Event()
        path, text = Path(self._path), json.dumps(self._modes)
        # Those that hang may go on beside this one.
        number = f".{self._number}" if self._number else ""
        new = path.with_name(f"{path.name}.{os.getpid()}{number}")

        def write() -> None:
            try:
                _write(path, text, new, given_up)
            finally:
                self._hung.discard(given_up)

        self._hung.add(given_up)
        try:
            with trio.fail_after(_PATIENCE):
                await trio.to_thread.run_sync(
                    write, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
                )
        except trio.TooSlowError:
            # Its thread may go on one day, and must not replace what was written since.
            given_up.set()
            self._number += 1
            self._in_a_row += 1
            return f"it was not written within {_PATIENCE:g} s"
        except (OSError, RuntimeError) as error:
            # The latter: the system may refuse a thread.
            self._hung.discard(given_up)
            self._in_a_row = 0
            return (getattr(error, "strerror", None) or str(error)).lower()
        self._in_a_row = 0
        return ""


def read_switch_file(path: str) -> dict[str, Mode]:
    """Return what is kept at ``path``; nothing where there is no file, or the path is "".

    :raises ConfigurationError: the file cannot be read, or is another one; or its folder is none.
    """
    if not path:
        return {}
    folder = Path(path).parent
    try:
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            reason = f"{folder} is no directory that can be written to"
            raise ConfigurationError(f"switch_file: {reason}")
        kept = json.loads(Path(path).read_text(encoding="utf-8"))
        return {str(route): Mode(mode) for route, mode in kept.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(f"switch_file: cannot read {path}: {reason}") from None
    except (ValueError, AttributeError, RecursionError):
        raise ConfigurationError(
            f"switch_file: {path} is not what the kill switch writes; remove it, or name another"
        ) from None


def _write(path: Path, text: str, new: Path, given_up: threading.Event) -> None:
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            # Else a machine that crashes may have the name without what was written, and no process
            # begins with an empty file.
            sync(file.fileno())
        if not given_up.is_set():
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)
