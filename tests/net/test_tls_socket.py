"""TLS in the pump: any bytes, any chunks, back-pressure and ends, as over plain sockets."""

import contextlib
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import trustme

from proxy.core.route import Route
from proxy.net.poller import KeepingPoller, make_poller
from proxy.net.tls_socket import TlsSocket
from tests.net import messages
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
        client, ours = self._pair(buffers, client_is_far=True)
        broker, theirs = self._pair(buffers, client_is_far=False)
        self.pump.adopt(route, ours, theirs, "a client")
        return client, broker

    def _pair(self, buffers: int | None, *, client_is_far: bool) -> tuple[FarEnd, TlsSocket]:
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


def test_versions_are_raised_and_brought_down(rig: TlsRig) -> None:
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


def test_who_reads_nothing_stops_the_other(rig: TlsRig) -> None:
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
