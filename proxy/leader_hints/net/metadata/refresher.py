"""Keeps the views of the clusters fresh.

A poll of a broker behind a route asks for everything, slowly. While error responses are held,
brokers are asked every few milliseconds what :mod:`leader_hints.core.cluster.refresh_plan` says.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

import trio

from leader_hints.address import Address
from leader_hints.core.cluster.refresh_plan import RefreshPlan
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import Event
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.metadata.broker_answers import BrokerAnswers
from leader_hints.net.metadata.broker_poller import PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.time_slices import in_turns
from leader_hints.observe.watched import KnownCluster, Upstream

#: Brokers that are asked before other tasks get their turn: each question costs 0.1 ms.
_ASKED_AT_ONCE = 20
#: Topics of which the smallest is asked for, to see whether a broker answers.
_LOOKED_THROUGH = 20


class Refresher:
    """Polls the brokers of all routes and clusters, and asks them while responses are held.

    ``routes``: each with the upstream address of its broker. ``refreshed``: called at each answer
    of a broker with the reason for the question and the seconds that it took. ``placed``: called
    when a route's broker reports other endpoints than before, or cannot be asked any more.
    ``all_asked``: set once every broker was asked whether it gives synthetic ids, or could not be;
    ``all_met``: once the broker of each route has reported its versions, or could not be asked.
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
        self._hold_timer = hold_timer
        self._rate = rate
        self._interval = interval
        self._plan = RefreshPlan(settings.slice_partitions)
        self._answers = BrokerAnswers(settings, connectors, hold_timer, emit, refreshed, placed)
        self._answers.epoch_over = self._ask_at_once
        self._pollers = self._answers.pollers
        #: Set by an answer that the epoch asked is over: the next one is asked at once.
        self._over = trio.Event()
        self.all_met = self._answers.upstreams.all_met
        self.all_asked = self._answers.survey.all_asked
        for route, address in routes:
            self.follow(route, address)

    async def run(self) -> None:
        """Poll and refresh until cancelled."""
        async with trio.open_nursery() as nursery:
            self._pollers.start(nursery)
            nursery.start_soon(self._answers.read_on)
            await self._refresh()

    def follow(self, route: Route, address: Address) -> None:
        """Poll the broker of one more route, if it is not polled yet."""
        self._pollers.follow(route, address)

    def move(self, route: Route, address: Address) -> None:
        """Ask the broker of ``route`` at another address from now on."""
        poller = self._pollers.of(route)
        if poller is not None:
            poller.address = address
            poller.reconnect()

    def reached(self, route: Route, peer: str) -> None:
        """Take note that a client has reached the broker of ``route``, at the IP address ``peer``.

        See :meth:`leader_hints.net.metadata.broker_poller.BrokerPoller.reached`.
        """
        poller = self._pollers.of(route)
        if poller is not None:
            poller.reached(peer)

    def missed(self, route: Route) -> None:
        """Have the broker of ``route`` asked now whether it answers: a client could not reach it.

        Else one that is cut off without a word counts as answering until the next poll. It may take
        some clients and others not, many times a second: so it is asked about a small topic, and
        which node it is only where none is known, since for that all topics are looked at.
        """
        poller, view = self._pollers.of(route), route.broker.view
        if poller is None or not route.broker.reachable:
            return
        if view is None or not view.topics.names:
            poller.identify()
        else:
            some = islice(view.topics.names, _LOOKED_THROUGH)
            poller.refresh([min(some, key=view.partitions)])

    def clusters(self) -> Iterator[KnownCluster]:
        """Iterate over the views of the clusters that some broker was last heard to be of."""
        now, present = trio.current_time(), self._pollers.cluster_ids()
        for cluster in self._answers.clusters:
            if cluster.polled_at is not None and cluster.view.cluster_id in present:
                yield KnownCluster(cluster.view, now - cluster.polled_at)

    def upstream(self, route: Route) -> Upstream:
        """Return whether the broker of ``route`` answers."""
        return self._answers.upstreams.upstream(route)

    def snooped(self, route: Route, version: int, payload: bytes) -> None:
        """Take a Metadata response that went by on a link of ``route``."""
        self._answers.snooped(route, version, payload)

    def look_up_ids(self, route: Route, ids: Collection[bytes], address: str = "") -> None:
        """Have the names of ``ids`` looked up, which a client uses and which are not known.

        ``address``: see :meth:`leader_hints.core.cluster.unknown_ids.UnknownIds.used`.
        Where its own broker hides topics from the proxy, by a route that sees all, if there is one.
        """
        view = route.broker.view
        if view is None:
            return
        asked = route.name
        if view.hidden.some(asked):
            asked = min(view.hidden.seeing_all, default=asked)
        poller = self._pollers.named(asked)
        # One that cannot be asked takes no question from those of other routes.
        if poller is None or not poller.connected:
            return
        if view.unknown_ids.used(ids, trio.current_time(), address):
            poller.refresh((), everything=True)

    def doubt(self, route: Route) -> None:
        """See :meth:`leader_hints.net.metadata.synthetic_id_survey.SyntheticIdSurvey.doubt`."""
        view = route.broker.view
        cluster = self._answers.clusters.get(view.cluster_id) if view is not None else None
        if cluster is not None:
            self._answers.survey.doubt(cluster)

    async def _refresh(self) -> None:
        """Ask again and again while responses are held."""
        while True:
            if not self._hold_timer.waiting.is_set():
                await self._hold_timer.waiting.wait()
                self._plan.reset()
            # Before they are asked: some may answer before all are.
            self._over = trio.Event()
            if self._rate.take(trio.current_time()):
                self._plan.begin()
                try:
                    await self._ask_all()
                except Exception as error:
                    self._answers.failed(error)
            with trio.move_on_after(self._interval):
                await self._over.wait()

    async def _ask_all(self) -> None:
        """Ask what helps the responses that are held."""
        asked = 0
        for wanted in self._hold_timer.queue.wanted_leaders():
            # There may be thousands, which take a while to find, and again to plan for.
            await trio.lowlevel.checkpoint()
            view = wanted.route.broker.view
            cluster = self._answers.clusters.get(view.cluster_id) if view is not None else None
            if cluster is None:
                continue
            brokers = self._pollers.connected(cluster.view.cluster_id)
            if wanted.route.config.settle:
                others = cluster.view.metadata_brokers.expect(brokers, trio.current_time())
                if others:
                    self._hold_timer.news()
            unread = self._answers.slices.waiting
            planned = await in_turns(self._plan.round(wanted, cluster, brokers, unread))
            if planned.unnamed:
                # The route's own broker has just answered for them.
                self.look_up_ids(wanted.route, planned.unnamed)
            for request in planned.requests:
                if request.topics or request.epochs:
                    request.broker.refresh(request.topics, request.epochs)
                asked += 1
                if asked % _ASKED_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def _ask_at_once(self) -> None:
        self._over.set()
