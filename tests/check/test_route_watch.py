"""When the watch looks again; what it finds is tested on real brokers."""

from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.check.route_watch import RouteWatch, Watched
from leader_hints.core.cluster.leader_view import LeaderView
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
