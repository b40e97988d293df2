"""When the watch looks again; what it finds is tested on real brokers."""

import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.check.route_watch import RouteWatch, Watched
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.destination import Look
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.brokers.own_connections import OwnConnections


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
        for _ in range(2):
            look = Look(node=node, endpoint=endpoint, own=node, found=99)
            watch._destinations.take(route, look)
    assert all(route.advertised.crossed for route in routes)
    for route in routes:
        # Nothing is known of its node now, so it is not looked at.
        route.broker.node, route.broker.endpoints = None, {}
    with trio.move_on_after(3):
        await watch.run()
    assert not any(route.advertised.crossed for route in routes)
    assert view.misled == frozenset()


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
    for _ in range(2):
        look = Look(node=700, endpoint=endpoints[700], arrived=route, found=1)
        watch._destinations.take(route, look)

    assert [watch._others(route) for _ in range(2)] == [[700, 2, 3, 4, 5], [700, 6, 7, 8, 9]]
    watch._destinations.take(route, Look(node=700, endpoint=endpoints[700], away=True))
    assert watch._others(route) == [10, 11, 12, 13]


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

    assert [watch._others(route) for route in routes] == [[], [1, 3]]
    routes[0].broker.node = 1
    assert [watch._others(route) for route in routes] == [[3], []]
