"""Connections that this process makes itself, so that it knows them where they come out here.

Tested in ``tests/app/test_process.py``.
"""

import contextlib
import ipaddress
from collections import OrderedDict
from dataclasses import dataclass

import trio

from leader_hints.address import Address
from leader_hints.net.brokers.broker_stream import open_broker_stream

#: Turns of the event loop between the two wakings of one connection, generously.
_TURNS = 20
#: Connections that are kept in mind, of those that have not arrived.
_MOST = 10_000

_Ends = tuple[tuple[str, int], tuple[str, int]]


@dataclass(slots=True, eq=False)
class Made:
    """A connection that was made. ``link_of``: the route whose link it is, "" for a look at where
    an address leads; ``link``: that link's number, where a worker has it. ``arrived``: the route
    where it came out, ``None``: at none so far."""

    link_of: str = ""
    link: int | None = None
    arrived: str | None = None


class OwnConnections:
    """Knows by both ends, addresses and ports, which connections are the process's own.

    That is certain, and costs nothing where no route's port is connected to. Where something
    translates addresses on the way a connection is not recognised.
    """

    def __init__(self) -> None:
        self._ports: set[int] = set()
        self._made: OrderedDict[_Ends, Made] = OrderedDict()
        #: Connections to such ports that are being made.
        self._pending = 0

    def listen(self, port: int) -> None:
        """Note that routes listen on a port: only connections to such are kept in mind."""
        self._ports.add(port)

    async def open(self, address: Address, patience: float, made: Made) -> trio.SocketStream:
        """Make a connection, as :func:`leader_hints.net.brokers.broker_stream.open_broker_stream`
        does.

        :raises BrokerError: there is no connection; the text says why.
        """
        if address.port not in self._ports:
            return await open_broker_stream(address, patience)
        self._pending += 1
        try:
            stream = await open_broker_stream(address, patience)
            ends = _ends(stream, far_first=False)
            if ends is not None:
                self._made[ends] = made
                if len(self._made) > _MOST:
                    self._made.popitem(last=False)
            return stream
        finally:
            self._pending -= 1

    async def arrived(self, route: str, stream: trio.SocketStream) -> Made | None:
        """Return what connected to a route, where it was this process; then it has arrived."""
        ends = _ends(stream, far_first=True)
        if ends is None:
            return None
        # Who connects may be woken a few turns of the loop after who accepts.
        for _ in range(_TURNS):
            if ends in self._made or not self._pending:
                break
            await trio.lowlevel.checkpoint()
        made = self._made.pop(ends, None)
        if made is not None:
            made.arrived = route
        return made


def _ends(stream: trio.SocketStream, *, far_first: bool) -> _Ends | None:
    """Return both ends; ``None`` where the connection has gone."""
    with contextlib.suppress(OSError, ValueError):
        near, far = stream.socket.getsockname(), stream.socket.getpeername()
        ends = _end(near), _end(far)
        return (ends[1], ends[0]) if far_first else ends
    return None


def _end(name: tuple[str, int]) -> tuple[str, int]:
    """Of an IPv4 address that is written as an IPv6 one the far end sees the former."""
    host, port = name[:2]
    if ":" in host:
        mapped = ipaddress.IPv6Address(host).ipv4_mapped
        host = str(mapped) if mapped is not None else host
    return host, port
