"""The frames of one direction of a connection.

Tested in ``tests/faults/test_interposer.py``.
"""

import struct

import trio

_SIZE = struct.Struct(">i")
_RECEIVE = 65_536


class Frames:
    """Iterates over the frames that come from a stream, size prefixes included."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._received = bytearray()

    def __aiter__(self) -> "Frames":
        return self

    async def __anext__(self) -> bytes:
        if not await self._has(_SIZE.size):
            raise StopAsyncIteration
        (size,) = _SIZE.unpack_from(self._received)
        end = _SIZE.size + size
        if size < 0 or not await self._has(end):
            raise StopAsyncIteration
        frame = bytes(self._received[:end])
        del self._received[:end]
        return frame

    async def _has(self, size: int) -> bool:
        """Wait for so many bytes; false where no more come."""
        while len(self._received) < size:
            chunk = await self._stream.receive_some(_RECEIVE)
            if not chunk:
                return False
            self._received += chunk
        return True
