"""Which broker is asked what while error responses are held, also in storms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.cluster import Cluster
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.refresh_plan import RefreshPlan, Request, Round
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.wire.steps import at_once
from tests.core.hold_queues import BEGIN, Counter, route
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import topic_id
from tests.harness.lines import lines_of, most_lines

_ALL_IN_EVERY = 4


@dataclass(frozen=True)
class _Broker:
    """``route``: one of it is behind."""

    node: int | None
    route: Route | None = None

    @property
    def reporter(self) -> int | str:
        return "" if self.node is None else self.node


def _view(*leaders: tuple[int, int], topic: str = "t", number: int = 1) -> LeaderView:
    view = LeaderView("cluster", lambda: BEGIN)
    return _learn(view, leaders, topic, number)


def _learn(
    view: LeaderView, leaders: Iterable[tuple[int, int]], topic: str = "t", number: int = 1
) -> LeaderView:
    led = tuple(Led(partition, *leader) for partition, leader in enumerate(leaders))
    view.learn(TopicMetadata(0, topic, topic_id(number), led), None)
    return view


class _Scene:
    """A route before node 1, and clients of it whose Fetches failed under epoch 5.

    ``most``: partitions of one round.
    """

    def __init__(
        self,
        view: LeaderView,
        most: int = 1000,
        nodes: Sequence[int] = (1, 2, 3),
        *,
        name: str = "route",
    ) -> None:
        self.route = route(name=name)
        self.route.broker.view = view
        self.route.broker.endpoints = {node: Endpoint(f"b-{node}", 9092, None) for node in nodes}
        self.cluster = Cluster(view)
        self.plan = RefreshPlan(most)
        self.brokers = [_Broker(node, self.route if node == 1 else None) for node in nodes]
        self._counter = Counter(replace(DEFAULT_RULES, deadline=10, link_second=10, confirm=10))
        self._links = 0

    def fails(self, *partitions: int, topic: str | bytes = topic_id(1), epoch: int = 5) -> None:
        """Hold the error of one more client."""
        self._links += 1
        link = LinkState(self.route, self._links)
        epochs = dict.fromkeys(partitions or (0,), epoch)
        assert self._counter.fetch(link, BEGIN, epochs, topic=topic) is None

    def wanted(self) -> WantedLeaders:
        self._counter.review(BEGIN)
        (wanted,) = self._counter.queue.wanted_leaders()
        return wanted

    def round(self, unread: int = 0, *, begin: bool = True) -> Round[_Broker]:
        """Plan one round, or one more route's part of it."""
        if begin:
            self.plan.begin()
        return at_once(self.plan.round(self.wanted(), self.cluster, self.brokers, unread))

    def requests(self, unread: int = 0, *, begin: bool = True) -> list[Request[_Broker]]:
        return [*self.round(unread, begin=begin).requests]

    def metadata(self, unread: int = 0) -> dict[int | None, set[str]]:
        """Who is asked for which topics in the next round."""
        return {r.broker.node: {*r.topics} for r in self.requests(unread) if r.topics}

    def epochs(self) -> dict[int | None, dict[Partition, int]]:
        """Who is asked in the next round whether it leads, and at which epochs."""
        return {r.broker.node: dict(r.epochs) for r in self.requests() if r.epochs}


# Few errors.


def test_all_are_asked_whether_they_lead_at_the_next_epoch() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails()
    assert scene.epochs() == {node: {("t", 0): 6} for node in (1, 2, 3)}


def test_only_brokers_behind_routes_are_asked_for_metadata_but_all_in_every_fourth_round() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails()
    rounds = [{*scene.metadata()} for _ in range(2 * _ALL_IN_EVERY)]
    assert rounds == 2 * [{1}, {1}, {1}, {1, 2, 3}]


def test_rounds_are_counted_from_when_something_is_held() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails()
    for _ in range(_ALL_IN_EVERY - 1):
        scene.metadata()
    scene.plan.reset()
    assert {*scene.metadata()} == {1}


def test_of_a_leader_that_is_named_only_that_one_is_asked_at_its_epoch() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails()
    _learn(scene.cluster.view, [(2, 6)])
    assert scene.epochs() == {2: {("t", 0): 6}}


def test_a_broker_that_denied_is_not_asked_again_at_that_epoch() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails()
    denied = {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
    scene.cluster.learn_leadership(3, {("t", 0): 6}, denied)
    assert {*scene.epochs()} == {1, 2}


def test_where_an_epoch_is_over_all_are_asked_at_the_next() -> None:
    scene = _Scene(_view((1, 5)))
    # Otherwise it might lead a former topic of the name.
    scene.cluster.view.learn(TopicMetadata(0, "t", topic_id(1), (Led(0, 1, 5),)), 2)
    scene.fails()
    for node in (1, 3):
        denied = {("t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
        scene.cluster.learn_leadership(node, {("t", 0): 6}, denied)
    scene.cluster.learn_leadership(2, {("t", 0): 6}, {("t", 0): ErrorCode.FENCED_LEADER_EPOCH})
    assert scene.epochs() == {node: {("t", 0): 7} for node in (1, 2, 3)}


def test_a_broker_whose_node_is_not_known_may_lead_anything() -> None:
    scene = _Scene(_view((1, 5)))
    scene.brokers = [_Broker(None, scene.route), _Broker(2), _Broker(3)]
    scene.fails()
    _learn(scene.cluster.view, [(2, 6)])
    assert scene.epochs() == {node: {("t", 0): 6} for node in (None, 2)}


def test_in_doubt_the_leader_of_the_view_and_the_one_named_instead_are_asked() -> None:
    scene = _Scene(_view((3, 8)))
    _learn(scene.cluster.view, [(2, 8)])
    assert scene.cluster.view.in_doubt("t", 0)
    scene.fails(epoch=7)
    assert scene.epochs() == {3: {("t", 0): 8}, 2: {("t", 0): 8}}


def test_ids_without_a_name_are_looked_up_and_asked_about_nowhere() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails(topic=topic_id(9))
    scene.fails(1, topic=topic_id(9))
    planned = scene.round()
    assert planned.unnamed == [topic_id(9)]
    assert not any(request.topics or request.epochs for request in planned.requests)


def test_a_name_that_the_view_lacks_is_asked_for_and_not_looked_up() -> None:
    scene = _Scene(_view((1, 5)))
    scene.fails(topic="new")
    planned = scene.round()
    assert planned.unnamed == []
    assert [[*request.topics] for request in planned.requests] == [["new"], [], []]


def test_topics_are_asked_for_in_the_order_in_which_they_are_waited_for() -> None:
    scene = _Scene(_view((1, 5)))
    topics = [f"t{number * 7 % 20}" for number in range(20)]
    for topic in topics:
        scene.fails(topic=topic)
    assert [*scene.requests()[0].topics] == topics


def test_nobody_is_asked_where_nobody_can_be() -> None:
    scene = _Scene(_view((1, 5)), nodes=())
    scene.fails()
    assert scene.requests() == []


# Storms.


def _storm(partitions: int, most: int, nodes: Sequence[int] = (1, 2, 3)) -> _Scene:
    scene = _Scene(_view(*[(1, 5)] * partitions), most, nodes)
    scene.fails(*range(partitions))
    return scene


def test_in_a_storm_nobody_is_asked_whether_it_leads_before_a_leader_is_named() -> None:
    scene = _storm(40, most=100)
    assert scene.epochs() == {}
    leaders = [(2, 6)] * 10 + [(3, 6)] * 10 + [(1, 5)] * 20
    _learn(scene.cluster.view, leaders)
    asked = scene.epochs()
    assert asked == {
        2: {("t", number): 6 for number in range(10)},
        3: {("t", number): 6 for number in range(10, 20)},
    }


def test_in_a_storm_metadata_comes_from_all_brokers_in_turn() -> None:
    scene = _storm(40, most=100)
    assert [{*scene.metadata()} for _ in range(4)] == [{1, 2}, {3, 1}, {2, 3}, {1, 2}]


def test_in_a_storm_no_metadata_is_asked_for_while_answers_wait_to_be_read() -> None:
    scene = _storm(40, most=100)
    assert scene.metadata(unread=2) == {}
    assert scene.metadata(unread=1) != {}


def test_where_errors_are_few_metadata_is_asked_for_all_the_same() -> None:
    scene = _storm(1, most=100)
    assert scene.metadata(unread=100) == {1: {"t"}}


def test_many_clients_of_one_partition_are_no_storm() -> None:
    scene = _Scene(_view((1, 5)), most=10)
    for _ in range(50):
        scene.fails()
    assert scene.epochs() == {node: {("t", 0): 6} for node in (1, 2, 3)}


def test_of_many_leaders_some_are_asked_in_each_round_and_all_in_turn() -> None:
    nodes = range(1, 101)
    scene = _storm(100, most=1000, nodes=nodes)
    _learn(scene.cluster.view, [(node + 1, 6) for node in range(100)])
    asked: set[int | None] = set()
    for _ in range(6):
        epochs = scene.epochs()
        # A request costs as much as 25 partitions, and a round has 500.
        assert 1 <= len(epochs) <= 500 // 26
        asked |= {*epochs}
    # Node 1 answered the error, so a hint to it needs its own answer first.
    assert len(asked) >= 99


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.integers(1, 30),
    st.integers(20, 400),
    st.integers(1, 9),
)
def test_a_round_costs_no_more_than_it_may_and_rounds_reach_all_topics(
    sizes: list[int], brokers: int, most: int, clients: int
) -> None:
    """``clients``: of each topic."""
    view = LeaderView("cluster", lambda: BEGIN)
    for number, size in enumerate(sizes):
        _learn(view, [(1, 5)] * size, f"t{number}", number + 1)
    scene = _Scene(view, most, range(1, brokers + 1))
    for number, size in enumerate(sizes):
        for _ in range(clients):
            scene.fails(*range(size), topic=topic_id(number + 1))
    reached: set[str] = set()
    for _ in range(_ALL_IN_EVERY * brokers * len(sizes)):
        requests = scene.requests()
        cost = [sum(view.partitions(name) for name in r.topics) for r in requests]
        # One topic may be larger by itself.
        assert sum(cost) <= most or sum(len(r.topics) for r in requests) == 1
        assert sum(len(r.epochs) for r in requests) <= most
        reached.update(name for r in requests for name in r.topics)
        if len(reached) == len(sizes):
            return
    assert len(reached) == len(sizes)


@pytest.mark.parametrize(("topics", "failing"), [(30, 1), (30, 20)])
def test_a_route_with_little_to_ask_for_does_not_have_another_begin_again(
    topics: int, failing: int
) -> None:
    """``failing``: partitions of each topic; with 20 it is a storm."""
    view = LeaderView("cluster", lambda: BEGIN)
    for number in range(topics):
        _learn(view, [(1, 5)] * 100, f"t{number}", number + 1)
    much = _Scene(view)
    little = _Scene(_view((1, 5)), name="another")
    little.plan = much.plan
    for number in range(topics):
        much.fails(*range(failing), topic=topic_id(number + 1))
    little.fails()
    reached: set[tuple[int | None, str]] = set()
    for _ in range(3 * topics):
        for scene in (much, little):
            for request in scene.requests(begin=False):
                reached.update((request.broker.node, topic) for topic in request.topics)
        much.plan.begin()
    assert {(node, f"t{number}") for node in (1, 2, 3) for number in range(topics)} <= reached


def test_a_route_with_few_leaders_to_ask_does_not_have_another_begin_again() -> None:
    nodes = range(1, 101)
    much = _storm(100, most=1000, nodes=nodes)
    little = _Scene(_view(*[(1, 5)] * 40), most=10, name="another")
    little.plan = much.plan
    little.fails(*range(40))
    _learn(little.cluster.view, [(2, 6)] * 40)
    _learn(much.cluster.view, [(node + 1, 6) for node in range(100)])
    asked: set[int | None] = set()
    for _ in range(12):
        asked |= {*much.epochs()}
        assert {*little.epochs()} == {2}
    assert len(asked) >= 99


def test_hints_that_are_off_ask_nothing() -> None:
    scene = _Scene(_view((1, 5)))
    scene.route.switch(Mode.OFF)
    assert scene._counter.queue.wanted_leaders() == []


def test_a_storm_of_5000_partitions_asks_no_broker_again_before_all_were_asked() -> None:
    """Brokers that lag leave all leaders unknown: a round asks for one slice all the same."""
    topics, rounds, most = 500, 45, 1000
    view = _view((1, 5), topic="another", number=9999)
    for number in range(topics):
        _learn(view, [(1, 5)] * 10, f"t{number}", number + 1)
    scene = _Scene(view, most)
    for number in range(topics):
        scene.fails(*range(10), topic=topic_id(number + 1))
    asked = dict.fromkeys(((node, f"t{n}") for node in (1, 2, 3) for n in range(topics)), 0)
    requests = 0
    for _ in range(rounds):
        named = 0
        for request in scene.round().requests:
            requests += bool(request.topics)
            named += 10 * len(request.topics)
            for topic in request.topics:
                asked[request.broker.node or 0, topic] += 1
        assert 0 < named <= most
    assert set(asked.values()) == {rounds * most // (3 * 10 * topics)}
    assert requests == rounds


def test_a_round_for_very_many_topics_is_planned_in_short_steps() -> None:
    """For 10,000 topics it took 18 ms of one step."""
    topics = 3000
    view = _view((1, 5), topic="another", number=9999)
    for number in range(topics):
        _learn(view, [(1, 5)], f"t{number}", number + 1)
    scene = _Scene(view)
    for number in range(topics):
        scene.fails(topic=topic_id(number + 1))
        _learn(view, [(2, 6)], f"t{number}", number + 1)
    for _ in range(topics // 100):
        scene.wanted()
    wanted = scene.wanted()
    assert len(wanted) == topics
    scene.plan.begin()
    steps = scene.plan.round(wanted, scene.cluster, scene.brokers, 0)
    whole = lines_of(lambda: at_once(scene.plan.round(wanted, scene.cluster, scene.brokers, 0)))
    assert most_lines(steps) < 0.6 * whole


def test_a_round_for_few_is_planned_at_once() -> None:
    """Each turn of the event loop would have a held response wait longer."""
    scene = _storm(40, most=100)
    scene.plan.begin()
    steps = scene.plan.round(scene.wanted(), scene.cluster, scene.brokers, 0)
    with pytest.raises(StopIteration):
        next(steps)
