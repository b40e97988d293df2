"""Keeps the views of the clusters fresh.

Each route's own broker is asked at its upstream address, never through a proxy; the other
brokers of its cluster at the addresses that the route's listener advertises. A poll asks for
everything, slowly. While error responses are held, brokers are asked about the topics
concerned every few milliseconds: Metadata lags the error, and whichever broker knows first
wakes them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import trio

from leader_hints.address import Address
from leader_hints.apis import metadata
from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import api_name
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import (
    NO_BROKERS,
    ZERO_ID,
    Brokers,
    ClusterMetadata,
    TopicMetadata,
)
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_candidates import LeaderCandidates
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.cluster.refresh_share import RefreshShare
from leader_hints.core.cluster.synthetic_id_agreement import SyntheticIdAgreement
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import (
    Event,
    LeaderMoved,
    RoutePlan,
    SubscriptionLost,
    SubscriptionReady,
    TaskFailed,
    TopicsHidden,
)
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.errors import places_of
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.metadata.broker_poller import BrokerPoller, Cause, PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.time_slices import TimeSlices
from leader_hints.observe.watched import KnownCluster, Upstream
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader

#: Seconds for which a large answer is read before other tasks get their turn.
_SLICE = 0.004
#: Partitions of which one refresh asks the leader whether it serves, where thousands are looked
#: for. That word spares clients a back-off; what must be known Metadata tells.
_QUESTIONS = 500
#: A request costs as much as so many partitions in it.
_REQUEST = 25
#: Answers that wait to be read, from which on no more are asked for in a storm: nothing is learnt
#: sooner by that.
_ENOUGH = 2
#: Of so many rounds of questions the last asks all brokers for Metadata, the others only those
#: behind routes: each question costs brokers time just when they have leaders to change, and who
#: leads is mostly told by the new leader itself.
_ALL_IN_EVERY = 4
#: Brokers that are asked before other tasks get their turn: each question costs 0.1 ms.
_ASKED_AT_ONCE = 20
#: What an operator can do about synthetic topic ids that cannot be offered.
_SHOW_ALL = "it hides topics from the proxy, so ids of theirs have no names; allow it Describe"
_HAVE_IT_PROXIED = "have it advertise a leader-hints proxy with topic_ids: synthesize"
_NEEDS_NO_PROXY = "its version gives hints and topic ids itself; set topic_ids: broker"
#: Of a node that was asked whether it leads: not, or not yet.
_DENIED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH})


class Refresher:
    """The pollers of all routes, and the views that they keep.

    ``routes``: each with the upstream address of its broker. ``all_asked``: set once every broker
    was asked whether it gives synthetic ids, or could not be; ``all_met``: once the broker of each
    route has said its versions, or could not be asked. ``refreshed``: told of each answer of a
    broker why it was asked and how many seconds it took. ``placed``: called when a route's broker
    says other endpoints than before, or nothing any more.
    """

    def __init__(
        self,
        routes: Sequence[tuple[Route, Address]],
        hold_timer: HoldTimer,
        rate: RefreshRate,
        interval: float,
        settings: PollerSettings,
        emit: Callable[[Event], None],
        refreshed: Callable[[str, float], None] = lambda cause, seconds: None,
        connectors: Callable[[Route], Connectors] = lambda route: Connectors(),
        placed: Callable[[], None] = lambda: None,
    ) -> None:
        self._placed = placed
        self._hold_timer = hold_timer
        self._rate = rate
        self._interval = interval
        self._settings = settings
        self._emit = emit
        self._connectors = connectors
        self._refreshed = refreshed
        self._views: dict[str, LeaderView] = {}
        self._agreements: dict[str, SyntheticIdAgreement] = {}
        self._synthesize = any(route.config.synthesize for route, _ in routes)
        self.all_asked = trio.Event()
        self.all_met = trio.Event()
        self._asked: set[BrokerPoller] = set()
        self._polled: dict[str, float] = {}
        self._faults: dict[str, str] = {}
        #: Clusters of which it was told that they hide topics.
        self._hidden_reported: set[str] = set()
        self._own = [
            BrokerPoller(address, settings, self, route=route, connector=connectors(route).upstream)
            for route, address in routes
        ]
        self._others: dict[tuple[str, int], tuple[BrokerPoller, trio.CancelScope]] = {}
        self._clusters: dict[BrokerPoller, str] = {}
        #: By route: the brokers in the last Metadata response that went by.
        self._passed: dict[str, Brokers] = {}
        #: By cluster: what decides who of it is to be asked, when that was last looked at.
        self._placements: dict[str, object] = {}
        self._lost: set[BrokerPoller] = set()
        #: Of those behind routes, and of all.
        self._own_share = RefreshShare(settings.slice_partitions)
        self._share = RefreshShare(settings.slice_partitions)
        self._slices = TimeSlices(_SLICE)
        self._questions = RefreshShare(_QUESTIONS)
        self._candidates: dict[str, LeaderCandidates] = {}
        #: Set by an answer that the epoch asked is over: the next one is asked at once.
        self._over = trio.Event()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Poll and refresh until cancelled."""
        async with trio.open_nursery() as self._nursery:
            for poller in self._own:
                self._nursery.start_soon(poller.run)
            await self._refresh()

    def follow(self, route: Route, address: Address) -> None:
        """Ask the broker of one more route, if it is not asked yet."""
        if all(poller.route is not route for poller in self._own):
            connector = self._connectors(route).upstream
            poller = BrokerPoller(address, self._settings, self, route=route, connector=connector)
            self._own.append(poller)
            self._synthesize = self._synthesize or route.config.synthesize
            if self._nursery is not None:
                self._nursery.start_soon(poller.run)

    def move(self, route: Route, address: Address) -> None:
        """Ask the broker of ``route`` at another address from now on."""
        for poller in self._own:
            if poller.route is route:
                poller.address = address
                poller.reconnect()

    def reached(self, route: Route) -> None:
        """Have the broker of ``route`` asked soon, if it could not be: a client has reached it."""
        if not route.broker.reachable:
            for poller in self._own:
                if poller.route is route:
                    poller.reached()

    def clusters(self) -> Iterator[KnownCluster]:
        """Iterate over the views of the clusters that some broker was last heard to be of."""
        now, present = trio.current_time(), set(self._clusters.values())
        for cluster_id, at in self._polled.items():
            if cluster_id in present:
                yield KnownCluster(self._views[cluster_id], now - at)

    def upstream(self, route: Route) -> Upstream:
        """Return whether the broker of ``route`` answers."""
        if all(poller.route is not route for poller in self._own):
            return Upstream(None)
        fault = self._faults.get(route.name, "not asked yet")
        return Upstream(not fault, fault)

    async def _refresh(self) -> None:
        """Ask again and again while responses are held."""
        rounds = 0
        while True:
            if not self._hold_timer.waiting.is_set():
                await self._hold_timer.waiting.wait()
                rounds = 0
            # Before they are asked: some may answer before all are.
            self._over = trio.Event()
            if self._rate.take(trio.current_time()):
                rounds += 1
                try:
                    await self._ask_all(thoroughly=rounds % _ALL_IN_EVERY == 0)
                except Exception as error:
                    self.failed(error)
            with trio.move_on_after(self._interval):
                await self._over.wait()

    async def _ask_all(self, *, thoroughly: bool) -> None:
        """Ask what helps the responses that are held; ``thoroughly``: all brokers for Metadata."""
        for wanted_leaders in self._hold_timer.queue.wanted_leaders():
            view = wanted_leaders.route.broker.view
            if view is None:
                continue
            pollers = self._peers(view.cluster_id)
            many = self._are_many(wanted_leaders, len(pollers))
            wanted = self._metadata_of(wanted_leaders, many=many)
            known = [*{name for name in map(view.name, wanted) if name is not None}]
            lost = [topic for topic in wanted if view.name(topic) is None]
            if lost:
                # The route's own broker has just answered for them.
                self.look_up_ids(
                    wanted_leaders.route, [topic for topic in lost if isinstance(topic, bytes)]
                )
            topics: dict[BrokerPoller, list[str]] = {}
            sizes = [view.partitions(name) for name in known]
            tellers, share = pollers, self._share
            if not (many or thoroughly):
                tellers, share = [p for p in pollers if p.route is not None], self._own_share
            for broker, topic in share.pairs(len(tellers), sizes):
                topics.setdefault(tellers[broker], []).append(known[topic])
            # Where they are many, Metadata must find the leader, which is asked whether it serves.
            candidates = self._candidates_of(view)
            epochs = {
                partition: candidates.epoch(partition, epoch)
                for partition, epoch in ({} if many else wanted_leaders.epochs).items()
            }
            claims = {} if many else wanted_leaders.claims
            named = self._named(wanted_leaders) if many else {}
            for number, poller in enumerate(pollers, 1):
                if many:
                    asked = named.get(poller.node, {})
                else:
                    asked = {
                        partition: epoch
                        for partition, epoch in epochs.items()
                        if candidates.may_lead(poller.node, partition, epoch)
                    }
                    for partition, claim in claims.items():
                        if claim.node == poller.node:
                            asked[partition] = claim.epoch
                asked_for = topics.get(poller, ())
                if asked or asked_for:
                    poller.refresh(asked_for, asked)
                if number % _ASKED_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def _candidates_of(self, view: LeaderView) -> LeaderCandidates:
        return self._candidates.setdefault(view.cluster_id, LeaderCandidates(view))

    def _metadata_of(self, wanted_leaders: WantedLeaders, *, many: bool) -> Collection[Topic]:
        if not many:
            return wanted_leaders.topics
        return wanted_leaders.unknown if self._slices.waiting < _ENOUGH else ()

    def _are_many(self, wanted_leaders: WantedLeaders, brokers: int) -> bool:
        """Whether it is too much to ask each broker about each partition."""
        most = self._settings.slice_partitions
        if len(wanted_leaders) * brokers > most:
            wanted_leaders.single()
        return len(wanted_leaders) * brokers > most

    def _named(self, wanted_leaders: WantedLeaders) -> dict[int | None, dict[Partition, int]]:
        """Return what to ask those who are named as leaders, by node.

        Of so many leaders in turn: a request to each of a hundred takes longer than it gains.
        """
        questions = wanted_leaders.questions(_QUESTIONS - _REQUEST)
        sizes = [_REQUEST + len(some) for _, some in questions]
        named: dict[int | None, dict[Partition, int]] = {}
        for _, number in self._questions.pairs(1, sizes):
            node, some = questions[number]
            named.setdefault(node, {}).update(wanted_leaders.epochs_of(some))
        return named

    def _peers(self, cluster_id: str) -> list[BrokerPoller]:
        return [
            poller for poller, of in self._clusters.items() if of == cluster_id and poller.connected
        ]

    def snooped(self, route: Route, version: int, payload: bytes) -> None:
        """Take a Metadata response that went by on a link of ``route``."""
        try:
            reader = Reader(payload, 4)
            reader.skip_tags()
            before = self._passed.get(route.name, NO_BROKERS)
            answer = metadata.read_response(reader, version, before)
            view = self._place(route, answer)
            self._passed[route.name] = answer.brokers
            for topic in answer.topics:
                self._report(view.learn(topic, route.broker.proved_node, route=route.name))
        except WireError:
            route.traffic.raw["not understood"] += 1
            return
        self._hold_timer.news()

    # What the pollers tell.

    def opened(self, poller: BrokerPoller, maxima: dict[int, int]) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._lost.discard(poller)
        if poller.connected:
            self._emit(SubscriptionReady(broker=str(poller.address), node=poller.node))
        route = poller.route
        if route is None:
            return
        self._met(route, "")
        route.broker.plan = plan_for(maxima)
        route.broker.synthetic_plan = (
            plan_for(maxima, synthetic=True) if route.config.synthesize else None
        )
        route.broker.reachable = poller.connected
        self._emit(
            RoutePlan(
                route=route.name,
                native=route.broker.plan.native,
                raised={
                    api_name(row.key): [row.takes, row.offered] for row in route.broker.plan.rows
                },
            )
        )

    def identified(self, poller: BrokerPoller) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._meet_others(self._clusters[poller])
        self._agree(self._clusters[poller])
        self._note_asked()

    def lost(self, poller: BrokerPoller, reason: str) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        if poller.route is not None:
            poller.route.broker.lose()
            self._met(poller.route, reason)
            self._placed()
        if poller not in self._lost:
            self._lost.add(poller)
            self._emit(SubscriptionLost(broker=str(poller.address), error=reason))
        self._asked.add(poller)
        self._note_asked()

    def _met(self, route: Route, fault: str) -> None:
        self._faults[route.name] = fault
        if all(
            poller.route is not None and poller.route.name in self._faults for poller in self._own
        ):
            self.all_met.set()

    def failed(self, error: Exception) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._emit(TaskFailed(task="subscription", traceback=places_of(error)))

    async def learn(
        self,
        poller: BrokerPoller,
        answer: ClusterMetadata,
        asked_at: float,
        *,
        poll: bool,
        whole: bool,
    ) -> set[str]:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._clusters[poller] = answer.cluster_id
        if poller.route is not None:
            poller.route.broker.serves_anybody = not poller.authenticates
            view = self._place(poller.route, answer)
        else:
            view = self._view(answer.cluster_id)
        if poll:
            self._polled[answer.cluster_id] = trio.current_time()
        names: set[str] = set()
        answered: set[Topic] = set()
        await self._slices.take(self._learning(poller, view, answer, names, answered, poll=poll))
        if whole:
            view.unknown_ids.answered(view.name, asked_at, trio.current_time())
        if whole or not poll:
            # The first question of all is what is hidden: nothing else is known by then.
            self._report_hidden(poller, view)
        if poller.route is not None:
            self._hold_timer.queue.asked(poller.route, answered, asked_at)
        self._hold_timer.news()
        return names

    async def forget(self, view: LeaderView, present: Collection[str]) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        await self._slices.take(view.forgetting(present))

    def _report_hidden(self, poller: BrokerPoller, view: LeaderView) -> None:
        """Tell that topics are hidden: once, until none is any more.

        Each broker says it, and each topic of each client would tell it again.
        """
        cluster = view.cluster_id
        if not view.hides:
            self._hidden_reported.discard(cluster)
        elif cluster not in self._hidden_reported:
            self._hidden_reported.add(cluster)
            visible = len(view.names)
            self._emit(TopicsHidden(cluster=cluster, broker=str(poller.address), visible=visible))

    def _learning(
        self,
        poller: BrokerPoller,
        view: LeaderView,
        answer: ClusterMetadata,
        names: set[str],
        answered: set[Topic],
        *,
        poll: bool,
    ) -> Iterator[None]:
        """Take an answer's topics in steps; add to ``names``, and to ``answered`` names and keys.

        What the view does not take, since it may be of another topic of the name, tells nothing of
        the one that it has.
        """
        judged = False
        for topic in answer.steps:
            if topic is not None:
                view.permitted(topic)
                taken = False
                name = poller.route.name if poller.route is not None else ""
                for moves in view.learning(topic, poller.node, route=name, poll=poll):
                    taken = True
                    self._report(moves)
                    yield
                names.add(topic.name)
                if taken:
                    answered.update((topic.name, view.key(topic.name)))
                if not judged and not topic.error:
                    # As with one topic, so with all of them.
                    judged = True
                    self._judge(poller, answer.cluster_id, topic)
            yield

    def leadership(
        self,
        poller: BrokerPoller,
        epochs: Mapping[Partition, int],
        errors: Mapping[Partition, int],
        asked_at: float,
    ) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        view = self.view(poller)
        if view is None:
            return
        candidates = self._candidates_of(view)
        # In doubt it was asked about another epoch than the view's.
        of_the_view = {place: e for place, e in errors.items() if not view.in_doubt(*place)}
        if poller.node is not None:
            for (name, partition), epoch in epochs.items():
                error = errors.get((name, partition))
                leader = Leader(poller.node, epoch)
                if error == ErrorCode.NONE:
                    self._report(view.leader_confirms(name, partition, leader))
                elif error in _DENIED:
                    self._report(view.leader_denies(name, partition, leader))
                if error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    candidates.denied(poller.node, (name, partition), epoch)
                fenced = error == ErrorCode.FENCED_LEADER_EPOCH
                if fenced and candidates.fenced((name, partition), epoch):
                    self._over.set()
        if poller.route is not None:
            self._hold_timer.queue.probed(poller.route, of_the_view, asked_at)
        self._hold_timer.news()

    def look_up_ids(self, route: Route, ids: Collection[bytes]) -> None:
        """Have the names of ``ids`` looked for, which a client uses and which are not known."""
        if route.broker.view is not None and route.broker.view.unknown_ids.used(
            ids, trio.current_time()
        ):
            for poller in self._own:
                if poller.route is route and poller.connected:
                    poller.refresh((), everything=True)

    def doubt(self, route: Route) -> None:
        """Have all other brokers asked whether they give ids: a client says that one gave it none.

        Anybody can say that, so it is a reason to ask, and no proof.
        """
        if route.broker.view is None:
            return
        cluster_id = route.broker.view.cluster_id
        if self._agreement(cluster_id).doubted(trio.current_time()):
            for (of, _), (poller, _) in self._others.items():
                if of == cluster_id:
                    poller.reconnect()

    def sample(self, poller: BrokerPoller) -> Collection[str]:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`: one topic, whose id tells
        of all of them.
        """
        view = self.view(poller) if self._synthesize else None
        return list(view.names)[:1] if view is not None else ()

    def refreshed(self, cause: Cause, seconds: float) -> None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        self._refreshed(cause, seconds)

    def view(self, poller: BrokerPoller) -> LeaderView | None:
        """See :class:`leader_hints.net.metadata.broker_poller.Listener`."""
        return self._views.get(self._clusters.get(poller, ""))

    def _view(self, cluster_id: str) -> LeaderView:
        return self._views.setdefault(cluster_id, LeaderView(cluster_id, trio.current_time))

    def _report(self, moves: Sequence[LeaderMoved]) -> None:
        for moved in moves:
            self._emit(moved)
            poller, _ = self._others.get((moved.cluster, moved.leader), (None, None))
            if poller is not None:
                # Whoever is named as leader is up again.
                poller.reached()
        if moves:
            for poller in self._own:
                if poller.connected and poller.node is None:
                    # It may lead something by now, and that alone is a proof.
                    poller.identify()

    def _place(self, route: Route, answer: ClusterMetadata) -> LeaderView:
        """Note where the brokers are on the route's listener, and of which cluster they are."""
        view = self._view(answer.cluster_id)
        if route.broker.view is not view:
            route.broker.view = view
            broker_identity.forget(route.broker)
            self._leave()
        if (
            route.broker.endpoints is not answer.endpoints
            and route.broker.endpoints != answer.endpoints
        ):
            route.broker.endpoints = answer.endpoints
            if route.broker.proved_node is None:
                # More than one may be left now.
                route.broker.node, route.broker.guessed = None, False
            self._placed()
        self._meet_others(answer.cluster_id)
        self._agree(answer.cluster_id)
        return view

    def _leave(self) -> None:
        """Ask and remember nothing of clusters that no route's broker is of any more."""
        own = {poller for poller in self._own if poller.route is not None}
        kept = {of for poller, of in self._clusters.items() if poller in own}
        kept |= {
            poller.route.broker.view.cluster_id
            for poller in own
            if poller.route and poller.route.broker.view
        }
        for (of, node), (_, scope) in list(self._others.items()):
            if of not in kept:
                scope.cancel()
                del self._others[of, node]
        known: Sequence[dict[str, Any]] = (
            self._views,
            self._agreements,
            self._candidates,
            self._polled,
            self._placements,
        )
        for of_clusters in known:
            for gone in of_clusters.keys() - kept:
                del of_clusters[gone]
        self._hidden_reported &= kept

    # Synthetic topic ids.

    def _agreement(self, cluster_id: str) -> SyntheticIdAgreement:
        return self._agreements.setdefault(cluster_id, SyntheticIdAgreement(cluster_id))

    def _judge(self, poller: BrokerPoller, cluster_id: str, topic: TopicMetadata) -> None:
        """Look whether another broker's answer has the synthetic id."""
        if (
            not self._synthesize
            or poller.route is not None
            or poller.node is None
            or poller.leaving
        ):
            return
        fault = None
        if topic.id != synthetic_id(cluster_id, topic.name):
            gives = "no topic ids" if topic.id == ZERO_ID else "topic ids of its own"
            fault = f"it gives {gives}; {_HAVE_IT_PROXIED}"
        for event in self._agreement(cluster_id).judge(
            poller.node, f"{poller.node} at {poller.address}", fault
        ):
            self._emit(event)
        self._agree(cluster_id)
        self._asked.add(poller)
        self._note_asked()

    def _note_asked(self) -> None:
        known = (
            poller in self._asked
            or (poller.route is not None and poller.route.broker.node is not None)
            for poller in self._own
        )
        if all(known) and all(poller in self._asked for poller, _ in self._others.values()):
            self.all_asked.set()

    def _agree(self, cluster_id: str) -> None:
        """Conclude whether all brokers of a cluster give synthetic ids."""
        listener = self._listener(cluster_id)
        if not self._synthesize or listener is None:
            return
        nodes = listener.broker.endpoints.keys()
        agreement, view = self._agreement(cluster_id), self._views.get(cluster_id)
        own = [p for p in self._own if self._clusters.get(p) == cluster_id]
        for poller in own:
            route = poller.route
            if (
                route is not None
                and route.broker.node is not None
                and route.broker.plan is not None
            ):
                fault = None if route.broker.plan.reads else _NEEDS_NO_PROXY
                if fault is None and view is not None and view.hides:
                    fault = _SHOW_ALL
                broker = f"{route.broker.node} at {poller.address}"
                for event in agreement.judge(route.broker.node, broker, fault):
                    self._emit(event)
        for event in agreement.review(nodes):
            self._emit(event)
        for poller in own:
            if poller.route is not None:
                poller.route.broker.ids_everywhere = agreement.reached

    def _listener(self, cluster_id: str) -> Route | None:
        """Return a route by whose endpoints the brokers of a cluster are asked that are not ours.

        One route says it: routes may be of several listeners, with an address each for a broker.
        """
        for poller in self._own:
            if poller.route and poller.connected and self._clusters.get(poller) == cluster_id:
                return poller.route if poller.route.broker.endpoints else None
        return None

    def _meet_others(self, cluster_id: str) -> None:
        """Have a poller for each broker of the cluster that is behind none of our routes."""
        assert self._nursery is not None
        listener = self._listener(cluster_id)
        if listener is None:
            return
        endpoints, connector = listener.broker.endpoints, self._connectors(listener).advertised
        # A route of which no cluster is known yet may be of this one.
        routes = [
            p.route
            for p in self._own
            if p.route and self._clusters.get(p, cluster_id) == cluster_id
        ]
        # Each Metadata response brings this about, and there may be a thousand brokers.
        placed = [(r.name, r.broker.node, r.broker.guessed, r.broker.others) for r in routes]
        met = listener.name, endpoints, listener.advertised.misled, placed
        if self._placements.get(cluster_id) == met:
            return
        self._placements[cluster_id] = met
        # Not those that are ours, or perhaps ours: their addresses lead through this very process.
        wanted = {
            node: Address(endpoint.host, endpoint.port)
            for node, endpoint in endpoints.items()
            if all(route.broker.is_self(node) is False for route in routes)
            # Another broker answers there: its word is not that node's.
            and listener.advertised.misled.get(node) != endpoint
        }
        for (of, node), (poller, scope) in list(self._others.items()):
            if of == cluster_id and wanted.get(node) != poller.address:
                scope.cancel()
                del self._others[of, node]
        for node, address in wanted.items():
            if (cluster_id, node) not in self._others:
                poller = BrokerPoller(address, self._settings, self, node=node, connector=connector)
                scope = trio.CancelScope()
                self._others[cluster_id, node] = poller, scope
                self._clusters[poller] = cluster_id
                self._nursery.start_soon(self._run_other, poller, scope)

    async def _run_other(self, poller: BrokerPoller, scope: trio.CancelScope) -> None:
        with scope:
            await poller.run()
        self._clusters.pop(poller, None)
        self._lost.discard(poller)
        self._asked.discard(poller)
