"""A cluster that answers Metadata and tells leaders, and holds no records: for 100 brokers at once.

Nouns: Layout, the topics and their leaders; FakeCluster, its brokers on this machine.
"""

import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import trio

from tests.harness.ports import free_ports
from tests.net import messages
from tests.net.messages import (
    API_VERSIONS,
    FENCED,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    NOT_LEADER,
    PRODUCE,
    UNKNOWN_EPOCH,
)

#: What a broker of 3.6 takes, as far as it is asked here.
_OFFERED = {PRODUCE: 9, FETCH: 15, LIST_OFFSETS: 7, METADATA: 12, API_VERSIONS: 3}
_FLEXIBLE = {(METADATA, version) for version in range(9, 13)} | {(API_VERSIONS, 3)}
_FLEXIBLE |= {(PRODUCE, 9)} | {(FETCH, version) for version in range(12, 16)}
_REPLICAS = 3
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Layout:
    """Leader by topic and partition; all at one ``epoch``."""

    leaders: Mapping[str, Sequence[int]]
    epoch: int

    def __len__(self) -> int:
        """Partitions."""
        return sum(map(len, self.leaders.values()))

    @cached_property
    def ids(self) -> dict[str, bytes]:
        """Topic ids, by name."""
        return {name: number.to_bytes(16) for number, name in enumerate(self.leaders, 1)}

    @cached_property
    def shown(self) -> dict[str, bytes]:
        """Each topic as Metadata v12 shows it: with three replicas for each partition."""
        return {name: self._show(name) for name in self.leaders}

    def _show(self, name: str) -> bytes:
        nodes = messages.array([struct.pack(">i", node) for node in range(1, 1 + _REPLICAS)])
        rest = 2 * nodes + messages.array([]) + b"\0"
        partitions = [
            struct.pack(">hiii", 0, number, leader, self.epoch) + rest
            for number, leader in enumerate(self.leaders[name])
        ]
        head = b"\0\0" + messages.text(name) + self.ids[name] + b"\0"
        return head + messages.array(partitions) + bytes(4) + b"\0"


@dataclass
class Traffic:
    """Requests by API, the bytes of what is asked and answered, and Metadata's partitions."""

    requests: Counter[int] = field(default_factory=Counter)
    asked: Counter[int] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    partitions: int = 0


class FakeCluster:
    """``brokers`` brokers, each on a port of its own and with a view of its own of the leaders.

    ``advertised``: where it says that they are, by node id. ``layouts``: what each broker believes;
    to be changed at will. ``polled``: called when a broker is asked for all topics, or for the
    first of them. ``largest_of_many``: most partitions in an answer to a question for some topics,
    and not for a single one. ``answers``: what Produce and Fetch requests are answered, by client
    id; to "" there is no answer.
    """

    def __init__(self, brokers: int, layout: Layout) -> None:
        nodes = range(1, brokers + 1)
        self.ports = dict(zip(nodes, free_ports(brokers), strict=True))
        self.advertised = dict(self.ports)
        self.layouts = dict.fromkeys(nodes, layout)
        self.traffic = Traffic()
        self.polled: Callable[[], None] = lambda: None
        self.answers: dict[str, bytes] = {}
        self.largest_of_many = 0
        self._first = next(iter(layout.leaders))

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            for node, port in self.ports.items():
                listeners = await trio.open_tcp_listeners(port, host=HOST)
                handle = partial(self._serve, node)
                nursery.start_soon(trio.serve_listeners, handle, listeners)
            task_status.started()

    async def _serve(self, node: int, stream: trio.SocketStream) -> None:
        received = bytearray()
        try:
            while data := await stream.receive_some(1 << 20):
                received += data
                while len(received) >= 4:
                    end = 4 + int.from_bytes(received[:4])
                    if len(received) < end:
                        break
                    request = bytes(received[4:end])
                    del received[:end]
                    pieces = self._answer(node, request)
                    key = int.from_bytes(request[:2])
                    self.traffic.requests[key] += 1
                    self.traffic.asked[key] += len(request)
                    self.traffic.answered[key] += sum(map(len, pieces))
                    for piece in pieces:
                        await stream.send_all(piece)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    def _answer(self, node: int, request: bytes) -> list[bytes | memoryview]:
        key, version, correlation, client = struct.unpack_from(">hhih", request)
        body = request[10 + max(client, 0) + ((key, version) in _FLEXIBLE) :]
        if key == API_VERSIONS:
            return [messages.api_versions_response(correlation, version, _OFFERED)]
        if key == METADATA:
            return [self._metadata(node, correlation, body)]
        if key == LIST_OFFSETS:
            errors = self._offices(node, body)
            return [messages.list_offsets_response(correlation, errors)]
        answer = self.answers[request[10 : 10 + client].decode()]
        if not answer:
            return []
        return [answer[:4] + struct.pack(">i", correlation), memoryview(answer)[8:]]

    def _metadata(self, node: int, correlation: int, body: bytes) -> bytes:
        layout = self.layouts[node]
        names = _names(body)
        if names is None or self._first in names:
            self.polled()
        topics = [*layout.leaders] if names is None else [n for n in names if n in layout.leaders]
        partitions = sum(len(layout.leaders[name]) for name in topics)
        self.traffic.partitions += partitions
        if names is not None and len(topics) > 1:
            self.largest_of_many = max(self.largest_of_many, partitions)
        brokers = messages.array(
            struct.pack(">i", number)
            + messages.text(HOST)
            + struct.pack(">i", port)
            + messages.text(None)
            + b"\0"
            for number, port in self.advertised.items()
        )
        cluster = messages.text("fake") + struct.pack(">i", 1)
        shown = messages.varint(len(topics) + 1) + b"".join(layout.shown[name] for name in topics)
        said = bytes(4) + brokers + cluster + shown + b"\0"
        return messages.response(METADATA, 12, correlation, said)

    def _offices(self, node: int, body: bytes) -> dict[tuple[str, int], int]:
        layout = self.layouts[node]
        errors, at = {}, 9
        (count,) = struct.unpack_from(">i", body, 5)
        for _ in range(count):
            (size,) = struct.unpack_from(">h", body, at)
            name = body[at + 2 : at + 2 + size].decode()
            number, epoch = struct.unpack_from(">ii", body, at + 2 + size + 4)
            if epoch == layout.epoch:
                leads = layout.leaders[name][number] == node
                errors[name, number] = 0 if leads else NOT_LEADER
            else:
                errors[name, number] = UNKNOWN_EPOCH if epoch > layout.epoch else FENCED
            at += 2 + size + 4 + 16
        return errors


def _names(body: bytes) -> list[str] | None:
    """The topics of a Metadata request v12, ``None`` for all."""
    count, at = _varint(body, 0)
    if count == 0:
        return None
    names = []
    for _ in range(count - 1):
        size, at = _varint(body, at + 16)
        names.append(body[at : at + size - 1].decode())
        at += size
    return names


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
