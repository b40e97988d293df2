"""What the admin server's pages show and change.

Tested in ``tests/app/test_process.py``.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

import trio

from leader_hints.address import Address
from leader_hints.app.listeners import Listeners
from leader_hints.app.parts import Parts
from leader_hints.app.switch_file import SwitchFile, read_switch_file
from leader_hints.core.events import AdminExposed, AdminListening, HintsSwitched
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.client_capabilities import OWN_NAME
from leader_hints.errors import ConfigurationError
from leader_hints.net.admin.admin import Admin, Reply, Request
from leader_hints.net.admin.admin_pages import READINESS, AdminPages, MorePages
from leader_hints.net.admin.readiness import Readiness
from leader_hints.net.admin.shared_work import SharedWork
from leader_hints.observe.clients import document
from leader_hints.observe.status import route_statuses, status

#: What listens at the admin server's address; no route is called so.
ADMIN = "the admin server"
#: Seconds between two looks at brokers to which no client can be connected.
_LOOK = 10.0
#: Seconds between two looks that are asked for: any program that reaches the admin server may ask
#: without a pause, and each look has a connection to each broker that is not known to answer.
_PAUSE = 0.25
#: Seconds for the kill switch's file to be read once more, when this process has taken over.
_TO_READ = 1.0


class AdminView:
    """Answers for the whole process. ``listening``: all listeners are open; before that it is not
    ready. ``stopping``: it is not ready any more, since it ends."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._started = time.time()
        self._brokers = SharedWork(self._look_at_brokers, _PAUSE)
        parts.table.switched = read_switch_file(parts.settings.switch_file)
        parts.keep_switched = self._keep
        self.switch_file = SwitchFile(parts.settings.switch_file, parts.observers.emit)
        self._listeners = Listeners(parts.pump, parts.observers.emit, parts.listeners.sockets)
        self._admin: Admin | None = None
        #: Routes that are still to be switched to what the settings say.
        self._to_switch: set[str] = set()
        self.listening = self.stopping = self._replaced = False

    async def serve(
        self, nursery: trio.Nursery, address: Address, more: Sequence[MorePages]
    ) -> None:
        """Start the admin server, which is open until ``nursery`` is cancelled.

        :raises ListenError: the address cannot be listened on.
        """
        parts = self._parts
        pages = AdminPages(
            parts.metrics,
            self.status,
            self.clients,
            self.ready,
            self.modes,
            self.switch,
            more,
            parts.fresh,
        )

        async def answer(request: Request) -> Reply:
            # Not while a request comes and its answer goes: a silent client would have all turns
            # short for long. Nor while brokers are asked: that is urgent only where it begins.
            urgent = parts.pump.urgent if request.path != READINESS else contextlib.nullcontext
            with urgent():
                return await pages.answer(request)

        token = parts.settings.admin_token or None
        admin = self._admin = Admin(answer, address, parts.observers.emit, token)
        bound = await self._listeners.open(ADMIN, address, admin.handle, nursery)
        nursery.start_soon(parts.observers.keep_up, "readiness", self._look_again)
        parts.observers.emit(AdminListening(listen=bound))
        if not address.is_loopback:
            parts.observers.emit(AdminExposed(listen=bound))

    def renew_threads(self) -> None:
        """Have the token read in another thread; see :class:`Admin`."""
        if self._admin is not None:
            self._admin.renew_threads()

    async def close(self) -> None:
        """Answer no new request any more, and switch nothing for those that are under way.

        Another process does both from now on.
        """
        self._replaced = True
        self._listeners.close()
        await self._listeners.closed()

    async def ready(self) -> Mapping[str, str]:
        """Return by route name why it is not ready, an empty text if it is."""
        table = self._parts.table
        if self.stopping:
            return {route.name: "stopping" for route in table.routes}
        if not self.listening:
            return {route.name: "not listening yet" for route in table.routes}
        return await self._brokers.result()

    async def _look_at_brokers(self) -> Mapping[str, str]:
        parts, table = self._parts, self._parts.table
        if parts.workers is not None and not parts.workers.ready:
            return {route.name: "no worker process serves" for route in table.routes}
        connectors = parts.security.connectors
        routes = [
            (route, upstream, connectors[route.name].upstream)
            for route, upstream in table.with_upstreams()
            if route.name not in table.left
        ]
        unreachable = parts.reach.unreachable
        asked = [*unreachable]
        readiness = Readiness(routes, parts.upstream, OWN_NAME, parts.pump.urgent)
        reasons = {**await readiness.check(), **table.refused}
        for name in asked:
            # Of a broker that has left there is none either, and nobody connects to it.
            if not reasons.get(name):
                unreachable.pop(name, None)
        return reasons

    async def _look_again(self) -> None:
        """Look at brokers to which no client can be connected until one can, or a look can.

        Else they would count as down until the next client comes.
        """
        while True:
            await trio.sleep(_LOOK)
            if self._parts.reach.unreachable:
                await self._brokers.result()

    async def status(self) -> bytes:
        """Return the status of the process as a JSON document."""
        parts, table = self._parts, self._parts.table
        await parts.fresh()
        addresses = {
            route.name: (table.bound.get(route.name, ""), str(upstream))
            for route, upstream in table.with_upstreams()
        }
        routes = []
        for route in route_statuses(parts.watched, parts.history, addresses):
            routes.append(route)
            await trio.lowlevel.checkpoint()
        now = status(parts.watched, parts.history, routes, self._started, time.time())
        return now.model_dump_json().encode()

    async def clients(self) -> bytes:
        """Return the clients and the versions that they ask, as a JSON document."""
        body = bytearray()
        for piece in document([*self._parts.table.routes]):
            body += piece
            await trio.lowlevel.checkpoint()
        return bytes(body)

    def modes(self) -> Mapping[str, Mode]:
        """Return by route name what each does about hints."""
        return {route.name: route.mode for route in self._parts.table.routes}

    def restore(self) -> None:
        """Switch routes as the process before this one kept it."""
        self._to_switch.clear()
        table = self._parts.table
        for route in [*table.routes]:
            self._switch(route, table.switched.get(route.name, table.mode))

    async def restore_again(self, told: Mapping[str, str] | None) -> None:
        """Do so once more: that process could be switched until it was replaced.

        ``told``: what it had set and not written then, by route name; ``None``: it had written all.
        """
        if told is None or not self._parts.settings.switch_file:
            await self._read_again()
            self.restore()
        else:
            # A newer process may have modes that are not known here.
            self._parts.table.switched = {
                route: Mode(mode) for route, mode in told.items() if mode in [*Mode]
            }
            self.restore()
            # It is for this process to write now.
            self._keep()

    async def _read_again(self) -> None:
        """Read the file; what was read before counts where it cannot be read now.

        It is not waited for long: nobody takes connections meanwhile.
        """
        # RuntimeError: the system may refuse a thread.
        with contextlib.suppress(ConfigurationError, RuntimeError), trio.move_on_after(_TO_READ):
            self._parts.table.switched = await trio.to_thread.run_sync(
                read_switch_file,
                self._parts.settings.switch_file,
                abandon_on_cancel=True,
                limiter=trio.CapacityLimiter(1),
            )

    def switching_all(self, mode: Mode) -> Iterator[None]:
        """Change what all routes do about hints, as the settings say from now on; in steps.

        There may be hundreds, each with responses that go on. What is switched meanwhile stays so.
        """
        table = self._parts.table
        table.mode, table.switched = mode, {}
        left = self._to_switch = {route.name for route in table.routes}
        for route in [*table.routes]:
            if self._to_switch is not left:
                # The settings say something else by now.
                return
            if route.name in left:
                self._switch(route, mode)
            yield
        self._keep()

    def switch(self, name: str, mode: Mode) -> str | None:
        """Change at run time what a route does about hints; or return why that is impossible."""
        if self._replaced:
            # The request began here before that: "done" would be said of a process that ends.
            return "another process has taken over; ask again"
        # Also where that is what it does: it was to be switched to something else.
        self._to_switch.discard(name)
        refused = self._switch(self._parts.table.by_name(name), mode)
        self._keep()
        return refused

    def _keep(self) -> None:
        """Have it kept which routes are switched. All are looked at.

        Of a virtual cluster's brokers some may not be there now.
        """
        table = self._parts.table
        modes = {**table.switched, **{route.name: route.mode for route in table.routes}}
        for route in table.routes:
            if route.config.relays_tls:
                del modes[route.name]
        table.switched = {name: mode for name, mode in modes.items() if mode is not table.mode}
        self.switch_file.keep(table.switched)

    def _switch(self, route: Route, mode: Mode) -> str | None:
        parts, before = self._parts, route.mode
        if mode is before:
            return None
        if route.config.relays_tls:
            return "client_tls.mode is pass: TLS goes through unread, so hints can only be off"
        parts.observers.emit(HintsSwitched(route=route.name, before=before, hints=mode))
        parts.switch(route, mode)
        if mode is not Mode.OFF:
            parts.refresher.follow(route, parts.table.upstream(route))
        return None
