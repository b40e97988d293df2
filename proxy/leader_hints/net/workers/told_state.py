"""What a worker knows of brokers, clusters and topics.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from leader_hints.apis.fetch_response import Topic
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.unknown_ids import Client
from leader_hints.core.hints.recovery import PATIENCE
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.core.workers.messages import (
    BrokerKnown,
    FromWorker,
    IdsLackNames,
    IdWithheld,
    LeadersCame,
    LeaderServed,
    ModeSet,
    NameSynthesized,
    TopicForgotten,
    TopicRecreated,
    TopicsAdded,
    TopicsHide,
)

#: Moves whose leaders have not served yet, as far as is known.
_MOST_MOVES: Final = 20_000
#: Seconds after which an answer of the new leader counts; see
#: :mod:`leader_hints.core.cluster.leader_moves`. Some later: the move came here later.
_WAITED: Final = 0.25

_Place = tuple[str, int]


class _ToldView(LeaderView):
    """A view that knows of topics what links look up, and of no leader.

    ``tell_served``: called with a node that serves a partition that moved lately.
    """

    def __init__(
        self, cluster_id: str, clock: Clock, tell_served: Callable[[Topic, int, int], None]
    ) -> None:
        super().__init__(cluster_id, clock)
        self._tell_served = tell_served
        #: When each partition moved, and to which node.
        self._moved: OrderedDict[_Place, tuple[float, int]] = OrderedDict()

    def moved(self, topic: str, partition: int, leader: int) -> None:
        """Take a new leader epoch of a partition."""
        self._moved[topic, partition] = self._clock(), leader
        self._moved.move_to_end((topic, partition))
        if len(self._moved) > _MOST_MOVES:
            self._moved.popitem(last=False)

    def served(self, topic: Topic, partition: int, node: int) -> None:
        """Tell that a node has answered a Produce request without an error, if that is news."""
        name = self.topics.name(topic)
        if name is None:
            return
        at, leader = self._moved.get((name, partition), (0.0, -1))
        if leader != node or self._clock() < at + _WAITED:
            return
        del self._moved[name, partition]
        if self._clock() < at + PATIENCE:
            self._tell_served(topic, partition, node)


class ToldState:
    """Writes what is known of the brokers of ``routes``, by name.

    ``send``: to the other side. ``take_later``: takes what is to be done in steps.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        send: Callable[[FromWorker], None],
        take_later: Callable[[Iterator[None]], None],
        clock: Clock,
    ) -> None:
        self._routes = routes
        self._send = send
        self._take_later = take_later
        self._clock = clock
        self._views: dict[str, _ToldView] = {}
        #: By route: what came last.
        self._maxima: dict[str, dict[int, int]] = {}

    def broker(self, told: BrokerKnown) -> None:
        """Take what is known of a route's broker."""
        route = self._routes[told.route]
        broker = route.broker
        if told.maxima:
            broker.synthetic_plan = (
                plan_for(told.maxima, synthetic=True) if route.config.synthesize else None
            )
            plan = plan_for(told.maxima)
            if not told.lost:
                broker.plan = plan
            elif broker.plan is not None or broker.former_plan is None:
                broker.plan = plan
                broker.lose()
            elif told.maxima != self._maxima.get(told.route):
                # A link's broker has answered, at another worker.
                broker.former_plan = plan
            self._maxima[told.route] = broker.maxima = told.maxima
        broker.node, broker.guessed = told.node, told.guessed
        broker.serves_anybody = told.serves_anybody
        broker.ids_everywhere = told.ids_everywhere
        broker.view = self._view(told.cluster) if told.cluster else None
        used = {r.broker.view.cluster_id for r in self._routes.values() if r.broker.view}
        for gone in self._views.keys() - used - {told.cluster}:
            self._take_later(self._views.pop(gone).forgetting())

    def mode(self, told: ModeSet) -> None:
        """Take what a route does about hints."""
        route = self._routes[told.route]
        if route.mode is not told.mode:
            route.switch(told.mode)
        route.raised = told.raised

    def topics_added(self, told: TopicsAdded) -> None:
        """Take topics that are known."""
        topics = self._view(told.cluster).topics
        for name, topic_id in told.topics:
            topics.adopt(name, topic_id)

    def topic_forgotten(self, told: TopicForgotten) -> None:
        """Take it that a topic is not known any more."""
        view = self._view(told.cluster)
        view.topics.drop(told.name)
        for _ in view.dropping():
            pass

    def topic_recreated(self, told: TopicRecreated) -> None:
        """Take it that a topic without an id was recreated."""
        self._view(told.cluster).topics.recreated()

    def synthesized(self, told: NameSynthesized) -> None:
        """Take a name to which a synthetic id leads."""
        self._view(told.cluster).topics.learn_synthetic(told.name)

    def hide(self, told: TopicsHide) -> None:
        """Take whether a route's broker hides topics."""
        self._view(told.cluster).hidden.told(told.route, some=told.some, asked=told.asked)

    def lack_names(self, told: IdsLackNames) -> None:
        """Take which ids no broker has named."""
        self._view(told.cluster).unknown_ids.told(told.ids)

    def withheld(self, told: IdWithheld) -> None:
        """Take a client that uses an id that cannot be named."""
        unknown = self._view(told.cluster).unknown_ids
        unknown.withhold_here((told.host, told.client_id), told.topic_id, told.ago)

    def moved(self, told: LeadersCame) -> None:
        """Take new leader epochs."""
        view = self._view(told.cluster)
        for move in told.moves:
            view.moved(*move)

    def _view(self, cluster: str) -> _ToldView:
        known = self._views.get(cluster)
        if known is None:
            known = self._views[cluster] = self._make_view(cluster)
        return known

    def _make_view(self, cluster: str) -> _ToldView:
        def served(topic: Topic, partition: int, node: int) -> None:
            for route in self._of(cluster):
                if route.broker.proved_node == node:
                    self._send(LeaderServed(route.name, topic, partition, node))
                    return

        def withheld(client: Client, topic_id: bytes) -> None:
            self._send(IdWithheld(cluster, *client, topic_id))

        view = _ToldView(cluster, self._clock, served)
        view.unknown_ids.on_withheld = withheld
        view.topics.follower = _TellsSynthetic(cluster, self._send)
        return view

    def _of(self, cluster: str) -> Iterable[Route]:
        return (
            route
            for route in self._routes.values()
            if route.broker.view is not None and route.broker.view.cluster_id == cluster
        )


class _TellsSynthetic:
    """See :class:`leader_hints.core.cluster.known_topics.TopicFollower`.

    A client that got a synthetic id on a link here may use it on a link of another worker.
    """

    def __init__(self, cluster: str, send: Callable[[FromWorker], None]) -> None:
        self._cluster = cluster
        self._send = send

    def added(self, name: str, topic_id: bytes) -> None:
        pass

    def forgotten(self, name: str) -> None:
        pass

    def recreated(self) -> None:
        pass

    def synthesized(self, name: str) -> None:
        self._send(NameSynthesized(self._cluster, name))
