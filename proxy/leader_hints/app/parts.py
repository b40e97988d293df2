"""The parts of one process, joined with each other.

Tested in ``tests/app/test_process.py``.
"""

import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Protocol

import trio

from leader_hints.app.joining import Joining
from leader_hints.app.listeners import Listeners
from leader_hints.app.observers import Observers
from leader_hints.app.part_settings import (
    DISTRIBUTION,
    hold_rules,
    make_log,
    own_software,
    poller_settings,
    pump_limits,
)
from leader_hints.app.route_table import RouteTable
from leader_hints.app.workers.cores import worker_count
from leader_hints.app.workers.front import Workers
from leader_hints.core.admission import Admission
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import Event
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.client_capabilities import client_table
from leader_hints.net.admin.admin_pages import MorePages
from leader_hints.net.brokers.reachability import Reachability
from leader_hints.net.journal.journal_opening import open_journal
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.pump.poller import KeepingPoller, make_poller
from leader_hints.net.pump.pump import Pump
from leader_hints.net.takeover.listening_sockets import ListeningSockets
from leader_hints.net.tls.route_security import Security
from leader_hints.observe.counts import Counts
from leader_hints.observe.history import History
from leader_hints.observe.metrics import Metrics
from leader_hints.observe.watched import Load, Upstream, Watched
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings


class RouteSource(Protocol):
    """Where the routes of a process come from.

    ``settings``: of the routes that are known from the start. ``speaks_tls``: brokers of routes
    that are added later do. ``more_pages``: of the admin server.
    """

    settings: Sequence[RouteSettings]
    speaks_tls: bool
    more_pages: Sequence[MorePages]

    def bind(self, parts: "Parts") -> None:
        """Take the parts, once all of them are made."""

    def review(self) -> None:
        """Follow brokers that came or left."""

    def interpose(self, route: Route, client: trio.SocketStream) -> trio.SocketStream:
        """Put what injects faults between a client and its link; see ``Interpose``."""

    def prepare(self) -> None:
        """Have the brokers that are known asked."""

    async def meet_brokers(self) -> None:
        """Wait for what clients need that the routes' brokers say; for a bounded time."""

    async def listen(self, nursery: trio.Nursery) -> None:
        """Open the listeners of all routes.

        :raises ListenError: one cannot be opened.
        """


class Parts:
    """Makes the parts and joins them. Listeners are opened and tasks are started elsewhere.

    ``keep_switched``: called when a route joins that is switched, so that it stays so.

    Large because each part of a process is an attribute.
    """

    def __init__(self, settings: Settings, source: RouteSource) -> None:
        self.settings = settings
        self.log = make_log(settings.log)
        known = client_table(settings.client_uses).names
        self.history = History(time.time, known)
        counts, limits = Counts(settings.metrics.topics, known), settings.limits
        self.observers = Observers(counts.take, self.log.take)
        emit = self.observers.emit
        self.table = RouteTable(settings)
        self.keep_switched: Callable[[], None] = lambda: None
        for route in source.settings:
            self.table.add(route)
        self.security = Security(source.settings, settings.greeting_timeout)
        self.recovery = Recovery(self.table.routes, trio.current_time)
        hold_queue = HoldQueue(hold_rules(settings.hold, limits.held_responses))
        budget = Budget(limits.link_buffer_bytes, limits.process_buffer_bytes)
        self.hold_timer = HoldTimer(hold_queue, emit)
        self.refresher = self._make_refresher(source)
        counts.by_topic.is_known = self._is_known
        self.watched = self._make_watched(counts, hold_queue, budget)
        self.metrics = Metrics(self.watched, self._processes)
        decrypts = self.security.decrypts or source.speaks_tls
        poller = KeepingPoller(make_poller()) if decrypts else None
        self.pump = self._make_pump(budget, poller)
        self.hold_timer.settle = self.pump.settle
        self.listeners = Listeners(self.pump, emit, ListeningSockets())
        self.reach = Reachability(self.refresher.reached, self.refresher.missed, emit)
        self.joining = self._make_joining(source, poller)
        takers = self.recovery.take, counts.take, self.history.take, self.metrics.take
        self.observers.add(*takers, self.log.take)
        software = own_software()
        self.workers = self._make_workers(emit)
        self.journal = open_journal(settings, self.table.routes, software, self.metrics, emit)
        if self.journal is not None:
            self.observers.add(self.journal.take)
        source.bind(self)

    def upstream(self, route: Route) -> Upstream:
        """Return whether a route's broker answers, and takes connections of clients.

        An old connection goes on where no new one can be made, as when a certificate has expired.
        A broker that has left its cluster is not missed.
        """
        if route.name in self.table.left:
            return Upstream(None, "has left the cluster")
        refused = self.table.refused.get(route.name) or self.reach.unreachable.get(route.name)
        return self.refresher.upstream(route) if refused is None else Upstream(False, refused)

    def _make_workers(self, emit: Callable[[Event], None]) -> Workers | None:
        count = worker_count(self.settings)
        if count == 1:
            return None

        def lost(events: int) -> None:
            if self.journal is not None:
                self.journal.lose(events)

        workers = Workers(
            count,
            self.settings,
            self.table.routes,
            self.table.upstream,
            self.hold_timer,
            self.refresher,
            self.recovery,
            self.reach,
            self.joining.own.open,
            emit,
            lost,
        )
        self.joining.hand_over = workers.hand_over
        self.log.worker_of = workers.worker_of
        self.observers.add(workers.take)
        return workers

    def switch(self, route: Route, mode: Mode) -> None:
        """Change what a route does about hints."""
        self.hold_timer.switch(route, mode)
        if self.workers is not None:
            self.workers.switched(route)

    async def fresh(self) -> None:
        """Return when what was counted by now is in the counters."""
        if self.workers is not None:
            await self.workers.fresh()

    def _load(self, hold_queue: HoldQueue, budget: Budget) -> Load:
        load = Load(
            tasks=trio.lowlevel.current_statistics().tasks_living,
            held=hold_queue.held,
            kept_bytes=budget.used,
            **self.pump.load()._asdict(),
        )
        return load if self.workers is None else self.workers.load(load)

    def _processes(self) -> list[int]:
        return self.workers.processes if self.workers is not None else []

    def _is_known(self, route: str, topic: str) -> bool:
        """Whether the cluster of a route has a topic now."""
        view = self.table.by_name(route).broker.view
        return view is not None and topic in view.topics.names

    def _make_refresher(self, source: RouteSource) -> Refresher:
        asking = self.settings.subscription
        return Refresher(
            [
                (r, upstream)
                for r, upstream in self.table.with_upstreams()
                if r.mode is not Mode.OFF
            ],
            self.hold_timer,
            RefreshRate(asking.refreshes_per_second, asking.refresh_burst),
            asking.refresh_interval,
            poller_settings(self.settings),
            self.observers.emit,
            lambda cause, seconds: self.metrics.refreshed(cause, seconds),
            lambda route: self.security.connectors[route.name],
            placed=self.observers.guarded("virtual cluster", source.review),
        )

    def _make_watched(self, counts: Counts, hold_queue: HoldQueue, budget: Budget) -> Watched:
        return Watched(
            version(DISTRIBUTION),
            self.table.routes,
            counts,
            self.refresher.clusters,
            self.upstream,
            lambda: self._load(hold_queue, budget),
            self.security.certificates,
            lambda: self.workers.ready if self.workers is not None else 0,
        )

    def _make_pump(self, budget: Budget, poller: KeepingPoller | None) -> Pump:
        return Pump(
            budget,
            self.hold_timer,
            self.observers.emit,
            self.observers.guarded("subscription", self.refresher.snooped),
            self.observers.guarded("subscription", self.refresher.look_up_ids),
            self.observers.guarded("subscription", self.refresher.doubt),
            self.recovery,
            pump_limits(self.settings.limits),
            poller=poller,
        )

    def _make_joining(self, source: RouteSource, poller: KeepingPoller | None) -> Joining:
        limits, routes = self.settings.limits, self.table.routes
        return Joining(
            Admission(routes, limits.connections_per_route, limits.connections),
            self.security,
            self.pump,
            poller,
            self.table.bound,
            self.settings.connect_timeout,
            source.interpose,
            self.reach,
            self.observers.emit,
        )
