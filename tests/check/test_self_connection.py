"""Which connections come out at an address that is held."""

import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from leader_hints.address import Address
from leader_hints.check.rules import Listening
from leader_hints.check.self_connection import Arrivals
from tests.harness.ports import free_ports


@asynccontextmanager
async def _held(arrivals: Arrivals, address: Address) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        assert await arrivals.listen(nursery, "r", address) == (Listening.FREE, "")
        yield
        nursery.cancel_scope.cancel()


async def _end(stream: trio.SocketStream) -> bytes:
    """What comes before the end of a connection."""
    with trio.fail_after(10):
        return bytes(await stream.receive_some())


async def test_a_token_tells_where_its_connection_came_out() -> None:
    arrivals, address = Arrivals(), Address("127.0.0.1", free_ports(1)[0])
    token, other = arrivals.token(), arrivals.token()

    async with _held(arrivals, address):
        stream = await trio.open_tcp_stream(address.host, address.port)
        await stream.send_all(b"\0\0\0\x30" + token[:7].encode())
        await trio.testing.wait_all_tasks_blocked()
        assert arrivals.route(token) is None
        await stream.send_all(token[7:].encode())
        assert await _end(stream) == b""

    assert arrivals.route(token) == "r"
    assert arrivals.route(other) is None


async def test_connections_of_others_are_closed_and_tell_nothing() -> None:
    arrivals, address = Arrivals(), Address("127.0.0.1", free_ports(1)[0])
    token = arrivals.token()

    async with _held(arrivals, address):
        for said in (b"", b"x" * 5000):
            stream = await trio.open_tcp_stream(address.host, address.port)
            await stream.send_all(said)
            # It may be closed already, and with bytes unread: then it is reset.
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_eof()
                assert await _end(stream) == b""

    assert arrivals.route(token) is None


async def test_addresses_that_cannot_be_held() -> None:
    arrivals = Arrivals()
    async with trio.open_nursery() as nursery:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            taken = await arrivals.listen(nursery, "r", Address("127.0.0.1", port))
        foreign = await arrivals.listen(nursery, "r", Address("203.0.113.1", port))
        nameless = await arrivals.listen(nursery, "r", Address("no-such-host.invalid", port))
        some = await arrivals.listen(nursery, "r", Address("127.0.0.1", 0))
        nursery.cancel_scope.cancel()

    assert taken == (Listening.TAKEN, "address already in use")
    assert foreign == (Listening.REFUSED, "cannot assign requested address")
    assert nameless[0] is Listening.REFUSED
    assert nameless[1]
    assert some == (Listening.ANY, "")


async def test_what_was_held_is_free_afterwards() -> None:
    arrivals, address = Arrivals(), Address("127.0.0.1", free_ports(1)[0])

    for _ in range(2):
        async with _held(arrivals, address):
            pass
