"""FakeBroker: answers from a script what real brokers cannot be made to answer."""

import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio
from trio.testing import memory_stream_pair

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from tests.net import messages
from tests.net.messages import (
    API_VERSIONS,
    FENCED,
    LIST_OFFSETS,
    METADATA,
    NOT_LEADER,
    UNKNOWN_EPOCH,
    Broker,
    Partition,
)
from tests.net.rig import LEGACY

#: Leader and epoch of each partition of each topic.
Leaders = Mapping[str, list[tuple[int, int]]]

_PROBE = ["leader-hints-check"]
_NOT_AUTHORIZED = 29


class Asked(NamedTuple):
    """A request that came. ``topics``: those of a Metadata request, ``None`` for all."""

    at: float
    key: int
    version: int
    topics: list[str] | None


class FakeBroker:
    """One broker: what it believes can be changed at any time.

    ``maxima``: the versions that it offers. ``cluster``: the id of its cluster; ``brokers``: what
    its Metadata says of brokers; ``leaders``: what it believes of partitions, by which it also
    answers ListOffsets; ``ids``: its topics' ids, all zeros where one is missing.
    ``answers``: what is answered for an API in place of the truth, from correlation id and version.
    ``hides``: which topics its asker may not see; ``probes``: how often it was asked whether that
    is so, which is not in ``asked``.
    ``wants_sasl``: it does as SaslServerAuthenticator: until a client has authenticated, which none
    can here, it answers ApiVersions once on each connection, and ends it at anything else. That it
    lacks the version does not count.
    ``gate``: answers to Metadata and ListOffsets wait for it. ``streams``: its connections.
    ``in_sync``: the replicas in sync of all partitions.
    """

    def __init__(
        self,
        node: int,
        brokers: list[Broker],
        leaders: Leaders,
        *,
        maxima: Mapping[int, int] = LEGACY,
    ) -> None:
        self.node = node
        self.brokers = brokers
        self.leaders = leaders
        self.in_sync: tuple[int, ...] = (1,)
        self.cluster = "k"
        self.ids: Mapping[str, bytes] = {}
        self.maxima = maxima
        self.answers: dict[int, Callable[[int, int], bytes]] = {}
        self.gate = trio.Event()
        self.gate.set()
        self.hides: Callable[[str], bool] = lambda topic: False
        self.asked: list[Asked] = []
        self.probes = 0
        self.wants_sasl = False
        self.streams: list[trio.abc.Stream] = []
        self.most_waiting = 0
        self._waiting = 0

    def metadata(self) -> list[Asked]:
        """The Metadata requests that came."""
        return [asked for asked in self.asked if asked.key == METADATA]

    async def drop(self) -> None:
        """Close all connections."""
        for stream in list(self.streams):
            await stream.aclose()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer on one connection until it is closed."""
        self.streams.append(stream)
        send, receive = trio.open_memory_channel[bytes](1000)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._answer_all, stream, receive)
                await self._read(stream, send)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.streams.remove(stream)
            await trio.aclose_forcefully(stream)

    async def _read(self, stream: trio.abc.Stream, send: trio.MemorySendChannel[bytes]) -> None:
        data = b""
        while chunk := await stream.receive_some():
            data += bytes(chunk)
            while len(data) >= 4 and len(data) >= (end := 4 + struct.unpack_from(">i", data)[0]):
                self._waiting += 1
                self.most_waiting = max(self.most_waiting, self._waiting)
                await send.send(data[4:end])
                data = data[end:]

    async def _answer_all(
        self, stream: trio.abc.Stream, receive: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        versions_told = False
        async for request in receive:
            key, version, correlation, client = struct.unpack_from(">hhih", request)
            body = request[10 + client + (key == METADATA or (key, version) == (18, 3)) :]
            topics = _topics(body, version) if key == METADATA else []
            if topics == _PROBE:
                self.probes += 1
            else:
                self.asked.append(Asked(trio.current_time(), key, version, topics))
            if key in (METADATA, LIST_OFFSETS):
                await self.gate.wait()
            if self.wants_sasl and (versions_told or key != API_VERSIONS):
                await stream.aclose()
                return
            answer = self.answers.get(key) or self._truth(key, body, topics)
            self._waiting -= 1
            answered = answer(correlation, version)
            versions_told = answered != messages.unsupported_api_versions(correlation)
            await stream.send_all(answered)

    def _truth(
        self, key: int, body: bytes, topics: list[str] | None
    ) -> Callable[[int, int], bytes]:
        if key == API_VERSIONS:
            return lambda correlation, version: messages.api_versions_response(
                correlation, version, self.maxima
            )
        if key == LIST_OFFSETS:
            return lambda correlation, version: messages.list_offsets_response(
                correlation, self._errors(body)
            )
        assert key == METADATA
        return lambda correlation, version: self._metadata(correlation, version, topics)

    def _metadata(self, correlation: int, version: int, topics: list[str] | None) -> bytes:
        names = [name for name in self.leaders if not self.hides(name)]
        if topics is not None:
            names = topics
        shown = {
            name: [
                Partition(number, leader, epoch, self.in_sync)
                for number, (leader, epoch) in enumerate(self.leaders.get(name, []))
                if not self.hides(name)
            ]
            for name in names
        }
        absent = {name: 3 for name in names if name not in self.leaders}
        absent |= {name: _NOT_AUTHORIZED for name in names if self.hides(name)}
        return messages.metadata_response(
            correlation,
            version,
            self.brokers,
            shown,
            cluster=self.cluster,
            ids=self.ids,
            errors=absent,
        )

    def _errors(self, body: bytes) -> dict[tuple[str, int], int]:
        (count,) = struct.unpack_from(">i", body, 5)
        errors, at = {}, 9
        for _ in range(count):
            (size,) = struct.unpack_from(">h", body, at)
            name = body[at + 2 : at + 2 + size].decode()
            number, epoch = struct.unpack_from(">ii", body, at + 2 + size + 4)
            leader, own = self.leaders[name][number]
            if epoch == own:
                errors[name, number] = 0 if leader == self.node else NOT_LEADER
            else:
                # As brokers do: the epoch is looked at first (KIP-320).
                errors[name, number] = UNKNOWN_EPOCH if epoch > own else FENCED
            at += 2 + size + 4 + 16
        return errors


def _topics(body: bytes, version: int) -> list[str] | None:
    if body[0] == 0:
        return None
    names, at = [], 1
    for _ in range(body[0] - 1):
        at += 16 if version >= 10 else 0
        size = body[at] - 1
        names.append(body[at + 1 : at + 1 + size].decode())
        at += 1 + size + 1
    return names


class FakeNetwork:
    """Addresses with fake brokers behind them.

    ``attempts``: when who was connected to. ``peers``: the IP address of each connection.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.brokers: dict[Address, FakeBroker] = {}
        self.attempts: list[tuple[float, Address]] = []
        self.peers: dict[trio.abc.Stream, str] = {}
        self._nursery = nursery

    def peer(self, address: Address) -> str:
        """Return the IP address to which another one leads."""
        return f"10.0.0.{self.brokers[address].node}"

    async def open(self, address: Address, patience: float) -> trio.abc.Stream:
        """Connect; refused where nobody listens."""
        await trio.lowlevel.checkpoint()
        self.attempts.append((trio.current_time(), address))
        if address not in self.brokers:
            raise BrokerError("cannot connect: connection refused")
        ours, theirs = memory_stream_pair()
        self.peers[ours] = self.peer(address)
        self._nursery.start_soon(self.brokers[address].serve, theirs)
        return ours


@asynccontextmanager
async def network() -> AsyncIterator[FakeNetwork]:
    """A network whose brokers run until the end of the block, as does what is started in it."""
    async with trio.open_nursery() as nursery:
        yield FakeNetwork(nursery)
        nursery.cancel_scope.cancel()
