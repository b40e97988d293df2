"""Everything together: listeners, pump, subscription, admin server, signals."""

import gc
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import version

import structlog
import trio

from proxy.apis.api_versions import ClientSoftware
from proxy.core.budget import Budget
from proxy.core.client_uses import OWN_NAME
from proxy.core.desk import Desk, HoldRules
from proxy.core.events import (
    AdminExposed,
    AdminListening,
    ClientRefused,
    Event,
    HintsSwitched,
    Listening,
    UpstreamUnreachable,
)
from proxy.core.mode import Mode
from proxy.core.recovery import Recovery
from proxy.core.refresh_rate import RefreshRate
from proxy.core.route import Route
from proxy.errors import BrokerError, ListenError
from proxy.net.admin import Admin
from proxy.net.admin_pages import AdminPages
from proxy.net.gate import Admitted, RefusedError
from proxy.net.greeting import Session
from proxy.net.hold_keeper import HoldKeeper
from proxy.net.journal_opening import open_journal
from proxy.net.peer import PeerSettings
from proxy.net.poller import KeepingPoller, make_poller
from proxy.net.pump import Pump
from proxy.net.readiness import Readiness
from proxy.net.security import LOOK_SECONDS, Security, make_route
from proxy.net.subscription import Subscription
from proxy.net.tls_socket import TlsSocket, Transport
from proxy.observe.counts import Counts
from proxy.observe.event_log import EventLog
from proxy.observe.history import History
from proxy.observe.metrics import Metrics
from proxy.observe.status import status
from proxy.observe.summary import Summary
from proxy.observe.watched import Watched
from proxy.settings import Address, HoldSettings, RouteSettings, Settings

_DISTRIBUTION = "kafka-leader-hints"
#: How long no client is let in until all brokers were asked whether they give made-up ids.
_ASKING_SECONDS = 2.0
#: Seconds between two looks whether the log has something to sum up, and between two summaries.
_TICK = 1.0
_SUMMARY = 60.0


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    :raises ListenError: an address cannot be listened on.
    :raises ConfigurationError: a certificate, a key or roots cannot be used.
    """
    try:
        trio.run(partial(serve, settings), strict_exception_groups=True)
    except* ListenError as group:
        raise _first(group) from None
    return 0


async def serve(settings: Settings) -> None:
    """Serve until a signal or cancellation."""
    app = _App(settings)
    # What was imported and built stays. A full collection would look through all of it each time,
    # and stop every link for up to a tenth of a second.
    gc.collect()
    gc.freeze()
    async with trio.open_nursery() as nursery:
        wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with trio.open_signal_receiver(*wanted) as signals:
            await app.start(nursery)
            async for number in signals:
                if number == signal.SIGHUP:
                    await app.reload_certificates(all_of_them=True)
                    continue
                await app.finish()
                nursery.cancel_scope.cancel()
                break


class _App:
    """Builds the parts and joins them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        synthesize = settings.topic_ids == "synthesize" and Mode(settings.hints) is Mode.ON
        self._routes = [
            (make_route(r, Mode(settings.hints), synthesize=synthesize), r) for r in settings.routes
        ]
        self._security = Security(settings.routes, settings.greeting_timeout_ms / 1000)
        self._poller = KeepingPoller(make_poller()) if self._security.decrypts else None
        self._listens: dict[str, str] = {}
        routes = [route for route, _ in self._routes]
        self._recovery = Recovery(routes, trio.current_time)
        self._unreachable: set[str] = set()
        self._started = time.time()
        self._counts = Counts(settings.metrics.topics)
        self._history = History(time.time)
        self._log = EventLog(
            structlog.get_logger(),
            settings.log.by_subsystem,
            settings.log.moves_per_second,
            time.monotonic,
        )
        limits, asking = settings.limits, settings.subscription
        desk = Desk(_hold_rules(settings.hold))
        self._keeper = HoldKeeper(desk, self._emit)
        self._subscription = Subscription(
            [(route, r.upstream) for route, r in self._routes if route.mode is not Mode.OFF],
            self._keeper,
            RefreshRate(asking.refreshes_per_second, asking.refresh_burst),
            asking.refresh_interval_ms / 1000,
            _peer_settings(settings),
            self._emit,
            lambda cause, seconds: self._metrics.refreshed(cause, seconds),
            lambda route: self._security.doors[route.name],
        )
        self._watched = Watched(
            version(_DISTRIBUTION),
            routes,
            self._counts,
            self._subscription.clusters,
            self._subscription.upstream,
        )
        self._metrics = Metrics(self._watched)
        self._pump = Pump(
            Budget(limits.link_buffer_bytes, limits.process_buffer_bytes),
            self._keeper,
            self._emit,
            self._subscription.snooped,
            self._subscription.lacking,
            self._subscription.doubt,
            self._recovery,
            largest_request=limits.request_bytes,
            requests_in_flight=limits.requests_in_flight,
            poller=self._poller,
        )
        self._keeper.settle = self._pump.settle
        self._journal = open_journal(settings, routes, _software(), self._metrics, self._emit)

    def _emit(self, event: Event) -> None:
        self._recovery.take(event)
        self._counts.take(event)
        self._history.take(event)
        self._metrics.take(event)
        self._log.take(event)
        if self._journal is not None:
            self._journal.take(event)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start every task in ``nursery``; return when all listeners take connections."""
        nursery.start_soon(self._pump.run)
        nursery.start_soon(self._keeper.run)
        nursery.start_soon(self._subscription.run)
        if self._journal is not None:
            nursery.start_soon(self._journal.run)
        nursery.start_soon(self._sum_up)
        nursery.start_soon(self._watch_certificates)
        if self._settings.admin is not None:
            await self._start_admin(nursery, self._settings.admin)
        if any(route.synthesize for route, _ in self._routes):
            # Clients that come back to a proxy that was restarted must not miss their ids on a new
            # connection: franz-go's consumers would hear of no leader any more.
            with trio.move_on_after(_ASKING_SECONDS):
                await self._subscription.all_asked.wait()
        for route, settings in self._routes:
            bound = await self._listen(
                nursery, settings.listen, partial(self._accept, route, settings)
            )
            self._listens[route.name] = bound
            self._emit(Listening(route=route.name, listen=bound, upstream=str(settings.upstream)))

    async def finish(self) -> None:
        """Have the journal written to its end, for a bounded time; it may lead through a route."""
        if self._journal is not None:
            self._journal.finish()
            await self._journal.finished.wait()

    async def _start_admin(self, nursery: trio.Nursery, address: Address) -> None:
        readiness = Readiness(
            [(r, s.upstream, self._security.doors[r.name].upstream) for r, s in self._routes],
            self._subscription.upstream,
            OWN_NAME,
        )

        async def ready() -> Mapping[str, str]:
            deaf = {r.name: "not listening yet" for r in self._watched.routes}
            return await readiness.check() if len(self._listens) == len(deaf) else deaf

        pages = AdminPages(
            self._metrics.render,
            self._status,
            ready,
            lambda: {route.name: route.mode for route in self._watched.routes},
            self._switch,
        )
        admin = Admin(pages.answer, address, self._emit)

        async def handle(stream: trio.SocketStream) -> None:
            with self._pump.urgent():
                await admin.handle(stream)

        bound = await self._listen(nursery, address, handle)
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

    def _switch(self, name: str, mode: Mode) -> None:
        """Change at run time what a route does about hints."""
        ((route, settings),) = (found for found in self._routes if found[0].name == name)
        before = route.mode
        if mode is before:
            return
        self._emit(HintsSwitched(route=name, before=before, hints=mode))
        self._keeper.switch(route, mode)
        if mode is not Mode.OFF:
            self._subscription.follow(route, settings.upstream)

    async def _sum_up(self) -> None:
        """Have the log write what it sums up, until cancelled."""
        summary = Summary(self._watched)
        while True:
            with trio.move_on_after(_SUMMARY):
                while True:
                    await trio.sleep(_TICK)
                    self._log.tick()
            values = summary.take()
            if values is not None:
                self._log.summary(values)

    async def _listen(
        self,
        nursery: trio.Nursery,
        address: Address,
        handler: Callable[[trio.SocketStream], Awaitable[object]],
    ) -> str:
        """Serve connections to ``address`` in ``nursery``; return the address that was bound."""
        try:
            listeners = await trio.open_tcp_listeners(address.port, host=address.host)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ListenError(f"cannot listen on {address}: {reason.lower()}") from None

        for listener in listeners:
            self._pump.heed(listener.socket.fileno())
        nursery.start_soon(partial(trio.serve_listeners, handler, listeners))
        host, port = listeners[0].socket.getsockname()[:2]
        return str(Address(host, port))

    async def _accept(
        self, route: Route, settings: RouteSettings, client: trio.SocketStream
    ) -> None:
        """Connect to the broker and hand both sockets to the pump; or close the client's."""
        try:
            name, session = await self._admit(route, client)
        except RefusedError as error:
            if not error.silent:
                refused = ClientRefused(route=route.name, client=error.client, reason=str(error))
                self._emit(refused)
            await trio.aclose_forcefully(client)
            return
        upstream, patience = settings.upstream, self._settings.connect_timeout_ms / 1000
        door = self._security.doors[route.name].upstream
        try:
            with self._pump.urgent():
                broker, broker_session = await door.open_for_link(upstream, patience)
        except BrokerError as error:
            self._tell_unreachable(route, upstream, str(error))
            await trio.aclose_forcefully(client)
            return
        self._unreachable.discard(route.name)
        self._pump.adopt(
            route, self._transport(client, session), self._transport(broker, broker_session), name
        )

    async def _admit(self, route: Route, client: trio.SocketStream) -> Admitted:
        """Have a client do what goes before its first request.

        Turns are not short meanwhile, as one who says nothing would have them for long; but they
        end when something comes.

        :raises RefusedError: the client is not let in.
        """
        gate = self._security.gates[route.name]
        if gate.open:
            return await gate.admit(client)
        with self._pump.heeding(client.socket.fileno()):
            return await gate.admit(client)

    def _transport(self, stream: trio.SocketStream, session: Session | None) -> Transport:
        sock = _detached(stream)
        if session is None:
            return sock
        assert self._poller is not None
        return TlsSocket(sock, *session, self._poller.keep)

    async def _watch_certificates(self) -> None:
        """Read TLS files again when they change, until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            await self.reload_certificates()

    async def reload_certificates(self, *, all_of_them: bool = False) -> None:
        """Read TLS files again: those that have changed, or all."""
        for event in await self._security.reload(all_of_them=all_of_them):
            self._emit(event)

    def _tell_unreachable(self, route: Route, upstream: Address, error: str) -> None:
        """Tell it once until a connection is made again: clients try many times a second."""
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


def _hold_rules(settings: HoldSettings) -> HoldRules:
    return HoldRules(
        deadline=settings.deadline_ms / 1000,
        link_second=settings.link_ms_per_second / 1000,
        shared=settings.shared_response_ms / 1000,
        grace=settings.grace_ms / 1000,
        confirm=settings.confirm_ms / 1000,
    )


def _software() -> ClientSoftware:
    return ClientSoftware(OWN_NAME, version(_DISTRIBUTION))


def _peer_settings(settings: Settings) -> PeerSettings:
    asking = settings.subscription
    return PeerSettings(
        client=_software(),
        poll=asking.poll_interval_ms / 1000,
        answer=asking.answer_timeout_ms / 1000,
        connect=settings.connect_timeout_ms / 1000,
        reconnect_min=asking.reconnect_min_ms / 1000,
        reconnect_max=asking.reconnect_max_ms / 1000,
        slice_partitions=asking.slice_partitions,
    )


def _first(group: BaseExceptionGroup[ListenError]) -> ListenError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ListenError)
    return error
