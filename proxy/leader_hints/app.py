"""Everything together: listeners, pump, subscription, admin server, signals."""

import contextlib
import gc
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import TypeVarTuple, Unpack

import structlog
import trio

from leader_hints.address import Address
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.check.route_watch import RouteWatch
from leader_hints.check.route_watch import Watched as WatchedRoute
from leader_hints.core.admission import Admission
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.descriptors import connections_within, descriptors_for
from leader_hints.core.events import (
    AcceptFailed,
    AdminExposed,
    AdminListening,
    ClientRefused,
    DescriptorsShort,
    Event,
    EventLoopStalled,
    HintsSwitched,
    LimitReached,
    Listening,
    RouteLoops,
    Stopped,
    Stopping,
    TaskFailed,
    UpstreamUnreachable,
)
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.sessions.fetch_sessions import MOST_WEIGHT, FetchSessions
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.client_capabilities import OWN_NAME
from leader_hints.errors import BrokerError, ListenError, places_of
from leader_hints.local.virtual_cluster import Found, VirtualCluster
from leader_hints.net.admin.admin import Admin
from leader_hints.net.admin.admin_pages import AdminPages
from leader_hints.net.admin.readiness import Readiness
from leader_hints.net.brokers import name_look_ups
from leader_hints.net.brokers.own_connections import Made, OwnConnections
from leader_hints.net.clients.handshake import Admitted, RefusedError, peer_name
from leader_hints.net.clients.listening import Handler, accept, open_listeners
from leader_hints.net.clients.preamble import TlsSession
from leader_hints.net.clients.reset import turn_away
from leader_hints.net.descriptors import raise_descriptors
from leader_hints.net.journal.journal_opening import make_sampler, open_journal
from leader_hints.net.metadata.broker_poller import PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.pump.poller import KeepingPoller, make_poller
from leader_hints.net.pump.pump import Pump, PumpLimits
from leader_hints.net.pump.tls_socket import TlsSocket, Transport
from leader_hints.net.tls.route_security import LOOK_SECONDS, Security, make_route
from leader_hints.net.watchdog import Watchdog
from leader_hints.observe.counts import Counts
from leader_hints.observe.event_log import EventLog
from leader_hints.observe.history import History
from leader_hints.observe.journal import CLIENT_ID_PREFIX
from leader_hints.observe.metrics import Metrics
from leader_hints.observe.status import status
from leader_hints.observe.summary import Summary
from leader_hints.observe.watched import Load, Watched
from leader_hints.settings.hold import HoldSettings
from leader_hints.settings.limits import LimitSettings
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.log import LogSettings
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings

_Ts = TypeVarTuple("_Ts")

_DISTRIBUTION = "kafka-leader-hints"
#: When garbage is looked for; see gc.set_threshold. What little there is of it in cycles can wait.
#: With Python's own figures a storm of leader moves, which makes many objects, has all of them
#: looked through several times.
_GARBAGE = (10_000, 20, 10)
#: Seconds between two looks whether a link's time is over or the log has something to sum up, and
#: between two summaries.
_TICK = 1.0
#: Seconds before work begins again that a defect has ended.
_AGAIN = 1.0
#: Seconds for which the brokers' versions are waited for before clients are let in.
_FIRST_ANSWERS = 1.0
#: Seconds between two looks whether all brokers are known.
_MOMENT = 0.01
_SUMMARY = 60.0
#: Seconds between two looks whether all links have finished at the end.
_LOOK = 0.02


def run(settings: Settings, local: Found | None = None) -> int:
    """Serve until SIGTERM or SIGINT, and then until links rest; return the exit code.

    ``local``: in place of the settings' routes there are those of a virtual cluster.

    :raises ListenError: an address cannot be listened on.
    :raises ConfigurationError: a certificate, a key or roots cannot be used.
    """
    refused: ListenError | None = None
    try:
        trio.run(partial(serve, settings, local), strict_exception_groups=True)
    except* ListenError as group:
        refused = _first(group)
    # Not in there: Python before 3.11.4 wraps what is raised there in a group of its own
    # (gh-103590).
    if refused is not None:
        raise refused
    return 0


async def serve(settings: Settings, local: Found | None = None) -> None:
    """Serve until a signal, and then until links rest; a second signal or cancellation ends it."""
    name_look_ups.install()
    app = _App(settings, local)
    # What was imported and built stays. A full collection would look through all of it each time,
    # and stop every link for tens of milliseconds.
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    async with trio.open_nursery() as nursery:
        wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with trio.open_signal_receiver(*wanted) as signals:
            async with trio.open_nursery() as starting:
                # Beside it: to start may take minutes, where brokers are waited for.
                starting.start_soon(app.start, nursery)
                await _ending(app, signals)
                starting.cancel_scope.cancel()
            async with trio.open_nursery() as ending:

                async def give_up() -> None:
                    await _ending(app, signals)
                    ending.cancel_scope.cancel()

                ending.start_soon(give_up)
                await app.finish()
                ending.cancel_scope.cancel()
            nursery.cancel_scope.cancel()


async def _ending(app: "_App", signals: AsyncIterator[int]) -> None:
    """Return at the next signal to end; at others do what they ask for."""
    async for number in signals:
        if number != signal.SIGHUP:
            return
        # Beside it: a disk may hang, and the next signal must be heard.
        app.renew_certificates()


async def hold(settings: Settings, local: Found, started: Callable[[], None]) -> None:
    """Serve a virtual cluster until cancelled, without minding signals.

    ``started``: called when its brokers' versions are known.
    """
    app = _App(settings, local)
    async with trio.open_nursery() as nursery:
        await app.start(nursery)
        await app.await_plans()
        started()
        await trio.sleep_forever()


class _App:
    """Builds the parts and joins them."""

    def __init__(self, settings: Settings, local: Found | None) -> None:
        self._settings = settings
        self._local = local
        self._latencies = make_sampler(settings.journal)
        self._routes = [(self._route(r), r) for r in settings.routes if local is None]
        self._nursery: trio.Nursery | None = None
        #: Set when all TLS files are to be read again.
        self._renewal = trio.Event()
        self._security = Security(
            settings.routes if local is None else (), settings.greeting_timeout
        )
        decrypts = self._security.decrypts
        if local is not None:
            decrypts = local.settings.upstream_tls.enabled
        self._poller = KeepingPoller(make_poller()) if decrypts else None
        self._listens: dict[str, str] = {}
        self._own = OwnConnections()
        routes = [route for route, _ in self._routes]
        self._every_route = routes
        self._recovery = Recovery(routes, trio.current_time)
        self._unreachable: set[str] = set()
        self._started = time.time()
        self._counts = Counts(settings.metrics.topics)
        self._history = History(time.time)
        self._log = _make_log(settings.log)
        limits = settings.limits
        hold_queue = HoldQueue(_hold_rules(settings.hold, limits.held_responses))
        self._admission = Admission(routes, limits.connections_per_route, limits.connections)
        #: Of the routes' listeners; when all are cancelled no connection is taken any more.
        self._accepting: list[trio.CancelScope] = []
        self._stopping = False
        budget = Budget(limits.link_buffer_bytes, limits.process_buffer_bytes)
        self._hold_timer = HoldTimer(hold_queue, self._emit)
        self._subscription = self._make_subscription()
        self._watched = self._make_watched(hold_queue, budget)
        self._metrics = Metrics(self._watched)
        self._pump = self._make_pump(budget)
        self._hold_timer.settle = self._pump.settle
        #: Of events.
        self._takers: list[Callable[[Event], None]] = [
            self._recovery.take,
            self._counts.take,
            self._history.take,
            self._metrics.take,
            self._log.take,
        ]
        self._journal = open_journal(settings, routes, _software(), self._metrics, self._emit)
        if self._journal is not None:
            self._takers.append(self._journal.take)
        self._watchdog = Watchdog(
            settings.stuck,
            self._log.stuck,
            lambda seconds: self._emit(EventLoopStalled(seconds=seconds)),
        )
        self._virtual = None if local is None else self._make_virtual(local.settings)
        self._stage = None if local is None else local.stage
        if self._stage is not None:
            self._stage.bind(self._emit, self._leaders)

    def _make_subscription(self) -> Refresher:
        asking = self._settings.subscription
        return Refresher(
            [(route, r.upstream) for route, r in self._routes if route.mode is not Mode.OFF],
            self._hold_timer,
            RefreshRate(asking.refreshes_per_second, asking.refresh_burst),
            asking.refresh_interval,
            _poller_settings(self._settings),
            self._emit,
            lambda cause, seconds: self._metrics.refreshed(cause, seconds),
            lambda route: self._security.connectors[route.name],
            placed=self._guarded("virtual cluster", self._placed),
        )

    def _make_watched(self, hold_queue: HoldQueue, budget: Budget) -> Watched:
        return Watched(
            version(_DISTRIBUTION),
            self._every_route,
            self._counts,
            self._subscription.clusters,
            self._subscription.upstream,
            lambda: Load(
                tasks=trio.lowlevel.current_statistics().tasks_living,
                held=hold_queue.held,
                kept_bytes=budget.used,
                **self._pump.load()._asdict(),
            ),
            self._security.certificates,
        )

    def _make_pump(self, budget: Budget) -> Pump:
        return Pump(
            budget,
            self._hold_timer,
            self._emit,
            self._guarded("subscription", self._subscription.snooped),
            self._guarded("subscription", self._subscription.look_up_ids),
            self._guarded("subscription", self._subscription.doubt),
            self._recovery,
            _pump_limits(self._settings.limits),
            poller=self._poller,
        )

    def _route(self, settings: RouteSettings, rewriting: AddressRewriting | None = None) -> Route:
        mode = Mode(self._settings.hints)
        synthesize = self._settings.topic_ids == "synthesize" and mode is Mode.ON
        config = RouteConfig(
            synthesize=synthesize, latencies=self._latencies, address_rewriting=rewriting
        )
        route = make_route(settings, mode, config)
        route.sessions = FetchSessions(
            most_weight=MOST_WEIGHT // max(len(self._settings.routes), 1)
        )
        return route

    def _placed(self) -> None:
        if self._virtual is not None:
            self._virtual.review()

    def _make_virtual(self, local: LocalSettings) -> VirtualCluster:
        return VirtualCluster(
            local,
            self._add,
            self._move,
            self._admits,
            self._join,
            self._accept_all,
            self._emit,
        )

    def _emit(self, event: Event) -> None:
        for take in self._takers:
            try:
                take(event)
            except Exception as error:
                self._report_failed_observer(error)

    def _report_failed_observer(self, error: Exception) -> None:
        """Report the failure of an observer to counts and log, which may be that observer."""
        failed = TaskFailed(task="events", traceback=places_of(error))
        for take in (self._counts.take, self._log.take):
            with contextlib.suppress(Exception):
                take(failed)

    def _failed(self, task: str, error: Exception) -> None:
        self._emit(TaskFailed(task=task, traceback=places_of(error)))

    def _guarded(self, task: str, work: Callable[[Unpack[_Ts]], None]) -> Callable[..., None]:
        """Return ``work`` for callers who must not fail with it."""

        def guarded(*arguments: *_Ts) -> None:
            try:
                work(*arguments)
            except Exception as error:
                self._failed(task, error)

        return guarded

    async def _keep_up(
        self,
        task: str,
        work: Callable[[], Awaitable[None]],
        after: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Do ``work`` until cancelled: where a defect ends it, call ``after`` and begin again."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                self._failed(task, error)
                after(error)
            await trio.sleep(_AGAIN)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start every task in ``nursery``; return when all listeners take connections."""
        self._fit_to_descriptors()
        if self._settings.stuck:
            nursery.start_soon(self._keep_up, "watchdog", self._watchdog.run)
        self._nursery = nursery
        nursery.start_soon(self._pump.run)
        nursery.start_soon(self._keep_up, "holds", self._hold_timer.run, self._pump.end_held)
        nursery.start_soon(self._subscription.run)
        if self._journal is not None:
            nursery.start_soon(self._journal.run)
        nursery.start_soon(self._keep_up, "tick", self._tick)
        nursery.start_soon(self._keep_up, "summary", self._sum_up)
        nursery.start_soon(self._watch_certificates)
        if self._settings.admin is not None:
            await self._start_admin(nursery, self._settings.admin)
        if self._virtual is not None and self._local is not None:
            self._virtual.prepare(self._local.brokers)
        if any(route.config.synthesize for route, _ in self._routes):
            # Clients that come back to a proxy that was restarted must not miss their ids on a new
            # connection: franz-go's consumers would hear of no leader any more.
            with trio.move_on_after(self._settings.topic_ids_wait):
                await self._subscription.all_asked.wait()
        if self._virtual is not None and self._local is not None:
            self._virtual.start(nursery)
            if self._local.renew is not None:
                renewing = partial(self._virtual.keep, self._local.renew)
                nursery.start_soon(self._keep_up, "virtual cluster", renewing)
            if self._stage is not None:
                nursery.start_soon(self._stage.play)
            return
        if any(route.raised for route, _ in self._routes):
            # Some clients keep to what the process before this one offered them, and come back
            # within milliseconds: what their requests must be brought down to should be known.
            with trio.move_on_after(_FIRST_ANSWERS):
                await self._subscription.all_met.wait()
        for route, settings in self._routes:
            bound = await self._listen(
                nursery, settings.listen, partial(self._accept, route, settings), self._accepting
            )
            self._listens[route.name] = bound
            self._own.listen(Address.parse(bound).port)
            self._emit(Listening(route=route.name, listen=bound, upstream=str(settings.upstream)))
        connectors = self._security.connectors
        watched = [WatchedRoute(r, s.upstream, connectors[r.name]) for r, s in self._routes]
        watch = RouteWatch(watched, self._own, self._emit)
        nursery.start_soon(self._keep_up, "routes", watch.run)

    async def await_plans(self) -> None:
        """Wait until the versions of all brokers, and who leads, are known."""
        routes = self._every_route
        while any(r.broker.plan is None or r.broker.view is None for r in routes):  # noqa: ASYNC110
            await trio.sleep(_MOMENT)

    async def finish(self) -> None:
        """Take no connection any more, let links finish their requests, and write the journal.

        All for bounded times. The journal may lead through a route: its own links stay until then.
        """
        self._stopping = True
        self._emit(Stopping(links=self._links_open()))
        for scope in self._accepting:
            scope.cancel()
        self._pump.drain(_is_the_journals)
        with trio.move_on_after(self._settings.drain_ms / 1000):
            while self._links_open() > self._pump.exempt():  # noqa: ASYNC110 - counting is expensive
                await trio.sleep(_LOOK)
        self._emit(Stopped(links=self._links_open()))
        if self._journal is not None:
            self._journal.finish()
            await self._journal.finished.wait()

    async def _start_admin(self, nursery: trio.Nursery, address: Address) -> None:
        async def ready() -> Mapping[str, str]:
            if self._stopping:
                return {r.name: "stopping" for r in self._watched.routes}
            not_listening = {r.name: "not listening yet" for r in self._watched.routes}
            if len(self._listens) < len(not_listening):
                return not_listening
            routes = [
                (r, s.upstream, self._security.connectors[r.name].upstream) for r, s in self._routes
            ]
            return await Readiness(routes, self._subscription.upstream, OWN_NAME).check()

        pages = AdminPages(
            self._metrics.render,
            self._status,
            ready,
            lambda: {route.name: route.mode for route in self._watched.routes},
            self._switch,
            None if self._stage is None else self._stage.pages,
        )
        admin = Admin(pages.answer, address, self._emit)

        async def handle(stream: trio.SocketStream) -> None:
            with self._pump.urgent():
                await admin.handle(stream)

        bound = await self._listen(nursery, address, handle, [])
        self._emit(AdminListening(listen=bound))
        if not address.is_loopback:
            self._emit(AdminExposed(listen=bound))

    def _status(self) -> bytes:
        addresses = {
            route.name: (self._listens.get(route.name, ""), str(settings.upstream))
            for route, settings in self._routes
        }
        now = status(self._watched, self._history, addresses, self._started, time.time())
        return now.model_dump_json().encode()

    def _switch(self, name: str, mode: Mode) -> str | None:
        """Change at run time what a route does about hints; or return why that cannot be."""
        ((route, settings),) = (found for found in self._routes if found[0].name == name)
        before = route.mode
        if mode is before:
            return None
        if route.config.relays_tls:
            return "client_tls.mode is pass: TLS goes through unread, so hints can only be off"
        self._emit(HintsSwitched(route=name, before=before, hints=mode))
        self._hold_timer.switch(route, mode)
        if mode is not Mode.OFF:
            self._subscription.follow(route, settings.upstream)
        return None

    def _fit_to_descriptors(self) -> None:
        """Have as many descriptors as may be, and take no more connections than these allow."""
        allowed, total = raise_descriptors(), self._admission.total
        if connections_within(allowed) < total:
            self._admission.total = connections_within(allowed)
            needed = descriptors_for(total)
            self._emit(
                DescriptorsShort(allowed=allowed, needed=needed, connections=self._admission.total)
            )

    def _links_open(self) -> int:
        return sum(route.traffic.links_open for route in self._watched.routes)

    async def _tick(self) -> None:
        """End links whose time is over, and have the log write what it sums up, until cancelled."""
        while True:
            self._pump.sweep(trio.current_time())
            self._log.tick()
            await trio.sleep(_TICK)

    async def _sum_up(self) -> None:
        """Have the log write a line for each minute, until cancelled."""
        summary = Summary(self._watched)
        while True:
            await trio.sleep(_SUMMARY)
            values = summary.take()
            if values is not None:
                self._log.summary(values)

    async def _listen(
        self,
        nursery: trio.Nursery,
        address: Address,
        handler: Handler,
        accepting: list[trio.CancelScope],
    ) -> str:
        """Serve connections to ``address`` in ``nursery``; return the address that was bound.

        ``accepting`` gets the scope that closes it when it is cancelled.
        """
        listeners, bound = await open_listeners(address)

        async def keep_open(listener: trio.SocketListener) -> None:
            with trio.CancelScope() as scope:
                accepting.append(scope)
                await accept(listener, handler, nursery, self._pump, self._emit)

        for listener in listeners:
            nursery.start_soon(keep_open, listener)
        return bound

    async def _accept(
        self, route: Route, settings: RouteSettings, client: trio.SocketStream
    ) -> None:
        """Connect to the broker and hand both sockets to the pump; or close the client's."""
        made = await self._own.arrived(route.name, client)
        if made is not None:
            # This very process. A link would lead through itself once more, and so on for ever.
            if made.link_of:
                self._emit(RouteLoops(route=made.link_of, leads_to=route.name))
            await turn_away(client)
            return
        if not await self._join(route, settings.upstream, client):
            await turn_away(client)

    async def _join(self, route: Route, upstream: Address, client: trio.SocketStream) -> bool:
        """Connect to the broker and hand both sockets to the pump.

        A client that is refused for what it says is closed; false where its broker is at fault, or
        a limit: another broker may take it.
        """
        limit = self._admission.refusal(route)
        if limit is not None:
            self._emit(LimitReached(route=route.name, limit=limit, client=peer_name(client)))
            return False
        route.traffic.connecting += 1
        try:
            return await self._connect(route, upstream, client)
        except OSError as error:
            # No room to watch the client during its handshake.
            self._report_accept_failed(route, error)
            return False
        finally:
            route.traffic.connecting -= 1

    async def _connect(self, route: Route, upstream: Address, client: trio.SocketStream) -> bool:
        try:
            name, session = await self._admit(route, client)
        except RefusedError as error:
            if not error.silent:
                refused = ClientRefused(route=route.name, client=error.client, reason=str(error))
                self._emit(refused)
            await trio.aclose_forcefully(client)
            return True
        patience = self._settings.connect_timeout
        connector = self._security.connectors[route.name].upstream
        try:
            with self._pump.urgent():
                broker, broker_session = await connector.open_for_link(
                    upstream, patience, partial(self._own.open, made=Made(route.name))
                )
        except BrokerError as error:
            self._report_unreachable(route, upstream, str(error))
            return False
        self._unreachable.discard(route.name)
        self._subscription.reached(route)
        if self._stage is not None and self._nursery is not None:
            try:
                client = self._stage.interpose(self._nursery, route, client)
            except OSError as error:
                await trio.aclose_forcefully(broker)
                self._report_accept_failed(route, error)
                return False
        try:
            ends = self._transport(client, session), self._transport(broker, broker_session)
            self._pump.adopt(route, *ends, name)
        except OSError as error:
            self._report_accept_failed(route, error)
        return True

    def _report_accept_failed(self, route: Route, error: OSError) -> None:
        """Report that the system is short of what a connection needs."""
        reason = (error.strerror or str(error)).lower()
        self._emit(AcceptFailed(listen=self._listens[route.name], error=reason))

    async def _admit(self, route: Route, client: trio.SocketStream) -> Admitted:
        """Have a client do what goes before its first request.

        Turns are not short meanwhile, as one who says nothing would have them for long; but they
        end when something comes.

        :raises RefusedError: the client is not let in.
        """
        handshake = self._security.handshakes[route.name]
        if handshake.empty:
            return await handshake.admit(client)
        with self._pump.wake_on_readable(client.socket.fileno()):
            return await handshake.admit(client)

    def _transport(self, stream: trio.SocketStream, session: TlsSession | None) -> Transport:
        sock = _detached(stream)
        if session is None:
            return sock
        assert self._poller is not None
        return TlsSocket(sock, *session, self._poller.keep)

    async def _watch_certificates(self) -> None:
        """Read TLS files again when they change, or all when that is asked for, until cancelled."""
        while True:
            with trio.move_on_after(LOOK_SECONDS):
                await self._renewal.wait()
            all_of_them, self._renewal = self._renewal.is_set(), trio.Event()
            await self._reload_certificates(all_of_them=all_of_them)

    def renew_certificates(self) -> None:
        """Have all TLS files read again."""
        self._renewal.set()

    async def _reload_certificates(self, *, all_of_them: bool) -> None:
        try:
            events = await self._security.reload(all_of_them=all_of_them)
        except Exception as error:
            self._failed("certificates", error)
            return
        for event in events:
            self._emit(event)

    # Of a virtual cluster.

    def _admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, no fault has refuse a connection now."""
        return routes if self._stage is None else self._stage.admits(routes)

    async def _accept_all(self, listener: trio.SocketListener, handler: Handler) -> None:
        assert self._nursery is not None
        with trio.CancelScope() as scope:
            self._accepting.append(scope)
            await accept(listener, handler, self._nursery, self._pump, self._emit)

    def _leaders(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return leader and epoch by topic and partition, as they are known now."""
        return {
            (topic, partition): leader
            for known in self._subscription.clusters()
            for topic, partition, leader in known.view.leaders()
        }

    def _add(self, settings: RouteSettings) -> Route:
        """Have one more route."""
        assert self._virtual is not None
        route = self._route(settings, self._virtual.address_rewriting)
        # Files that a broker of the first hour was entered with are good for one that joins.
        if self._routes:
            self._security.share(self._routes[0][0].name, route.name)
        else:
            self._security.add(settings)
        self._routes.append((route, settings))
        self._every_route.append(route)
        self._listens[route.name] = str(settings.listen)
        self._recovery.follow(route)
        if self._journal is not None:
            self._journal.follow(route)
        if route.mode is not Mode.OFF:
            self._subscription.follow(route, settings.upstream)
        return route

    def _move(self, route: Route, upstream: Address) -> None:
        """Have a route's broker asked at another address."""
        self._routes[:] = [
            (of, s.model_copy(update={"upstream": upstream}) if of is route else s)
            for of, s in self._routes
        ]
        self._subscription.move(route, upstream)

    def _report_unreachable(self, route: Route, upstream: Address, error: str) -> None:
        """Report it once until a connection is made again: clients try many times a second."""
        if route.name in self._unreachable:
            return
        self._unreachable.add(route.name)
        self._emit(UpstreamUnreachable(route=route.name, upstream=str(upstream), error=error))


def _detached(stream: trio.SocketStream) -> socket.socket:
    """Take the socket out of Trio's hands, for the pump's."""
    sock = socket.socket(fileno=stream.socket.detach())
    sock.setblocking(False)
    # A client whose machine vanished must not keep its link for ever.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def _is_the_journals(link: LinkState) -> bool:
    return (link.client_id or "").startswith(CLIENT_ID_PREFIX)


def _pump_limits(limits: LimitSettings) -> PumpLimits:
    return PumpLimits(
        request_bytes=limits.request_bytes,
        requests_in_flight=limits.requests_in_flight,
        queued_bytes=limits.queued_bytes,
        first_bytes=limits.first_bytes,
        idle=limits.idle,
        linger=limits.linger,
    )


def _hold_rules(settings: HoldSettings, most: int) -> HoldRules:
    return HoldRules(
        deadline=settings.deadline,
        link_second=settings.link_per_second,
        shared=settings.shared_response,
        grace=settings.grace,
        confirm=settings.confirm,
        most=most,
    )


def _make_log(settings: LogSettings) -> EventLog:
    levels, most = settings.by_subsystem, settings.moves_per_second
    return EventLog(structlog.get_logger(), levels, most, time.monotonic)


def _software() -> ClientSoftware:
    return ClientSoftware(OWN_NAME, version(_DISTRIBUTION))


def _poller_settings(settings: Settings) -> PollerSettings:
    asking = settings.subscription
    return PollerSettings(
        client=_software(),
        poll=asking.poll_interval,
        answer=asking.answer_timeout,
        connect=settings.connect_timeout,
        reconnect_min=asking.reconnect_min,
        reconnect_max=asking.reconnect_max,
        slice_partitions=asking.slice_partitions,
    )


def _first(group: BaseExceptionGroup[ListenError]) -> ListenError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ListenError)
    return error
