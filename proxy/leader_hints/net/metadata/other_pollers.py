"""Who is polled of the brokers that are behind no route.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Set
from typing import NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.metadata.broker_poller import BrokerPoller, Listener, PollerSettings

#: Pollers that begin, end or connect again before other tasks get their turn: those that end take
#: several turns of some 30 us each. A cluster may have a thousand brokers.
_AT_ONCE = 5


class _Wanted(NamedTuple):
    """The ``brokers`` of a cluster that are to be polled, and how they are connected to."""

    brokers: Mapping[int, Endpoint]
    connector: Connector


_NONE = _Wanted({}, Connector())


class OtherPollers:
    """Pollers by cluster and node.

    ``listener``: takes what they learn. ``begin``: called with a poller and its cluster before it
    polls; ``run``: has it poll until a scope is cancelled.

    Whatever is done to many of them is done to some in each turn, and takes a while.
    """

    def __init__(
        self,
        settings: PollerSettings,
        listener: Listener,
        begin: Callable[[BrokerPoller, str], None],
        run: Callable[[BrokerPoller, trio.CancelScope], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._begin_poller = begin
        self._run = run
        self._pollers: dict[tuple[str, int], tuple[BrokerPoller, trio.CancelScope]] = {}
        self._wanted: dict[str, _Wanted] = {}
        #: What is to be done, and whether a task is at it.
        self._work: deque[Iterator[None]] = deque()
        self._working = False
        self._nursery: trio.Nursery | None = None

    def start(self, nursery: trio.Nursery) -> None:
        """Have those polled in ``nursery`` that are to come."""
        self._nursery = nursery

    def get(self, cluster_id: str, node: int) -> BrokerPoller | None:
        """Return the poller of a broker, ``None`` where it is not polled."""
        poller, _ = self._pollers.get((cluster_id, node), (None, None))
        return poller

    def of(self, cluster_id: str) -> list[BrokerPoller]:
        """Return the pollers of a cluster."""
        return [poller for (of, _), (poller, _) in self._pollers.items() if of == cluster_id]

    def are_in(self, pollers: Container[BrokerPoller]) -> bool:
        """Whether all that are to be polled are, and by these."""
        return all(
            self.get(of, node) in pollers and not self._is_outdated(of, node)
            for of, wanted in self._wanted.items()
            for node in wanted.brokers
        )

    def poll(self, cluster_id: str, connector: Connector, brokers: Mapping[int, Endpoint]) -> None:
        """Have exactly these ``brokers`` of a cluster polled."""
        self._wanted[cluster_id] = _Wanted(brokers, connector)
        # Those that are may have credentials of another route, which brokers take no longer.
        for poller in self.of(cluster_id):
            poller.connect_by(connector)
        self._do(self._arrange(cluster_id))

    def keep(self, cluster_ids: Set[str]) -> None:
        """Have no other cluster polled."""
        for left in self._wanted.keys() - cluster_ids:
            del self._wanted[left]
            self._do(self._arrange(left))

    def reconnect(self, cluster_id: str) -> None:
        """Have all of a cluster asked on new connections."""
        self._do(self._reconnect(cluster_id))

    def _do(self, steps: Iterator[None]) -> None:
        assert self._nursery is not None
        self._work.append(steps)
        if not self._working:
            self._working = True
            self._nursery.start_soon(self._work_off)

    async def _work_off(self) -> None:
        while self._work:
            try:
                for number, _ in enumerate(self._work.popleft(), 1):
                    if number % _AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
            except Exception as error:
                # A defect of the proxy must end one piece of work and not all of them.
                self._listener.failed(error)
        self._working = False

    def _arrange(self, cluster_id: str) -> Iterator[None]:
        """Have those of a cluster polled that are wanted, one in each step.

        Others may be wanted meanwhile.
        """
        polled = {node for of, node in self._pollers if of == cluster_id}
        nodes = polled.union(self._wanted.get(cluster_id, _NONE).brokers)
        for node in [node for node in nodes if self._is_outdated(cluster_id, node)]:
            if self._is_outdated(cluster_id, node):
                self._drop(cluster_id, node)
                self._begin(cluster_id, node)
            yield

    def _reconnect(self, cluster_id: str) -> Iterator[None]:
        for poller in self.of(cluster_id):
            poller.reconnect()
            # It counts as two: it connects again at once, while others leave their connections.
            yield
            yield

    def _is_outdated(self, cluster_id: str, node: int) -> bool:
        """Whether a broker is polled that is not to be, or elsewhere, or is not and is to be."""
        endpoint = self._wanted.get(cluster_id, _NONE).brokers.get(node)
        poller = self.get(cluster_id, node)
        if endpoint is None or poller is None:
            return (endpoint is None) is not (poller is None)
        return (poller.address.host, poller.address.port) != (endpoint.host, endpoint.port)

    def _drop(self, cluster_id: str, node: int) -> None:
        if (cluster_id, node) in self._pollers:
            _, scope = self._pollers.pop((cluster_id, node))
            scope.cancel()

    def _begin(self, cluster_id: str, node: int) -> None:
        assert self._nursery is not None
        brokers, connector = self._wanted.get(cluster_id, _NONE)
        endpoint = brokers.get(node)
        if endpoint is not None:
            address, scope = Address(endpoint.host, endpoint.port), trio.CancelScope()
            poller = BrokerPoller(
                address, self._settings, self._listener, node=node, connector=connector
            )
            self._pollers[cluster_id, node] = poller, scope
            self._begin_poller(poller, cluster_id)
            self._nursery.start_soon(self._run, poller, scope)
