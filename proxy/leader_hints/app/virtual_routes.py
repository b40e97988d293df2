"""Routes of a virtual cluster: one for each broker that is discovered.

Tested in ``tests/local/test_virtual_cluster.py``.
"""

from collections.abc import Sequence
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.app.parts import Parts
from leader_hints.core.events import Event, HintsSwitched
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.local.host import Found
from leader_hints.local.mock_pages import MockPages
from leader_hints.local.virtual_cluster import VirtualCluster
from leader_hints.net.admin.admin_pages import MorePages
from leader_hints.net.clients.listening import Handler
from leader_hints.settings.route import RouteSettings


class VirtualRoutes:
    """Routes that come with brokers; see :class:`leader_hints.app.parts.RouteSource`."""

    def __init__(self, found: Found) -> None:
        self.settings: Sequence[RouteSettings] = ()
        self._found = found
        self._injector = found.stage
        self.speaks_tls: bool = found.settings.upstream_tls.enabled
        self.more_pages: Sequence[MorePages] = self._pages()
        self._parts: Parts | None = None
        self._cluster: VirtualCluster | None = None
        self._nursery: trio.Nursery | None = None

    def _pages(self) -> list[MorePages]:
        pages: list[MorePages] = [] if self._injector is None else [self._injector.pages]
        if self._found.mock is not None:
            pages.append(MockPages(self._found.mock, self._partitions))
        return pages

    def bind(self, parts: Parts) -> None:
        """Take the parts."""
        self._parts = parts
        self._cluster = VirtualCluster(self._found, self)
        if self._injector is not None:
            routes = parts.table.routes
            self._injector.bind(
                parts.observers.emit, self._leaders, lambda: [route.name for route in routes]
            )

    def review(self) -> None:
        """Open and close listeners by what the brokers report now."""
        if self._cluster is not None:
            self._cluster.review()

    def interpose(self, route: Route, client: trio.SocketStream) -> trio.SocketStream:
        """Put what injects faults between a client and its link.

        :raises OSError: the system is short of descriptors; the client is unchanged.
        """
        if self._injector is None:
            return client
        assert self._nursery is not None
        return self._injector.interpose(self._nursery, route, client)

    def prepare(self) -> None:
        """Make the routes of the brokers that were found, so that they are asked."""
        assert self._cluster is not None
        self._cluster.prepare(self._found.brokers)

    async def meet_brokers(self) -> None:
        """Do nothing: they were asked when they were found."""

    async def listen(self, nursery: trio.Nursery) -> None:
        """Open the listeners of all brokers and the one for bootstrap.

        :raises ListenError: one cannot be opened.
        """
        assert self._cluster is not None
        assert self._parts is not None
        self._nursery = nursery
        self._cluster.start(nursery)
        keep_up = self._parts.observers.keep_up
        nursery.start_soon(keep_up, "listeners", self._cluster.work_off)
        if self._found.renew is not None:
            renewing = partial(self._cluster.keep, self._found.renew)
            nursery.start_soon(keep_up, "virtual cluster", renewing)
        if self._found.seek is not None:
            seeking = partial(self._cluster.find_again, self._found.seek)
            nursery.start_soon(keep_up, "discovery", seeking)
        if self._injector is not None:
            nursery.start_soon(self._injector.play)

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return the routes, by name, on which no fault refuses connections now."""
        return routes if self._injector is None else self._injector.admits(routes)

    async def join(self, route: Route, upstream: Address, client: trio.SocketStream) -> bool:
        """See :class:`leader_hints.local.host.Host`."""
        assert self._parts is not None
        return await self._parts.joining.join(route, upstream, client)

    async def accept(self, name: str, listener: trio.SocketListener, handler: Handler) -> None:
        """See :class:`leader_hints.local.host.Host`."""
        assert self._nursery is not None
        assert self._parts is not None
        joining = self._parts.joining

        async def accept(client: trio.SocketStream) -> None:
            if not await joining.is_itself(name, client):
                await handler(client)

        joining.own.listen(listener.socket.getsockname()[1])
        await self._parts.listeners.accept_all(listener, accept, self._nursery)

    def listens(self, route: Route, listen: str | None) -> None:
        """See :class:`leader_hints.local.host.Host`."""
        assert self._parts is not None
        self._parts.table.listens(route, listen)

    def refuses(self, route: Route, reason: str) -> None:
        """See :class:`leader_hints.local.host.Host`."""
        assert self._parts is not None
        self._parts.table.refuses(route, reason)

    def emit(self, event: Event) -> None:
        """See :class:`leader_hints.local.host.Host`."""
        assert self._parts is not None
        self._parts.observers.emit(event)

    def _partitions(self) -> dict[str, list[int]]:
        """Return the known partitions by topic."""
        found: dict[str, list[int]] = {}
        for topic, partition in self._leaders():
            found.setdefault(topic, []).append(partition)
        return found

    def _leaders(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return leader and epoch by topic and partition, as they are known now."""
        assert self._parts is not None
        assert self._cluster is not None
        return {
            (topic, partition): leader
            for known in self._parts.refresher.clusters()
            if known.view.cluster_id == self._cluster.cluster
            for topic, partition, leader in known.view.leaders()
        }

    def add(self, settings: RouteSettings, rewriting: AddressRewriting) -> Route:
        """Add the route of a broker."""
        assert self._parts is not None
        parts, table = self._parts, self._parts.table
        # The TLS files of the first broker are good for one that joins.
        first = next(iter(table.routes), None)
        # Before it listens there are those of the start; one after the other makes no difference.
        route = table.add(settings, rewriting, joins=self._nursery is not None)
        if first is not None:
            parts.security.share(first.name, route.name)
        else:
            parts.security.add(settings)
        parts.recovery.follow(route)
        if parts.journal is not None:
            parts.journal.follow(route)
        # Also where hints are off: what brokers list decides which listeners there are.
        parts.refresher.follow(route, settings.upstream)
        if route.mode is not table.mode:
            parts.observers.emit(
                HintsSwitched(route=route.name, before=table.mode, hints=route.mode)
            )
            parts.keep_switched()
        return route

    def move(self, route: Route, upstream: Address) -> None:
        """Ask the broker of a route at another address."""
        assert self._parts is not None
        self._parts.table.move(route, upstream)
        self._parts.refresher.move(route, upstream)
