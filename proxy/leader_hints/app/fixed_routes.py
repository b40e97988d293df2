"""Routes as the settings list them.

Tested in ``tests/app/test_process.py``.
"""

from collections.abc import Sequence
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.app.parts import Parts
from leader_hints.check.route_watch import RouteWatch
from leader_hints.check.route_watch import Watched as WatchedRoute
from leader_hints.core.events import Listening
from leader_hints.core.route import Route
from leader_hints.net.admin.admin_pages import MorePages
from leader_hints.settings.route import RouteSettings

#: Seconds to wait for the brokers' versions before clients are accepted.
_FIRST_ANSWERS = 1.0


class FixedRoutes:
    """A source of routes that never change; see :class:`leader_hints.app.parts.RouteSource`."""

    speaks_tls: bool = False
    more_pages: Sequence[MorePages] = ()

    def __init__(self, settings: Sequence[RouteSettings]) -> None:
        self.settings = settings
        self._parts: Parts | None = None

    def bind(self, parts: Parts) -> None:
        """Take the parts."""
        self._parts = parts

    def review(self) -> None:
        """Do nothing: brokers that come or leave change no route."""

    def interpose(self, route: Route, client: trio.SocketStream) -> trio.SocketStream:
        """Return the client itself: no faults are injected here."""
        return client

    def prepare(self) -> None:
        """Do nothing: the brokers are asked from the start."""

    async def meet_brokers(self) -> None:
        """Wait until their versions are known, for a while.

        Some clients keep to what the process before this one offered them, and come back within
        milliseconds: the versions that their requests need should be known.
        """
        assert self._parts is not None
        if any(route.raised for route in self._parts.table.routes):
            with trio.move_on_after(_FIRST_ANSWERS):
                await self._parts.refresher.all_met.wait()

    async def listen(self, nursery: trio.Nursery) -> None:
        """Open the listeners of all routes.

        :raises ListenError: one cannot be opened.
        """
        assert self._parts is not None
        parts, table = self._parts, self._parts.table
        for settings, (route, upstream) in zip(self.settings, table.with_upstreams(), strict=True):
            handler = partial(parts.joining.accept, route, upstream)
            bound = await parts.listeners.open(route.name, settings.listen, handler, nursery)
            table.listens(route, bound)
            parts.joining.own.listen(Address.parse(bound).port)
            event = Listening(route=route.name, listen=bound, upstream=str(upstream))
            parts.observers.emit(event)
        connectors = parts.security.connectors
        watched = [
            WatchedRoute(route, upstream, connectors[route.name])
            for route, upstream in table.with_upstreams()
        ]
        watch = RouteWatch(watched, parts.joining.own, parts.observers.emit)
        nursery.start_soon(parts.observers.keep_up, "routes", watch.run)
