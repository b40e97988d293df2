"""RouteWatch: looks where the addresses lead that the routes' brokers advertise.

It gathers what :mod:`leader_hints.core.destination` judges. Where all is right a look is one
connection of the process to itself; brokers are asked only where an address leads elsewhere.

Tested in ``tests/real/test_crossed.py``.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.apis.keys import ApiKey
from leader_hints.check import endpoint_probe, host
from leader_hints.check.client_support import AS_PROXY
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.destination import Destinations, Look, NodeAddress, own_address
from leader_hints.core.events import Event
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.brokers.own_connections import Made, OwnConnections
from leader_hints.wire.errors import WireError

#: Seconds after which is seen whether a route is to be looked at.
_PAUSE = 2.0
#: Seconds to connect, and in which a connection to a listener of this process is taken.
_CONNECT, _TAKEN = 2.0, 1.0
#: Routes whose addresses are looked at together. A look at one that takes no connection lasts some
#: seconds, and hundreds of brokers may advertise such addresses.
_LOOKS = 5
#: Routes and findings that are looked at before other tasks get their turn, of which each may be
#: compared with all of the others; and IP addresses of a name.
_AT_ONCE = 20
#: Other brokers whose addresses a route looks at in one round; the next ones at the next.
_OTHERS = 4


class Watched(NamedTuple):
    """A route, where its broker is, and how brokers are entered."""

    route: Route
    upstream: Address
    connectors: Connectors


class RouteWatch:
    """Looks at all routes, again and again. ``own``: to which looks are noted."""

    def __init__(
        self, routes: Sequence[Watched], own: OwnConnections, emit: Callable[[Event], None]
    ) -> None:
        self._routes = routes
        self._own = own
        self._emit = emit
        self._by_name = {watched.route.name: watched for watched in routes}
        self._destinations = Destinations([watched.route for watched in routes])
        #: By route: what the last look rested on, when it was, and with which broker it ended.
        self._bases: dict[str, object] = {}
        self._looked: dict[str, float] = {}
        self._turn: dict[str, int] = {}
        #: Names of those whose addresses are looked at now, or soon.
        self._looking: set[str] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        limiter = trio.CapacityLimiter(_LOOKS)
        async with trio.open_nursery() as nursery:
            while True:
                for number, watched in enumerate(self._routes, 1):
                    if watched.route.name not in self._looking and self._due(watched.route):
                        self._looking.add(watched.route.name)
                        nursery.start_soon(self._look_in_turn, watched, limiter)
                    await _after_some(number)
                # Beside the looks, which may take minutes: what was found may be over.
                for number, _ in enumerate(self._destinations.forgetting(), 1):
                    await _after_some(number)
                await trio.sleep(_PAUSE)

    async def _look_in_turn(self, watched: Watched, limiter: trio.CapacityLimiter) -> None:
        try:
            async with limiter:
                await self._look_around(watched)
        finally:
            self._looking.discard(watched.route.name)

    def _due(self, route: Route) -> bool:
        if route.broker.node is None or route.broker.view is None:
            return False
        basis = route.broker.node, route.broker.view.cluster_id, route.broker.endpoints
        changed = self._bases.get(route.name) != basis
        self._bases[route.name] = basis
        waited = trio.current_time() - self._looked.get(route.name, -math.inf)
        return changed or waited >= self._destinations.pause(route)

    async def _look_around(self, watched: Watched) -> None:
        route, own = watched.route, watched.route.broker.node
        self._looked[route.name] = trio.current_time()
        for at in dict.fromkeys((own_address(route), *self._others(route))):
            if at is None:
                continue
            try:
                look = await self._look(watched, at)
            except (BrokerError, WireError):
                look = Look(node=at.node, endpoint=at.endpoint)
            # What it was about may have changed meanwhile.
            if route.broker.view is at.view and (at.node == route.broker.node) is (at.node == own):
                for event in self._destinations.take(route, look, trio.current_time()):
                    self._emit(event)

    def _others(self, route: Route) -> list[NodeAddress]:
        """Return the next addresses of brokers that are behind none of the routes."""
        view, endpoints = route.broker.view, route.broker.endpoints
        if view is None or not self._destinations.looks_around(route):
            return []
        behind = {of.route.broker.node for of in self._routes if of.route.broker.view is view}
        others = sorted(endpoints.keys() - behind)
        begin = self._turn.get(route.name, 0) % len(others) if others else 0
        self._turn[route.name] = begin + _OTHERS
        nodes = islice(cycle(others), begin, begin + min(_OTHERS, len(others)))
        turn = (NodeAddress(view, node, endpoints[node]) for node in nodes)
        # What is not known to be right is looked at each time: it may be wrong, or right by now.
        return [*dict.fromkeys((*self._destinations.unsettled(route)[:_OTHERS], *turn))]

    async def _look(self, watched: Watched, at: NodeAddress) -> Look:
        """Look where the address of a node leads.

        :raises BrokerError: nobody is there, or it does not answer.
        :raises WireError: an answer is not well formed.
        """
        view, node, endpoint = at
        route, address = watched.route, Address(endpoint.host, endpoint.port)
        is_own = node == route.broker.node
        nothing = Look(node=node, endpoint=endpoint)
        # Of other brokers only those are of interest whose addresses lead to this process.
        if not is_own and not await _is_here(address):
            return Look(node=node, endpoint=endpoint, away=True)
        arrived = await self._route_reached(address)
        if arrived is None and not is_own:
            return nothing
        if arrived is not None and arrived.route is route and is_own:
            return Look(node=node, endpoint=endpoint, arrived=route)
        unraised, own = None, None
        if arrived is not None:
            found = await _node(arrived.connectors.upstream, arrived.upstream, view)
        else:
            found, unraised = await _meet(watched, address, view)
        if is_own:
            own = await _node(watched.connectors.upstream, watched.upstream, view)
        reached = arrived.route if arrived is not None else None
        return Look(
            node=node, endpoint=endpoint, arrived=reached, own=own, found=found, unraised=unraised
        )

    async def _route_reached(self, address: Address) -> Watched | None:
        """Return the route at which a connection to ``address`` comes out, if at any.

        :raises BrokerError: nobody is there.
        """
        made = Made()
        async with await self._own.open(address, _CONNECT, made) as stream:
            with trio.move_on_after(_TAKEN), contextlib.suppress(trio.BrokenResourceError):
                await stream.receive_some(1)
        return self._by_name.get(made.arrived) if made.arrived is not None else None


async def _after_some(number: int) -> None:
    if number % _AT_ONCE == 0:
        await trio.lowlevel.checkpoint()


async def _is_here(address: Address) -> bool:
    found = await endpoint_probe.resolve(address.host, address.port)
    for number, ip in enumerate(found, 1):
        if host.is_here(ip):
            return True
        # An answer of a name server has room for thousands.
        await _after_some(number)
    return False


async def _node(connector: Connector, address: Address, view: LeaderView) -> int | None:
    async with contextlib.aclosing(await endpoint_probe.connect(connector, address)) as connection:
        return await endpoint_probe.led_by(connection, view)


async def _meet(
    watched: Watched, address: Address, view: LeaderView
) -> tuple[int | None, bool | None]:
    """Return which node answers at ``address``, and whether it offers no more than a broker.

    The latter is ``None`` where no proxy would offer more.
    """
    plan = watched.route.broker.plan
    rows = plan.rows if plan is not None and watched.route.mode is Mode.ON else ()
    own = next((row.takes for row in rows if row.key == ApiKey.PRODUCE), None)
    connection = await endpoint_probe.connect(watched.connectors.advertised, address)
    async with contextlib.aclosing(connection):
        offers = await endpoint_probe.offered(connection, AS_PROXY)
        unraised = None if own is None else offers.get(ApiKey.PRODUCE) == own
        return await endpoint_probe.led_by(connection, view), unraised
