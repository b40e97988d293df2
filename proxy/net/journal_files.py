"""The journal as files of JSON lines.

A folder holds, for each sidecar, finished files and the one that is being written:

    SIDECAR_TIME_RUN_NUMBER.jsonl        finished: never changes again
    SIDECAR_TIME_RUN_NUMBER.jsonl.open   being written, or left behind by a killed process

A file is finished when it is large or old enough, and at the end of the process: it is synced to
the disk and then renamed, so a reader who takes ``*.jsonl`` never meets half of one. Between, lines
are only handed to the system: a killed process loses none of them, a machine that crashes may.
Each process begins files of its own, and finishes those that a killed one left behind, whose last
line may be torn; it tells them by their locks.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_FINISHED: Final = ".jsonl"
_OPEN: Final = ".jsonl.open"


class FileSink:
    """Writes files into ``folder``, which must exist.

    ``name``: the beginning of their names, letters, digits, dots and hyphens. ``file_bytes`` and
    ``file_seconds``: how large and how old a file becomes, but for one write. ``kept_bytes``: what
    the sidecar's finished files take up at most; the oldest are removed. ``clock``: seconds that
    never go back; ``stamp``: the time for names, such as 20261121T193129000000Z.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        run: str,
        *,
        file_bytes: int,
        file_seconds: float,
        kept_bytes: int,
        clock: Callable[[], float],
        stamp: Callable[[], str],
    ) -> None:
        self._folder = folder
        self._name = name
        self._run = run
        self._file_bytes = file_bytes
        self._file_seconds = file_seconds
        self._kept_bytes = kept_bytes
        self._clock = clock
        self._stamp = stamp
        self._number = 0
        self._recovered = False
        self._file = -1
        self._path = folder
        self._opened_at = 0.0
        self._size = 0
        self._torn = False

    def write(self, lines: Sequence[bytes]) -> None:
        """See :class:`proxy.net.journal_writer.Sink`.

        :raises OSError: nothing of ``lines`` stays in the file.
        """
        if not self._recovered:
            self._finish_left_behind()
            self._recovered = True
        if self._file >= 0 and self._is_due():
            self._finish()
        if not lines:
            return
        if self._file < 0:
            self._open()
        self._append(b"\n".join((*lines, b"")))

    def close(self) -> None:
        """See :class:`proxy.net.journal_writer.Sink`."""
        if self._file >= 0:
            self._finish()

    def _is_due(self) -> bool:
        return (
            self._size >= self._file_bytes or self._clock() - self._opened_at >= self._file_seconds
        )

    def _open(self) -> None:
        self._number += 1
        name = f"{self._name}_{self._stamp()}_{self._run}_{self._number:06}{_OPEN}"
        path = self._folder / name
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        with contextlib.suppress(OSError):  # Without locks nobody finishes what is left behind.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._path, self._size, self._opened_at = path, 0, self._clock()

    def _append(self, data: bytes) -> None:
        self._mend()
        self._torn = True
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._mend()
            raise
        self._torn = False
        self._size += len(data)

    def _mend(self) -> None:
        """Take away what a failed write left: all of it comes again."""
        if self._torn:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
            self._torn = False

    def _finish(self) -> None:
        self._mend()
        os.fsync(self._file)
        if self._size:
            _rename_finished(self._path)
        else:
            self._path.unlink()
        file, self._file = self._file, -1
        os.close(file)
        self._remove_oldest()

    def _finish_left_behind(self) -> None:
        """Finish what a killed process of this sidecar has left; a living one holds its lock."""
        for path in sorted(self._folder.glob(f"{self._name}_*{_OPEN}")):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _rename_finished(path)

    def _remove_oldest(self) -> None:
        """Keep the bound. Names begin with the time, so they are in the order of their making."""
        newest_first = sorted(self._folder.glob(f"{self._name}_*{_FINISHED}"), reverse=True)
        total = 0
        for path in newest_first:
            with contextlib.suppress(FileNotFoundError):  # Whoever collects files may remove them.
                total += path.stat().st_size
                if total > self._kept_bytes:
                    path.unlink()


def _rename_finished(path: Path) -> None:
    path.rename(path.with_name(path.name.removesuffix(_OPEN) + _FINISHED))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
