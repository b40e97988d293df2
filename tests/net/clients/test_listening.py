"""Listening at all addresses of a name."""

import trio

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
