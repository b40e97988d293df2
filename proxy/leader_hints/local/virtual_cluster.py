"""The listeners of a virtual cluster, which come and go with the brokers of the real one.

A broker's listener is open before the response that first names the broker goes on: it is opened
in the same step. The real cluster's answers pass through here on their way to clients, so a
client never knows of a broker that this does not know.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import trio

from leader_hints.address import Address, leads_to
from leader_hints.core.events import (
    BrokerLeft,
    BrokerMoved,
    BrokerOfAnotherCluster,
    BrokerWithoutPort,
    ClusterNotRestarted,
    ClusterRestarted,
    Listening,
)
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.errors import BrokerError, ListenError
from leader_hints.local.host import Found, Host, Renew, Seek
from leader_hints.local.membership import Membership
from leader_hints.local.virtual_broker import Listed, VirtualBroker
from leader_hints.net.clients.listening import Handler
from leader_hints.net.clients.reset import turn_away
from leader_hints.settings.route import RouteSettings

_BACKLOG = 128
#: Seconds between two looks whether a cluster that this process keeps still lives.
_LOOK = 0.25
#: Seconds before a listener that could not be opened is tried again.
_AGAIN = 1.0
#: Seconds before the addresses of the settings are asked once more, where no broker answers.
_SEEK = 5.0
#: Brokers that one step takes as come, moved or left: each costs some 0.2 ms.
_AT_ONCE = 10
BOOTSTRAP = "bootstrap"


class VirtualCluster:
    """The cluster that was ``found``, served in the process ``host``.

    Large because each way in which a broker comes, moves and goes is here.
    """

    def __init__(self, found: Found, host: Host) -> None:
        self._settings = found.settings
        self._host = host
        self._brokers: dict[int, VirtualBroker] = {}
        self._nursery: trio.Nursery | None = None
        self._turn = 0
        self._membership = Membership(found.cluster or None)
        self._ports = BrokerPorts(found.settings.listen.port, found.settings.ports)
        #: What is left of the last review; and set where something is.
        self._rest: Iterator[None] = iter(())
        self._due = trio.Event()

    @property
    def cluster(self) -> str | None:
        """The cluster's id, ``None`` as long as no broker has given it."""
        return self._membership.cluster

    def prepare(self, brokers: Mapping[int, Address]) -> None:
        """Make the routes of the brokers that there are; they can be asked from then on."""
        for node, upstream in brokers.items():
            self._meet(node, upstream)

    def start(self, nursery: trio.Nursery) -> None:
        """Open the listeners of the brokers that there are, and then that for bootstrap.

        :raises ListenError: one cannot be opened.
        """
        self._nursery = nursery
        for node in self._brokers:
            self._open(node)
        listen = self._settings.listen
        self._serve(BOOTSTRAP, _listener(listen), self._accept, trio.CancelScope())
        upstreams = ",".join(str(address) for address in self._settings.bootstrap)
        self._host.emit(Listening(route=BOOTSTRAP, listen=str(listen), upstream=upstreams))
        # What brokers have listed since they were found.
        self.review()

    async def work_off(self) -> None:
        """Do what is left of reviews, and try again to open listeners that could not be opened,
        until cancelled.
        """
        while True:
            with trio.move_on_after(_AGAIN) as scope:
                await self._due.wait()
            self._due = trio.Event()
            self._go_on()
            closed = [node for node, found in self._brokers.items() if found.without_port]
            for node in closed if scope.cancelled_caught else ():
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
                    self._host.emit(ClusterNotRestarted(reason=str(error)))
                told = True
                continue
            if brokers is not None:
                told = False
                self._host.emit(ClusterRestarted(brokers=", ".join(map(str, brokers.values()))))
                # It has another id.
                self._membership.cluster = None
                for node, address in brokers.items():
                    self._met(node, address.host, address.port)

    async def find_again(self, seek: Seek) -> None:
        """Look for the brokers while none of them can be reached, until cancelled.

        All may have come back elsewhere, where no broker can list them.
        """
        while True:
            await trio.sleep(_SEEK)
            if self._membership.some_answer(self._brokers.values()):
                continue
            with suppress(BrokerError):
                found = await seek()
                if self.cluster in (None, found.cluster):
                    for node, address in found.brokers.items():
                        self._met(node, address.host, address.port)

    def _passed(self, by: int, node: int, host: str, port: int) -> None:
        """Take an address that the broker ``by`` has given to a client; see AddressRewriting."""
        known = self._brokers.get(node)
        if self._membership.is_of_another(self._brokers[by]):
            return
        if (
            known is None
            or known.scope is None
            or not known.is_of(self.cluster)
            or known.route.broker.proved_node not in (None, node)
        ):
            self._met(node, host, port)

    def _met(self, node: int, host: str, port: int) -> None:
        """Have a listener for a broker that is at an address."""
        if self._nursery is None:
            return
        self._meet(node, Address(host, port))
        found = self._brokers[node]
        if found.left:
            found.left = False
            self._host.listens(found.route, "")
        self._try_to_open(node)

    def _try_to_open(self, node: int) -> None:
        found = self._brokers[node]
        if found.scope is not None or found.left:
            return
        try:
            self._open(node)
        except ListenError as error:
            # Clients cannot reach this broker; all others they can.
            if not found.without_port:
                found.without_port = True
                self._host.emit(
                    BrokerWithoutPort(
                        route=found.route.name, upstream=str(found.upstream), reason=str(error)
                    )
                )

    def review(self) -> None:
        """Open, move and close listeners by the brokers' Metadata; much of it in steps.

        A broker that none lists has left. One that none lists where its route leads has moved, if
        it cannot be reached there, or another broker is there by now. Where some list it there they
        may have the newest answers.
        """
        if self._nursery is None:
            return
        lists = self._membership.lists(self._brokers.values())
        self._report_others()
        self._rest = self._reviewing(lists)
        self._go_on()

    def _go_on(self) -> None:
        for _ in range(_AT_ONCE):
            if next(self._rest, self) is self:
                return
        self._due.set()

    def _reviewing(self, lists: Sequence[Listed]) -> Iterator[None]:
        known = {node: endpoint for listed in lists for node, endpoint in listed.items()}
        for node, endpoint in known.items():
            found = self._brokers.get(node)
            if found is None or found.left or not found.stays(node, self.cluster, lists):
                self._met(node, endpoint.host, endpoint.port)
                yield
        for node in [*self._brokers] if known else ():
            if node not in known and not self._brokers[node].left:
                self._leave(node)
                yield

    def _report_others(self) -> None:
        """Note which brokers are of another cluster, so that no client is joined to them."""
        joins_all = not self._membership.some_answer(self._brokers.values())
        for found in self._brokers.values():
            other = self._membership.is_of_another(found) and not found.left and not joins_all
            reason = f"another cluster's broker is at {found.upstream}" if other else ""
            if reason == found.refused:
                continue
            found.refused = reason
            self._host.refuses(found.route, reason)
            if reason:
                self._host.emit(
                    BrokerOfAnotherCluster(
                        route=found.route.name,
                        upstream=str(found.upstream),
                        cluster=self.cluster or "",
                        found=found.cluster or "",
                    )
                )

    def _meet(self, node: int, upstream: Address) -> None:
        found = self._brokers.get(node)
        if found is None:
            # The model is for what operators write; a broker may advertise anything.
            settings = RouteSettings.model_construct(
                listen=self._listen(node),
                upstream=upstream,
                name=f"broker-{node}",
                upstream_tls=self._settings.upstream_tls,
                peer_tls=self._settings.upstream_tls,
                sasl=self._settings.sasl,
            )
            passed = partial(self._passed, node)
            rewriting = AddressRewriting(self._settings.host, self._ports, passed)
            self._brokers[node] = VirtualBroker(self._host.add(settings, rewriting), upstream)
        elif found.upstream != upstream:
            before, found.upstream = found.upstream, upstream
            self._host.move(found.route, upstream)
            self._host.emit(
                BrokerMoved(
                    route=found.route.name, upstream_before=str(before), upstream=str(upstream)
                )
            )

    def _listen(self, node: int) -> Address:
        return Address(self._settings.listen.host, self._ports.port(node))

    def _leave(self, node: int) -> None:
        found = self._brokers[node]
        found.left, found.without_port = True, False
        self._host.listens(found.route, None)
        if found.scope is not None:
            found.scope.cancel()
            found.scope = None
            self._host.emit(BrokerLeft(route=found.route.name, listen=str(self._listen(node))))

    def _open(self, node: int) -> None:
        found, listen = self._brokers[node], self._listen(node)
        if not listen.port:
            raise ListenError(self._ports.lack(node))
        # There may be a thousand.
        there = [found for found in self._brokers.values() if found.upstream.port == listen.port]
        for other in there:
            # While it is down its port is free, and it could not come back.
            if leads_to(other.upstream, listen):
                at = f"{other.route.name} is at {other.upstream}"
                raise ListenError(f"{at}, so nothing else may be; give --port {node}=PORT")
        if leads_to(found.upstream, self._settings.listen):
            raise ListenError(f"it is at {found.upstream}, which is --listen; give another one")
        listener = _listener(listen)
        found.scope = trio.CancelScope()
        found.without_port = False

        async def accept(client: trio.SocketStream) -> None:
            await self._lead([found], client)

        self._serve(found.route.name, listener, accept, found.scope)
        self._host.listens(found.route, str(listen))
        self._host.emit(
            Listening(route=found.route.name, listen=str(listen), upstream=str(found.upstream))
        )

    def _serve(
        self, name: str, listener: trio.SocketListener, accept: Handler, scope: trio.CancelScope
    ) -> None:
        assert self._nursery is not None

        async def serve() -> None:
            with scope:
                await self._host.accept(name, listener, accept)

        self._nursery.start_soon(serve)

    async def _accept(self, client: trio.SocketStream) -> None:
        """Join a client of the bootstrap listener to a broker that takes it, another each time."""
        await self._lead([*self._in_turn()], client)

    async def _lead(self, brokers: Sequence[VirtualBroker], client: trio.SocketStream) -> None:
        """Join a client to the first broker that takes it, or turn it away.

        None of another cluster takes it, unless no broker of this one can be reached: it may have
        been recreated.
        """
        if self._membership.some_answer(self._brokers.values()):
            brokers = [found for found in brokers if not self._membership.is_of_another(found)]
        by_name = {found.route.name: found for found in brokers}
        for name in self._host.admits([*by_name]):
            found = by_name[name]
            if await self._host.join(found.route, found.upstream, client):
                return
        await turn_away(client)

    def _in_turn(self) -> Iterator[VirtualBroker]:
        self._turn += 1
        brokers = [found for found in self._brokers.values() if found.scope is not None]
        for at in range(len(brokers)):
            yield brokers[(self._turn + at) % len(brokers)]


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
