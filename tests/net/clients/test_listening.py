"""Listening at all addresses of a name, and clients that nobody serves yet."""

import pytest
import trio
import trio.testing

from leader_hints.address import Address
from leader_hints.net.clients import listening
from leader_hints.net.clients.listening import open_listeners


async def test_port_0_is_one_port_at_all_addresses_of_a_name() -> None:
    listeners, bound = await open_listeners(Address("localhost", 0))
    ports = {listener.socket.getsockname()[1] for listener in listeners}
    assert ports == {Address.parse(bound).port}
    assert 0 not in ports
    for listener in listeners:
        await listener.aclose()


async def test_a_port_that_is_taken_at_the_other_address_is_given_up() -> None:
    """The first port that comes is taken at ::1, whatever the system says of it."""
    first, _ = await open_listeners(Address("127.0.0.1", 0))
    taken = first[0].socket.getsockname()[1]
    listeners = await listening._open_at(taken, "127.0.0.1")
    assert listeners[0].socket.getsockname()[1] != taken
    for listener in (*first, *listeners):
        await listener.aclose()
    await trio.lowlevel.checkpoint()


async def test_a_client_that_nobody_serves_yet_is_reset_at_the_processes_end() -> None:
    """Its broker takes no connection, say. After an end franz-go gives up."""

    async def connect_for_ever(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    (listener,), bound = await open_listeners(Address("127.0.0.1", 0))
    address = Address.parse(bound)
    client = await trio.open_tcp_stream(address.host, address.port)
    async with listener, client, trio.open_nursery() as nursery:
        stream = await listener.accept()
        nursery.start_soon(listening._handle, connect_for_ever, stream, lambda event: None)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True), pytest.raises(trio.BrokenResourceError):
            with trio.fail_after(10):
                await client.receive_some()
