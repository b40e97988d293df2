"""``python -m bench.late_metadata MILLISECONDS CLIENT_ID LISTEN=UPSTREAM...``: a relay.

It lets everything pass as it is, but the answers to CLIENT_ID's Metadata requests only after so
many milliseconds. What comes behind such an answer on its connection waits too, as it would behind
a slow broker's. LISTEN and UPSTREAM are ports of 127.0.0.1.
"""

import struct
import sys
from collections import deque
from functools import partial

import trio

_HOST = "127.0.0.1"
_METADATA = 3
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhih")


class _Frames:
    """Whole messages of one direction of a connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def next(self) -> bytes:
        """Return the next message with its size prefix; nothing at the end."""
        await self._need(_SIZE.size)
        if len(self._received) < _SIZE.size:
            return b""
        end = _SIZE.size + _SIZE.unpack_from(self._received)[0]
        await self._need(end)
        frame = bytes(self._received[:end])
        del self._received[:end]
        return frame

    async def _need(self, size: int) -> None:
        while len(self._received) < size:
            data = await self._stream.receive_some(1 << 18)
            if not data:
                self._received.clear()
                return
            self._received += data


class _Relay:
    """One connection. ``late``: for each request under way whether its answer comes late.

    Only what asks for acknowledgements is expected here: each request has its answer.
    """

    def __init__(self, seconds: float, client_id: bytes) -> None:
        self._seconds = seconds
        self._client_id = client_id
        self._late: deque[bool] = deque()

    async def join(self, upstream: int, client: trio.SocketStream) -> None:
        """Relay until one of the two ends."""
        try:
            async with (
                await trio.open_tcp_stream(_HOST, upstream) as broker,
                client,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._up, client, broker, nursery.cancel_scope)
                nursery.start_soon(self._down, broker, client, nursery.cancel_scope)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.aclose_forcefully(client)

    async def _up(
        self, client: trio.SocketStream, broker: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        frames = _Frames(client)
        while frame := await frames.next():
            key, _, _, size = _HEAD.unpack_from(frame, _SIZE.size)
            begin = _SIZE.size + _HEAD.size
            client_id = frame[begin : begin + max(size, 0)]
            self._late.append(key == _METADATA and client_id == self._client_id)
            await broker.send_all(frame)
        scope.cancel()

    async def _down(
        self, broker: trio.SocketStream, client: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        frames = _Frames(broker)
        while frame := await frames.next():
            if self._late.popleft():
                await trio.sleep(self._seconds)
            await client.send_all(frame)
        scope.cancel()


async def _serve(milliseconds: float, client_id: str, pairs: list[tuple[int, int]]) -> None:
    async with trio.open_nursery() as nursery:
        for listen, upstream in pairs:
            listeners = await trio.open_tcp_listeners(listen, host=_HOST)
            handle = partial(_join, milliseconds / 1000, client_id.encode(), upstream)
            nursery.start_soon(trio.serve_listeners, handle, listeners)


async def _join(seconds: float, client_id: bytes, upstream: int, client: trio.SocketStream) -> None:
    await _Relay(seconds, client_id).join(upstream, client)


def main() -> None:
    """Relay until the process is ended."""
    _, milliseconds, client_id, *pairs = sys.argv
    ports = [(int(listen), int(upstream)) for listen, upstream in (p.split("=") for p in pairs)]
    trio.run(_serve, float(milliseconds), client_id, ports)


if __name__ == "__main__":
    main()
