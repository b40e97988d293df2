"""A broker that asks for SASL, over a pair of streams in memory."""

import struct
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio
from trio.testing import memory_stream_pair

from leader_hints.apis.keys import ApiKey
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.sasl import Credentials
from tests.net import messages

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36

#: What a broker does: it is sent tokens, and yields its own, or raises RefusedError or EndedError.
Judge = Generator[bytes, bytes, None]


class RefusedError(Exception):
    """The broker refuses, in these words."""


class EndedError(Exception):
    """The broker says nothing more, and closes the connection."""


class Broker:
    """Answers one connection. ``asked``: the API keys that came, in order."""

    def __init__(
        self,
        mechanism: str,
        judge: Callable[[], Judge],
        *,
        lifetime_ms: int = 0,
        handshake_error: int | None = None,
    ) -> None:
        self.asked: list[int] = []
        self._mechanism = mechanism
        self._judge = judge
        self._lifetime_ms = lifetime_ms
        self._handshake_error = handshake_error

    async def serve(self, stream: trio.abc.Stream) -> None:
        with suppress(EndedError):
            await self._serve(stream)
        await stream.aclose()

    async def _serve(self, stream: trio.abc.Stream) -> None:
        data = b""
        judging = self._judge()
        while chunk := await stream.receive_some():
            data += chunk
            while len(data) >= 4 and len(data) >= (end := 4 + struct.unpack_from(">i", data)[0]):
                request, data = data[4:end], data[end:]
                key, version, correlation, client = struct.unpack_from(">hhih", request)
                self.asked.append(key)
                body = request[10 + client :]
                if key == HANDSHAKE:
                    judging = self._judge()
                    next(judging)
                    answer = self._handshake(body)
                elif key == AUTHENTICATE:
                    answer = self._authenticate(judging, body[4:])
                else:
                    answer = b"the answer"
                await stream.send_all(messages.response(key, version, correlation, answer))

    def _handshake(self, body: bytes) -> bytes:
        error = self._handshake_error
        if error is None:
            error = 0 if body[2:].decode() == self._mechanism else 33
        return struct.pack(">hi", error, 1) + messages.old_text(self._mechanism)

    def _authenticate(self, judging: Judge, token: bytes) -> bytes:
        try:
            said = judging.send(token)
        except RefusedError as error:
            return struct.pack(">h", 58) + messages.old_text(str(error)) + struct.pack(">iq", 0, 0)
        answer = struct.pack(">hhi", 0, -1, len(said)) + said
        return answer + struct.pack(">q", self._lifetime_ms)


@asynccontextmanager
async def connected(
    broker: Broker, known: Credentials, host: str = "localhost"
) -> AsyncIterator[BrokerConnection]:
    """A connection to ``broker``."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve, theirs)
        yield BrokerConnection(ours, "leader-hints", 2.0, known, host)
        nursery.cancel_scope.cancel()


async def ask(connection: BrokerConnection) -> bytes:
    """Ask something for which one must be known."""
    reader = await connection.ask(ApiKey.METADATA, 9, b"")
    return bytes(reader.buffer[reader.at :])
