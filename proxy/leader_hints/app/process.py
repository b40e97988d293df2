"""One process: start, signals, end."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType

import trio

from leader_hints.address import Address
from leader_hints.app.admin_view import ADMIN, AdminView
from leader_hints.app.certificate_watch import CertificateWatch
from leader_hints.app.drain import Drain
from leader_hints.app.fixed_routes import FixedRoutes
from leader_hints.app.parts import Parts, RouteSource
from leader_hints.app.periodic import report_changes, report_clients, sum_up, tick, tune_garbage
from leader_hints.app.replacement import Replacement
from leader_hints.app.settings_reload import SettingsReload
from leader_hints.app.takeover import Takeover
from leader_hints.app.virtual_routes import VirtualRoutes
from leader_hints.app.workers.cores import worker_count
from leader_hints.core.admission import Admission
from leader_hints.core.descriptors import connections_within, descriptors_for
from leader_hints.core.events import (
    DescriptorsShort,
    Event,
    EventLoopStalled,
    Starting,
    Stopped,
    Stopping,
)
from leader_hints.core.mode import Mode
from leader_hints.errors import ListenError, TakeoverError
from leader_hints.local.host import Found
from leader_hints.net.brokers import name_look_ups
from leader_hints.net.descriptors import raise_descriptors
from leader_hints.net.takeover.service_manager import tell_ready
from leader_hints.net.time_slices import TimeSlices
from leader_hints.net.watchdog import Watchdog
from leader_hints.observe.logs import configure_logs
from leader_hints.settings.settings import Settings

_TO_END = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_TO_END, signal.SIGHUP, signal.SIGUSR2)
#: Seconds between two checks whether all brokers are known, or all errors were reported.
_MOMENT = 0.01
#: Seconds for what came of errors to be reported, once no link is served any more. At most 20,000
#: events wait, and what the process buffers has 100,000 failed partitions: some 10 ms for 200.
_TO_REPORT = 10.0
#: Clients of which it is reported at the end what they asked in the last seconds.
_CLIENTS_AT_THE_END = 1_000
#: Seconds for the kill switch's file to be written at the end; and while a new process waits for
#: this one, when new connections wait too.
_TO_KEEP, _TO_HAND_OVER = 5.0, 1.0
#: Seconds for which new connections wait for the settings to be read again in a takeover.
_TO_READ_AGAIN = 1.0


def run(
    settings: Settings,
    local: Found | None = None,
    *,
    config: str = "",
    again: Callable[[], Settings] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT, and then until links rest; return the exit code.

    ``local``: the routes of a virtual cluster replace those of the settings. ``config``: the file
    that the settings come from, "" without one; it is only named. ``again``: reads the settings
    once more, for SIGHUP.

    :raises ListenError: an address cannot be listened on.
    :raises ConfigurationError: a certificate, a key, roots or another file cannot be used.
    :raises TakeoverError: the process to take over from hands nothing over, or the one that took
        over has ended before it listened.
    """
    refused: ListenError | TakeoverError | None = None
    serving = False

    def began() -> None:
        nonlocal serving
        serving = True

    def at_the_edges(number: int, _: FrameType | None) -> None:
        # Before the process serves there is nothing to finish. Afterwards, and while the journal's
        # last lines are written, one more signal must not end it as a signal does by itself.
        if number in _TO_END and not serving:
            os._exit(0)

    for number in _SIGNALS:
        signal.signal(number, at_the_edges)
    try:
        trio.run(
            partial(serve, settings, local, began, config, again), strict_exception_groups=True
        )
    except* (ListenError, TakeoverError) as group:
        refused = _first(group)
    for number in _SIGNALS:
        # Python takes handlers of its own away as it ends.
        signal.signal(number, signal.SIG_IGN)
    # Not in there: Python before 3.11.4 wraps what is raised there in a group of its own
    # (gh-103590).
    if refused is not None:
        raise refused
    return 0


async def serve(
    settings: Settings,
    local: Found | None = None,
    began: Callable[[], None] = lambda: None,
    config: str = "",
    again: Callable[[], Settings] | None = None,
) -> None:
    """Serve until a signal, and then until links rest; a second signal or cancellation ends it.

    ``began``: called when signals are handled here. ``config``, ``again``: see :func:`run`.
    """
    name_look_ups.install()
    process = _process(settings, local, config, again)
    tune_garbage()
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            began()
            async with trio.open_nursery() as starting:
                # Beside it: to start may take minutes, while brokers are waited for.
                starting.start_soon(_start, process, nursery)
                starting.start_soon(process.await_successor, starting.cancel_scope.cancel)
                await _ending(process, signals, nursery)
                starting.cancel_scope.cancel()
            async with trio.open_nursery() as ending:

                async def give_up() -> None:
                    await _ending(process, signals, nursery)
                    ending.cancel_scope.cancel()

                ending.start_soon(give_up)
                await process.finish()
                ending.cancel_scope.cancel()
            nursery.cancel_scope.cancel()


async def _start(process: "_Process", nursery: trio.Nursery) -> None:
    await process.start(nursery)
    await tell_ready()
    await process.serving()


async def _ending(process: "_Process", signals: AsyncIterator[int], nursery: trio.Nursery) -> None:
    """Return at the next signal to end; carry out the others."""
    async for number in signals:
        if number == signal.SIGUSR2:
            nursery.start_soon(process.replacement.start)
        elif number == signal.SIGHUP:
            # Beside it: a disk may hang, and the next signal must be handled.
            process.renew_files()
            nursery.start_soon(process.read_settings_again)
        else:
            return


async def hold(settings: Settings, local: Found, started: Callable[[], None]) -> None:
    """Serve a virtual cluster until cancelled; signals are left alone.

    ``started``: called when its brokers' versions are known.
    """
    process = _process(settings, local)
    async with trio.open_nursery() as nursery:
        await process.start(nursery)
        await process.await_plans()
        started()
        await trio.sleep_forever()


class _Process:
    """Starts and ends the tasks of the parts."""

    def __init__(
        self,
        settings: Settings,
        source: RouteSource,
        config: str,
        again: Callable[[], Settings] | None,
    ) -> None:
        self._settings = settings
        self._config = config
        self._source = source
        self._parts = Parts(settings, source)
        self._admin = AdminView(self._parts)
        self.certificates = CertificateWatch(
            self._parts.security, self._parts.observers.emit, self._parts.observers.task_failed
        )
        self._reload = SettingsReload(settings, again, self._apply, self._parts.observers.emit)
        self._takeover = self._make_takeover()
        self._caught_up = trio.Event()
        self._caught_up.set()
        replaced = None if self._takeover is None else self._takeover.replaced
        self.replacement = Replacement(replaced, self._parts.observers.emit)
        if self._takeover is not None:
            self._takeover.on_asked(self.replacement.asked)

    async def start(self, nursery: trio.Nursery) -> None:
        """Start every task in ``nursery``; return when all listeners take connections."""
        parts = self._parts
        parts.observers.emit(self._starting())
        workers = parts.workers.count if parts.workers is not None else 1
        _fit_to_descriptors(parts.joining.admission, workers, parts.observers.emit)
        if parts.journal is not None:
            # Before it waits for anything: the end waits until the journal is written.
            nursery.start_soon(parts.journal.run)
        takes_over = self._takeover is not None and await self._takeover.begin()
        self._start_tasks(nursery)
        if not takes_over:
            await self._serve_admin(nursery)
        self._source.prepare()
        self._admin.restore()
        if any(route.config.synthesize for route in parts.table.routes):
            # Clients that come back to a proxy that was restarted must not miss their ids on a new
            # connection: franz-go's consumers would learn of no leader any more.
            with trio.move_on_after(self._settings.topic_ids_wait):
                await parts.refresher.all_asked.wait()
        await self._source.meet_brokers()
        if parts.workers is not None:
            await parts.workers.serving()
        if self._takeover is not None:
            switched = await self._takeover.replace(self._addresses())
            if takes_over:
                await self._catch_up(nursery, switched)
                await self._serve_admin(nursery)
        await self._source.listen(nursery)
        self._admin.listening = True
        await parts.listeners.sockets.drop_rest()
        if self._takeover is not None:
            nursery.start_soon(parts.observers.keep_up, "takeover", self._takeover.serve)

    async def serving(self) -> None:
        """Tell the process before this one, if there was one, that this one listens."""
        if self._takeover is not None:
            await self._takeover.serving()

    async def await_successor(self, then: Callable[[], None]) -> None:
        """Call ``then`` when a new process can serve in place of this one."""
        if self._takeover is not None:
            await self._takeover.replaced.wait()
            then()

    def renew_files(self) -> None:
        """Have all TLS files read again, and secrets whose reading hangs."""
        self._admin.renew_threads()
        self.certificates.renew()
        if self._parts.workers is not None:
            self._parts.workers.renew_certificates()

    async def read_settings_again(self) -> None:
        """Read the settings once more, and put in force what is safe."""
        # Which routes the process before this one had switched comes first.
        await self._caught_up.wait()
        await self._read_settings()

    async def _read_settings(self) -> None:
        try:
            await self._reload.run()
        except Exception as error:  # A defect here must not end the process.
            self._parts.observers.task_failed("settings", error)

    async def _catch_up(self, nursery: trio.Nursery, switched: Mapping[str, str] | None) -> None:
        """Do about hints what the process before this one did last.

        It may have been switched, and have read settings that are newer than what was read here.
        ``switched``: see :meth:`leader_hints.app.admin_view.AdminView.restore_again`.
        """
        self._caught_up, read = trio.Event(), trio.Event()

        async def read_again() -> None:
            await self._read_settings()
            read.set()

        nursery.start_soon(read_again)
        # Clients wait, and a disk may hang: then they count when they come, as at SIGHUP.
        with trio.move_on_after(_TO_READ_AGAIN):
            await read.wait()
        await self._admin.restore_again(switched)
        self._caught_up.set()

    async def _apply(self, settings: Settings) -> None:
        """Put settings in force of which only such differ as a process may change."""
        before, self._settings = self._settings, settings
        if settings.log != before.log:
            log = settings.log
            configure_logs(log.least, log.format)
            self._parts.log.configure(log.by_subsystem, log.moves_per_second)
        if settings.hints != before.hints:
            if self._caught_up.is_set():
                await TimeSlices().take(self._admin.switching_all(Mode(settings.hints)))
            else:
                # Which routes are switched to something else is still to come.
                self._parts.table.mode = Mode(settings.hints)

    def _starting(self) -> Starting:
        """Return with which settings the process begins."""
        settings = self._settings
        return Starting(
            version=self._parts.watched.release,
            hints=settings.hints,
            config=self._config,
            routes=tuple(f"{route.listen}={route.upstream}" for route in settings.routes),
            workers=worker_count(settings),
        )

    def _make_takeover(self) -> Takeover | None:
        path, parts = self._settings.takeover, self._parts
        if path is None:
            return None
        return Takeover(Path(path), parts.listeners.sockets, parts.observers.emit)

    def _addresses(self) -> list[tuple[str, Address]]:
        """Return where this process is to listen, and what for."""
        admin = self._settings.admin
        routes = [(route.name, route.listen) for route in self._settings.routes]
        return routes if admin is None else [*routes, (ADMIN, admin)]

    async def _serve_admin(self, nursery: trio.Nursery) -> None:
        if self._settings.admin is not None:
            await self._admin.serve(nursery, self._settings.admin, self._source.more_pages)

    def _start_tasks(self, nursery: trio.Nursery) -> None:
        parts, keep_up = self._parts, self._parts.observers.keep_up
        if self._settings.stuck:
            watchdog = Watchdog(
                self._settings.stuck,
                parts.log.stuck,
                lambda seconds: parts.observers.emit(EventLoopStalled(seconds=seconds)),
            )
            nursery.start_soon(keep_up, "watchdog", watchdog.run)
        nursery.start_soon(parts.pump.run)
        if parts.workers is not None:
            nursery.start_soon(parts.workers.run)
        handshakes = partial(parts.joining.turns.run, parts.pump.wake_on_readable)
        nursery.start_soon(keep_up, "handshakes", handshakes)
        nursery.start_soon(keep_up, "holds", parts.hold_timer.run, parts.pump.end_held)
        nursery.start_soon(parts.refresher.run)
        if parts.journal is not None:
            reporting = partial(report_clients, parts.table.routes, parts.observers.emit)
            nursery.start_soon(keep_up, "clients", reporting)
        ticking = partial(tick, parts.pump, parts.log.tick, parts.table.routes)
        nursery.start_soon(keep_up, "tick", ticking)
        nursery.start_soon(keep_up, "summary", partial(sum_up, parts.watched, parts.log))
        nursery.start_soon(self.certificates.run)
        nursery.start_soon(keep_up, "switch file", self._admin.switch_file.run)

    async def await_plans(self) -> None:
        """Wait until the versions and the leaders of all brokers are known."""
        routes = self._parts.table.routes
        while any(r.broker.plan is None or r.broker.view is None for r in routes):  # noqa: ASYNC110
            await trio.sleep(_MOMENT)

    async def finish(self) -> None:
        """Accept no connection any more, let links finish their requests, and write the journal.

        All for bounded times. The journal may lead through a route: its own links stay until then.

        :raises TakeoverError: a process took over and ended before it listened, so nobody serves.
        """
        parts, table = self._parts, self._parts.table
        self._admin.stopping = True
        parts.observers.emit(Stopping(links=table.links_open))
        parts.listeners.close()
        routes: list[str] = []
        replaced = False
        if self._takeover is not None:
            replaced = self._takeover.replaced.is_set()
            if replaced:
                routes = [route.name for route in table.routes]
                await parts.listeners.closed()
                await self._hand_admin_over(self._takeover)
            if self._admin.listening:
                # The service manager may not know it yet, but it was so.
                await self._takeover.serving()
            self._takeover.close()
        if parts.workers is not None:
            await parts.workers.drain(self._settings.drain, routes)
        else:
            await Drain(parts.pump, self._settings.drain, routes, table.joining).run()
        if not replaced:
            await self._keep_switch(_TO_KEEP)
        with trio.move_on_after(_TO_REPORT):
            await self._reported()
        parts.observers.emit(Stopped(links=table.links_open))
        if parts.journal is not None:
            report_changes(table.routes, parts.observers.emit, _CLIENTS_AT_THE_END)
            parts.journal.finish()
            await parts.journal.finished.wait()
        if self._takeover is not None:
            # The supervisor is to start another one.
            await self._takeover.check_successor()

    async def _hand_admin_over(self, takeover: Takeover) -> None:
        """Leave the admin server and the kill switch's file to the process that takes over.

        Whatever was switched here is in the file when that process reads it, or in a message to
        it; but an older version does not read that, and it has room for some 1,000 routes.
        Nothing is switched here from then on, nor written: that process may have been switched
        since, and this one may serve its last links for long.
        """
        await self._admin.close()
        await self._keep_switch(_TO_HAND_OVER)
        await takeover.leave(self._admin.switch_file.hand_over())

    async def _keep_switch(self, seconds: float) -> None:
        """Have it written what the kill switch has set: the next process reads that."""
        with trio.move_on_after(seconds):
            await self._admin.switch_file.written()

    async def _reported(self) -> None:
        """Wait until what came of all errors was reported: few are in each turn."""
        while self._parts.hold_timer.reporting:  # noqa: ASYNC110 - it is done in many places
            await trio.sleep(_MOMENT)


def _process(
    settings: Settings,
    local: Found | None,
    config: str = "",
    again: Callable[[], Settings] | None = None,
) -> _Process:
    source: RouteSource
    source = FixedRoutes(settings.routes) if local is None else VirtualRoutes(local)
    return _Process(settings, source, config, again)


def _fit_to_descriptors(admission: Admission, workers: int, emit: Callable[[Event], None]) -> None:
    """Raise the limit of descriptors, and admit no more connections than it allows.

    ``workers``: how many processes have the connections, each with that limit.
    """
    allowed, total = raise_descriptors(), admission.total
    if connections_within(allowed) * workers < total:
        admission.total = connections_within(allowed) * workers
        needed = descriptors_for(total)
        emit(DescriptorsShort(allowed=allowed, needed=needed, connections=admission.total))


def _first(
    group: BaseExceptionGroup[ListenError | TakeoverError],
) -> ListenError | TakeoverError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ListenError | TakeoverError)
    return error
