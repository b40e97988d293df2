"""A TCP relay of the tests' own, before or behind the proxy: it records, and holds at a gate."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from tests.harness.connection import Address, read_exactly

_CHUNK = 65_536


class RequestHeader(NamedTuple):
    """What every version of a request's header has."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


Chooses = Callable[[RequestHeader], bool]


class Gate:
    """While shut, it holds the responses to chosen requests, and with each all behind it.

    That is a delay that ends when the test wants, so nothing depends on the speed of the machine.
    """

    def __init__(self, chooses: Chooses) -> None:
        self._chooses = chooses
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._held = 0

    @property
    def held(self) -> int:
        """How many responses wait at it now."""
        with self._lock:
            return self._held

    def shut(self) -> None:
        """From now on hold chosen responses."""
        self._open.clear()

    def open(self) -> None:
        """Let all go that are held, and all that come."""
        self._open.set()

    def chooses(self, request: RequestHeader) -> bool:
        """Whether it holds the response to this request."""
        return self._chooses(request)

    def wait(self) -> None:
        """Wait while it is shut."""
        with self._lock:
            self._held += 1
        self._open.wait()
        with self._lock:
            self._held -= 1


class Conversation:
    """One connection through a relay: the bytes of both directions as they were forwarded."""

    def __init__(self) -> None:
        self.up = bytearray()
        self.down = bytearray()
        self.closed = False
        self._requests: list[RequestHeader] = []
        self._parsed = 0
        self._lock = threading.Lock()

    def requests(self) -> list[RequestHeader]:
        """The headers of the whole requests so far."""
        # Asked for with each response while there is a gate, so only what is new is parsed.
        with self._lock:
            for frame in frames(bytes(self.up[self._parsed :])):
                self._requests.append(parse_header(frame))
                self._parsed += 4 + len(frame)
            return list(self._requests)

    def responses(self) -> list[tuple[RequestHeader, bytes]]:
        """The whole responses so far (without length prefix), each with its request's header."""
        # In this order, or the answer to a request that comes in between would have none.
        down = bytes(self.down)
        asked = {request.correlation_id: request for request in self.requests()}
        return [(asked[struct.unpack_from(">i", frame)[0]], frame) for frame in frames(down)]


class Relay:
    """Listens at one address and joins each connection to one at another; a context manager.

    ``upstream``: where new connections are joined to; old ones stay when it is set again.
    """

    def __init__(self, listen: Address, upstream: Address, gate: Gate | None = None) -> None:
        self.conversations: list[Conversation] = []
        self.upstream = upstream
        self._gate = gate
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closing = False
        family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
        self._listener = socket.create_server(listen, family=family)

    def cut(self) -> None:
        """End all connections."""
        with self._lock:
            for open_socket in self._sockets:
                _shut(open_socket)

    def requests(self) -> list[RequestHeader]:
        """The headers of all requests that came so far, connection by connection."""
        return [request for talk in list(self.conversations) for request in talk.requests()]

    def target(self) -> Address:
        """Where the next connection is joined to."""
        return self.upstream

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closing = True
            for open_socket in (self._listener, *self._sockets):
                _shut(open_socket)
        if self._gate is not None:
            self._gate.open()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self.target())
            except OSError:
                client.close()
                continue
            for stream in (client, broker):
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._join(client, broker)

    def _join(self, client: socket.socket, broker: socket.socket) -> None:
        with self._lock:
            if self._closing:
                client.close()
                broker.close()
                return
            self._sockets += (client, broker)
            talk = Conversation()
            self.conversations.append(talk)
            self._start(lambda: self._relay(talk, client, broker))

    def _relay(self, talk: Conversation, client: socket.socket, broker: socket.socket) -> None:
        upwards = threading.Thread(target=lambda: self._pump_up(talk, client, broker), daemon=True)
        upwards.start()
        self._pump_down(talk, broker, client)
        upwards.join()
        with self._lock:
            for stream in (client, broker):
                self._sockets.remove(stream)
                stream.close()
        talk.closed = True

    def _pump_up(self, talk: Conversation, source: socket.socket, target: socket.socket) -> None:
        _pump(_chunks(source), talk.up, target)

    def _pump_down(self, talk: Conversation, source: socket.socket, target: socket.socket) -> None:
        chunks = _chunks(source) if self._gate is None else self._gated(talk, source, self._gate)
        _pump(chunks, talk.down, target)

    def _gated(self, talk: Conversation, source: socket.socket, gate: Gate) -> Iterator[bytes]:
        """The responses as whole frames, each after it was let through."""
        asked: dict[int, RequestHeader] = {}
        seen = 0
        with contextlib.suppress(ConnectionError, OSError):
            while True:
                prefix = read_exactly(source, 4)
                frame = read_exactly(source, struct.unpack(">i", prefix)[0])
                requests = talk.requests()
                asked |= {request.correlation_id: request for request in requests[seen:]}
                seen = len(requests)
                if gate.chooses(asked.pop(struct.unpack_from(">i", frame)[0])):
                    gate.wait()
                yield prefix + frame

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()


def frames(stream: bytes) -> Iterator[bytes]:
    """The whole frames at the start of a stream, without their length prefixes."""
    start = 0
    while len(stream) - start >= 4:
        (length,) = struct.unpack_from(">i", stream, start)
        if len(stream) - start - 4 < length:
            return
        yield stream[start + 4 : start + 4 + length]
        start += 4 + length


def parse_header(frame: bytes) -> RequestHeader:
    """The header of a request's frame (without its length prefix)."""
    api_key, version, correlation_id, length = struct.unpack_from(">hhih", frame)
    client_id = None if length < 0 else frame[10 : 10 + length].decode()
    return RequestHeader(api_key, version, correlation_id, client_id)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            yield chunk


def _pump(chunks: Iterator[bytes], record: bytearray, target: socket.socket) -> None:
    """Forward until the source ends, then end the target's direction too."""
    for chunk in chunks:
        record += chunk
        try:
            target.sendall(chunk)
        except OSError:
            break
    _shut(target, socket.SHUT_WR)


def _shut(stream: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with contextlib.suppress(OSError):
        stream.shutdown(how)


def relays(pairs: Sequence[tuple[Address, Address]], gate: Gate | None = None) -> list[Relay]:
    """One relay for each pair of listening and upstream addresses, with a gate in common."""
    return [Relay(listen, upstream, gate) for listen, upstream in pairs]
