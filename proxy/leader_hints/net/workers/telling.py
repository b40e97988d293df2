"""What all workers get to know: brokers, topics, modes, and who awaits a success.

A worker that begins gets all of it; after that each change, in the order in which it came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.unknown_ids import Client
from leader_hints.core.events import Event, LeaderChange
from leader_hints.core.hints.recovery import Recovery, cluster_of
from leader_hints.core.route import Route
from leader_hints.core.workers.messages import (
    MOST_ENTRIES,
    BrokerKnown,
    ClientFailed,
    IdsLackNames,
    IdWithheld,
    LeaderMove,
    LeadersCame,
    ModeSet,
    NameSynthesized,
    TopicForgotten,
    TopicRecreated,
    TopicsAdded,
    TopicsHide,
    ToWorker,
)

Send = Callable[[ToWorker], None]
#: Routes of which one step tells that their clusters' brokers give ids, or not any more.
_TOLD_AT_ONCE = 10
#: Names to which synthetic ids lead of which one step looks up whether their topics are known.
_LOOKED_UP_AT_ONCE = 2000
#: Messages of a view that go to all workers in one step: each may have 500 topics.
_SAID_AT_ONCE = 5


class Telling:
    """Follows the state of ``routes`` and of their views. ``recovery``: what clients await.

    ``to_all``: sends a message to all workers that have got what is known. ``waits``: called when
    something is to be sent by the next :meth:`flush`.
    """

    def __init__(self, routes: Sequence[Route], recovery: Recovery, to_all: Send) -> None:
        self._routes = routes
        self._recovery = recovery
        self._to_all = to_all
        self._followed: dict[str, LeaderView] = {}
        #: Topics and moves that are still to be sent, of one cluster: mostly many come at the same
        #: time.
        self._added: list[tuple[str, bytes]] = []
        self._moves: list[LeaderMove] = []
        self._of = ""
        #: Clusters of which a topic was found to be recreated: each of its partitions is.
        self._recreated: dict[str, None] = {}
        #: Routes whose ``ids_everywhere`` is still to be sent: all of a cluster have it changed.
        self._agreed: dict[str, Route] = {}
        #: By cluster what is still to be sent of its view. There may be 100,000 topics: routes come
        #: back to a cluster that is still known where the proxy's own connection was to that.
        self._untold: dict[str, Iterator[ToWorker | None]] = {}
        self.waits: Callable[[], None] = lambda: None
        for route in routes:
            route.broker.changed = _Changed(self, route)
            route.broker.met = partial(self._met, route)
            self.broker_changed(route)

    def flush(self) -> None:
        """Tell what is still to be sent.

        What else is sent goes behind it: before a hint leads a client to a leader, all know of it.
        """
        recreated, self._recreated = self._recreated, {}
        added, self._added = tuple(self._added), []
        moves, self._moves = tuple(self._moves), []
        for cluster in recreated:
            self._to_all(TopicRecreated(cluster))
        if added:
            self._to_all(TopicsAdded(self._of, added))
        if moves:
            # A topic is known before it moves.
            self._to_all(LeadersCame(self._of, moves))

    def flush_some(self) -> bool:
        """Tell that, and some of what takes several turns; return whether more waits."""
        self.flush()
        for name in [*islice(self._agreed, _TOLD_AT_ONCE)]:
            self._tell_broker(self._agreed[name])
        for cluster in [*islice(self._untold, 1)]:
            left = _SAID_AT_ONCE
            for message in self._untold[cluster]:
                if message is None:
                    break
                self.say(message)
                left -= 1
                if not left:
                    break
            else:
                del self._untold[cluster]
        return bool(self._agreed or self._untold)

    def say(self, message: ToWorker) -> None:
        """Tell all workers something else, behind what is still to be sent."""
        self.flush()
        self._to_all(message)

    def all(self) -> Iterator[ToWorker | None]:
        """Iterate over all that is known, for a worker that begins; ``None``: others may have their
        turn.

        Changes may be sent in between: what comes twice does no harm. Nothing that is said here is
        older than they are.
        """
        self.flush()
        # First of which cluster each route is: workers drop the views of all others.
        for route in self._routes:
            yield ModeSet(route.name, route.mode, route.raised)
            yield from _of_broker(route)
        for cluster, view in [*self._followed.items()]:
            for message in _of_view(view):
                if self._followed.get(cluster) is not view:
                    # No route is of that cluster any more, or its view is another one by now.
                    break
                yield message
        of = {cluster_of(route): route.name for route in self._routes}
        for cluster, client_id, api, topic, partition in self._recovery.awaited_errors():
            if cluster in of:
                yield ClientFailed(of[cluster], client_id, api, ((topic, partition),))
        yield from self._awaited_moves()

    def take(self, event: Event) -> None:
        """Tell workers what they need of an event."""
        if isinstance(event, LeaderChange):
            self._gather(event.cluster, self._moves)
            self._moves.append(LeaderMove(event.topic, event.partition, event.leader))

    def switched(self, route: Route) -> None:
        """Tell what a route does about hints now."""
        self.say(ModeSet(route.name, route.mode, route.raised))

    def broker_changed(self, route: Route) -> None:
        """Tell what is known of a route's broker now."""
        view = route.broker.view
        if view is not None and self._followed.get(view.cluster_id) is not view:
            self._follow(view)
        self._tell_broker(route)
        views = [route.broker.view for route in self._routes]
        for gone in [v for v in self._followed.values() if not any(v is one for one in views)]:
            self._leave(gone)

    def agreed(self, route: Route) -> None:
        """Tell later whether the brokers of a route's cluster all give synthetic ids."""
        if not self._agreed:
            self.waits()
        self._agreed[route.name] = route

    def _tell_broker(self, route: Route) -> None:
        self._agreed.pop(route.name, None)
        for message in _of_broker(route):
            self.say(message)

    def _met(self, route: Route, _: Mapping[int, int]) -> None:
        self.broker_changed(route)

    def added(self, view: LeaderView, name: str, topic_id: bytes) -> None:
        """Send a topic, with others that come in the same step."""
        self._gather(view.cluster_id, self._added)
        self._added.append((name, topic_id))

    def recreated(self, view: LeaderView) -> None:
        """Tell that a topic was recreated, ahead of the moves that come with that."""
        self._wait()
        self._recreated[view.cluster_id] = None

    def _gather(self, cluster: str, with_others: Sequence[object]) -> None:
        """Have one more of a cluster told by the next :meth:`flush`."""
        if self._of != cluster or len(with_others) >= MOST_ENTRIES:
            self.flush()
            self._of = cluster
        self._wait()

    def _wait(self) -> None:
        """Have the next :meth:`flush` come, unless it is to come already."""
        if not (self._added or self._moves or self._recreated):
            self.waits()

    def _awaited_moves(self) -> Iterator[ToWorker]:
        """Iterate over the moves that are remembered, some of one cluster at a time."""
        by_name = {route.name: route.broker for route in self._routes}
        places = iter(self._recovery.awaited_moves())
        while some := [*islice(places, MOST_ENTRIES)]:
            by_cluster: dict[str, list[LeaderMove]] = {}
            for place, topic, partition in some:
                of, node = by_name[place].view, by_name[place].node
                if of is not None and node is not None:
                    move = LeaderMove(topic, partition, node)
                    by_cluster.setdefault(of.cluster_id, []).append(move)
            for cluster, moves in by_cluster.items():
                yield LeadersCame(cluster, tuple(moves))

    def _follow(self, view: LeaderView) -> None:
        self._followed[view.cluster_id] = view
        view.topics.follower = _Follower(self, view)
        view.hidden.changed = lambda route: self.say(_hides(view, route))
        view.unknown_ids.answers_changed = lambda: self.say(_lacking(view))

        def withheld(client: Client, topic_id: bytes) -> None:
            self.say(IdWithheld(view.cluster_id, *client, topic_id))

        view.unknown_ids.on_withheld = withheld
        self._untold[view.cluster_id] = _of_view(view)
        self.waits()

    def _leave(self, view: LeaderView) -> None:
        """Tell no more of a view that no route has: it is emptied, and workers drop theirs."""
        del self._followed[view.cluster_id]
        self._untold.pop(view.cluster_id, None)
        view.topics.follower = view.hidden.changed = None
        view.unknown_ids.answers_changed = view.unknown_ids.on_withheld = None


class _Changed:
    """Called when what is known of a route's broker has changed."""

    def __init__(self, telling: Telling, route: Route) -> None:
        self._telling = telling
        self._route = route

    def __call__(self, name: str) -> None:
        if name == "ids_everywhere":
            self._telling.agreed(self._route)
        else:
            self._telling.broker_changed(self._route)


class _Follower:
    """See :class:`leader_hints.core.cluster.known_topics.TopicFollower`."""

    def __init__(self, telling: Telling, view: LeaderView) -> None:
        self._telling = telling
        self._view = view

    def added(self, name: str, topic_id: bytes) -> None:
        self._telling.added(self._view, name, topic_id)

    def forgotten(self, name: str) -> None:
        self._telling.say(TopicForgotten(self._view.cluster_id, name))

    def recreated(self) -> None:
        self._telling.recreated(self._view)

    def synthesized(self, name: str) -> None:
        self._telling.say(NameSynthesized(self._view.cluster_id, name))


def _of_broker(route: Route) -> Iterator[ToWorker]:
    broker = route.broker
    yield BrokerKnown(
        route.name,
        dict(broker.maxima),
        broker.plan is None,
        broker.view.cluster_id if broker.view is not None else "",
        broker.node,
        broker.guessed,
        broker.serves_anybody,
        broker.ids_everywhere,
    )


def _of_view(view: LeaderView) -> Iterator[ToWorker | None]:
    cluster, topics = view.cluster_id, view.topics
    # Some may have been deleted or recreated since.
    known = ((topic.name, topics.told_id(topic)) for topic in [*topics] if topics.has(topic))
    for some in _parts(known):
        yield TopicsAdded(cluster, tuple(some))
    for number, name in enumerate([*topics.synthetic_names], 1):
        if name not in topics.names:
            yield NameSynthesized(cluster, name)
        if number % _LOOKED_UP_AT_ONCE == 0:
            # Nearly all are known by their topics.
            yield None
    for route in [*view.hidden.routes]:
        yield _hides(view, route)
    yield _lacking(view)
    for (host, client_id), topic_id, ago in view.unknown_ids.withheld_clients():
        yield IdWithheld(cluster, host, client_id, topic_id, ago)


def _parts(all_of_them: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    coming = iter(all_of_them)
    while some := [*islice(coming, MOST_ENTRIES)]:
        yield some


def _hides(view: LeaderView, route: str) -> TopicsHide:
    hidden = view.hidden
    return TopicsHide(view.cluster_id, route, some=hidden.some(route), asked=hidden.asked(route))


def _lacking(view: LeaderView) -> IdsLackNames:
    return IdsLackNames(view.cluster_id, tuple(view.unknown_ids.lacking()))
