"""Where advertised addresses lead: what is proved, what follows for hints, what is forgotten."""

import itertools
from functools import partial

import pytest

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.destination import Destinations, Look, proved
from leader_hints.core.events import AdvertisedPast, AdvertisedRight, RouteCrossed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.harness.lines import lines_of, most_lines

NONE, NOT_LEADER, FENCED = 0, 6, 74
ADDRESSES = {node: Endpoint("host", 9000 + node, None) for node in (1, 2, 3)}


class Scene:
    """A process with two routes before nodes 1 and 2 of three."""

    def __init__(self, first: int = 1, second: int = 2) -> None:
        view = LeaderView("k")
        self.one, self.two = (
            Route(name, Mode.ON, broker=BrokerState(view=view, endpoints=ADDRESSES, node=node))
            for name, node in (("one", first), ("two", second))
        )
        self.routes = (self.one, self.two)
        self.destinations = Destinations(self.routes)
        self.now = 0.0

    def look(self, at: Route, node: int, **found: object) -> list[object]:
        look = Look(node=node, endpoint=ADDRESSES[node], **found)  # type: ignore[arg-type]
        return self.take(at, look)

    def take(self, at: Route, look: Look, after: float = 2.0) -> list[object]:
        self.now += after
        return [*self.destinations.take(at, look, self.now)]

    @property
    def misled(self) -> dict[int, Endpoint]:
        return dict(self.one.broker.known.misled)

    def forget(self) -> None:
        for _ in self.destinations.forgetting():
            pass

    def cross(self) -> None:
        """Prove that the address of node 1, which is behind route one, leads to node 2."""
        for _ in range(2):
            self.look(self.one, 1, arrived=self.two, own=1, found=2)


def test_a_crossing_is_reported_once_and_only_when_found_twice() -> None:
    scene = Scene()
    found = {"arrived": scene.two, "own": 1, "found": 2}

    assert scene.look(scene.one, 1, **found) == []
    assert scene.destinations.pause(scene.one) == 2
    assert (scene.one.advertised.crossed, scene.misled) == ("", {})
    assert scene.look(scene.one, 1, **found) == [
        RouteCrossed(route="one", node=1, address="host:9001", leads_to="two", found=2)
    ]
    assert scene.destinations.pause(scene.one) == 60
    assert scene.look(scene.one, 1, **found) == []


def test_a_look_that_shows_nothing_does_not_end_a_suspicion() -> None:
    """A broker that restarts meanwhile is not identified: its address is looked at again soon."""
    scene = Scene()
    found = {"arrived": scene.two, "own": 1, "found": 2}
    scene.look(scene.one, 1, **found)

    assert scene.look(scene.one, 1, arrived=scene.two, own=1, found=None) == []
    assert scene.destinations.pause(scene.one) == 2
    assert scene.look(scene.one, 1, **found) == [
        RouteCrossed(route="one", node=1, address="host:9001", leads_to="two", found=2)
    ]


def test_a_look_that_proves_nothing_is_made_again_soon_and_then_more_and_more_seldom() -> None:
    """A broker leads nothing for a while after a restart, and is not identified meanwhile."""
    scene = Scene()
    found = {"arrived": scene.two, "own": 1}
    pauses = [scene.destinations.pause(scene.one)]
    for _ in range(7):
        scene.look(scene.one, 1, found=None, **found)
        pauses.append(scene.destinations.pause(scene.one))
    assert pauses == [60, 2, 4, 8, 16, 32, 60, 60]

    scene.look(scene.one, 1, found=2, **found)
    assert scene.destinations.pause(scene.one) == 2
    scene.look(scene.one, 1, found=2, **found)
    assert scene.destinations.pause(scene.one) == 60
    assert scene.one.advertised.crossed


def test_a_broker_elsewhere_is_not_looked_at_again_soon() -> None:
    """What is there is not asked: it proves nothing about this process."""
    scene = Scene()
    scene.look(scene.one, 3)
    assert scene.destinations.pause(scene.one) == 60
    scene.look(scene.one, 3, arrived=scene.two)
    assert scene.destinations.pause(scene.one) == 2


def test_no_hint_names_an_address_where_another_broker_answers() -> None:
    scene = Scene()
    scene.cross()

    for route in scene.routes:
        assert (
            route.advertised.crossed == "crossed: node 1 advertises host:9001, where node 2 answers"
        )
        assert route.endpoint(1) is None
        # To these clients come rightly, and a hint is as good as before.
        assert route.endpoint(2) == ADDRESSES[2]
        assert route.endpoint(3) == ADDRESSES[3]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_reason_of_a_route_is_its_own_brokers_address_whatever_was_found_first(
    order: tuple[int, int],
) -> None:
    scene = Scene(2, 1)
    for number in order:
        route, other, node = scene.routes[number], scene.routes[1 - number], 2 - number
        for _ in range(2):
            scene.look(route, node, arrived=other, own=node, found=3 - node)
    assert [route.advertised.crossed for route in scene.routes] == [
        "crossed: node 2 advertises host:9002, where node 1 answers",
        "crossed: node 1 advertises host:9001, where node 2 answers",
    ]


def test_an_address_that_is_advertised_again_is_good_immediately() -> None:
    scene = Scene()
    scene.cross()
    scene.one.broker.endpoints = {**ADDRESSES, 1: Endpoint("elsewhere", 9001, None)}

    assert scene.one.endpoint(1) == Endpoint("elsewhere", 9001, None)


def test_what_is_fixed_is_reported_and_all_is_as_before() -> None:
    scene = Scene()
    scene.cross()

    told = scene.look(scene.one, 1, arrived=scene.one)
    assert told == [AdvertisedRight(route="one", node=1, address="host:9001")]
    for route in scene.routes:
        assert (route.advertised.crossed, route.endpoint(1)) == ("", ADDRESSES[1])


def test_what_nobody_advertises_any_more_is_forgotten() -> None:
    scene = Scene()
    scene.cross()
    scene.two.broker.endpoints = {2: ADDRESSES[2]}
    scene.forget()
    assert all(route.advertised.crossed for route in scene.routes)
    assert scene.misled == {1: ADDRESSES[1]}
    scene.one.broker.endpoints = {2: ADDRESSES[2]}
    scene.forget()

    assert [route.advertised.crossed for route in scene.routes] == ["", ""]
    assert scene.misled == {}


@pytest.mark.parametrize("node", [None, 3])
def test_what_was_found_of_a_node_that_the_broker_is_not_taken_for_any_more_is_forgotten(
    node: int | None,
) -> None:
    """It may lead a recreated topic as that node led the former one. While nobody knows which node
    it is no look is made, so no look would end it.
    """
    scene = Scene()
    scene.cross()
    scene.one.broker.node = node
    scene.forget()

    assert [route.advertised.crossed for route in scene.routes] == ["", ""]
    assert scene.misled == {}
    scene.one.broker.node = 1
    assert scene.look(scene.one, 1, arrived=scene.two, own=1, found=2) == []


def test_what_is_known_of_a_cluster_that_was_left_is_forgotten_with_it() -> None:
    scene = Scene()
    scene.cross()
    for route in scene.routes:
        # Of the same id: it was left and found again.
        route.broker.view = LeaderView("k")
    scene.forget()

    assert [route.advertised.crossed for route in scene.routes] == ["", ""]
    assert scene.one.endpoint(1) == ADDRESSES[1]


def test_an_address_that_any_route_finds_right_misleads_no_longer() -> None:
    """Two routes before one node find the same of its address."""
    scene = Scene(1, 1)
    told = [scene.look(at, 1, own=1, found=2) for at in (scene.one, scene.two)]
    assert [len(events) for events in told] == [0, 1]
    assert scene.misled == {1: ADDRESSES[1]}
    assert [bool(route.advertised.crossed) for route in scene.routes] == [False, True]
    scene.forget()
    assert all(route.advertised.crossed for route in scene.routes)
    scene.look(scene.one, 1, arrived=scene.one)
    assert scene.misled == {}
    scene.forget()
    assert not any(route.advertised.crossed for route in scene.routes)


def test_looks_of_two_routes_at_once_count_as_one() -> None:
    """Brokers restart and leaders move during a look."""
    scene = Scene(1, 1)
    look = Look(node=1, endpoint=ADDRESSES[1], own=1, found=2)
    assert scene.take(scene.one, look) == scene.take(scene.two, look, 0.1) == []
    assert scene.misled == {}
    assert scene.take(scene.two, look) != []
    assert scene.misled == {1: ADDRESSES[1]}


def test_a_look_costs_little_however_many_routes_and_brokers_there_are() -> None:
    """With 300 routes before 300 brokers a look took 17 ms."""
    addresses = {node: Endpoint("host", node, None) for node in range(100)}
    view = LeaderView("k")
    routes = [
        Route(f"r{node}", Mode.ON, broker=BrokerState(view=view, endpoints=addresses, node=node))
        for node in addresses
    ]
    destinations = Destinations(routes)
    for node, route in enumerate(routes):
        destinations.take(route, Look(node=node, endpoint=addresses[node], arrived=route), 0.0)
    look = Look(node=0, endpoint=addresses[0], arrived=routes[0])
    assert lines_of(lambda: destinations.take(routes[0], look, 2.0)) < 2500
    assert lines_of(lambda: destinations.pause(routes[0])) < 50


@pytest.mark.parametrize(
    ("own", "found"),
    [
        (None, 2),  # The route's broker leads nothing now, or was taken for another.
        (3, 2),
        (1, None),  # Who answers at the address has proved nothing.
    ],
)
def test_what_is_only_suspected_changes_nothing(own: int | None, found: int | None) -> None:
    scene = Scene()
    for _ in range(3):
        assert scene.look(scene.one, 1, own=own, found=found) == []

    assert (
        scene.one.advertised.crossed,
        scene.misled,
        scene.one.advertised.past,
    ) == ("", {}, False)


def test_what_was_proved_holds_until_the_contrary_is() -> None:
    scene = Scene()
    scene.cross()
    for _ in range(2):
        assert scene.look(scene.one, 1, own=None, found=None) == []

    assert scene.one.advertised.crossed != ""


def test_another_brokers_address_leads_to_a_route() -> None:
    # Route one is before node 2 as well, but where node 3 is advertised.
    scene = Scene(2, 2)
    scene.look(scene.one, 3, arrived=scene.one, found=2)
    told = scene.look(scene.one, 3, arrived=scene.one, found=2)

    assert told == [RouteCrossed(route="one", node=3, address="host:9003", leads_to="one", found=2)]
    assert scene.one.advertised.crossed != ""
    assert scene.two.advertised.crossed == ""
    assert scene.two.endpoint(3) is None


def test_another_brokers_address_that_leads_elsewhere_by_now_is_crossed_no_longer() -> None:
    """As when its name was wrong for a while; what answers there is not asked."""
    scene = Scene()
    for _ in range(2):
        scene.look(scene.one, 3, arrived=scene.two, found=2)
    assert scene.two.advertised.crossed

    # It may be down, or not resolve.
    assert scene.look(scene.one, 3) == []
    assert scene.two.advertised.crossed
    told = scene.look(scene.one, 3, away=True)
    assert told == [AdvertisedRight(route="two", node=3, address="host:9003")]
    assert (scene.two.advertised.crossed, scene.misled) == ("", {})
    assert scene.look(scene.one, 3, away=True) == []
    assert scene.destinations.pause(scene.one) == 60


def test_what_was_found_before_a_broker_was_known_behind_its_route_ends_with_its_own_look() -> None:
    scene = Scene()
    # Its broker was down when the process began.
    scene.two.broker.node = None
    for _ in range(2):
        scene.look(scene.one, 2, arrived=scene.one, found=1)
    assert scene.one.advertised.crossed
    scene.two.broker.node = 2

    told = scene.look(scene.two, 2, arrived=scene.two)
    assert told == [AdvertisedRight(route="two", node=2, address="host:9002")]
    assert (scene.one.advertised.crossed, scene.misled) == ("", {})


def test_a_crossing_is_reported_once_more_by_the_route_whose_broker_proves_to_be_that_node() -> (
    None
):
    scene = Scene()
    scene.two.broker.node = None
    for _ in range(2):
        scene.look(scene.one, 2, arrived=scene.one, found=1)
    scene.two.broker.node = 2
    crossed = {"arrived": scene.one, "own": 2, "found": 1}

    assert [scene.look(scene.two, 2, **crossed) for _ in range(2)] == [
        [RouteCrossed(route="two", node=2, address="host:9002", leads_to="one", found=1)],
        [],
    ]


def test_what_another_route_found_of_a_broker_ends_with_the_look_of_the_one_that_looks_now() -> (
    None
):
    """The first route that knows the cluster looks at other brokers. Its broker may have been down
    when the process began, and another route have looked until then."""
    scene = Scene()
    view, scene.one.broker.view = scene.one.broker.view, None
    for _ in range(2):
        scene.look(scene.two, 3, arrived=scene.two, found=2)
    scene.one.broker.view = view
    assert [at.node for at in scene.destinations.unsettled(scene.one)] == [3]

    told = scene.look(scene.one, 3, away=True)
    assert told == [AdvertisedRight(route="two", node=3, address="host:9003")]
    assert (scene.two.advertised.crossed, scene.misled) == ("", {})
    # Nobody looks from there soon for what is over.
    assert scene.destinations.pause(scene.two) == 60


def test_a_look_at_one_address_of_a_broker_ends_nothing_that_was_found_at_another() -> None:
    """Routes may be of several listeners, with an address each for a broker."""
    scene = Scene()
    for _ in range(2):
        scene.look(scene.two, 3, arrived=scene.two, found=2)
    inside = Endpoint("inside", 9003, None)
    scene.one.broker.endpoints = {**ADDRESSES, 3: inside}
    for _ in range(2):
        look = Look(node=3, endpoint=inside, arrived=scene.one, found=1)
        scene.take(scene.one, look)
    scene.take(scene.one, Look(node=3, endpoint=inside, away=True))

    assert scene.two.advertised.crossed
    assert scene.misled == {3: ADDRESSES[3]}


@pytest.mark.parametrize("node", [None, 3])
def test_what_was_found_at_a_route_whose_broker_is_another_node_by_now_is_forgotten(
    node: int | None,
) -> None:
    """That the address leads there is right, if the broker is node 3."""
    scene = Scene()
    for _ in range(2):
        scene.look(scene.one, 3, arrived=scene.two, found=2)
    scene.forget()
    assert scene.two.advertised.crossed
    scene.two.broker.node = node
    scene.forget()

    assert (scene.two.advertised.crossed, scene.misled) == ("", {})


@pytest.mark.parametrize("found", [1, 3])
def test_a_broker_that_proves_to_be_another_node_than_its_route_takes_it_for_proves_nothing(
    found: int,
) -> None:
    """What is known of leaders is outdated, or what is known of the broker."""
    scene = Scene()
    for _ in range(2):
        assert scene.look(scene.one, 3, arrived=scene.two, found=found) == []
    assert (scene.two.advertised.crossed, scene.misled) == ("", {})
    # It is not known to be right either, and one of both is corrected within seconds.
    assert scene.destinations.unsettled(scene.one) != []
    assert scene.destinations.pause(scene.one) == 2


def test_a_route_of_another_cluster_is_asked_what_its_broker_is_in_this_one() -> None:
    scene = Scene()
    scene.two.broker.view, scene.two.broker.node = LeaderView("another"), 7
    for _ in range(2):
        told = scene.look(scene.one, 3, arrived=scene.two, found=2)
    assert told == [RouteCrossed(route="two", node=3, address="host:9003", leads_to="two", found=2)]
    scene.forget()
    assert scene.two.advertised.crossed


def test_only_one_route_looks_soon_at_what_other_brokers_addresses_did_not_prove() -> None:
    scene = Scene()
    view, scene.one.broker.view = scene.one.broker.view, None
    scene.look(scene.two, 3, arrived=scene.two)
    assert scene.destinations.pause(scene.two) == 2
    scene.one.broker.view = view
    assert [scene.destinations.pause(route) for route in scene.routes] == [2, 60]


def test_what_was_not_looked_at_for_longest_comes_first() -> None:
    scene = Scene()
    nodes = (3, 4, 5)
    endpoints = {node: Endpoint("host", 9000 + node, None) for node in nodes}
    for route in scene.routes:
        route.broker.endpoints = {**ADDRESSES, **endpoints}
    looked = []
    for node in (3, 4, 5, 3, 4, 5, 4):
        look = Look(node=node, endpoint=endpoints[node], arrived=scene.two, found=2)
        scene.take(scene.one, look)
        reason = scene.two.advertised.crossed
        looked.append([at.node for at in scene.destinations.unsettled(scene.one)])
    assert looked[2:] == [[3, 4, 5], [4, 5, 3], [5, 3, 4], [3, 4, 5], [3, 5, 4]]
    # What is reported of a route does not change with each look.
    assert "node 3 advertises" in reason


def test_what_was_found_of_other_brokers_from_a_route_is_known() -> None:
    scene = Scene()
    scene.cross()
    assert scene.destinations.unsettled(scene.one) == []
    for _ in range(2):
        scene.look(scene.one, 3, arrived=scene.two, found=2)
    assert [at.node for at in scene.destinations.unsettled(scene.one)] == [3]
    scene.two.broker.view = LeaderView("another")
    assert scene.destinations.unsettled(scene.two) == []


def test_clients_that_go_past_are_reported_and_served() -> None:
    scene = Scene()
    past = {"own": 1, "found": 1, "unraised": True}

    assert scene.look(scene.one, 1, **past) == []
    assert scene.look(scene.one, 1, **past) == [
        AdvertisedPast(route="one", node=1, address="host:9001")
    ]
    assert (scene.one.advertised.past, scene.one.advertised.crossed) == (True, "")
    assert scene.one.endpoint(1) == ADDRESSES[1]
    # Switched off: what is there proves nothing any more.
    assert scene.look(scene.one, 1, own=1, found=1) == []
    assert scene.one.advertised.past
    assert scene.look(scene.one, 1, own=1, found=1, unraised=False) == [
        AdvertisedRight(route="one", node=1, address="host:9001")
    ]
    assert not scene.one.advertised.past


def test_a_route_whose_broker_is_not_known_any_more_is_not_advertised_past() -> None:
    """No look is made from it, so no look would end that."""
    scene = Scene()
    for _ in range(2):
        scene.look(scene.one, 1, own=1, found=1, unraised=True)
    scene.forget()
    assert scene.one.advertised.past
    scene.one.broker.node = None
    scene.forget()
    assert not scene.one.advertised.past


@pytest.mark.parametrize(
    ("errors", "node"),
    [
        ((NOT_LEADER, NONE, NOT_LEADER), 2),
        ((NONE, FENCED, FENCED), 1),
        # That all others are ruled out is no proof here: one of them may be starting.
        ((NOT_LEADER, NOT_LEADER, FENCED), None),
        # A view that is out of date: nobody is two brokers.
        ((NONE, NONE, NOT_LEADER), None),
        ((), None),
    ],
)
def test_only_what_a_broker_leads_proves_which_it_is(
    errors: tuple[int, ...], node: int | None
) -> None:
    asked = {("t", number): Leader(number + 1, 5) for number in range(3)}

    assert proved(asked, {("t", number): error for number, error in enumerate(errors)}) == node


def test_a_look_costs_no_look_at_each_broker_of_each_route() -> None:
    """With 300 routes and 1000 brokers each look took 230 ms of one step, five times a second."""
    lines = []
    for count in (20, 60):
        view = LeaderView("k")
        endpoints = {node: Endpoint("host", node, None) for node in range(count)}
        routes = [
            Route(
                f"r{node}", Mode.ON, broker=BrokerState(view=view, endpoints=endpoints, node=node)
            )
            for node in range(count)
        ]
        destinations = Destinations(routes)
        for route, node in zip(routes, range(count), strict=True):
            seen = Look(node=node, endpoint=endpoints[node], arrived=route)
            destinations.take(route, seen, 0.0)
        look = Look(node=0, endpoint=endpoints[0], arrived=routes[0])
        lines.append(lines_of(partial(destinations.take, routes[0], look, 2.0)))
        lines.append(lines_of(partial(destinations.pause, routes[0])))
    look_few, pause_few, look_many, pause_many = lines
    assert look_many < 4 * look_few
    assert pause_many == pause_few


def _looks_at_crossed(count: int) -> list[int]:
    """Return what looks cost with so many crossed routes: found, found again, and put right."""
    view = LeaderView("k")
    endpoints = {node: Endpoint("host", node, None) for node in range(count)}
    routes = [
        Route(f"r{node}", Mode.ON, broker=BrokerState(view=view, endpoints=endpoints, node=node))
        for node in endpoints
    ]
    destinations, clock = Destinations(routes), itertools.count(step=2)

    def look(node: int, found: int) -> int:
        there = {"endpoint": endpoints[node], "arrived": routes[found]}
        seen = Look(node=node, own=node, found=found, **there)  # type: ignore[arg-type]
        return lines_of(partial(destinations.take, routes[node], seen, next(clock)))

    for _ in range(2):
        for node in range(1, count):
            look(node, node - 1)
    lines = [look(0, count - 1), look(0, count - 1), look(0, count - 1)]
    assert all(route.advertised.crossed for route in routes)
    assert len(view.misled) == count
    assert most_lines(destinations.forgetting()) < 10 * count
    return [*lines, look(0, 0)]


def test_a_look_at_a_crossed_route_costs_no_look_at_all_others() -> None:
    """With 300 crossed routes a look took 30 to 140 ms of one step."""
    assert _looks_at_crossed(20) == _looks_at_crossed(60)
