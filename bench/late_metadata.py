"""``python -m bench.late_metadata MILLISECONDS HOW CLIENT_ID TOPIC LISTEN=UPSTREAM=BROKER...``

A relay that forwards everything unchanged, but delays what Metadata reports of TOPIC to CLIENT_ID
by so many milliseconds. HOW: ``stale``: a Metadata response comes immediately, and reports what
the broker reported so long ago. Nothing else on the connection waits. ``slow``: the response is
forwarded unchanged, but so much later. Later responses of its connection wait too, since a
connection answers in order.

LISTEN, UPSTREAM and BROKER are ports of 127.0.0.1. The relay asks the broker itself: a proxy at
UPSTREAM must not learn more than it would without a relay.
"""

import sys
from collections import deque
from functools import partial
from typing import Literal, NamedTuple

import trio

from leader_hints.apis import header, metadata
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.writer import frame as framed

Lateness = Literal["stale", "slow"]

_HOST = "127.0.0.1"
_SIZE = 4
#: Size, correlation id and the tag section of a flexible response, which is always empty.
_HEAD = 9
#: Seconds between two looks at what a broker says.
_LOOK = 0.02


class _Frames:
    """Whole messages of one direction of a connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def next(self) -> bytes:
        """Return the next message with its size prefix; nothing at the end."""
        await self._need(_SIZE)
        if len(self._received) < _SIZE:
            return b""
        end = _SIZE + int.from_bytes(self._received[:_SIZE])
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


class _Past:
    """What a broker said of a topic ``seconds`` ago, as bodies of Metadata responses."""

    def __init__(self, port: int, topic: str, seconds: float) -> None:
        self._port = port
        self._seconds = seconds
        body = metadata.write_request_body(metadata.NEWEST, [topic])
        self._question = header.request(ApiKey.METADATA, metadata.NEWEST, 0, "late-metadata", body)
        self._said: deque[tuple[float, bytes]] = deque()

    async def keep(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Ask until cancelled; started when there is a first answer."""
        async with await trio.open_tcp_stream(_HOST, self._port) as stream:
            frames = _Frames(stream)
            while True:
                asked_at = trio.current_time()
                await stream.send_all(self._question)
                self._said.append((asked_at, (await frames.next())[_HEAD:]))
                if len(self._said) == 1:
                    task_status.started()
                await trio.sleep(_LOOK)

    def body(self) -> bytes:
        """Return what the broker said then; the first that was heard, where that was later."""
        then = trio.current_time() - self._seconds
        while len(self._said) > 1 and self._said[1][0] <= then:
            self._said.popleft()
        return self._said[0][1]


class _How(NamedTuple):
    """Which responses come late, and how late: see above. ``past``: of one that is to be stale."""

    client_id: str
    topic: str
    seconds: float
    past: _Past | None


class _Relay:
    """One connection. ``late``: for each request under way whether its response comes late.

    Only what asks for acknowledgements is expected here: each request has its answer.
    """

    def __init__(self, how: _How) -> None:
        self._how = how
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
            self._late.append(self._comes_late(frame))
            await broker.send_all(frame)
        scope.cancel()

    def _comes_late(self, frame: bytes) -> bool:
        asked = header.read_request_header(memoryview(frame))
        if asked.key != ApiKey.METADATA or asked.client_id != self._how.client_id:
            return False
        # A client that begins asks for the brokers alone.
        return self._how.topic.encode() in frame[asked.body :]

    async def _down(
        self, broker: trio.SocketStream, client: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        frames = _Frames(broker)
        while frame := await frames.next():
            if self._late.popleft():
                frame = await self._belated(frame)
            await client.send_all(frame)
        scope.cancel()

    async def _belated(self, frame: bytes) -> bytes:
        if self._how.past is None:
            await trio.sleep(self._how.seconds)
            return frame
        return framed(frame[_SIZE:_HEAD] + self._how.past.body())


async def _serve(how: _How, stale: bool, ports: list[list[int]]) -> None:
    async with trio.open_nursery() as nursery:
        for listen, upstream, broker in ports:
            its = how
            if stale:
                past = _Past(broker, how.topic, how.seconds)
                await nursery.start(past.keep)
                its = how._replace(past=past)
            listeners = await trio.open_tcp_listeners(listen, host=_HOST)
            handle = partial(_join, its, upstream)
            nursery.start_soon(trio.serve_listeners, handle, listeners)


async def _join(how: _How, upstream: int, client: trio.SocketStream) -> None:
    await _Relay(how).join(upstream, client)


def main() -> None:
    """Relay until the process is ended."""
    _, milliseconds, lateness, client_id, topic, *triples = sys.argv
    ports = [[int(port) for port in triple.split("=")] for triple in triples]
    how = _How(client_id, topic, float(milliseconds) / 1000, None)
    trio.run(_serve, how, lateness == "stale", ports)


if __name__ == "__main__":
    main()
