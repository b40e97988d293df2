"""Builds a frame of written bytes and of views that are passed on, to be sent as pieces."""

import struct

_SIZE = struct.Struct(">i")
#: Below this a copy costs less than one more piece does.
_COPIED = 2048


class Scatter:
    """A frame under construction, its size prefix to come.

    ``out``: where to write. It is another object after each :meth:`passed`.
    """

    __slots__ = ("_done", "_size", "out")

    def __init__(self) -> None:
        self._done: list[memoryview | bytes] = []
        self._size = 0
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

    def finish(self) -> list[memoryview | bytes]:
        """Return the frame as pieces; the object is of no further use."""
        if self.out:
            self._done.append(memoryview(self.out))
            self._size += len(self.out)
        _SIZE.pack_into(self._done[0], 0, self._size - _SIZE.size)
        return self._done
