"""The listeners of a virtual cluster, which come and go with the brokers of the real one.

A broker's listener is open before the response that first names the broker goes on: it is opened
in the same step. The real cluster's answers pass through here on their way to clients, so a
client never knows of a broker that this does not know.
"""

import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.events import (
    BrokerLeft,
    BrokerMoved,
    BrokerOfAnotherCluster,
    BrokerWithoutPort,
    ClusterNotRestarted,
    ClusterRestarted,
    Event,
    Listening,
)
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting, Met
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.errors import BrokerError, ListenError
from leader_hints.local.mock_pages import MockControl
from leader_hints.net.clients.listening import Handler
from leader_hints.net.clients.reset import turn_away
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.route import RouteSettings

if TYPE_CHECKING:
    # It needs kio, which a process without faults must not load.
    from leader_hints.faults.injector import FaultInjector

_BACKLOG = 128
#: Seconds between two looks whether a cluster that this process keeps still lives.
_LOOK = 0.25
#: Seconds before a listener that could not be opened is tried again.
_AGAIN = 1.0
BOOTSTRAP = "bootstrap"

#: Where a broker's Metadata has the brokers of its cluster.
Lists = Mapping[int, Endpoint]

#: Starts a cluster again if it has died; returns where its brokers are then, ``None`` if it lives.
#: Raises BrokerError where it does not start.
Renew = Callable[[], Mapping[int, Address] | None]


class Found(NamedTuple):
    """What a virtual cluster is made for: its settings, and the brokers that there are by now.

    ``renew``: of a cluster that this process keeps. It blocks, and is called now and then.
    ``stage``: where faults are allowed. ``mock``: changes a mock cluster, where it is one.
    """

    settings: LocalSettings
    brokers: Mapping[int, Address]
    renew: Renew | None = None
    stage: "FaultInjector | None" = None
    mock: MockControl | None = None


class _Node:
    """A broker: its route, where it is, and its listener while that is open.

    ``without_port``: it should be open, and cannot be. ``of_another``: another cluster's broker is
    where the route leads.
    """

    def __init__(self, route: Route, upstream: Address) -> None:
        self.route = route
        self.upstream = upstream
        self.scope: trio.CancelScope | None = None
        self.without_port = False
        self.left = False
        self.of_another = False

    @property
    def cluster(self) -> str | None:
        """The cluster of the broker that is where the route leads, as far as that is known."""
        broker = self.route.broker
        return broker.view.cluster_id if broker.reachable and broker.view is not None else None

    def is_of(self, cluster: str | None) -> bool:
        """Whether a broker of ``cluster`` is where the route leads."""
        return cluster is not None and self.cluster == cluster

    def stays(self, node: int, cluster: str | None, lists: Sequence[Lists]) -> bool:
        """Whether this broker, which is ``node`` of ``cluster``, is where its route leads, or is
        listed there.
        """
        if self.is_of(cluster) and self.route.broker.proved_node == node:
            return True
        listed = filter(None, (endpoints.get(node) for endpoints in lists))
        return any((at.host, at.port) == (self.upstream.host, self.upstream.port) for at in listed)


class VirtualCluster:
    """``add``: makes a route of the process, on whose links addresses are rewritten. ``move``:
    tells that one's broker is elsewhere.
    ``admits``: returns which of some routes, by name, take a connection now.
    ``join``: connects a client to the broker of a route, false where that takes no connection.
    ``accept``: takes connections of a listener until cancelled, and then closes it.
    ``listens``: called with where a route takes clients from now on; "": nowhere, ``None``: its
    broker has left the cluster.
    """

    def __init__(
        self,
        settings: LocalSettings,
        add: Callable[[RouteSettings, AddressRewriting], Route],
        move: Callable[[Route, Address], None],
        admits: Callable[[Sequence[str]], Sequence[str]],
        join: Callable[[Route, Address, trio.SocketStream], Awaitable[bool]],
        accept: Callable[[trio.SocketListener, Handler], Awaitable[None]],
        listens: Callable[[Route, str | None], None],
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._add = add
        self._move = move
        self._admits = admits
        self._join = join
        self._accept_all = accept
        self._listens = listens
        self._emit = emit
        self._nodes: dict[int, _Node] = {}
        self._nursery: trio.Nursery | None = None
        self._turn = 0
        #: The id of the cluster, once a broker has given it.
        self._cluster: str | None = None
        self._ports = BrokerPorts(settings.listen.port, settings.ports)

    def prepare(self, brokers: Mapping[int, Address]) -> None:
        """Make the routes of the brokers that there are; they can be asked from then on."""
        for node, upstream in brokers.items():
            self._meet(node, upstream)

    def start(self, nursery: trio.Nursery) -> None:
        """Open the listeners of the brokers that there are, and then that for bootstrap.

        :raises ListenError: one cannot be opened.
        """
        self._nursery = nursery
        for node in self._nodes:
            self._open(node)
        listen = self._settings.listen
        self._serve(_listener(listen), self._accept, trio.CancelScope())
        upstreams = ",".join(str(address) for address in self._settings.bootstrap)
        self._emit(Listening(route=BOOTSTRAP, listen=str(listen), upstream=upstreams))

    async def open_again(self) -> None:
        """Try again and again to open listeners that could not be opened, until cancelled."""
        while True:
            await trio.sleep(_AGAIN)
            for node in [node for node, found in self._nodes.items() if found.without_port]:
                self._try_to_open(node)
                await trio.lowlevel.checkpoint()

    async def keep(self, renew: Renew) -> None:
        """Have the cluster live, until cancelled; see Found."""
        told = False
        while True:
            await trio.sleep(_LOOK)
            try:
                brokers = await trio.to_thread.run_sync(renew)
            except BrokerError as error:
                if not told:
                    self._emit(ClusterNotRestarted(reason=str(error)))
                told = True
                continue
            if brokers is not None:
                told = False
                self._emit(ClusterRestarted(brokers=", ".join(map(str, brokers.values()))))
                for node, address in brokers.items():
                    self._met(node, address.host, address.port)

    def _passed(self, by: int, node: int, host: str, port: int) -> None:
        """Take an address that the broker ``by`` has given to a client; see AddressRewriting.

        At the address of one that has gone a broker of another cluster may be by now. What that
        says would lead all listeners there, since its nodes have the same numbers.
        """
        known = self._nodes.get(node)
        if self._is_of_another(self._nodes[by]):
            return
        if (
            known is None
            or known.scope is None
            or not known.is_of(self._cluster)
            or known.route.broker.proved_node not in (None, node)
        ):
            self._met(node, host, port)

    def _met(self, node: int, host: str, port: int) -> None:
        """Have a listener for a broker that is at an address."""
        if self._nursery is None:
            return
        self._meet(node, Address(host, port))
        found = self._nodes[node]
        if found.left:
            found.left = False
            self._listens(found.route, "")
        self._try_to_open(node)

    def _try_to_open(self, node: int) -> None:
        found = self._nodes[node]
        if found.scope is not None or found.left:
            return
        try:
            self._open(node)
        except ListenError as error:
            # Clients cannot reach this broker; all others they can.
            if not found.without_port:
                found.without_port = True
                self._emit(
                    BrokerWithoutPort(
                        route=found.route.name, upstream=str(found.upstream), reason=str(error)
                    )
                )

    def review(self) -> None:
        """Open, move and close listeners by the brokers' Metadata.

        A broker that none lists has left. One that none lists where its route leads has moved, if
        it cannot be reached there, or another broker is there by now. Where some list it there they
        may have the newest answers.
        """
        # Hundreds of brokers list each other, most of them in one list that they share.
        lists = [*{id(at): at for at in (broker.endpoints for broker in self._members())}.values()]
        self._report_others()
        known: dict[int, Endpoint] = {}
        for endpoints in lists:
            known.update(endpoints)
        if not known:
            return
        for node, endpoint in known.items():
            found = self._nodes.get(node)
            if found is None or found.left or not found.stays(node, self._cluster, lists):
                self._met(node, endpoint.host, endpoint.port)
        for node, found in self._nodes.items():
            if not found.left and node not in known:
                self._leave(node)

    def _report_others(self) -> None:
        """Report once of each broker that another cluster's is where its route leads."""
        for found in self._nodes.values():
            before = found.of_another
            found.of_another = self._is_of_another(found) and not found.left
            if found.of_another and not before:
                self._emit(
                    BrokerOfAnotherCluster(
                        route=found.route.name,
                        upstream=str(found.upstream),
                        cluster=self._cluster or "",
                        found=found.cluster or "",
                    )
                )

    def _members(self) -> Sequence[BrokerState]:
        """Return the brokers that can be asked, and are of the cluster.

        At the address of one that has gone a broker of another cluster may be by now. So the
        cluster stays the one that it was first, unless no broker of that can be reached, and most
        of those that are here are of another: it was recreated.
        """
        members: list[BrokerState] = []
        others: dict[str, list[BrokerState]] = {}
        here = 0
        for found in self._nodes.values():
            broker = found.route.broker
            here += not found.left
            if found.is_of(self._cluster):
                members.append(broker)
            elif found.cluster is not None and not found.left:
                others.setdefault(found.cluster, []).append(broker)
        if members or not others:
            return members
        most = max(others, key=lambda cluster: len(others[cluster]))
        if self._cluster is not None and 2 * len(others[most]) <= here:
            return members
        self._cluster = most
        return others[most]

    def _meet(self, node: int, upstream: Address) -> None:
        found = self._nodes.get(node)
        if found is None:
            listen = Address(self._settings.listen.host, self._ports.port(node))
            # The model is for what operators write; a broker may advertise anything.
            settings = RouteSettings.model_construct(
                listen=listen,
                upstream=upstream,
                name=f"broker-{node}",
                upstream_tls=self._settings.upstream_tls,
                peer_tls=self._settings.upstream_tls,
                sasl=self._settings.sasl,
            )
            rewriting = self._rewriting(partial(self._passed, node))
            self._nodes[node] = _Node(self._add(settings, rewriting), upstream)
        elif found.upstream != upstream:
            before, found.upstream = found.upstream, upstream
            self._move(found.route, upstream)
            self._emit(
                BrokerMoved(
                    route=found.route.name, upstream_before=str(before), upstream=str(upstream)
                )
            )

    def _rewriting(self, met: Met) -> AddressRewriting:
        settings = self._settings
        return AddressRewriting(settings.host, self._ports, met)

    def _is_of_another(self, found: _Node) -> bool:
        """Whether a broker of another cluster is where a route leads."""
        return self._cluster is not None and found.cluster not in (None, self._cluster)

    def _leave(self, node: int) -> None:
        found = self._nodes[node]
        found.left, found.without_port = True, False
        self._listens(found.route, None)
        if found.scope is not None:
            found.scope.cancel()
            found.scope = None
            listen = Address(self._settings.listen.host, self._ports.port(node))
            self._emit(BrokerLeft(route=found.route.name, listen=str(listen)))

    def _open(self, node: int) -> None:
        found = self._nodes[node]
        port = self._ports.port(node)
        if not port:
            raise ListenError(self._ports.lack(node))
        listen = Address(self._settings.listen.host, port)
        listener = _listener(listen)
        found.scope = trio.CancelScope()
        found.without_port = False

        async def accept(client: trio.SocketStream) -> None:
            await self._lead([found], client)

        self._serve(listener, accept, found.scope)
        self._listens(found.route, str(listen))
        self._emit(
            Listening(route=found.route.name, listen=str(listen), upstream=str(found.upstream))
        )

    def _serve(
        self, listener: trio.SocketListener, accept: Handler, scope: trio.CancelScope
    ) -> None:
        assert self._nursery is not None

        async def serve() -> None:
            with scope:
                await self._accept_all(listener, accept)

        self._nursery.start_soon(serve)

    async def _accept(self, client: trio.SocketStream) -> None:
        """Join a client of the bootstrap listener to a broker that takes it, another each time."""
        await self._lead([*self._in_turn()], client)

    async def _lead(self, nodes: Sequence[_Node], client: trio.SocketStream) -> None:
        """Join a client to the first broker that takes it, or turn it away.

        None of another cluster takes it, unless no broker of this one can be reached: it may have
        been recreated.
        """
        if any(found.is_of(self._cluster) for found in self._nodes.values()):
            nodes = [found for found in nodes if not self._is_of_another(found)]
        by_name = {found.route.name: found for found in nodes}
        for name in self._admits([*by_name]):
            found = by_name[name]
            if await self._join(found.route, found.upstream, client):
                return
        await turn_away(client)

    def _in_turn(self) -> Iterator[_Node]:
        self._turn += 1
        nodes = [found for found in self._nodes.values() if found.scope is not None]
        for at in range(len(nodes)):
            yield nodes[(self._turn + at) % len(nodes)]


def _listener(address: Address) -> trio.SocketListener:
    """Return an open listener, without waiting for anything but the look-up of a local name.

    :raises ListenError: the address cannot be listened on.
    """
    try:
        (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(place)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        reason = (error.strerror or str(error)).lower()
        raise ListenError(f"cannot listen on {address}: {reason}") from None
    return trio.SocketListener(trio.socket.from_stdlib_socket(sock))
