"""Who is polled: the brokers behind routes, and the others of their clusters.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

from collections.abc import Callable, Mapping

import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.metadata.broker_poller import BrokerPoller, Listener, PollerSettings
from leader_hints.net.metadata.other_pollers import OtherPollers


class PollerSet:
    """The pollers of all routes (``own``), and those of all others (``others``).

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
        self._by_route: dict[str, BrokerPoller] = {}
        self.others = OtherPollers(settings, listener, self.belongs, self._run_other)
        self._settings = settings
        self._connectors = connectors
        self._listener = listener
        self._ended = ended
        self._clusters: dict[BrokerPoller, str] = {}
        self._nursery: trio.Nursery | None = None

    def start(self, nursery: trio.Nursery) -> None:
        """Have all polled in ``nursery``, those to come as well."""
        self._nursery = nursery
        self.others.start(nursery)
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
        self._by_route[route.name] = poller
        if self._nursery is not None:
            self._nursery.start_soon(poller.run)

    def of(self, route: Route) -> BrokerPoller | None:
        """Return the poller of a route's own broker, ``None`` where it is not polled."""
        return self.named(route.name)

    def named(self, route: str) -> BrokerPoller | None:
        """Return the poller of the own broker of a route, given by name."""
        return self._by_route.get(route)

    # Of which cluster each is.

    def belongs(self, poller: BrokerPoller, cluster_id: str) -> None:
        """Note of which cluster a broker says it is."""
        self._clusters[poller] = cluster_id

    def strays(self, poller: BrokerPoller, cluster_id: str) -> bool:
        """Note of which cluster a broker behind no route says it is; return whether it strays.

        If that is not the one of which it is polled, it counts as of none: another broker answers
        at the node's address.
        """
        strays = poller.node is None or self.others.get(cluster_id, poller.node) is not poller
        if strays:
            self._clusters.pop(poller, None)
        else:
            self.belongs(poller, cluster_id)
        return strays

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
        """Have exactly these ``brokers`` of a cluster polled besides those behind routes."""
        self.others.poll(cluster_id, self._connectors(listener).advertised, brokers)

    def leave(self) -> set[str]:
        """Poll no cluster that no route's broker is of any more; return the ids of the others."""
        kept = {of for poller, of in self._clusters.items() if poller.route is not None}
        kept |= {
            p.route.broker.view.cluster_id for p in self.own if p.route and p.route.broker.view
        }
        self.others.keep(kept)
        return kept

    async def _run_other(self, poller: BrokerPoller, scope: trio.CancelScope) -> None:
        with scope:
            await poller.run()
        self._clusters.pop(poller, None)
        self._ended(poller)
