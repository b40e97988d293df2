"""One worker process: it has links, and does what the process that decides says."""

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Final, cast

import structlog
import trio

from leader_hints.address import Address
from leader_hints.app.certificate_watch import CertificateWatch
from leader_hints.app.drain import Drain
from leader_hints.app.joining import Joining
from leader_hints.app.observers import Observers
from leader_hints.app.part_settings import hold_rules, pump_limits
from leader_hints.app.periodic import tick, tune_garbage
from leader_hints.app.route_table import RouteTable
from leader_hints.core.admission import Admission
from leader_hints.core.descriptors import connections_within
from leader_hints.core.events import AcceptFailed, EventLoopStalled
from leader_hints.core.link.budget import Budget
from leader_hints.core.route import Route
from leader_hints.core.workers import messages as said
from leader_hints.core.workers.messages import Begin, FromWorker, Message, ToWorker
from leader_hints.core.workers.shares import share
from leader_hints.errors import BrokerError, ConfigurationError
from leader_hints.net.brokers.own_connections import Made
from leader_hints.net.clients.reset import end_when_closed, turn_away
from leader_hints.net.descriptors import raise_descriptors
from leader_hints.net.pump.poller import KeepingPoller, make_poller
from leader_hints.net.pump.pump import Pump
from leader_hints.net.time_slices import TimeSlices
from leader_hints.net.tls.route_security import Security
from leader_hints.net.watchdog import Watchdog
from leader_hints.net.workers.channel import Channel
from leader_hints.net.workers.traffic_reports import TrafficReports
from leader_hints.net.workers.worker_pool import FILES_REFUSED
from leader_hints.net.workers.worker_side import WorkerSide
from leader_hints.observe.event_log import EventLog
from leader_hints.observe.logs import configure_logs
from leader_hints.settings.settings import Settings

#: Bytes that may wait for the process that decides; with more this one ends. From which on what can
#: be left out is; and from which on what any request may cause is, so that errors need not wait.
_MOST_QUEUED: Final = 1 << 26
_CROWDED: Final = 1 << 23
_BEHIND: Final = 1 << 16
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
#: Seconds between two reports of what was counted.
_REPORTED: Final = 1.0
#: Seconds beyond its own patience for the process that decides to say what came of a connection.
_TO_SAY: Final = 1.0


def run(descriptor: int) -> None:
    """Serve until the process that decides ends, which has the other end of ``descriptor``."""
    for number in _SIGNALS:
        # A service manager sends them to all processes. The other one says what follows.
        signal.signal(number, signal.SIG_IGN)
    refused = False
    try:
        trio.run(serve, socket.socket(fileno=descriptor), strict_exception_groups=True)
    except* ConfigurationError:
        # Of a TLS file that was replaced by a broken one: the other process says which.
        refused = True
    if refused:
        sys.exit(FILES_REFUSED)


async def serve(sock: socket.socket) -> None:
    """Serve by what is said on a socket, until its other end is closed."""
    channel = Channel(sock, _MOST_QUEUED)
    async with trio.open_nursery() as nursery:
        worker: _Worker | None = None

        def take(message: Message, beside: socket.socket | None) -> None:
            nonlocal worker
            if isinstance(message, Begin):
                worker = _Worker(message, channel, nursery)
                worker.start()
            else:
                assert worker is not None
                worker.take(cast(ToWorker, message), beside)

        def waiting(descriptor: int) -> AbstractContextManager[None]:
            return nullcontext() if worker is None else worker.wake_on_readable(descriptor)

        await channel.run(take, waiting)
        nursery.cancel_scope.cancel()
    channel.close()


class _Worker:
    """Joins the parts of a worker.

    Large because it joins them all.
    """

    def __init__(self, begin: Begin, channel: Channel, nursery: trio.Nursery) -> None:
        self._settings = settings = Settings.model_validate_json(begin.settings)
        self._channel = channel
        self._nursery = nursery
        limits, workers = settings.limits, begin.workers
        configure_logs(settings.log.least, settings.log.format)
        self._table = RouteTable(settings, workers)
        for route in settings.routes:
            self._table.add(route)
        self._routes = {route.name: route for route in self._table.routes}
        rules = hold_rules(settings.hold, limits.held_responses)
        longest = max(rules.deadline, rules.kraft) + rules.grace
        self._side = side = WorkerSide(
            self._routes,
            channel.send,
            self._crowded,
            self._behind,
            longest,
            self._take_later,
            trio.current_time,
        )
        self._observers = Observers(side.emit)
        self._observers.add(side.emit)
        self._security = Security(settings.routes, settings.greeting_timeout)
        # The other process reads the same files, and reports what comes of it.
        self._certificates = CertificateWatch(
            self._security, lambda event: None, self._observers.task_failed
        )
        poller = KeepingPoller(make_poller()) if self._security.decrypts else None
        total = share(limits.process_buffer_bytes, workers, limits.link_buffer_bytes)
        self._budget = Budget(limits.link_buffer_bytes, total)
        queued = share(limits.queued_bytes, workers)
        self._pump = Pump(
            self._budget,
            side.holds,
            side.emit,
            side.snoop,
            side.lack,
            side.doubt,
            side.recovery,
            pump_limits(limits.model_copy(update={"queued_bytes": queued})),
            poller=poller,
        )
        side.holds.settle = self._pump.settle
        self._reach = _TellsReach(channel)
        self._joining = self._make_joining(poller)
        self._counts = TrafficReports(self._table.routes)
        #: The number of the report that is asked for.
        self._asked = 0
        self._is_asked = trio.Event()
        self._log = _make_log(settings, begin.number)
        #: Links that wait for a connection to their broker.
        self._wanted: dict[int, _Wanted] = {}

    def _make_joining(self, poller: KeepingPoller | None) -> Joining:
        most = self._settings.limits.connections
        joining = Joining(
            # The process that decides counts all links.
            Admission([], most, most),
            self._security,
            self._pump,
            poller,
            self._table.bound,
            self._settings.connect_timeout,
            lambda route, client: client,
            self._reach,
            self._side.emit,
        )
        joining.open_broker = self._open_broker
        return joining

    def _take_later(self, steps: Iterator[None]) -> None:
        self._nursery.start_soon(self._take_in_slices, steps)

    async def _take_in_slices(self, steps: Iterator[None]) -> None:
        try:
            await TimeSlices().take(steps)
        except Exception as error:
            # What is left of a former cluster must not end all links.
            self._observers.task_failed("free a cluster", error)

    def _crowded(self) -> bool:
        return self._channel.queued > _CROWDED

    def _behind(self) -> bool:
        return self._channel.queued > _BEHIND

    def start(self) -> None:
        """Start every task, and say so."""
        start, keep_up = self._nursery.start_soon, self._observers.keep_up
        if self._settings.stuck:
            watchdog = Watchdog(
                self._settings.stuck,
                self._log.stuck,
                lambda seconds: self._side.emit(EventLoopStalled(seconds=seconds)),
            )
            start(keep_up, "watchdog", watchdog.run)
        start(self._pump.run)
        turns = self._joining.turns
        start(keep_up, "handshakes", partial(turns.run, self._pump.wake_on_readable))
        start(keep_up, "holds", self._side.holds.run, self._pump.end_held)
        start(keep_up, "events", self._side.events.run)
        start(keep_up, "tick", partial(tick, self._pump, lambda: None, self._table.routes))
        start(keep_up, "report", self._report_always)
        start(self._certificates.run)
        allowed = connections_within(raise_descriptors())
        tune_garbage()
        self._send(said.WorkerReady(allowed))

    @contextmanager
    def wake_on_readable(self, descriptor: int) -> Iterator[None]:
        """End a turn of the pump when a message comes: with a client, say."""
        with ExitStack() as stack:
            # Where the system has no room to watch it (ENOSPC of epoll), it comes when that ends.
            with suppress(OSError):
                stack.enter_context(self._pump.wake_on_readable(descriptor))
            yield

    def take(self, message: ToWorker, beside: socket.socket | None) -> None:
        """Take a message, and the socket beside it."""
        if self._side.takes(message):
            return
        match message:
            case said.ClientCame():
                self._client_came(message, beside)
            case said.BrokerReached():
                self._broker_reached(message.link, beside)
            case said.BrokerMissed():
                wanted = self._wanted.get(message.link)
                if wanted is not None:
                    wanted.missed(message.error)
            case said.ReportAsked():
                self._asked = message.number
                self._is_asked.set()
            case said.RenewCertificates():
                self._certificates.renew()
            case said.Drain():
                self._nursery.start_soon(self._drain, message)

    def _send(self, message: FromWorker) -> None:
        self._channel.send(message)

    # Clients.

    def _client_came(self, came: said.ClientCame, client: socket.socket | None) -> None:
        if client is None:
            self._send(said.LinkEnded(came.link))
            listen = self._table.bound.get(came.route, "")
            self._side.emit(AcceptFailed(listen=listen, error="too many open files"))
            return
        end_when_closed(client)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(client))
        self._nursery.start_soon(self._join, self._routes[came.route], stream, came.link)

    async def _join(self, route: Route, client: trio.SocketStream, link: int) -> None:
        try:
            await self._joining.connect(route, self._table.upstream(route), client, link)
            # No other task has had its turn since: a link that has begun has not ended yet.
            if self._pump.has(link):
                self._send(said.LinkBegan(link))
        except Exception as error:
            # A defect must end one connection and not all of them.
            self._observers.task_failed("connection", error)
        finally:
            if not self._pump.has(link):
                self._send(said.LinkEnded(link))
            # If it is not served by now it is to try again.
            await turn_away(client)

    async def _open_broker(
        self, address: Address, patience: float, made: Made
    ) -> trio.SocketStream:
        """Have the other process connect: it knows its own connections, and looks names up.

        :raises BrokerError: there is no connection; the text says why.
        """
        assert made.link is not None
        wanted = self._wanted[made.link] = _Wanted()
        self._send(said.BrokerWanted(made.link, made.link_of))
        try:
            with trio.move_on_after(patience + _TO_SAY):
                return await wanted.result()
            raise BrokerError(f"no connection within {patience:g} s")
        finally:
            del self._wanted[made.link]
            wanted.close()

    def _broker_reached(self, link: int, broker: socket.socket | None) -> None:
        wanted = self._wanted.get(link)
        if broker is None:
            if wanted is not None:
                wanted.missed("cannot connect: too many open files")
        elif wanted is None:
            broker.close()
        else:
            wanted.reached(broker)

    # All links.

    async def _report_always(self) -> None:
        """Say about every second what was counted, and when that is asked; until cancelled."""
        while True:
            with trio.move_on_after(_REPORTED):
                await self._is_asked.wait()
            self._is_asked = trio.Event()
            number, self._asked = self._asked, 0
            await self._report(number)

    async def _report(self, number: int = 0) -> None:
        """Say what was counted by now; there may be many routes, and links."""
        await TimeSlices().take(self._reporting(number))

    def _reporting(self, number: int) -> Iterator[None]:
        for gained in self._counts.gained():
            if gained is not None:
                self._send(gained)
            yield
        load, exchanges = self._pump.load(), 0
        for some in load.exchanges:
            exchanges += some
            yield
        tasks = trio.lowlevel.current_statistics().tasks_living
        reported = said.LoadReported(number, tasks, exchanges, self._budget.used, load.queued_bytes)
        self._send(reported)

    async def _drain(self, drain: said.Drain) -> None:
        await Drain(self._pump, drain.seconds, drain.routes, self._table.joining).run()
        await self._report()
        # Behind all events of the links.
        await self._side.events.sent()
        self._side.holds.send(said.Drained())


class _Wanted:
    """A connection to a broker that a link waits for."""

    def __init__(self) -> None:
        self._came = trio.Event()
        self._socket: socket.socket | None = None
        self._error = ""

    def reached(self, sock: socket.socket) -> None:
        """Take it."""
        self._socket = sock
        self._came.set()

    def missed(self, error: str) -> None:
        """Take it that there is none."""
        self._error = error
        self._came.set()

    async def result(self) -> trio.SocketStream:
        """Wait for it.

        :raises BrokerError: there is none.
        """
        await self._came.wait()
        if self._socket is None:
            raise BrokerError(self._error)
        sock, self._socket = self._socket, None
        return trio.SocketStream(trio.socket.from_stdlib_socket(sock))

    def close(self) -> None:
        """Close it if nobody has taken it."""
        if self._socket is not None:
            self._socket.close()


class _TellsReach:
    """See :class:`leader_hints.net.brokers.reachability.Reach`; the other process has all."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._down: set[str] = set()

    def is_down(self, route: Route) -> bool:
        return route.name in self._down

    def serves(self, route: Route, peer: str) -> None:
        self._down.discard(route.name)
        self._channel.send(said.BrokerServes(route.name, peer))

    def fails(self, route: Route, upstream: Address, error: str) -> None:
        self._down.add(route.name)
        self._channel.send(said.BrokerFails(route.name, error))


def _make_log(settings: Settings, number: int) -> EventLog:
    """Return the log for what this process writes itself: where it is stuck."""
    log = structlog.get_logger().bind(worker=number)
    return EventLog(log, settings.log.by_subsystem, settings.log.moves_per_second, lambda: 0.0)
