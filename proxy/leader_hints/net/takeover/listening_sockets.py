"""The listening sockets of a process: opened by itself, or handed over by its predecessor."""

import socket
from collections.abc import Mapping, Sequence

import trio

from leader_hints.address import Address
from leader_hints.net.clients.listening import bound_address, open_listeners


class ListeningSockets:
    """Listening sockets, by what they are for: an address of the settings.

    For a port that the system chooses it is the name of the route besides, since several may have
    the same.
    """

    def __init__(self) -> None:
        #: Of which nothing is accepted yet.
        self._waiting: dict[str, list[trio.SocketListener]] = {}
        self._open: dict[str, list[trio.SocketListener]] = {}

    def inherit(self, handed: Mapping[str, Sequence[socket.socket]]) -> None:
        """Take the sockets that a predecessor has handed over; it may go on to accept."""
        for key, sockets in handed.items():
            self._waiting[key] = [
                trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets
            ]

    async def prepare(self, name: str, address: Address) -> None:
        """Open what no predecessor has handed over, before that is asked to leave.

        :raises ListenError: the address cannot be listened on.
        """
        key = _key(name, address)
        if key not in self._waiting:
            self._waiting[key], _ = await open_listeners(address)

    async def open(self, name: str, address: Address) -> tuple[list[trio.SocketListener], str]:
        """Return listeners for an address, and HOST:PORT of what was bound.

        :raises ListenError: the address cannot be listened on.
        """
        key = _key(name, address)
        await self.prepare(name, address)
        listeners = self._open[key] = self._waiting.pop(key)
        return listeners, bound_address(listeners)

    async def drop_rest(self) -> None:
        """Close what was handed over for an address that the settings have no more."""
        while self._waiting:
            _, listeners = self._waiting.popitem()
            for one in listeners:
                await one.aclose()

    def opened(self) -> list[tuple[str, int]]:
        """Return the descriptors of those that are open, each with what it is for."""
        return [
            (key, number)
            for key, listeners in self._open.items()
            for one in listeners
            if (number := one.socket.fileno()) >= 0
        ]


def _key(name: str, address: Address) -> str:
    return str(address) if address.port else f"{name} {address}"
