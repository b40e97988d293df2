"""The journal as files of JSON lines.

A folder holds, for each sidecar, finished files and the one that is being written:

    SIDECAR_TIME_RUN_NUMBER.jsonl        finished: never changes again
    SIDECAR_TIME_RUN_NUMBER.jsonl.open   being written, or left behind by a killed process

A file is finished when it is large or old enough, and at the end of the process: it is synced to
the disk and then renamed, so a reader of ``*.jsonl`` never meets half of one. Between, lines
are only handed to the system: a killed process loses none of them, a machine that crashes may.
Each process begins files of its own, and finishes those that a killed one left behind, whose last
line may be torn; it tells them by their locks.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, Final

from leader_hints.net.journal.sink import LinesLostError

_FINISHED: Final = ".jsonl"
_OPEN: Final = ".jsonl.open"


#: What a file system answers that cannot sync what it is asked to, as some of FUSE and SMB.
_CANNOT_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS})
_COPIED_BYTES: Final = 1 << 20
#: Characters of a day in a stamp.
_DAY: Final = 8


class _Age(IntEnum):
    """Which of finished files are older. Names begin with the time, which orders those of one of
    these; but a clock may be set back, and then a run's newest files have the lowest names."""

    #: Of another run, and of a day that is yet to come: its clock was ahead. They would be the
    #: newest until then.
    OF_A_WRONG_DAY = 0
    OF_A_FORMER_RUN = 1
    OF_THIS_RUN = 2
    #: Of one that takes over from this one.
    OF_A_LATER_RUN = 3


class FileSink:
    """Writes files into ``folder``, which must exist.

    ``name``: the beginning of their names, letters, digits, dots and hyphens. ``file_bytes`` and
    ``file_seconds``: how large and how old a file becomes, but for one write. ``kept_bytes``: what
    the sidecar's finished files take up at most; the oldest are removed. ``clock``: seconds that
    never go back; ``stamp``: the time for names, such as 20261121T193129000000Z.

    No failure is for good: a file that was removed, or cannot be finished, is replaced by a copy,
    and each call tries again what the last one could not do.
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
        #: When the folder was looked at first, "" before, and the runs that had files there. Others
        #: may come to be there by a mount.
        self._begun = ""
        self._former: set[str] = set()
        self._file: _OpenFile | None = None
        self._opened_at = 0.0

    def write(self, lines: Sequence[bytes]) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`.

        :raises OSError: nothing of ``lines`` stays in the file.
        :raises LinesLostError: the same, and lines from before are lost.
        """
        if not self._begun:
            self._finish_left_behind()
            self._begun = self._stamp()
            self._former = {_time_and_run(path)[1] for path in self._folder.glob(f"{self._name}_*")}
            # A run that is killed before it finishes a file of its own removes none otherwise.
            self._remove_oldest()
        self._replace_unfit()
        if self._file is not None and self._is_due(self._file):
            self._finish()
        if not lines:
            return
        if self._file is None:
            self._file = self._open()
            self._opened_at = self._clock()
        self._file.append(lines)

    def close(self) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`."""
        self._replace_unfit()
        if self._file is not None:
            self._finish()

    def _is_due(self, file: "_OpenFile") -> bool:
        return (
            file.size >= self._file_bytes or self._clock() - self._opened_at >= self._file_seconds
        )

    def _open(self) -> "_OpenFile":
        self._number += 1
        name = f"{self._name}_{self._stamp()}_{self._run}_{self._number:06}{_OPEN}"
        return _OpenFile(self._folder / name)

    def _replace_unfit(self) -> None:
        """Have a copy in place of a file that was taken away, or that failed where that counts.

        What failed to sync once does not fail again, though it was not synced: the system takes
        its pages for clean then.
        """
        unfit = self._file
        if unfit is None or not (unfit.failed or unfit.is_gone()):
            return
        copy = self._open()
        try:
            copy.take_over(unfit)
        except _UnreadableError as error:
            self._file = None
            copy.discard()
            unfit.leave()
            raise LinesLostError(str(error), unfit.first, unfit.last) from None
        except OSError:
            copy.discard()
            raise
        self._file = copy
        unfit.discard()

    def _finish(self) -> None:
        assert self._file is not None
        self._file.finish()
        self._file = None
        # Again: a former process may have been killed while its links came to rest.
        self._finish_left_behind()
        self._remove_oldest()

    def _finish_left_behind(self) -> None:
        """Finish what a killed process of this sidecar has left; a living one holds its lock."""
        for path in sorted(self._folder.glob(f"{self._name}_*{_OPEN}")):
            if f"_{self._run}_" in path.name:
                # What is left of those that were replaced has nothing else than their copies.
                continue
            with contextlib.suppress(OSError), _opened_to_lock(path) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _rename_finished(path)

    def _remove_oldest(self) -> None:
        """Keep the bound, but for the newest file, which is larger than ``file_bytes`` by a
        write."""
        today = self._stamp()[:_DAY]
        paths = self._folder.glob(f"{self._name}_*{_FINISHED}")
        newest_first = sorted(paths, key=lambda path: self._made(path, today), reverse=True)
        total = 0
        for path in newest_first:
            # Collectors of files may remove them. One of another user may have to stay.
            with contextlib.suppress(OSError):
                total += path.stat().st_size
                if total > self._kept_bytes and path != newest_first[0]:
                    path.unlink()

    def _made(self, path: Path, today: str) -> tuple[_Age, str]:
        """Return what orders files by the time of their making."""
        time, run = _time_and_run(path)
        if run == self._run:
            return _Age.OF_THIS_RUN, path.name.rpartition("_")[2]
        if time[:_DAY] > today:
            return _Age.OF_A_WRONG_DAY, path.name
        is_former = run in self._former or time < self._begun
        return _Age.OF_A_FORMER_RUN if is_former else _Age.OF_A_LATER_RUN, path.name


def _time_and_run(path: Path) -> tuple[str, str]:
    """Return what the name of a file says of it."""
    _, time, run, *_ = f"{path.name}__".split("_")
    return time, run


class _UnreadableError(Exception):
    """A file that was written cannot be read; the text says why."""


class _OpenFile:
    """A file that is being written, at ``path``. It is locked.

    ``size``: bytes of whole lines. ``first`` and ``last``: of these lines. ``failed``: what is on
    the disk of it is not known. An OSError says that it was not done, and leaves the file as it was
    but for that.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        self._torn = False
        self.size = 0
        self.first = b""
        self.last = b""
        self.failed = False
        with contextlib.suppress(OSError):  # Without locks nobody finishes what is left behind.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_gone(self) -> bool:
        """Whether somebody removed or cut it, or put another in its place, or hid it."""
        try:
            status, there = os.fstat(self._file), os.stat(self._path)
        except OSError:
            return True
        return status.st_size < self.size or not os.path.samestat(status, there)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write whole lines, or none of them."""
        self._write(b"\n".join((*lines, b"")))
        self.first = self.first or lines[0]
        self.last = lines[-1]

    def take_over(self, other: "_OpenFile") -> None:
        """Write what another file has.

        :raises _UnreadableError: that cannot be read.
        """
        for at in range(0, other.size, _COPIED_BYTES):
            self._write(other.read(at, min(_COPIED_BYTES, other.size - at)))
        self.first, self.last = other.first, other.last

    def read(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes from ``at`` on.

        :raises _UnreadableError: they cannot be read.
        """
        try:
            data = os.pread(self._file, size, at)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise _UnreadableError(f"{self._path.name} cannot be read: {reason}") from None
        if len(data) < size:
            raise _UnreadableError(f"{self._path.name} was cut by somebody")
        return data

    def finish(self) -> None:
        """Sync it and give it the name of a finished one; one without lines is removed."""
        try:
            self._cut_torn()
            sync(self._file)
        except OSError:
            self.failed = True
            raise
        if self.size:
            _rename_finished(self._path)
        else:
            self._path.unlink(missing_ok=True)
        self._close()

    def discard(self) -> None:
        """Remove it, if it is there."""
        with contextlib.suppress(OSError):
            if not self.is_gone():
                self._path.unlink()
        self._close()

    def leave(self) -> None:
        """Let it be; where it is there, it gets the name of a finished one."""
        with contextlib.suppress(OSError):
            self._cut_torn()
        with contextlib.suppress(OSError):
            _rename_finished(self._path)
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)

    def _write(self, data: bytes) -> None:
        self._cut_torn()
        self._torn = True
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._cut_torn()
            raise
        self._torn = False
        self.size += len(data)

    def _cut_torn(self) -> None:
        """Take away what a failed write left: all of it comes again."""
        if self._torn:
            try:
                os.ftruncate(self._file, self.size)
                os.lseek(self._file, self.size, os.SEEK_SET)
            except OSError:
                self.failed = True
                raise
            self._torn = False


def _opened_to_lock(path: Path) -> BinaryIO:
    """Open a file that a former process has left; it may be one of another user.

    NFS gives exclusive locks only of what is open for writing (flock(2)).
    """
    try:
        return path.open("r+b")
    except PermissionError:
        return path.open("rb")


def _rename_finished(path: Path) -> None:
    path.rename(path.with_name(path.name.removesuffix(_OPEN) + _FINISHED))
    # No line depends on this one: a machine that crashes may find the former name in the folder,
    # and the next run of the sidecar finishes that.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sync(file: int) -> None:
    """Have the system write what is in a file to its disk, where the file system can do that.

    :raises OSError: it may not be there.
    """
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
