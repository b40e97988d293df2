"""The frames of one direction of a connection.

Tested in ``tests/faults/test_interposer.py``.
"""

import struct

import trio

_SIZE = struct.Struct(">i")
_RECEIVE = 65_536
#: Each frame is kept whole. Brokers take 100 MB, and what is no Kafka claims more: TLS, HTTP.
_LARGEST = 1 << 28


class NoFrameError(Exception):
    """What has come begins no Kafka message. ``received``: that, which nobody else gets."""

    def __init__(self, received: bytes) -> None:
        super().__init__("bytes that begin no Kafka message")
        self.received = received


class Frames:
    """Iterates over the frames that come from a stream, size prefixes included.

    :raises NoFrameError: something else has come.
    """

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
        if not 0 <= size <= _LARGEST:
            raise NoFrameError(bytes(self._received))
        if not await self._has(end):
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
