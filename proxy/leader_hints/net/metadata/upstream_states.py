"""Whether the broker of each route answers, and when that is reported.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

from collections.abc import Callable

import trio

from leader_hints.core.events import Event, SubscriptionLost, SubscriptionReady
from leader_hints.core.route import Route
from leader_hints.net.metadata.broker_poller import BrokerPoller
from leader_hints.net.metadata.poller_set import PollerSet
from leader_hints.observe.watched import Upstream


class UpstreamStates:
    """What came of connecting to brokers.

    ``all_met``: set once the broker of each route has told its versions, or could not be asked.
    """

    def __init__(self, pollers: PollerSet, emit: Callable[[Event], None]) -> None:
        self.all_met = trio.Event()
        self._pollers = pollers
        self._emit = emit
        self._faults: dict[str, str] = {}
        self._lost: set[BrokerPoller] = set()

    def opened(self, poller: BrokerPoller) -> None:
        """Note that a broker has told its versions. Of one that is only watched nothing else will
        be known; one that is asked may go on to refuse the proxy's password, or hang."""
        if poller.route is not None:
            self._met(poller.route, self._fault(poller.route))
        if not poller.connected:
            self.answered(poller)

    def answered(self, poller: BrokerPoller) -> None:
        """Note that a broker answers."""
        self._lost.discard(poller)
        if poller.connected:
            self._emit(SubscriptionReady(broker=str(poller.address), node=poller.node))
        if poller.route is not None:
            self._met(poller.route, "")

    def lost(self, poller: BrokerPoller, reason: str) -> None:
        """Note that a broker does not answer; report it if it did, or never has."""
        if poller.route is not None:
            self._met(poller.route, reason)
        if poller not in self._lost:
            self._lost.add(poller)
            self._emit(SubscriptionLost(broker=str(poller.address), error=reason))

    def _fault(self, route: Route) -> str:
        return self._faults.get(route.name, "not asked yet")

    def _met(self, route: Route, fault: str) -> None:
        self._faults[route.name] = fault
        if all(p.route is not None and p.route.name in self._faults for p in self._pollers.own):
            self.all_met.set()

    def forget(self, poller: BrokerPoller) -> None:
        """Forget a broker that is not polled any more."""
        self._lost.discard(poller)

    def upstream(self, route: Route) -> Upstream:
        """Return whether a route's broker answers."""
        if self._pollers.of(route) is None:
            return Upstream(None)
        fault = self._fault(route)
        return Upstream(not fault, fault)
