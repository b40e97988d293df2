"""Opening a stream to a broker: whatever is wrong is a BrokerError that says so."""

import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_stream import open_broker_stream, peer_of
from leader_hints.net.brokers.tls_stream import TlsStream


class _From(trio.abc.SocketFactory):
    """All sockets have the same port of their own."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def socket(self, family: int = 0, kind: int = 0, protocol: int = 0) -> trio.socket.SocketType:
        """See :class:`trio.abc.SocketFactory`."""
        sock = socket.socket(family, kind, protocol)
        sock.bind((self._address.host, self._address.port))
        return trio.socket.from_stdlib_socket(sock)


@pytest.fixture
def full_listener() -> Iterator[Address]:
    """An address where connections are neither taken nor refused: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = listener.getsockname()
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield Address(*address)


async def test_bytes_pass_once_it_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stream = await open_broker_stream(Address(*listener.getsockname()), 10)
        accepted, _ = listener.accept()
        accepted.send(b"hello")
        assert await stream.receive_some() == b"hello"
        await stream.aclose()
        accepted.close()


@pytest.mark.parametrize("with_tls", [False, True])
async def test_its_peer_is_known(*, with_tls: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tcp = await open_broker_stream(Address(*listener.getsockname()), 10)
        stream = TlsStream(tcp, ssl.create_default_context(), "one.example") if with_tls else tcp
        assert peer_of(stream) == "127.0.0.1"
        await stream.aclose()
        assert peer_of(stream) == ""


async def test_a_broker_that_is_down_refuses() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(BrokerError, match=r"^cannot connect: connection refused$"):
            await open_broker_stream(Address(*bound.getsockname()), 10)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_connection_to_its_own_port_is_none(host: str) -> None:
    """Linux may give it the port that it connects to, if nobody listens there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as bound:
        bound.bind((host, 0))
        address = Address(host, bound.getsockname()[1])
    trio.socket.set_custom_socket_factory(_From(address))
    with pytest.raises(BrokerError, match=r"^cannot connect: connection refused$"):
        await open_broker_stream(address, 10)
    # The broker finds its port free.
    with socket.create_server((host, address.port), family=bound.family):
        pass


async def test_a_broker_that_says_nothing_is_given_up(
    full_listener: Address, autojump_clock: MockClock
) -> None:
    begin = trio.current_time()
    with pytest.raises(BrokerError, match=r"^no connection within 10 s$"):
        await open_broker_stream(full_listener, 10)
    assert trio.current_time() - begin == 10


@pytest.mark.parametrize(
    "address",
    [Address("127.0.0.1", 70_000), Address("127.0.0.1", -1), Address("two..dots", 9092)],
    ids=str,
)
async def test_what_a_broker_advertises_need_not_be_an_address(address: Address) -> None:
    with pytest.raises(BrokerError, match=r"^cannot connect: "):
        await open_broker_stream(address, 10)


async def test_a_host_that_is_too_long_is_not_even_encoded() -> None:
    with pytest.raises(BrokerError, match=r"^cannot connect: a host of 256 letters$"):
        await open_broker_stream(Address("\xe9" * 256, 9092), 10)
