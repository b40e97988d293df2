"""Asks all brokers of a cluster whether they give synthetic topic ids.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

from collections.abc import Callable, Collection
from itertools import islice

import trio

from leader_hints.apis.metadata import TopicMetadata
from leader_hints.core.cluster.cluster import Cluster, Clusters
from leader_hints.core.events import Event
from leader_hints.net.metadata.broker_poller import BrokerPoller
from leader_hints.net.metadata.poller_set import PollerSet


class SyntheticIdSurvey:
    """Which brokers were asked, and what follows for the routes.

    See :mod:`leader_hints.core.cluster.synthetic_id_agreement`. ``all_asked``: set once every
    broker was asked, or could not be.
    """

    def __init__(
        self, pollers: PollerSet, clusters: Clusters, emit: Callable[[Event], None]
    ) -> None:
        self.all_asked = trio.Event()
        self._pollers = pollers
        self._clusters = clusters
        self._emit = emit
        self._asked: set[BrokerPoller] = set()

    @property
    def _wanted(self) -> bool:
        """Whether some route is to have synthetic ids."""
        return any(p.route is not None and p.route.config.synthesize for p in self._pollers.own)

    def sample(self, poller: BrokerPoller) -> Collection[str]:
        """Return one topic of a broker's cluster, whose id stands for all of them."""
        cluster = self._clusters.get(self._pollers.cluster_id(poller)) if self._wanted else None
        return [*islice(cluster.view.topics.names, 1)] if cluster is not None else ()

    def judge(self, poller: BrokerPoller, cluster: Cluster, topic: TopicMetadata) -> None:
        """Take a topic of a broker's answer."""
        if not self._wanted or poller.route is not None or poller.node is None or poller.leaving:
            return
        broker = f"{poller.node} at {poller.address}"
        for event in cluster.agreement.judge_topic(poller.node, broker, topic):
            self._emit(event)
        self.agree(cluster)
        self.note(poller)

    def note(self, poller: BrokerPoller | None = None) -> None:
        """Note that a broker was asked, or cannot be; look whether all were."""
        if poller is not None:
            self._asked.add(poller)
        own = (
            p in self._asked or (p.route is not None and p.route.broker.node is not None)
            for p in self._pollers.own
        )
        if not self.all_asked.is_set() and all(own) and self._pollers.others.are_in(self._asked):
            self.all_asked.set()

    def forget(self, poller: BrokerPoller) -> None:
        """Forget a broker that is not polled any more."""
        self._asked.discard(poller)

    def agree(self, cluster: Cluster) -> None:
        """Conclude whether all brokers of a cluster give synthetic ids."""
        cluster_id = cluster.view.cluster_id
        listener = self._pollers.listener(cluster_id) if self._wanted else None
        if listener is None:
            return
        agreement, routes = cluster.agreement, self._pollers.routes(cluster_id)
        hidden, brokers = cluster.view.hidden, [(r.name, r.broker) for r, _ in routes]
        placed = [
            (name, of.node, of.plan, of.ids_everywhere, hidden.some(name)) for name, of in brokers
        ]
        now = trio.current_time()
        if not agreement.is_news((listener.broker.endpoints, placed), now):
            return
        for route, address in routes:
            hides = hidden.some(route.name)
            for event in agreement.judge_route(route, str(address), hides=hides):
                self._emit(event)
        for event in agreement.review(listener.broker.endpoints.keys(), now):
            self._emit(event)
        for route, _ in routes:
            route.broker.ids_everywhere = agreement.reached

    def doubt(self, cluster: Cluster) -> None:
        """Have all other brokers asked again: a client says that one gave it no id.

        Anybody can say that, so it is a reason to ask, and no proof.
        """
        if cluster.agreement.doubted(trio.current_time()):
            self._pollers.others.reconnect(cluster.view.cluster_id)
