"""Pipe: moves bytes from one socket to another within the system; Pipes: those that links share.

Records are most of what passes, and nobody here looks at them. `splice` (Linux) hands the system's
own pages on, so that they are copied neither into this process nor out of it again.
"""

import errno
import fcntl
import os

#: What a pipe is to hold: the most that Linux gives to those without privileges, who may have 64 MB
#: in all their pipes. One that holds less than the second figure gains nothing.
_CAPACITY = 1 << 20
_LEAST = 1 << 18
#: Pipes of a process at most. A link that gets none copies.
_MOST = 16
#: Nothing where the system has no splice, and lends no pipe.
_FLAGS = getattr(os, "SPLICE_F_NONBLOCK", 0) | getattr(os, "SPLICE_F_MOVE", 0)
#: A socket that is broken says something else: these come from a system that cannot, and from
#: filters of system calls (seccomp) that know no splice.
_UNFIT = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES}


class UnfitError(Exception):
    """The system does not move bytes between such sockets."""


class Pipe:
    """Bytes on their way between two sockets; its length is how many there are.

    :raises OSError: the system gives none that is large enough.
    """

    __slots__ = ("_in", "_left", "_out")

    def __init__(self) -> None:
        self._left = 0
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if fcntl.fcntl(self._in, fcntl.F_SETPIPE_SZ, _CAPACITY) < _LEAST:
                raise OSError("too small a pipe")
        except OSError:
            self.close()
            raise

    def __len__(self) -> int:
        return self._left

    def fill(self, source: int, most: int) -> int:
        """Take at most so many bytes from a socket; return how many came, 0 at its end.

        :raises BlockingIOError: there are none.
        :raises UnfitError: they cannot be taken in this way.
        :raises OSError: the socket is broken.
        """
        try:
            size = os.splice(source, self._in, min(most, _CAPACITY), flags=_FLAGS)
        except OSError as error:
            if error.errno in _UNFIT:
                raise UnfitError from error
            raise
        self._left += size
        return size

    def empty(self, target: int) -> int:
        """Give a socket what it takes; return how much that was.

        :raises BlockingIOError: it takes none.
        :raises OSError: the socket is broken.
        """
        size = os.splice(self._out, target, self._left, flags=_FLAGS)
        self._left -= size
        return size

    def close(self) -> None:
        """Drop what is on its way."""
        os.close(self._out)
        os.close(self._in)


class Pipes:
    """Lends pipes to links, each for as long as bytes are in it."""

    def __init__(self) -> None:
        self._free: list[Pipe] = []
        #: How many were free at all times since the last sweep.
        self._idle = 0
        self._lent = 0
        #: How many there may be, and how many there may be until the next sweep.
        self._allowed = self._most = _MOST if hasattr(os, "splice") else 0

    def take(self) -> Pipe | None:
        """Return an empty pipe, ``None`` where there is none now."""
        if self._free:
            self._lent += 1
            pipe = self._free.pop()
            self._idle = min(self._idle, len(self._free))
            return pipe
        if self._lent >= self._most:
            return None
        try:
            pipe = Pipe()
        except OSError:
            # Others have them all, or all descriptors, for now. It is not tried again and again:
            # that would cost as well.
            self._most = self._lent
            return None
        self._lent += 1
        return pipe

    def give_back(self, pipe: Pipe) -> None:
        """Have a pipe back; what is in it still is dropped."""
        self._lent -= 1
        if pipe or self._lent >= self._most:
            pipe.close()
        else:
            self._free.append(pipe)

    def sweep(self) -> None:
        """Close those that nobody needed since the last sweep; call it about every second."""
        self._most = self._allowed
        for _ in range(min(self._idle, len(self._free))):
            self._free.pop().close()
        self._idle = len(self._free)

    def stop(self) -> None:
        """Lend none any more."""
        self._allowed = self._most = 0
        self.close()

    def close(self) -> None:
        """Close those that are not lent."""
        while self._free:
            self._free.pop().close()
