"""When the watch looks again; what it finds is tested on real brokers."""

from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.check.route_watch import RouteWatch, Watched, _is_here
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.destination import Look
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.brokers.own_connections import Made, OwnConnections
from tests.harness.resolver import ResolverTo


def _others(watch: RouteWatch, route: Route) -> list[int]:
    """The nodes at whose addresses a route looks next, where it has them."""
    others = watch._others(route)
    assert all(route.broker.endpoints[at.node] == at.endpoint for at in others)
    return [at.node for at in others]


async def test_endpoints_that_take_the_place_of_former_ones_in_memory_are_looked_at(
    autojump_clock: MockClock,
) -> None:
    route = Route("r", Mode.ON)
    route.broker.node, route.broker.view = 1, LeaderView("k")
    watched = Watched(route, Address("up", 9092), Connectors())
    watch = RouteWatch([watched], OwnConnections(), lambda event: None)
    route.broker.endpoints = {1: Endpoint("one", 9092, None)}
    assert watch._due(route)
    watch._looked[route.name] = 0.0
    assert not watch._due(route)
    place = id(route.broker.endpoints)
    route.broker.endpoints = {}
    others = []
    for port in range(1000):
        others.append({1: Endpoint("two", port, None)})
        if id(others[-1]) == place:
            break
    route.broker.endpoints = others[-1]
    assert watch._due(route)


async def test_what_is_advertised_no_longer_is_forgotten_without_another_look(
    autojump_clock: MockClock,
) -> None:
    view, endpoint = LeaderView("k"), Endpoint("one", 9092, None)
    routes = [Route(f"r{number}", Mode.ON) for number in range(30)]
    for node, route in enumerate(routes):
        route.broker.node, route.broker.view = node, view
        route.broker.endpoints = {node: endpoint}
    watched = [Watched(route, Address("up", 9092), Connectors()) for route in routes]
    watch = RouteWatch(watched, OwnConnections(), lambda event: None)
    for node, route in enumerate(routes):
        for now in (0.0, 2.0):
            look = Look(node=node, endpoint=endpoint, own=node, found=99)
            watch._destinations.take(route, look, now)
    assert all(route.advertised.crossed for route in routes)
    for route in routes:
        # Nothing is known of its node now, so it is not looked at.
        route.broker.node, route.broker.endpoints = None, {}
    with trio.move_on_after(3):
        await watch.run()
    assert not any(route.advertised.crossed for route in routes)
    assert view.misled == frozenset()


async def test_addresses_that_take_no_connection_keep_nothing_else_waiting(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 routes with such addresses each round took ten minutes. So long a crossing that was
    over was not forgotten, and the address of one more route not looked at.
    """
    looked: dict[int, float] = {}

    async def open_to_none(self: OwnConnections, at: Address, patience: float, made: Made) -> None:
        looked.setdefault(at.port, trio.current_time())
        await trio.sleep(patience)
        raise BrokerError("no connection")

    monkeypatch.setattr(OwnConnections, "open", open_to_none)
    view = LeaderView("k")
    endpoints = {node: Endpoint("host", node, None) for node in range(1, 301)}
    routes = [Route(f"r{node}", Mode.ON) for node in endpoints]
    for node, route in zip(endpoints, routes, strict=True):
        route.broker.node, route.broker.view, route.broker.endpoints = node, view, endpoints
    watched = [Watched(route, Address("up", 9092), Connectors()) for route in routes]
    watch = RouteWatch(watched, OwnConnections(), lambda event: None)
    for now in (0.0, 2.0):
        look = Look(node=7, endpoint=endpoints[7], own=7, found=99)
        watch._destinations.take(routes[6], look, now)
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(5)
        assert routes[6].advertised.crossed
        # It is not known any more which node its broker is.
        routes[6].broker.node = None
        await trio.sleep(3)
        assert not routes[6].advertised.crossed
        await trio.sleep(150)
        nursery.cancel_scope.cancel()
    assert len(looked) >= 299
    assert max(looked.values()) - begin <= 130


async def test_an_address_that_is_crossed_is_looked_at_in_each_round_however_many_others_there_are(
    autojump_clock: MockClock,
) -> None:
    """Four others are looked at in a minute: what is right again would count as wrong for hours."""
    route = Route("r", Mode.ON)
    route.broker.node, route.broker.view = 1, LeaderView("k")
    endpoints = {node: Endpoint("host", 9000 + node, None) for node in range(1, 1000)}
    route.broker.endpoints = endpoints
    watched = [Watched(route, Address("up", 9092), Connectors())]
    watch = RouteWatch(watched, OwnConnections(), lambda event: None)
    for now in (0.0, 2.0):
        look = Look(node=700, endpoint=endpoints[700], arrived=route, found=1)
        watch._destinations.take(route, look, now)

    assert [_others(watch, route) for _ in range(2)] == [[700, 2, 3, 4, 5], [700, 6, 7, 8, 9]]
    watch._destinations.take(route, Look(node=700, endpoint=endpoints[700], away=True), 4.0)
    assert _others(watch, route) == [10, 11, 12, 13]


async def test_another_route_looks_at_others_while_the_first_ones_broker_is_not_known(
    autojump_clock: MockClock,
) -> None:
    """It may lead nothing for long, and no look is made from there meanwhile."""
    view = LeaderView("k")
    endpoints = {node: Endpoint("host", 9000 + node, None) for node in (1, 2, 3)}
    routes = [Route(name, Mode.ON) for name in ("one", "two")]
    for route, node in zip(routes, (None, 2), strict=True):
        route.broker.node, route.broker.view, route.broker.endpoints = node, view, endpoints
    watched = [Watched(route, Address("up", 9092), Connectors()) for route in routes]
    watch = RouteWatch(watched, OwnConnections(), lambda event: None)

    assert [_others(watch, route) for route in routes] == [[], [1, 3]]
    routes[0].broker.node = 1
    assert [_others(watch, route) for route in routes] == [[3], []]


async def test_what_is_not_known_to_be_right_is_looked_at_in_each_round_or_in_turn(
    autojump_clock: MockClock,
) -> None:
    """A suspicion was looked at again only after all others had been, and of six crossed addresses
    the last two only in that order as well."""
    route = Route("r", Mode.ON)
    view = LeaderView("k")
    route.broker.node, route.broker.view = 1, view
    endpoints = {node: Endpoint("host", 9000 + node, None) for node in range(1, 1000)}
    route.broker.endpoints = endpoints
    watch = RouteWatch([Watched(route, Address("up", 9092), Connectors())], OwnConnections(), print)
    look = Look(node=700, endpoint=endpoints[700], arrived=route, found=1)
    watch._destinations.take(route, look, 0.0)
    assert watch._destinations.pause(route) == 2
    assert 700 in _others(watch, route)
    for node in range(701, 707):
        for now in (2.0, 4.0):
            look = Look(node=node, endpoint=endpoints[node], arrived=route, found=1)
            watch._destinations.take(route, look, now)
    for now in (6.0, 8.0):
        for node in _others(watch, route):
            look = Look(node=node, endpoint=endpoints[node], away=True)
            watch._destinations.take(route, look, now)
    assert view.misled == frozenset()


async def test_an_address_of_another_listener_is_looked_at_until_it_is_right(
    autojump_clock: MockClock,
) -> None:
    """It was found by the route of that listener, which is not the one that looks by now."""
    view, routes = LeaderView("k"), [Route(name, Mode.ON) for name in ("one", "two")]
    for route, node in zip(routes, (None, 2), strict=True):
        route.broker.node, route.broker.view = node, view
        route.broker.endpoints = {of: Endpoint(route.name, of, None) for of in (1, 2, 3)}
    one, two = routes
    watched = [Watched(route, Address("up", 9092), Connectors()) for route in routes]
    watch = RouteWatch(watched, OwnConnections(), print)
    inside = two.broker.endpoints[3]
    for now in (0.0, 2.0):
        look = Look(node=3, endpoint=inside, arrived=two, found=2)
        watch._destinations.take(two, look, now)
    one.broker.node = 1
    assert [(at.node, at.endpoint) for at in watch._others(one)] == [
        (3, inside),
        (3, one.broker.endpoints[3]),
    ]
    watch._destinations.take(one, Look(node=3, endpoint=inside, away=True), 4.0)
    assert not two.advertised.crossed
    assert view.misled == frozenset()


async def test_others_get_their_turn_while_the_addresses_of_a_name_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of them took 37 ms of one step."""
    asked = 0

    def is_here(ip: str) -> bool:
        nonlocal asked
        asked += 1
        return False

    monkeypatch.setattr("leader_hints.check.host.is_here", is_here)
    # As many as an answer of a name server has room for.
    many = [f"203.0.{number >> 8}.{number & 255}" for number in range(4000)]
    trio.socket.set_custom_hostname_resolver(ResolverTo(many))
    seen = [0]

    async def look() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            seen.append(asked)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        assert not await _is_here(Address("many", 9092))
        nursery.cancel_scope.cancel()
    assert asked == 4000
    assert max(later - earlier for earlier, later in pairwise(seen)) <= 40
