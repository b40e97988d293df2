"""What clients do to a listening socket that speak no Kafka, or speak it to harm."""

import contextlib
import random
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence

import trio

from tests.fuzz.mutate import chunks, mutated
from tests.fuzz.seeds import Exchanged
from tests.harness.connection import Address
from tests.net import messages
from tests.net.messages import API_VERSIONS, FETCH, METADATA, PRODUCE

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
#: Seconds that one attack lasts at most: a proxy that reads no more must not keep it.
_MOST_S = 5.0
_KEYS = (PRODUCE, FETCH, METADATA, API_VERSIONS)
_MANY = 100_000


class Attacker:
    """Makes a connection and does harm on it; ``recorded``: what real clients asked."""

    def __init__(
        self, address: Address, recorded: Sequence[Exchanged], chance: random.Random
    ) -> None:
        self._address = address
        self._recorded = recorded
        self._chance = chance

    async def attack(self, made: dict[str, int]) -> None:
        """Do one attack, and count it by its name; that the connection ends is no news."""
        name = self._chance.choice(list(ATTACKS))
        with contextlib.suppress(*_GONE), trio.move_on_after(_MOST_S):
            stream = await trio.open_tcp_stream(*self._address)
            made[name] += 1
            async with stream:
                await ATTACKS[name](self, stream)

    async def garbage(self, stream: trio.SocketStream) -> None:
        """Send bytes by chance, with a size before them or none."""
        data = self._chance.randbytes(self._chance.choice((1, 10, 1000, 300_000)))
        if self._chance.random() < 0.5:
            data = messages.framed(data)
        await stream.send_all(data)
        await self._read_a_little(stream)

    async def requests(self, stream: trio.SocketStream) -> None:
        """Send requests of real clients, some of them mutated, in pieces."""
        asked = [exchanged.asked for exchanged in self._chance.choices(self._recorded, k=20)]
        for request in asked:
            if self._chance.random() < 0.7:
                request = mutated(request, asked, self._chance)
            for chunk in chunks(request, self._chance):
                await stream.send_all(chunk)
        await self._read_a_little(stream)

    async def slow_loris(self, stream: trio.SocketStream) -> None:
        """Send a request byte by byte, and never its end."""
        request = self._chance.choice(self._recorded).asked
        for byte in request[:-1]:
            await stream.send_all(bytes([byte]))
            await trio.sleep(0.05)

    async def tiny_frames(self, stream: trio.SocketStream) -> None:
        """Send a hundred thousand of the smallest frames at once, and read nothing."""
        key = self._chance.choice((*_KEYS, 999))
        # One byte more, and frames begin anywhere in what is received at once.
        end = bytes(self._chance.randrange(2))
        frame = messages.framed(struct.pack(">hhi", key, self._chance.randrange(17), 1) + end)
        for _ in range(10):
            await stream.send_all(frame * (_MANY // 10))

    async def tiny_behind_large(self, stream: trio.SocketStream) -> None:
        """Send requests as large as real ones, and thousands of the smallest behind each."""
        key = self._chance.choice((API_VERSIONS, METADATA, 999))
        large = messages.framed(struct.pack(">hhih", 999, 0, 1, -1) + bytes(50_000))
        frame = messages.framed(struct.pack(">hhi", key, self._chance.randrange(4), 1))
        for _ in range(20):
            await stream.send_all(large + frame * 20_000)

    async def huge_counts(self, stream: trio.SocketStream) -> None:
        """Send whole requests whose arrays and texts claim two thousand millions of elements."""
        for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f"):
            for key in _KEYS:
                head = struct.pack(">hhi", key, self._chance.choice((3, 9, 12, 16)), 1)
                padding = bytes(self._chance.choice((0, 20, 200)))
                await stream.send_all(messages.framed(head + b"\0\1x\0" + padding + count * 20))
        await self._read_a_little(stream)

    async def deep_tags(self, stream: trio.SocketStream) -> None:
        """Send a request with a hundred thousand tags in its header."""
        tags = b"".join(messages.varint(tag) + messages.varint(1) + b"x" for tag in range(_MANY))
        for key, version in ((PRODUCE, 10), (FETCH, 16), (API_VERSIONS, 3), (METADATA, 12)):
            head = struct.pack(">hhi", key, version, 1) + b"\0\1x"
            await stream.send_all(messages.framed(head + messages.varint(_MANY) + tags))
        await self._read_a_little(stream)

    async def claims(self, stream: trio.SocketStream) -> None:
        """Claim a frame of a gigabyte, send a little of it, and stay."""
        head = struct.pack(">ihhi", (1 << 30) - 1, self._chance.choice(_KEYS), 9, 1)
        await stream.send_all(head + b"\0\1x\0" + bytes(100_000))
        await trio.sleep(_MOST_S)

    async def silence(self, stream: trio.SocketStream) -> None:
        """Say nothing."""
        await trio.sleep(_MOST_S)

    async def _read_a_little(self, stream: trio.SocketStream) -> None:
        with trio.move_on_after(self._chance.random()):
            while await stream.receive_some():
                pass


ATTACKS: Mapping[str, Callable[[Attacker, trio.SocketStream], Awaitable[None]]] = {
    "garbage": Attacker.garbage,
    "mutated requests": Attacker.requests,
    "slow loris": Attacker.slow_loris,
    "tiny frames": Attacker.tiny_frames,
    "tiny behind large": Attacker.tiny_behind_large,
    "huge counts": Attacker.huge_counts,
    "deep tags": Attacker.deep_tags,
    "claims": Attacker.claims,
    "silence": Attacker.silence,
}
