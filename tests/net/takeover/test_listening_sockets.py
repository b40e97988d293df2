"""Listening sockets, opened or handed over."""

import socket

import pytest

from leader_hints.address import Address
from leader_hints.errors import ListenError
from leader_hints.net.takeover.listening_sockets import ListeningSockets
from tests.net.rig import descriptors_before, open_descriptors

_ANY = Address("127.0.0.1", 0)


def _server() -> tuple[socket.socket, Address]:
    server = socket.create_server(("127.0.0.1", 0))
    return server, Address(*server.getsockname())


async def test_a_socket_that_was_handed_over_serves_its_address() -> None:
    server, address = _server()
    sockets = ListeningSockets()
    sockets.inherit({str(address): [server]})
    listeners, bound = await sockets.open("r", address)
    assert bound == str(address)
    assert [one.socket.fileno() for one in listeners] == [server.fileno()] or len(listeners) == 1
    assert sockets.opened() == [(str(address), listeners[0].socket.fileno())]
    await listeners[0].aclose()
    assert sockets.opened() == []


async def test_another_address_is_opened_and_what_nobody_wants_is_closed() -> None:
    before = descriptors_before()
    server, address = _server()
    sockets = ListeningSockets()
    sockets.inherit({str(address): [server]})
    listeners, bound = await sockets.open("r", _ANY)
    assert bound != str(address)
    assert [key for key, _ in sockets.opened()] == ["r 127.0.0.1:0"]
    await sockets.drop_rest()
    await listeners[0].aclose()
    assert open_descriptors() == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.host, address.port))


async def test_two_routes_at_ports_that_the_system_chooses_keep_their_own() -> None:
    former, sockets = ListeningSockets(), ListeningSockets()
    bound = {}
    handed: dict[str, list[socket.socket]] = {}
    for name in ("r", "s"):
        _, bound[name] = await former.open(name, _ANY)
    for key, number in former.opened():
        handed.setdefault(key, []).append(socket.socket(fileno=number).dup())
    sockets.inherit(handed)
    for name in ("s", "r"):
        assert (await sockets.open(name, _ANY))[1] == bound[name]


async def test_an_address_that_is_taken_is_refused_before_anything_is_changed() -> None:
    server, address = _server()
    with server:
        sockets = ListeningSockets()
        with pytest.raises(ListenError, match="address already in use"):
            await sockets.prepare("r", address)
        assert sockets.opened() == []
