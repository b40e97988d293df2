"""From an accepted client to a link: handshake, connection to the broker, the pump.

Tested in ``tests/app/test_process.py``.
"""

import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.core.admission import Admission
from leader_hints.core.events import (
    AcceptFailed,
    ClientRefused,
    Event,
    LimitReached,
    RouteLoops,
)
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_stream import peer_of
from leader_hints.net.brokers.own_connections import Made, OwnConnections
from leader_hints.net.brokers.reachability import Reach
from leader_hints.net.clients.handshake import Admitted, RefusedError, peer_name
from leader_hints.net.clients.preamble import TlsSession
from leader_hints.net.clients.reset import turn_away
from leader_hints.net.pump.poller import KeepingPoller
from leader_hints.net.pump.pump import Pump
from leader_hints.net.pump.tls_socket import TlsSocket, Transport
from leader_hints.net.tls.handshake_turns import HandshakeTurns
from leader_hints.net.tls.route_security import Security

#: Bytes of a connection that the system takes although they cannot be sent yet. Trio has it take 16
#: KB: a task that sends is to find out early that its peer is slow. Here each message is on its way
#: already, and to be woken once for every 16 KB costs as much as to move them.
_UNSENT = 1 << 20

#: Connects to a broker: address, seconds that it may take, and what for.
OpenLink = Callable[..., Awaitable[trio.SocketStream]]
#: Puts something between a client and its link; returns what replaces the client.
Interpose = Callable[[Route, trio.SocketStream], trio.SocketStream]


class Joining:
    """Joins clients to brokers.

    ``admission``: limits of connections. ``poller``: the pump's, if some socket may speak TLS.
    ``bound``: the routes' listening addresses, by route name. ``patience``: seconds to connect to a
    broker. ``reach``: what becomes of attempts to do so. ``own``: the connections that this
    process makes itself. ``turns``: those of handshakes. ``hand_over``: takes the clients of a
    process that has others join them, and returns whether it could; ``None``: it joins them itself.
    """

    def __init__(
        self,
        admission: Admission,
        security: Security,
        pump: Pump,
        poller: KeepingPoller | None,
        bound: dict[str, str],
        patience: float,
        interpose: Interpose,
        reach: Reach,
        emit: Callable[[Event], None],
    ) -> None:
        self.admission = admission
        self._security = security
        self._pump = pump
        self._poller = poller
        self.turns = HandshakeTurns(pump.urgent)
        self._bound = bound
        self._patience = patience
        self._interpose = interpose
        self._reach = reach
        self._emit = emit
        self.own = OwnConnections()
        self.open_broker: OpenLink = self.own.open
        self.hand_over: Callable[[Route, trio.SocketStream], bool] | None = None

    async def accept(self, route: Route, upstream: Address, client: trio.SocketStream) -> None:
        """Join a client to the broker of a route, or turn it away."""
        if await self.is_itself(route.name, client):
            return
        if not await self.join(route, upstream, client):
            await turn_away(client)

    async def is_itself(self, name: str, client: trio.SocketStream) -> bool:
        """Whether it is this process itself that has connected to a route; then it is turned away.

        A link would lead through the process once more, without end.
        """
        # It may wait some turns while the process itself connects to such a port.
        with self._pump.urgent():
            made = await self.own.arrived(name, client)
        if made is None:
            return False
        if made.link_of:
            self._emit(RouteLoops(route=made.link_of, leads_to=name))
        await turn_away(client)
        return True

    async def join(self, route: Route, upstream: Address, client: trio.SocketStream) -> bool:
        """Have a client joined to its broker, if no limit forbids that.

        A client that is refused for what it sends is closed; false if its broker is at fault, or
        a limit: another broker may take it.
        """
        limit = self.admission.refusal(route)
        if limit is not None:
            self._emit(LimitReached(route=route.name, limit=limit, client=peer_name(client)))
            return False
        if self.hand_over is not None:
            return self.hand_over(route, client)
        return await self.connect(route, upstream, client)

    async def connect(
        self,
        route: Route,
        upstream: Address,
        client: trio.SocketStream,
        number: int | None = None,
    ) -> bool:
        """Connect to the broker and hand both sockets to the pump.

        ``number``: of the link; see :meth:`leader_hints.net.pump.pump.Pump.adopt`. Returns as
        :meth:`join`.
        """
        route.traffic.connecting += 1
        try:
            return await self._connect(route, upstream, client, number)
        except OSError as error:
            # No room to watch the client during its handshake.
            self._report_accept_failed(route, error)
            return False
        finally:
            route.traffic.connecting -= 1

    async def _connect(
        self, route: Route, upstream: Address, client: trio.SocketStream, number: int | None
    ) -> bool:
        try:
            name, session, principal = await self._admit(route, client)
        except RefusedError as error:
            if not error.silent:
                refused = ClientRefused(route=route.name, client=error.client, reason=str(error))
                self._emit(refused)
            await trio.aclose_forcefully(client)
            return True
        connector = self._security.connectors[route.name].upstream
        # One that takes none may be tried by many clients for long: short turns would cost CPU with
        # each message of all links.
        is_down = self._reach.is_down(route)
        try:
            with contextlib.nullcontext() if is_down else self._pump.urgent():
                broker, broker_session = await connector.open_for_link(
                    upstream,
                    self._patience,
                    partial(self.open_broker, made=Made(route.name, number)),
                    self.turns.turn,
                )
        except BrokerError as error:
            self._reach.fails(route, upstream, str(error))
            return False
        self._reach.serves(route, peer_of(broker))
        try:
            client = self._interpose(route, client)
        except OSError as error:
            await trio.aclose_forcefully(broker)
            self._report_accept_failed(route, error)
            return False
        try:
            ends = self._transport(client, session), self._transport(broker, broker_session)
            self._pump.adopt(route, *ends, name, number, principal)
        except OSError as error:
            self._report_accept_failed(route, error)
        return True

    async def _admit(self, route: Route, client: trio.SocketStream) -> Admitted:
        """Do the handshake with a client.

        Links' turns are not short meanwhile, since a silent client would have them for long.

        :raises RefusedError: the client is not let in.
        """
        arrival = partial(self.turns.arrival, client.socket.fileno())
        return await self._security.handshakes[route.name].admit(client, self.turns.turn, arrival)

    def _transport(self, stream: trio.SocketStream, session: TlsSession | None) -> Transport:
        sock = _detached(stream)
        if session is None:
            return sock
        assert self._poller is not None
        return TlsSocket(sock, *session, self._poller.keep)

    def _report_accept_failed(self, route: Route, error: OSError) -> None:
        """Report that the system is short of what a connection needs."""
        reason = (error.strerror or str(error)).lower()
        # Its listener may be closed by now, since its broker has left.
        self._emit(AcceptFailed(listen=self._bound.get(route.name, ""), error=reason))


def _detached(stream: trio.SocketStream) -> socket.socket:
    """Take the socket from Trio, for the pump."""
    sock = socket.socket(fileno=stream.socket.detach())
    sock.setblocking(False)
    # A client whose machine vanished must not keep its link for ever.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not where faults are put in between by a pair of Unix sockets, nor on all systems.
    if sock.family != socket.AF_UNIX and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    return sock
