"""Builds a frame of written bytes and of views that are passed on, to be sent as pieces.

Tested in ``tests/core/link/test_link_recoded.py``.
"""

import struct
from typing import NamedTuple

_SIZE = struct.Struct(">i")
#: Below this a copy costs less than one more piece does.
_COPIED = 2048


class Rest(NamedTuple):
    """How a frame goes on that was rewritten before all of it had come.

    The rest is forwarded unchanged, except that ``put`` replaces its last ``dropped`` bytes:
    empty tag sections.
    """

    dropped: int
    put: bytes


class Scatter:
    """A frame under construction, its size prefix to come.

    ``out``: where to write. It is another object after each :meth:`passed` and :meth:`begun`.
    """

    __slots__ = ("_done", "_missing", "_size", "out")

    def __init__(self) -> None:
        self._done: list[memoryview | bytes] = []
        self._size = 0
        self._missing = 0
        self.out = bytearray(_SIZE.size)

    def passed(self, view: memoryview) -> None:
        """Append bytes that stay where they are, if there are many of them."""
        if len(view) < _COPIED:
            self.out += view
            return
        self._done.append(memoryview(self.out))
        self._done.append(view)
        self._size += len(self.out) + len(view)
        self.out = bytearray()

    def begun(self, view: memoryview, missing: int) -> None:
        """Append bytes of which ``missing`` are still to come: the last ones that are passed."""
        self._done.append(memoryview(self.out))
        self._done.append(view)
        self._size += len(self.out) + len(view)
        self._missing = missing
        self.out = bytearray()

    def finish(self) -> list[memoryview | bytes]:
        """Return the frame as pieces; the object is of no further use."""
        if self.out:
            self._done.append(memoryview(self.out))
        _SIZE.pack_into(self._done[0], 0, self._size + len(self.out) - _SIZE.size)
        return self._done

    def finish_begun(self, dropped: int) -> tuple[list[memoryview | bytes], Rest]:
        """As :meth:`finish`, after :meth:`begun`: the beginning, and how it goes on.

        ``dropped``: the bytes at the end of the frame as it comes that have no place in this one.
        """
        size = self._size + self._missing + len(self.out) - _SIZE.size
        _SIZE.pack_into(self._done[0], 0, size)
        return self._done, Rest(dropped, bytes(self.out))
