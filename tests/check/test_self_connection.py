"""Which connections come out at an address that is held."""

import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from leader_hints.address import Address
from leader_hints.check.facts import Listening
from leader_hints.check.self_connection import SelfConnections
from tests.harness.ports import free_ports


@asynccontextmanager
async def _held(self_connections: SelfConnections, address: Address) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        assert await self_connections.listen(nursery, "r", address) == (Listening.FREE, "")
        yield
        nursery.cancel_scope.cancel()


async def _end(stream: trio.SocketStream) -> bytes:
    """What comes before the end of a connection."""
    with trio.fail_after(10):
        return bytes(await stream.receive_some())


async def test_a_token_tells_where_its_connection_came_out() -> None:
    self_connections, address = SelfConnections(), Address("127.0.0.1", free_ports(1)[0])
    token, other = self_connections.token(), self_connections.token()

    async with _held(self_connections, address):
        stream = await trio.open_tcp_stream(address.host, address.port)
        await stream.send_all(b"\0\0\0\x30" + token[:7].encode())
        await trio.testing.wait_all_tasks_blocked()
        assert self_connections.route(token) is None
        await stream.send_all(token[7:].encode())
        assert await _end(stream) == b""

    assert self_connections.route(token) == "r"
    assert self_connections.route(other) is None


async def test_connections_of_others_are_closed_and_show_nothing() -> None:
    self_connections, address = SelfConnections(), Address("127.0.0.1", free_ports(1)[0])
    token = self_connections.token()

    async with _held(self_connections, address):
        for said in (b"", b"x" * 5000):
            stream = await trio.open_tcp_stream(address.host, address.port)
            await stream.send_all(said)
            # It may be closed already, and with bytes unread: then it is reset.
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_eof()
                assert await _end(stream) == b""

    assert self_connections.route(token) is None


async def test_addresses_that_cannot_be_held() -> None:
    self_connections = SelfConnections()
    async with trio.open_nursery() as nursery:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            taken = await self_connections.listen(nursery, "r", Address("127.0.0.1", port))
        foreign = await self_connections.listen(nursery, "r", Address("203.0.113.1", port))
        nameless = await self_connections.listen(
            nursery, "r", Address("no-such-host.invalid", port)
        )
        some = await self_connections.listen(nursery, "r", Address("127.0.0.1", 0))
        nursery.cancel_scope.cancel()

    assert taken == (Listening.TAKEN, "address already in use")
    assert foreign == (Listening.REFUSED, "cannot assign requested address")
    assert nameless[0] is Listening.REFUSED
    assert nameless[1]
    assert some == (Listening.ANY, "")


async def test_what_was_held_is_free_afterwards() -> None:
    self_connections, address = SelfConnections(), Address("127.0.0.1", free_ports(1)[0])

    for _ in range(2):
        async with _held(self_connections, address):
            pass
