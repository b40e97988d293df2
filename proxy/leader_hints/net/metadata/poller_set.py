"""Who is polled: the brokers behind routes, and the others of their clusters.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.metadata.broker_poller import BrokerPoller, Listener, PollerSettings

#: Pollers that begin or end before other tasks get their turn: those that end take several turns of
#: some 30 us each. A cluster may have a thousand brokers.
_AT_ONCE = 5


class _Wanted(NamedTuple):
    """The ``brokers`` of a cluster that are to be polled besides those behind routes, and how."""

    brokers: Mapping[int, Endpoint]
    connector: Connector


_NONE = _Wanted({}, Connector())


class PollerSet:
    """The pollers of all routes (``own``), and those of other brokers, by cluster and node.

    A route's own broker is asked at its upstream address, never through a proxy. The others are
    asked at the addresses that a route's listener advertises. ``listener``: takes what they learn.
    ``ended``: called with a poller that does not poll any more.
    """

    def __init__(
        self,
        settings: PollerSettings,
        connectors: Callable[[Route], Connectors],
        listener: Listener,
        ended: Callable[[BrokerPoller], None],
    ) -> None:
        self.own: list[BrokerPoller] = []
        self._settings = settings
        self._connectors = connectors
        self._listener = listener
        self._ended = ended
        self._others: dict[tuple[str, int], tuple[BrokerPoller, trio.CancelScope]] = {}
        self._clusters: dict[BrokerPoller, str] = {}
        #: By cluster; and of which clusters others are polled than are wanted.
        self._wanted: dict[str, _Wanted] = {}
        self._outdated: set[str] = set()
        self._arranging = False
        self._nursery: trio.Nursery | None = None

    def start(self, nursery: trio.Nursery) -> None:
        """Have all polled in ``nursery``, those to come as well."""
        self._nursery = nursery
        for poller in self.own:
            nursery.start_soon(poller.run)

    def follow(self, route: Route, address: Address) -> None:
        """Have the broker of one more route polled, if it is not polled yet."""
        if self.of(route) is not None:
            return
        connector = self._connectors(route).upstream
        poller = BrokerPoller(
            address, self._settings, self._listener, route=route, connector=connector
        )
        self.own.append(poller)
        if self._nursery is not None:
            self._nursery.start_soon(poller.run)

    def of(self, route: Route) -> BrokerPoller | None:
        """Return the poller of a route's own broker, ``None`` where it is not polled."""
        return next((poller for poller in self.own if poller.route is route), None)

    def other(self, cluster_id: str, node: int) -> BrokerPoller | None:
        """Return the poller of a broker that is behind no route."""
        poller, _ = self._others.get((cluster_id, node), (None, None))
        return poller

    def others(self, cluster_id: str | None = None) -> list[BrokerPoller]:
        """Return the pollers of brokers behind no route, of one cluster or of all."""
        return [poller for (of, _), (poller, _) in self._others.items() if cluster_id in (of, None)]

    def others_are(self, pollers: Container[BrokerPoller]) -> bool:
        """Whether these are the pollers of all brokers that are to be polled behind no route."""
        return all(
            self.other(of, node) in pollers and not self._is_outdated(of, node)
            for of, wanted in self._wanted.items()
            for node in wanted.brokers
        )

    # Of which cluster each is.

    def belongs(self, poller: BrokerPoller, cluster_id: str) -> None:
        """Note of which cluster a broker says it is."""
        self._clusters[poller] = cluster_id

    def cluster_id(self, poller: BrokerPoller) -> str | None:
        """Return of which cluster a broker said it is, ``None`` before its first answer."""
        return self._clusters.get(poller)

    def cluster_ids(self) -> set[str]:
        """Return the clusters that some broker was last heard to be of."""
        return {*self._clusters.values()}

    def connected(self, cluster_id: str) -> list[BrokerPoller]:
        """Return those of a cluster that can be asked now."""
        return [p for p, of in self._clusters.items() if of == cluster_id and p.connected]

    def routes(self, cluster_id: str, *, perhaps: bool = False) -> list[tuple[Route, Address]]:
        """Return the routes whose brokers are of a cluster, and the addresses of these brokers.

        ``perhaps``: those, too, of which no cluster is known yet.
        """
        unknown = cluster_id if perhaps else None
        return [
            (poller.route, poller.address)
            for poller in self.own
            if poller.route is not None and self._clusters.get(poller, unknown) == cluster_id
        ]

    def listener(self, cluster_id: str) -> Route | None:
        """Return a route by whose endpoints the brokers of a cluster are asked that are not ours.

        One route says it: routes may be of several listeners, with an address each for a broker.
        """
        for poller in self.own:
            if poller.route and poller.connected and self._clusters.get(poller) == cluster_id:
                return poller.route if poller.route.broker.endpoints else None
        return None

    # The others.

    def poll_others(
        self, cluster_id: str, listener: Route, brokers: Mapping[int, Endpoint]
    ) -> None:
        """Have exactly these ``brokers`` of a cluster polled besides those behind routes.

        Where that is another thousand than now it takes a while: some begin and end in each turn.
        """
        self._wanted[cluster_id] = _Wanted(brokers, self._connectors(listener).advertised)
        self._outdate(cluster_id)

    def leave(self) -> set[str]:
        """Poll no cluster that no route's broker is of any more; return the ids of the others."""
        kept = {of for poller, of in self._clusters.items() if poller.route is not None}
        kept |= {
            p.route.broker.view.cluster_id for p in self.own if p.route and p.route.broker.view
        }
        for left in self._wanted.keys() - kept:
            del self._wanted[left]
            self._outdate(left)
        return kept

    def _outdate(self, cluster_id: str) -> None:
        assert self._nursery is not None
        self._outdated.add(cluster_id)
        if not self._arranging:
            self._arranging = True
            self._nursery.start_soon(self._arrange, self._nursery)

    async def _arrange(self, nursery: trio.Nursery) -> None:
        """Have those polled that are wanted, until all are and nobody else."""
        while self._outdated:
            for number, _ in enumerate(self._arrange_cluster(self._outdated.pop(), nursery), 1):
                if number % _AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
        self._arranging = False

    def _arrange_cluster(self, cluster_id: str, nursery: trio.Nursery) -> Iterator[None]:
        """The same of one cluster, one broker in each step. Others may be wanted meanwhile."""
        polled = {node for of, node in self._others if of == cluster_id}
        nodes = polled.union(self._wanted_of(cluster_id).brokers)
        for node in [node for node in nodes if self._is_outdated(cluster_id, node)]:
            if self._is_outdated(cluster_id, node):
                self._drop(cluster_id, node)
                self._begin(cluster_id, node, nursery)
            yield

    def _wanted_of(self, cluster_id: str) -> _Wanted:
        return self._wanted.get(cluster_id, _NONE)

    def _is_outdated(self, cluster_id: str, node: int) -> bool:
        """Whether a broker is polled that is not to be, or elsewhere, or is not and is to be."""
        endpoint = self._wanted_of(cluster_id).brokers.get(node)
        poller = self.other(cluster_id, node)
        if endpoint is None or poller is None:
            return (endpoint is None) is not (poller is None)
        return (poller.address.host, poller.address.port) != (endpoint.host, endpoint.port)

    def _drop(self, cluster_id: str, node: int) -> None:
        if (cluster_id, node) in self._others:
            _, scope = self._others.pop((cluster_id, node))
            scope.cancel()

    def _begin(self, cluster_id: str, node: int, nursery: trio.Nursery) -> None:
        brokers, connector = self._wanted_of(cluster_id)
        endpoint = brokers.get(node)
        if endpoint is not None:
            address = Address(endpoint.host, endpoint.port)
            poller = BrokerPoller(
                address, self._settings, self._listener, node=node, connector=connector
            )
            scope = trio.CancelScope()
            self._others[cluster_id, node] = poller, scope
            self._clusters[poller] = cluster_id
            nursery.start_soon(self._run_other, poller, scope)

    async def _run_other(self, poller: BrokerPoller, scope: trio.CancelScope) -> None:
        with scope:
            await poller.run()
        self._clusters.pop(poller, None)
        self._ended(poller)
