"""Clients that check each response: it is the next one's that was asked."""

import random
import struct
from collections.abc import Sequence

import trio

from tests.harness.connection import Address
from tests.net import messages

#: What a Produce response without hints has; with hints it is longer.
_PLAIN = len(messages.produce_response(1, {0: messages.NOT_LEADER}))
_PATIENCE = 60.0


class Counts:
    """What all clients have counted. ``times``: seconds of each exchange, while it is wanted."""

    def __init__(self) -> None:
        self.connections = 0
        self.responses = 0
        self.errors = 0
        self.hints = 0
        self.times: list[float] | None = None


class Connection:
    """One connection of a client; a context manager.

    Responses that do not come, or are another's, raise AssertionError.
    """

    def __init__(self, stream: trio.SocketStream, counts: Counts) -> None:
        self.stream = stream
        self._counts = counts
        self._correlation = 0
        self._received = bytearray()

    async def greet(self) -> None:
        """Ask for versions, as every client does at first."""
        self._correlation += 1
        await self._exchange(messages.api_versions_request(self._correlation))

    async def produce(self) -> bool:
        """Produce one record; return whether the broker took it."""
        self._correlation += 1
        answer = await self._exchange(messages.produce_request(10, self._correlation))
        # Behind size, correlation id, tags, one topic "t", one partition and its number.
        (error,) = struct.unpack_from(">h", answer, 17)
        assert error in (0, messages.NOT_LEADER), answer.hex()
        self._counts.errors += error != 0
        self._counts.hints += len(answer) > _PLAIN
        return int(error) == 0

    async def _exchange(self, request: bytes) -> bytes:
        began = trio.current_time()
        with trio.move_on_after(_PATIENCE) as late:
            await self.stream.send_all(request)
            answer = await self._answer()
        assert not late.cancelled_caught, "no answer"
        (correlation,) = struct.unpack_from(">i", answer, 4)
        assert correlation == self._correlation, f"{correlation} in place of {self._correlation}"
        self._counts.responses += 1
        if self._counts.times is not None:
            self._counts.times.append(trio.current_time() - began)
        return answer

    async def _answer(self) -> bytes:
        while True:
            if len(self._received) >= 4:
                end = 4 + int.from_bytes(self._received[:4])
                if len(self._received) >= end:
                    answer = bytes(self._received[:end])
                    del self._received[:end]
                    return answer
            chunk = await self.stream.receive_some()
            assert chunk, "the connection was closed"
            self._received += chunk


async def connect(address: Address, counts: Counts) -> Connection:
    """Make a connection, and ask for versions on it."""
    connection = Connection(await trio.open_tcp_stream(*address), counts)
    counts.connections += 1
    await connection.greet()
    return connection


async def come_and_go(
    addresses: Sequence[Address], counts: Counts, pause: float, chance: random.Random
) -> None:
    """Be one client after the other, until cancelled; some go in the middle of everything.

    There is a connection nearly all the time, so that the proxy's memory tells what it keeps.
    """
    where = chance.randrange(2)
    while True:
        connection = await connect(addresses[where], counts)
        async with connection.stream:
            for _ in range(chance.randrange(1, 12)):
                await trio.sleep(chance.uniform(0, 2 * pause))
                if not await connection.produce():
                    where = 1 - where
                    break
            if chance.random() < 0.2:
                # A whole request and a part of one, of which nobody awaits the answer.
                await connection.stream.send_all(messages.produce_request(10, 999) + b"\0\0")


async def keep_busy(connection: Connection, pause: float) -> None:
    """Produce until cancelled."""
    while True:
        await connection.produce()
        await trio.sleep(pause)
