"""Listening at all addresses of a name, and clients that nobody serves yet."""

from collections import Counter

import pytest
import trio
import trio.testing

from leader_hints.address import Address
from leader_hints.core.events import Event
from leader_hints.net.clients import listening
from leader_hints.net.clients.listening import Beginnings, open_listeners
from tests.net.rig import Rig
from tests.net.serving import Rounds, until_true


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
        beginnings = Beginnings()
        assert beginnings.may_begin(stream)
        nursery.start_soon(listening._handle, connect_for_ever, stream, _nothing, beginnings)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True), pytest.raises(trio.BrokenResourceError):
            with trio.fail_after(10):
                await client.receive_some()


async def test_connections_of_many_listeners_begin_some_in_each_round() -> None:
    """With 300 routes, 1,800 clients that came together took rounds of 0.14 s of CPU."""
    rounds, begun = Rounds(), Counter[int]()

    async def serve(stream: trio.SocketStream) -> None:
        begun[rounds.now] += 1

    opened = [await open_listeners(Address("127.0.0.1", 0)) for _ in range(60)]
    async with trio.open_nursery() as nursery:
        addresses = [Address.parse(bound) for _, bound in opened for _ in range(2)]
        clients = [await trio.open_tcp_stream(at.host, at.port) for at in addresses]
        nursery.start_soon(rounds.count)
        pump, beginnings = Rig().pump, Beginnings()
        for (listener,), _ in opened:
            nursery.start_soon(
                listening.accept, listener, serve, nursery, pump, _nothing, beginnings
            )
        await until_true(lambda: begun.total() == len(clients))
        nursery.cancel_scope.cancel()
    # The counter may have its turn before or after a step in the same round.
    assert max(begun.values()) <= 2 * 5
    for client in clients:
        await client.aclose()


@pytest.mark.parametrize("ends", [False, True], ids=["another listens on", "the process ends"])
async def test_a_connection_that_waits_to_begin_is_served_or_reset(*, ends: bool) -> None:
    """Another process listens on: it cannot have what was taken here. Each listener but the first
    five reset one at a takeover."""
    beginnings = Beginnings()
    (listener,), bound = await open_listeners(Address("127.0.0.1", 0))
    address = Address.parse(bound)
    client = await trio.open_tcp_stream(address.host, address.port)
    others = [object() for _ in range(5)]
    assert all(map(beginnings.may_begin, others))
    listens = trio.CancelScope()

    async def greet(stream: trio.SocketStream) -> None:
        await stream.send_all(b"hello")

    async def accept(nursery: trio.Nursery) -> None:
        with listens:
            await listening.accept(listener, greet, nursery, Rig().pump, _nothing, beginnings)

    async with client, trio.open_nursery() as nursery:
        nursery.start_soon(accept, nursery)
        await trio.testing.wait_all_tasks_blocked()
        (nursery.cancel_scope if ends else listens).cancel()
        await trio.testing.wait_all_tasks_blocked() if not ends else None
        for other in others:
            beginnings.begun(other)
        with trio.CancelScope(shield=True), trio.fail_after(10):
            if ends:
                with pytest.raises(trio.BrokenResourceError):
                    await client.receive_some()
            else:
                assert await client.receive_some() == b"hello"


def _nothing(event: Event) -> None:
    """Take no note of an event."""
