"""Takes what pollers learn into the clusters and routes.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

import trio

from leader_hints.apis import metadata
from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import api_name
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import NO_BROKERS, Brokers, ClusterMetadata
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.cluster.cluster import Cluster, Clusters
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader_view import LEARNT_AT_ONCE, LeaderView
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import (
    Event,
    LeaderChange,
    RoutePlan,
    TaskFailed,
    UpstreamGivesHints,
)
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.errors import places_of
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.metadata.broker_poller import BrokerPoller, Cause, PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.poller_set import PollerSet
from leader_hints.net.metadata.synthetic_id_survey import SyntheticIdSurvey
from leader_hints.net.metadata.upstream_states import UpstreamStates
from leader_hints.net.time_slices import TimeSlices
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader

#: Seconds between two attempts to find out to which cluster a route's upstream address leads, where
#: clients get Metadata of another one than the proxy.
_CONTRADICTED_SECONDS = 10
#: Partitions about which brokers disagree, of whose topics a poll asks a broker behind no route;
#: and topics with replicas of which only their leaders can say whether they are in sync.
_DISPUTED = 100
#: Partitions, at most, of topics of which a new leader is asked for Metadata once it has confirmed
#: that it leads: of larger answers than 64 KB links read nothing in passing.
_LARGEST_READ = 500
#: Partitions, at most, of the question that a new leader has answered, and responses held: in a
#: storm its Metadata is not asked for beside what is needed. That cost half of the hints.
_ANSWERED, _HELD = 2, 6
#: Names and keys of topics for which one step looks up which held responses wait for an answer.
_ANSWERED_AT_ONCE = 2000
#: Partitions of Metadata that passes by which one step takes; as how many of them count, besides, a
#: topic, those of a large topic that were read before they are taken, one that has moved, and a
#: topic that is forgotten; and responses of which the rest waits for its turn: of more only the
#: beginning is taken.
_PASSING_AT_ONCE = 1500
_PASSING_TOPIC, _PASSING_READ, _PASSING_MOVED, _PASSING_FORGOTTEN = 5, 500, 1, 300
_MOST_PASSING = 16
#: Brokers to which connecting begins before other tasks get their turn: each costs some 0.2 ms,
#: with TLS a millisecond or two. There may be a thousand, which all come back at the same time.
_CONNECTING_AT_ONCE = 5


class BrokerAnswers:
    """The :class:`leader_hints.net.metadata.broker_poller.Listener` of all pollers.

    ``slices``: in which large answers are read. ``epoch_over``: called when an answer says, as the
    first one, that an epoch asked is over.

    Large because it has each method of that listener.
    """

    def __init__(
        self,
        settings: PollerSettings,
        connectors: Callable[[Route], Connectors],
        hold_timer: HoldTimer,
        emit: Callable[[Event], None],
        refreshed: Callable[[str, float], None],
        placed: Callable[[], None],
    ) -> None:
        self.clusters = Clusters(trio.current_time)
        self.pollers = PollerSet(settings, connectors, self, self._ended)
        self.survey = SyntheticIdSurvey(self.pollers, self.clusters, emit)
        self.upstreams = UpstreamStates(self.pollers, emit)
        self.slices = TimeSlices()
        self._turns = trio.CapacityLimiter(_CONNECTING_AT_ONCE)
        self.epoch_over: Callable[[], None] = lambda: None
        self._hold_timer = hold_timer
        self._emit = emit
        self._refreshed = refreshed
        self._placed = placed
        self._in_sync = settings.in_sync
        #: By route: how often its own connection may be made again since clients contradict it.
        self._contradictions: defaultdict[str, RefreshRate] = defaultdict(
            lambda: RefreshRate(1 / _CONTRADICTED_SECONDS, 1)
        )
        #: By route: which node its broker was proved to be last, and of which cluster.
        self._proved: dict[str, tuple[str, int]] = {}
        #: By route: the plan that was reported last, if its broker is to be asked and has answered
        #: nothing since.
        self._unanswered: dict[str, RoutePlan | None] = {}
        #: By route: the brokers in the last Metadata response that went by.
        self._passed: dict[str, Brokers] = {}
        #: What is left of large ones, and of clusters that no route is of any more.
        self._rest, self._rests = trio.open_memory_channel[Iterator[None]](math.inf)

    async def turn(self) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        async with self._turns:
            # A task that waited continues only in Trio's next round.
            pass

    def opened(self, poller: BrokerPoller, maxima: dict[int, int]) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self.upstreams.opened(poller)
        route = poller.route
        if route is None:
            return
        route.broker.maxima = maxima
        route.broker.synthetic_plan = (
            plan_for(maxima, synthetic=True) if route.config.synthesize else None
        )
        route.broker.plan = plan_for(maxima)
        route.broker.reachable = poller.connected
        plan = RoutePlan(
            route=route.name,
            native=route.broker.plan.native,
            raised={api_name(row.key): [row.takes, row.offered] for row in route.broker.plan.rows},
        )
        if self._unanswered.get(route.name) != plan:
            self._emit(plan)
        self._unanswered[route.name] = plan if poller.connected else None

    def answered(self, poller: BrokerPoller) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self.upstreams.answered(poller)
        if poller.route is not None:
            self._unanswered[poller.route.name] = None

    def hints_behind(self, poller: BrokerPoller) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        if poller.route is not None:
            self._emit(UpstreamGivesHints(route=poller.route.name))

    def identified(self, poller: BrokerPoller) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        cluster = self.clusters.get(self.pollers.cluster_id(poller))
        if cluster is not None:
            self._withdraw_former(cluster, poller)
            self._poll_others(cluster)
            self.survey.agree(cluster)
        self.survey.note()
        self._placed()

    def _withdraw_former(self, cluster: Cluster, poller: BrokerPoller) -> None:
        """Forget what counted as another node's, if a route's broker is proved to be another now.

        Nobody is asked as that node any more, unless another route leads to it.
        """
        route, node = poller.route, poller.node
        if route is None or node is None:
            return
        cluster_id = cluster.view.cluster_id
        former, self._proved[route.name] = self._proved.get(route.name), (cluster_id, node)
        if former is not None and former[0] == cluster_id and former[1] != node:
            others = [other for other, _ in self.pollers.routes(cluster_id)]
            if all(other.broker.proved_node != former[1] for other in others):
                cluster.view.withdraw({former[1]})

    def lost(self, poller: BrokerPoller, reason: str) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        if poller.route is not None:
            poller.route.broker.lose()
            view = poller.route.broker.view
            if view is not None:
                view.hidden.lost(poller.route.name)
            self._placed()
        elif (known := self.view(poller)) is not None and poller.node is not None:
            known.topics.lost(poller.node)
        self.upstreams.lost(poller, reason)
        self.survey.note(poller)

    def failed(self, error: Exception) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._emit(TaskFailed(task="subscription", traceback=places_of(error)))

    def refreshed(self, cause: Cause, seconds: float) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._refreshed(cause, seconds)

    def view(self, poller: BrokerPoller) -> LeaderView | None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        cluster = self.clusters.get(self.pollers.cluster_id(poller))
        return cluster.view if cluster is not None else None

    def listed(self, poller: BrokerPoller) -> Brokers:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        cluster = self.clusters.get(self.pollers.cluster_id(poller))
        return cluster.listed if cluster is not None else NO_BROKERS

    def sample(self, poller: BrokerPoller) -> Collection[str]:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        cluster = self.clusters.get(self.pollers.cluster_id(poller))
        if cluster is None:
            return self.survey.sample(poller)
        view = cluster.view
        disputed = map(view.topics.name, view.disagreements.topics(_DISPUTED))
        in_sync = islice(view.in_sync_disputed, _DISPUTED)
        names = chain(self.survey.sample(poller), disputed, in_sync)
        return dict.fromkeys(name for name in names if name is not None)

    def _ended(self, poller: BrokerPoller) -> None:
        self.upstreams.forget(poller)
        self.survey.forget(poller)

    # Metadata.

    async def learn(
        self,
        poller: BrokerPoller,
        answer: ClusterMetadata,
        asked_at: float,
        *,
        poll: bool,
        whole: bool,
    ) -> set[str] | None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        if not answer.tells:
            return None
        if poller.route is not None:
            before = self.pollers.cluster_id(poller)
            self.pollers.belongs(poller, answer.cluster_id)
            poller.route.broker.serves_anybody = not poller.authenticates
            cluster, poller.brokers = self._place(poller.route, answer)
            if before != answer.cluster_id:
                # What clients get from it may have said so before: see _place().
                self._keep_clusters()
        else:
            known = self.clusters.get(answer.cluster_id)
            poller.strays = self.pollers.strays(poller, answer.cluster_id)
            if poller.strays or known is None:
                # Another cluster's broker, and so not that node; or the routes have just left it.
                self.survey.note(poller)
                return set()
            cluster = known
            cluster.listed = answer.brokers
        if poll:
            cluster.polled_at = trio.current_time()
        names: set[str] = set()
        await self.slices.take(self._learning(poller, cluster, answer, names, asked_at, poll=poll))
        view, route = cluster.view, poller.source.route
        seeing_all = view.hidden.seeing_all
        # One that hides topics does not list their ids to its route.
        if whole and (route in seeing_all or not seeing_all):
            view.unknown_ids.answered(view.topics.name, asked_at, trio.current_time())
        if whole or not poll:
            # The first question of all is what is hidden: nothing else is known by then.
            for event in cluster.hidden_topics(str(poller.address), route):
                self._emit(event)
        self._hold_timer.news()
        return names

    async def forget(
        self, poller: BrokerPoller, view: LeaderView, present: Collection[str]
    ) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        absent = view.topics.forget_absent(present, poller.source.route)
        await self.slices.take(chain(absent, view.dropping()))

    async def probe(self, poller: BrokerPoller, view: LeaderView) -> Probe:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        probe: Probe = {}
        await self.slices.take(broker_identity.probing(view, probe, poller.source))
        return probe

    def _learning(
        self,
        poller: BrokerPoller,
        cluster: Cluster,
        answer: ClusterMetadata,
        names: set[str],
        asked_at: float,
        *,
        poll: bool,
    ) -> Iterator[None]:
        """Take an answer's topics in steps; add to ``names``.

        What the view does not take, since it may be of another topic of the name, says nothing of
        the one that it has.
        """
        view, judged = cluster.view, False
        #: Names and keys.
        answered: dict[Topic, None] = {}
        route = poller.source.route
        for topic in answer.steps:
            if topic is not None:
                taken = False
                yield from view.dropping()
                for moves in view.learning(topic, poller.node, route=route, poll=poll):
                    taken = True
                    self._report(moves)
                    yield
                names.add(topic.name)
                # A deleted topic is hidden, too, as long as its ACL stays.
                known = view.topics.get(topic.name) is not None
                hidden = known and topic.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                key = view.topics.key(topic.name)
                if view.metadata_brokers.hides(poller.reporter, key, hidden=hidden):
                    view.changes.add(view.topics.aliases(topic.name))
                if poller.route is not None:
                    view.hidden.take(topic, route)
                if hidden:
                    yield from view.withdrawing(topic.name, poller.source)
                if taken:
                    answered |= dict.fromkeys((topic.name, view.topics.key(topic.name)))
                if not judged and not topic.error:
                    # As with one topic, so with all of them.
                    judged = True
                    self.survey.judge(poller, cluster, topic)
            if len(answered) >= _ANSWERED_AT_ONCE:
                yield from self._answered(poller, answered, asked_at)
                answered = {}
            yield
        yield from self._answered(poller, answered, asked_at)

    def _answered(
        self, poller: BrokerPoller, topics: Collection[Topic], asked_at: float
    ) -> Iterator[None]:
        """Take note, in steps, that a route's own broker has answered for ``topics``."""
        if poller.route is not None:
            yield from self._hold_timer.queue.asked(poller.route, topics, asked_at)

    def snooped(self, route: Route, version: int, payload: bytes) -> None:
        """Take a Metadata response that went by on a link of ``route``.

        Some of it now, since links wait meanwhile, and the rest in turns of :meth:`read_on`.
        """
        steps, over = self._passing(route, version, payload), object()
        waiting = self._rest.statistics().current_buffer_used
        if next(steps, over) is not over and waiting < _MOST_PASSING:
            self._rest.send_nowait(steps)

    async def read_on(self) -> None:
        """Take what is left of large Metadata responses that went by, and free what is left of
        clusters, until cancelled.
        """
        async for steps in self._rests:
            try:
                await self.slices.take(steps)
            except Exception as error:
                self.failed(error)

    def _passing(self, route: Route, version: int, payload: bytes) -> Iterator[None]:
        moves: list[LeaderChange] = []
        left = _PASSING_AT_ONCE
        try:
            reader = Reader(payload, 4)
            reader.skip_tags()
            before = self._passed.get(route.name, NO_BROKERS)
            answer = metadata.read_response(reader, version, before, in_sync=self._in_sync)
            if not answer.tells or self._is_contradicted(route, answer.cluster_id):
                return
            cluster, self._passed[route.name] = self._place(route, answer)
            view = cluster.view
            source = Source(route.broker.proved_node, route.name)
            for counts, learnt in _learning_in_passing(answer, version, view, source):
                left -= counts
                moves += learnt
                if left <= 0:
                    left = _PASSING_AT_ONCE
                    self._report(moves)
                    moves = []
                    self._hold_timer.news()
                    yield
        except WireError:
            route.traffic.raw["not understood"] += 1
            return
        finally:
            # Of all topics together: only so many are reported in one step.
            self._report(moves)
        self._hold_timer.news()

    def _is_contradicted(self, route: Route, cluster_id: str) -> bool:
        """Whether the proxy's own connection leads to another cluster than a link of ``route``.

        One of them is older than a change of what the upstream address means. So the proxy connects
        again, and what its broker answers counts. Old links may stay for as long as clients like.
        """
        poller = self.pollers.of(route)
        known = self.pollers.cluster_id(poller) if poller is not None else None
        if poller is None or not route.broker.reachable or known in (None, cluster_id):
            return False
        if self._contradictions[route.name].take(trio.current_time()):
            poller.reconnect()
        return True

    def _place(self, route: Route, answer: ClusterMetadata) -> tuple[Cluster, Brokers]:
        """Note where the brokers are on the route's listener, and of which cluster they are.

        Return that, and the brokers as the next answer is to be held against them.
        """
        cluster = self.clusters.met(answer.cluster_id)
        if route.broker.view is not cluster.view:
            if route.broker.view is not None:
                route.broker.view.leave(route.name)
            route.broker.view = cluster.view
            broker_identity.leave(route.broker)
            self._keep_clusters()
        brokers = cluster.share(answer.brokers)
        endpoints, before = brokers.endpoints, route.broker.endpoints
        if before is not endpoints and before != endpoints:
            listed = broker_identity.listed(route.broker, endpoints)
            poller = self.pollers.of(route)
            if listed.refuted and poller is not None:
                poller.identify()
            cluster.view.withdraw(listed.moved)
            self._placed()
        self._poll_others(cluster)
        self.survey.agree(cluster)
        return cluster, brokers

    def _keep_clusters(self) -> None:
        """Forget the clusters that no route leads to any more."""
        for gone in self.clusters.keep(self.pollers.leave()):
            # However much passes by: to free 100,000 topics at once takes a quarter of a second.
            self._rest.send_nowait(gone.view.forgetting())

    def _poll_others(self, cluster: Cluster) -> None:
        cluster_id = cluster.view.cluster_id
        listener = self.pollers.listener(cluster_id)
        if listener is None:
            return
        # A route of which no cluster is known yet may be of this one.
        routes = [route for route, _ in self.pollers.routes(cluster_id, perhaps=True)]
        others = cluster.others(listener, routes)
        if others is not None:
            self.pollers.poll_others(cluster_id, listener, others)

    # Leadership.

    def leadership(
        self,
        poller: BrokerPoller,
        epochs: Mapping[Partition, int],
        errors: Mapping[Partition, int],
        asked_at: float,
    ) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        cluster = self.clusters.get(self.pollers.cluster_id(poller))
        if cluster is None:
            return
        learnt = cluster.learn_leadership(poller.node, epochs, errors)
        self._report(learnt.moves)
        if len(epochs) <= _ANSWERED and self._hold_timer.queue.held <= _HELD:
            self._ask_too(poller, cluster.view, learnt.confirmed, learnt.doubted)
        if learnt.epoch_over:
            self.epoch_over()
        if poller.route is not None:
            self._hold_timer.queue.probed(poller.route, learnt.of_the_view, asked_at)
        self._hold_timer.news()

    def _ask_too(
        self,
        poller: BrokerPoller,
        view: LeaderView,
        confirmed: Collection[str],
        doubted: Collection[str],
    ) -> None:
        """Ask a broker that has come to lead partitions of these topics for Metadata as well.

        Metadata shows whether it leads a ``doubted`` topic, or a former one of that name.

        Another broker than a route's is asked after each move: its answer passes the process in
        front of it, which so learns that its broker leads, and not at a poll up to a minute later.
        Until then it could not hold a Produce error of that broker: it would not know that the
        broker has led (rule 9 of :mod:`leader_hints.core.hints.hold_queue`).
        """
        topics = doubted if poller.route is not None else [*confirmed, *doubted]
        if topics and sum(map(view.partitions, topics)) <= _LARGEST_READ:
            poller.refresh(topics)

    def _report(self, moves: Sequence[LeaderChange]) -> None:
        if not moves:
            return
        # An answer may bring thousands, of which each costs all takers of events.
        self._hold_timer.emit(moves)
        for moved in moves:
            poller = self.pollers.others.get(moved.cluster, moved.leader)
            if poller is not None:
                # A broker that is named as leader is up again.
                poller.reached()
        # All of one answer, so of one cluster.
        cluster_id = moves[0].cluster
        leaders = {moved.leader for moved in moves if moved.leader >= 0}
        for poller in self.pollers.own:
            if self.pollers.cluster_id(poller) == cluster_id:
                poller.leaders_moved(leaders)


def _learning_in_passing(
    answer: ClusterMetadata, version: int, view: LeaderView, source: Source
) -> Iterator[tuple[int, list[LeaderChange]]]:
    """Have ``view`` take an answer, bit by bit: yield as how many partitions each counts, and its
    moves.

    A client chose the version: that an older one has no ids says nothing of the cluster.
    """
    untold, forgotten = version < metadata.TOPIC_IDS_FROM, view.topics.forgotten
    for topic in answer.steps:
        yield _PASSING_READ if topic is None else _PASSING_TOPIC, []
        if topic is None:
            continue
        for _ in view.dropping():
            yield _PASSING_AT_ONCE, []
        left = len(topic.partitions)
        told = topic._replace(id=metadata.UNTOLD_ID) if untold else topic
        for moves in view.learning(told, source.node, route=source.route):
            # If it pauses more often, what it does for one partition is more.
            taken = min(left, LEARNT_AT_ONCE) or LEARNT_AT_ONCE
            left = max(left - taken, 0)
            yield taken + _PASSING_MOVED * len(moves), moves
        if view.topics.forgotten != forgotten:
            forgotten = view.topics.forgotten
            yield _PASSING_FORGOTTEN, []
