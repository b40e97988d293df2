"""TLS in the pump: any bytes, any chunks, back-pressure and ends, as over plain sockets."""

import contextlib
import ctypes
import gc
import itertools
import random
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import trustme

from leader_hints.core.route import Route
from leader_hints.net.pump.poller import READ, WRITE, KeepingPoller, make_poller
from leader_hints.net.pump.pump import BUFFER_BYTES
from leader_hints.net.pump.tls_socket import TlsSocket
from tests.net import messages
from tests.net.key_updates import key_updates
from tests.net.rig import LEGACY, Rig, hinting_route, opaque_route, socket_pair

_SECONDS = 10.0
_SMALL = 16_384
_VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
_AUTHORITY = trustme.CA()
_CERTIFICATE = _AUTHORITY.issue_cert("localhost")


class FarEnd:
    """The far end of a TLS connection; it does not block."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self.socket = sock

    def send(self, data: bytes) -> int:
        """Send what is taken."""
        try:
            return self.socket.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return 0

    def receive(self) -> tuple[bytes, bool]:
        """Return what has come, and whether that was all."""
        got = b""
        try:
            while data := self.socket.recv(1 << 16):
                got += data
        except ssl.SSLWantReadError:
            return got, False
        except (OSError, ssl.SSLError):
            return got, True
        return got, True


class TlsRig(Rig):
    """A rig whose links speak TLS on both sides."""

    def __init__(self, version: ssl.TLSVersion) -> None:
        self.keeping = KeepingPoller(make_poller())
        super().__init__(poller=self.keeping)
        self._server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _CERTIFICATE.configure_cert(self._server)
        self._client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _AUTHORITY.configure_trust(self._client)
        self._server.maximum_version = self._client.maximum_version = version

    def tls_link(self, route: Route, buffers: int | None = None) -> tuple[FarEnd, FarEnd]:
        """Make a link; return the client and the broker at its far ends."""
        client, ours = self.tls_pair(buffers, client_is_far=True)
        broker, theirs = self.tls_pair(buffers, client_is_far=False)
        self.pump.adopt(route, ours, theirs, "a client")
        return client, broker

    def tls_pair(
        self, buffers: int | None = None, *, client_is_far: bool = True
    ) -> tuple[FarEnd, TlsSocket]:
        """Two ends of a connection after its handshake: a far one, and one for the pump."""
        far, near = socket_pair(buffers=buffers)
        wrapped: list[ssl.SSLSocket] = []

        def shake() -> None:
            far.settimeout(_SECONDS)
            if client_is_far:
                wrapped.append(self._client.wrap_socket(far, server_hostname="localhost"))
            else:
                wrapped.append(self._server.wrap_socket(far, server_side=True))

        thread = threading.Thread(target=shake)
        thread.start()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = self._server if client_is_far else self._client
        name = None if client_is_far else "localhost"
        tls = context.wrap_bio(incoming, outgoing, server_side=client_is_far, server_hostname=name)
        near.settimeout(_SECONDS)
        while not _shaken(tls):
            near.sendall(outgoing.read())
            incoming.write(near.recv(_SMALL))
        near.sendall(outgoing.read())
        thread.join()
        wrapped[0].setblocking(False)
        near.setblocking(False)
        return FarEnd(wrapped[0]), TlsSocket(near, tls, incoming, outgoing, self.keeping.keep)

    def carry(self, sender: FarEnd, data: bytes, receiver: FarEnd, want: int) -> bytes:
        """Have ``data`` sent until ``want`` bytes have come to the other end."""
        rest, got = memoryview(data), bytearray()

        def done() -> bool:
            nonlocal rest
            if rest:
                rest = rest[sender.send(bytes(rest[:_SMALL])) :]
            self.pump.step()
            got.extend(receiver.receive()[0])
            return not rest and len(got) >= want

        _until(done)
        return bytes(got)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "the bytes do not come"


def _shaken(tls: ssl.SSLObject) -> bool:
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


@pytest.fixture(params=_VERSIONS, ids=lambda version: str(version.name))
def rig(request: pytest.FixtureRequest) -> Iterator[TlsRig]:
    """A rig; at the end it holds nothing."""
    made = TlsRig(request.param)
    yield made
    made.close()
    assert made.complaints == []


class _Full:
    """A socket whose other end reads nothing."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, data: memoryview) -> int:
        """Take nothing."""
        raise BlockingIOError

    def __getattr__(self, name: str) -> object:
        return getattr(self._socket, name)


def _take(near: TlsSocket, sent: bytes) -> socket.socket:
    """Have ``near`` receive ``sent`` at once; return the end that its answers come to."""
    ours, theirs = socket_pair(buffers=1 << 20)
    near._socket.close()
    near._socket = theirs
    assert ours.send(sent) == len(sent)
    return ours


def _raw(end: FarEnd) -> socket.socket:
    """Return the socket beneath the TLS of a far end."""
    return socket.socket(fileno=socket.dup(end.socket.fileno()))


def _close(rig: TlsRig, *ends: FarEnd) -> None:
    for end in ends:
        end.socket.close()
    rig.spin()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("buffers", [None, _SMALL])
def test_any_bytes_arrive_whole(rig: TlsRig, seed: int, buffers: int | None) -> None:
    source = random.Random(seed)
    client, broker = rig.tls_link(opaque_route(), buffers)
    for sender, receiver in ((client, broker), (broker, client)):
        data = source.randbytes(1_500_000 + source.randrange(5))
        assert rig.carry(sender, data, receiver, len(data)) == data
    _close(rig, client, broker)


def test_versions_are_raised_and_lowered(rig: TlsRig) -> None:
    client, broker = rig.tls_link(hinting_route())
    up = messages.api_versions_request(1) + messages.produce_request(10, 2)
    sent = messages.api_versions_request(1) + messages.produce_request(9, 2)
    for at in range(0, len(up), 7):
        client.send(up[at : at + 7])
    assert rig.carry(client, b"", broker, len(sent)) == sent
    down = messages.api_versions_response(1, 3, LEGACY)
    offered = messages.api_versions_response(1, 3, {**LEGACY, 0: 10, 1: 16})
    assert rig.carry(broker, down, client, len(offered)) == offered
    _close(rig, client, broker)


def test_a_frame_that_is_gathered_arrives_whole(rig: TlsRig) -> None:
    """It is received into memory of its own, which may have room for less than a TLS record."""
    client, broker = rig.tls_link(hinting_route())
    up = b"".join(messages.fetch_request(16, number, epoch=3) for number in range(20))
    sent = b"".join(messages.fetch_request(15, number, epoch=3) for number in range(20))
    assert rig.carry(client, up, broker, len(sent)) == sent
    records = random.Random(1).randbytes(100_001)
    down = b"".join(messages.fetch_response(number, records=records) for number in range(20))
    assert rig.carry(broker, down, client, len(down)) == down
    _close(rig, client, broker)


def test_a_client_that_reads_nothing_stops_the_other(rig: TlsRig) -> None:
    client, broker = rig.tls_link(opaque_route(), _SMALL)
    sent, refused = 0, 0
    block = bytes(_SMALL)
    while refused < 20:
        taken = broker.send(block)
        sent += taken
        refused = 0 if taken else refused + 1
        rig.spin()
    # Two kernel buffers on either side of the pump, and what is kept in it, generously.
    assert sent < 1 << 21
    assert len(rig.carry(broker, b"", client, sent)) == sent
    _close(rig, client, broker)


def test_the_last_bytes_come_before_the_end(rig: TlsRig) -> None:
    client, broker = rig.tls_link(opaque_route(), _SMALL)
    answer = random.Random(2).randbytes(300_000)
    client.send(b"a question")
    assert rig.carry(client, b"", broker, 10) == b"a question"
    rest, got, over = memoryview(answer), b"", False

    def ended() -> bool:
        nonlocal rest, got, over
        if rest:
            rest = rest[broker.send(bytes(rest[:_SMALL])) :]
            if not rest:
                with contextlib.suppress(OSError):
                    broker.socket.unwrap()
                broker.socket.close()
        rig.pump.step()
        more, over = client.receive()
        got += more
        return over

    _until(ended)
    assert got == answer
    _close(rig, client)


def test_the_end_of_a_client_comes_to_the_broker(rig: TlsRig) -> None:
    client, broker = rig.tls_link(opaque_route())
    client.send(b"the last request")
    client.socket.shutdown(socket.SHUT_WR)
    rig.spin()
    got, over = broker.receive()
    assert (got, over) == (b"the last request", True)
    _close(rig, client, broker)


def test_bytes_that_are_no_tls_end_the_link_alone(rig: TlsRig) -> None:
    client, broker = rig.tls_link(opaque_route())
    healthy, its_broker = rig.tls_link(opaque_route())
    raw = socket.socket(fileno=socket.dup(client.socket.fileno()))
    raw.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    raw.close()
    rig.spin()
    assert broker.receive()[1]
    assert rig.carry(healthy, b"still here", its_broker, 10) == b"still here"
    _close(rig, client, broker, healthy, its_broker)


def test_bytes_that_its_reader_had_no_room_for_are_reported(rig: TlsRig) -> None:
    """The system's poller knows nothing of them: the socket itself is empty."""
    far, near = rig.tls_pair()
    poller, here = rig.keeping, near.fileno()
    poller.watch(here, 0, READ)
    with pytest.raises(BlockingIOError):
        near.recv_into(memoryview(bytearray(10)))
    assert poller.poll(0) == []
    far.send(bytes(range(25)))
    got = b""
    for size in (10, 10, 5):
        assert poller.poll(_SECONDS) == [(here, READ)]
        assert select.select([poller.fileno()], [], [], 0)[0]
        room = memoryview(bytearray(10))
        assert near.recv_into(room) == size
        got += bytes(room[:size])
    assert got == bytes(range(25))
    assert poller.poll(0) == []
    # Who does not read is not told.
    far.send(bytes(25))
    assert poller.poll(_SECONDS) == [(here, READ)]
    near.recv_into(memoryview(bytearray(10)))
    poller.watch(here, READ, 0)
    assert poller.poll(0) == []
    assert not select.select([poller.fileno()], [], [], 0)[0]
    poller.watch(here, 0, READ | WRITE)
    assert poller.poll(0) == [(here, READ | WRITE)]
    poller.watch(here, READ | WRITE, 0)
    near.close()
    assert not select.select([poller.fileno()], [], [], 0)[0]
    far.socket.close()


@pytest.fixture
def newer() -> Iterator[TlsRig]:
    """A rig that speaks TLS 1.3, in which keys are changed by messages of their own."""
    made = TlsRig(ssl.TLSVersion.TLSv1_3)
    yield made
    made.close()


def test_who_only_changes_keys_loses_its_link_before_that_takes_long(newer: TlsRig) -> None:
    far, near = newer.tls_pair()
    updates = key_updates(far.socket, 9000)
    ours = _take(near, updates)
    with pytest.raises(ConnectionError, match="sends no data"):
        near.recv_into(memoryview(bytearray(BUFFER_BYTES)))
    # Each has its answer: no more was looked at than takes some milliseconds.
    assert 0 < near._outgoing.pending <= len(updates) // 7
    for end in (ours, near, far.socket):
        end.close()


def test_what_brings_little_is_gone_on_with_in_later_steps(newer: TlsRig) -> None:
    """Data between changes of keys makes up for them, and still others have their turns."""
    far, near = newer.tls_pair()
    count = 3000
    sent = key_updates(far.socket, count, b"xx")
    ours = _take(near, sent)
    room, got, steps = memoryview(bytearray(BUFFER_BYTES)), 0, 0
    newer.keeping.watch(near.fileno(), 0, READ)
    while got < 2 * count:
        # What is left is reported, since the socket itself is empty.
        assert newer.keeping.poll(0) == [(near.fileno(), READ)]
        got += near.recv_into(room)
        steps += 1
        ours.recv(1 << 20)
    assert steps >= len(sent) // 40_000 > 1
    assert newer.keeping.poll(0) == []
    newer.keeping.watch(near.fileno(), READ, 0)
    for end in (ours, near, far.socket):
        end.close()


@pytest.mark.parametrize("size", [4000, 12_345, 16_383, 16_500, 20_000])
def test_requests_that_are_joined_before_they_are_encrypted_arrive_whole(
    newer: TlsRig, size: int
) -> None:
    """So that the last bytes of one share a record with the next, and a reader that gathers one has
    room for these only: data that is decrypted later is data all the same."""
    up, sent = (
        b"".join(_large_fetch(version, number, size) for number in range(40))
        for version in (16, 15)
    )
    for joined in (_SMALL, len(up) // 40):
        client, broker = newer.tls_link(hinting_route())
        got, over = b"", False
        # Not at the ends of requests.
        cuts = [0, *range(joined - 5, len(up), joined), len(up)]
        for begin, end in itertools.pairwise(cuts):
            assert client.send(up[begin:end]) == end - begin
            newer.spin()
            more, over = broker.receive()
            got += more
            assert not over
        assert got == sent
        _close(newer, client, broker)


def _large_fetch(version: int, number: int, size: int) -> bytes:
    """A Fetch request of about so many bytes."""
    partition = struct.pack(">iiqiqi", 0, 3, 0, -1, -1, 1 << 20) + b"\0"
    topic = messages.TOPIC_ID + messages.array([partition] * (size // len(partition))) + b"\0"
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    body = head + messages.array([topic]) + messages.array([]) + messages.text("") + b"\0"
    return messages.request(messages.FETCH, version, number, body)


@pytest.mark.parametrize("is_reset", [False, True])
def test_who_is_reset_is_not_told_that_all_is_said(newer: TlsRig, is_reset: bool) -> None:
    far, near = newer.tls_pair()
    raw = _raw(far)
    # The server's session tickets.
    far.receive()
    if is_reset:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    near.close()
    with raw:
        raw.setblocking(True)
        raw.settimeout(_SECONDS)
        assert (raw.recv(_SMALL, socket.MSG_WAITALL) == b"") is is_reset
    far.socket.close()


def test_few_changes_of_keys_are_answered_and_data_goes_on(newer: TlsRig) -> None:
    client, broker = newer.tls_link(opaque_route())
    with socket.socket(fileno=socket.dup(client.socket.fileno())) as raw:
        raw.sendall(key_updates(client.socket, 20))
    newer.spin()
    assert newer.carry(broker, b"an answer", client, 9) == b"an answer"
    _close(newer, client, broker)
    assert newer.complaints == []


def test_answers_that_nobody_takes_end_the_connection(newer: TlsRig) -> None:
    far, near = newer.tls_pair()
    # The little data makes up for what asks for them.
    ours = _take(near, key_updates(far.socket, 3000, b"xx"))
    near._socket = _Full(near._socket)  # type: ignore[assignment]
    with pytest.raises(ConnectionError, match="does not take"):
        near.recv_into(memoryview(bytearray(BUFFER_BYTES)))
    assert len(near._unsent) < 40_000
    for end in (ours, near, far.socket):
        end.close()


def test_what_is_not_taken_counts_only_when_it_has_gone(rig: TlsRig) -> None:
    far, near = rig.tls_pair(_SMALL)
    data = random.Random(3).randbytes(1_000_000)
    rest, got, refused = memoryview(data), bytearray(), 0
    while rest:
        try:
            rest = rest[near.sendmsg([rest[:3], rest[3:100_000], rest[100_000:400_000]]) :]
        except BlockingIOError:
            refused += 1
            got += far.receive()[0]

    def all_came() -> bool:
        got.extend(far.receive()[0])
        return len(got) == len(data)

    _until(all_came)
    assert got == data
    assert refused > 3
    near.close()
    far.socket.close()


class _Malloc(ctypes.Structure):
    """What the C library says of its memory, in bytes (struct mallinfo2)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def test_of_what_was_sent_little_is_kept(rig: TlsRig) -> None:
    """OpenSSL keeps memory for the most that it ever encrypted at once: 540 KB of each link, with
    what was encrypted last."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        pytest.skip("this C library does not say how much memory is used")
    mallinfo.restype = _Malloc

    def used() -> int:
        gc.collect()
        info = mallinfo()
        return int(info.uordblks + info.hblkhd)

    def send(size: int) -> None:
        rest = memoryview(data)[:size]
        while rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[near.send(rest) :]
            far.receive()

    far, near = rig.tls_pair(1 << 20)
    data = bytes(BUFFER_BYTES)
    send(1)
    before = used()
    for _ in range(3):
        send(len(data))
    assert used() - before < 150_000
    near.close()
    far.socket.close()


def test_what_came_before_this_side_said_its_end_is_not_lost(rig: TlsRig) -> None:
    """A client that reads slowly ends its own direction: the broker learns that while answers of
    its wait that are received and not decrypted yet."""
    far, near = rig.tls_pair(buffers=1 << 20, client_is_far=False)
    data = random.Random(4).randbytes(60_000)
    for at in range(0, len(data), 1000):
        assert far.send(data[at : at + 1000]) == 1000
    room, got = memoryview(bytearray(10_000)), b""
    got += bytes(room[: near.recv_into(room)])
    near.shutdown(socket.SHUT_WR)
    rig.keeping.watch(near.fileno(), 0, READ)
    while len(got) < len(data) and rig.keeping.poll(0):
        size = near.recv_into(room)
        assert size, "bytes are lost"
        got += bytes(room[:size])
    assert got == data
    assert far.receive() == (b"", True)
    rig.keeping.watch(near.fileno(), READ, 0)
    near.close()
    far.socket.close()


def test_no_more_is_received_than_its_reader_soon_has_room_for(rig: TlsRig) -> None:
    """What a client sends while the broker reads slowly waits with the system, where it has its
    bound, and not here: nobody has authenticated it."""
    far, near = rig.tls_pair(buffers=1 << 20)
    while far.send(bytes(_SMALL)):
        pass
    near.recv_into(memoryview(bytearray(4096)))
    assert len(near._received) + near._incoming.pending <= 2 * _SMALL
    near.close()
    far.socket.close()


def test_what_came_is_not_lost_where_an_answer_to_new_keys_cannot_be_sent(newer: TlsRig) -> None:
    """A broker that changes its keys and is killed right after: what it said came all the same, as
    it comes without TLS."""
    far, near = newer.tls_pair(client_is_far=False)
    room = memoryview(bytearray(BUFFER_BYTES))
    with pytest.raises(BlockingIOError):
        # The server's session tickets.
        near.recv_into(room)
    ours = _take(near, key_updates(far.socket, 2, b"an answer"))
    # Who closes without having read all resets the connection.
    assert near.send(b"a request") == 9
    ours.close()
    assert bytes(room[: near.recv_into(room)]) == b"an answer" * 2
    with pytest.raises(ConnectionError):
        near.recv_into(room)
    near.close()
    far.socket.close()


def test_a_broker_may_change_its_keys_after_this_side_said_its_end(newer: TlsRig) -> None:
    """A client says its end and reads on: no answer can be sent, and none is needed."""
    far, near = newer.tls_pair(client_is_far=False)
    room = memoryview(bytearray(BUFFER_BYTES))
    with pytest.raises(BlockingIOError):
        near.recv_into(room)
    sent = key_updates(far.socket, 1) + key_updates(far.socket, 1, b"an answer")
    ours = _take(near, sent[:9])
    near.shutdown(socket.SHUT_WR)
    with pytest.raises(BlockingIOError):
        near.recv_into(room)
    ours.sendall(sent[9:])
    assert bytes(room[: near.recv_into(room)]) == b"an answer"
    for end in (ours, near, far.socket):
        end.close()
