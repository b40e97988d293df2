"""What is known of one cluster, and what of it is reported or polled."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Brokers, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.cluster import Cluster, Clusters
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import LeaderChange, LeaderMoved, TopicsHidden
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.core.samples import topic_id
from tests.harness.lines import lines_of

_ENDPOINTS = {node: Endpoint(f"b-{node}", 9092, None) for node in (1, 2, 3)}
_HIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_T0, _T1 = ("t", 0), ("t", 1)


def _cluster(*leaders: tuple[int, int]) -> Cluster:
    """Return one whose topic ``t`` has a leader and epoch for each partition."""
    cluster = Cluster(LeaderView("k"))
    led = tuple(Led(number, *leader) for number, leader in enumerate(leaders))
    cluster.view.learn(TopicMetadata(0, "t", ZERO_ID, led), None)
    return cluster


def _route(node: int | None, name: str = "r") -> Route:
    return Route(name, Mode.ON, broker=BrokerState(endpoints=_ENDPOINTS, node=node))


# Lists of brokers.


def test_lists_that_say_the_same_are_one() -> None:
    """A thousand routes had as many lists of a thousand brokers."""
    cluster = _cluster()
    first = Brokers(dict(_ENDPOINTS), b"123")
    assert cluster.share(first) is first
    assert cluster.share(Brokers(dict(_ENDPOINTS), b"123")) is first
    assert cluster.share(first) is first
    # In another order: the next answer is still held against what that broker has said.
    turned = cluster.share(Brokers(dict(reversed(_ENDPOINTS.items())), b"321"))
    assert turned.endpoints is first.endpoints
    assert turned.raw == b"321"
    less = Brokers({1: _ENDPOINTS[1]}, b"1")
    assert cluster.share(less) is less
    assert cluster.share(Brokers(dict(less.endpoints), b"1")) is less


# Hidden topics.


def test_that_topics_are_hidden_is_reported_once_until_none_is() -> None:
    cluster = _cluster((1, 5))
    permitted = partial(cluster.view.hidden.take, route="r")
    assert cluster.hidden_topics("b-1", "r") == []
    permitted(TopicMetadata(_HIDDEN, "secret", ZERO_ID, ()))
    assert cluster.hidden_topics("b-1", "r") == [TopicsHidden(cluster="k", broker="b-1", visible=1)]
    permitted(TopicMetadata(_HIDDEN, "another", ZERO_ID, ()))
    assert cluster.hidden_topics("b-2", "r") == []
    for name in ("secret", "another"):
        permitted(TopicMetadata(0, name, ZERO_ID, ()))
        assert cluster.hidden_topics("b-1", "r") == []
    permitted(TopicMetadata(_HIDDEN, ANY_TOPIC, ZERO_ID, ()))
    assert len(cluster.hidden_topics("b-3", "r")) == 1


# Leadership.


def test_a_broker_that_leads_at_the_next_epoch_has_moved() -> None:
    cluster = _cluster((1, 5))
    learnt = cluster.learn_leadership(2, {_T0: 6}, {_T0: ErrorCode.NONE})
    (moved,) = learnt.moves
    assert isinstance(moved, LeaderMoved)
    assert (moved.leader_before, moved.leader, moved.epoch) == (1, 2, 6)
    assert cluster.view.leader(*_T0) == Leader(2, 6)
    assert cluster.view.is_confirmed(*_T0)
    assert [*learnt.confirmed] == ["t"]
    assert not learnt.epoch_over


def test_partitions_that_hundreds_of_brokers_contradicted_are_confirmed_in_a_short_step() -> None:
    """Of 500, as many as one question has, with 500 routes: 0.2 s."""
    count = 100
    cluster = _cluster(*[(1, 5)] * count)
    for node in range(200):
        former = TopicMetadata(0, "t", ZERO_ID, tuple(Led(p, 9, 4) for p in range(count)))
        cluster.view.learn(former, 10 + node, route=f"r{node}", poll=True)
    asked = {("t", partition): 6 for partition in range(count)}
    learnt: list[LeaderChange] = []

    def take() -> None:
        leads = dict.fromkeys(asked, int(ErrorCode.NONE))
        learnt.extend(cluster.learn_leadership(2, asked, leads).moves)

    assert lines_of(take) < 20_000
    assert len(learnt) == count


def test_a_leader_confirms_a_move_once() -> None:
    cluster = _cluster((1, 5))
    led = TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 6),))
    cluster.view.learn(led, 1)
    for confirms in (["t"], []):
        learnt = cluster.learn_leadership(2, {_T0: 6}, {_T0: ErrorCode.NONE})
        assert ([*learnt.confirmed], learnt.moves) == (confirms, [])
    # Of one that has led for long nothing is to be confirmed, nor does a former leader confirm.
    assert not _cluster((1, 5)).learn_leadership(1, {_T0: 5}, {_T0: ErrorCode.NONE}).confirmed
    assert not cluster.learn_leadership(1, {_T0: 5}, {_T0: ErrorCode.NONE}).confirmed


def test_a_broker_that_never_leads_at_an_epoch_is_not_asked_again() -> None:
    cluster = _cluster((1, 5))
    cluster.learn_leadership(2, {_T0: 6}, {_T0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    assert not cluster.candidates.may_lead(2, _T0, 6)


@pytest.mark.parametrize("error", [None, ErrorCode.UNKNOWN_LEADER_EPOCH, 3, 29])
def test_a_broker_that_may_lead_later_is_asked_again(error: int | None) -> None:
    cluster = _cluster((1, 5))
    errors = {} if error is None else {_T0: error}
    learnt = cluster.learn_leadership(2, {_T0: 6}, errors)
    assert (learnt.moves, learnt.epoch_over) == ([], False)
    assert cluster.candidates.may_lead(2, _T0, 6)


@pytest.mark.parametrize(
    ("error", "confirmed"),
    [
        (ErrorCode.NONE, True),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (ErrorCode.FENCED_LEADER_EPOCH, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (_HIDDEN, None),
    ],
)
def test_a_leader_that_metadata_names_confirms_or_denies(
    error: int, confirmed: bool | None
) -> None:
    cluster = _cluster((1, 5))
    cluster.view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 6),)), 3)
    cluster.learn_leadership(2, {_T0: 6}, {_T0: error})
    assert cluster.view.is_confirmed(*_T0) is confirmed


def test_a_leader_that_does_not_know_the_topic_yet_settles_no_doubt() -> None:
    """It has just been started, and what was cut off from the controller may confirm the other."""
    now = 0.0
    cluster = Cluster(LeaderView("k", lambda: now))
    for leader, source in ((Led(0, 1, 5), 1), (Led(0, 2, 1), 2)):
        cluster.view.learn(TopicMetadata(0, "t", ZERO_ID, (leader,)), source)
    now = 1.0
    cluster.learn_leadership(2, {_T0: 1}, {_T0: ErrorCode.NONE})
    learnt = cluster.learn_leadership(1, {_T0: 5}, {_T0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    assert (learnt.moves, cluster.view.leader(*_T0)) == ([], Leader(1, 5))
    assert cluster.learn_leadership(1, {_T0: 5}, {_T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}).moves


def test_that_an_epoch_is_over_is_news_once() -> None:
    cluster = _cluster((1, 5), (1, 5))
    answers = ({_T0: 6, _T1: 6}, {_T0: ErrorCode.FENCED_LEADER_EPOCH, _T1: ErrorCode.NONE})
    assert cluster.learn_leadership(2, *answers).epoch_over
    assert not cluster.learn_leadership(3, *answers).epoch_over
    assert cluster.candidates.epoch(_T0, 6) == 7


def test_answers_of_a_broker_that_is_not_proved_are_no_nodes() -> None:
    cluster = _cluster((1, 5))
    learnt = cluster.learn_leadership(None, {_T0: 6}, {_T0: ErrorCode.NONE})
    assert learnt == ([], {}, {}, {_T0: 0}, False)
    assert cluster.view.leader(*_T0) == Leader(1, 5)


def test_one_that_may_lead_a_former_topic_is_to_be_asked_for_its_metadata() -> None:
    cluster = Cluster(LeaderView("k"))
    cluster.view.learn(TopicMetadata(0, "t", topic_id(1), (Led(0, 1, 5),)), 1)
    answers = ({_T0: 6}, {_T0: ErrorCode.NONE})
    learnt = cluster.learn_leadership(2, *answers)
    assert (learnt.moves, [*learnt.doubted]) == ([], ["t"])
    cluster.view.learn(TopicMetadata(0, "t", topic_id(1), (Led(0, 1, 5),)), 2)
    learnt = cluster.learn_leadership(2, *answers)
    assert (len(learnt.moves), learnt.doubted) == (1, {})


def test_an_epoch_that_one_says_is_over_who_may_lead_a_former_topic_is_not() -> None:
    """Its epochs are higher for ever: no broker was asked at the next one of the present topic."""
    cluster = Cluster(LeaderView("k"))
    for node in (1, 2):
        cluster.view.learn(TopicMetadata(0, "t", topic_id(1), (Led(0, 1, 5),)), node)
    over = ({_T0: 6}, {_T0: ErrorCode.FENCED_LEADER_EPOCH})
    assert not cluster.learn_leadership(3, *over).epoch_over
    assert cluster.candidates.epoch(_T0, 6) == 6
    assert cluster.learn_leadership(2, *over).epoch_over
    assert cluster.candidates.epoch(_T0, 6) == 7


def test_in_doubt_an_answer_is_not_about_the_epoch_of_the_view() -> None:
    cluster = _cluster((1, 5), (1, 5))
    cluster.view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 1), Led(1, 1, 5))), 3)
    assert cluster.view.in_doubt(*_T0)
    learnt = cluster.learn_leadership(1, {_T0: 5, _T1: 5}, {_T0: 0, _T1: 0})
    assert learnt.of_the_view == {_T1: 0}


# Who is polled.


def test_the_brokers_behind_no_route_are_polled_where_the_listener_has_them() -> None:
    one, two = _route(1, "one"), _route(2, "two")
    assert _cluster().others(one, [one]) == {2: _ENDPOINTS[2], 3: _ENDPOINTS[3]}
    assert _cluster().others(one, [one, two]) == {3: _ENDPOINTS[3]}


def test_nobody_is_polled_who_may_be_behind_a_route() -> None:
    one, unknown = _route(1, "one"), _route(None, "unknown")
    assert _cluster().others(one, [one, unknown]) == {}
    unknown.broker.others = frozenset({3})
    assert _cluster().others(one, [one, unknown]) == {3: _ENDPOINTS[3]}


def test_what_brokers_have_reported_that_nobody_asks_any_more_does_not_count() -> None:
    """It kept a sidecar's own broker, which nobody knew by then, from settling anything."""
    cluster, route = _cluster((2, 5)), _route(1)
    view, doubted = cluster.view, TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 3),))
    assert cluster.others(route, [route]) == {2: _ENDPOINTS[2], 3: _ENDPOINTS[3]}
    view.learn(doubted, 3)
    route.broker.node = None
    assert cluster.others(route, [route]) == {}
    for _ in range(2):
        view.learn(doubted._replace(partitions=(Led(0, 1, 3),)), None, route="r", poll=True)
    assert view.leader("t", 0) == Leader(1, 3)


def test_an_address_at_which_another_broker_answers_is_not_polled() -> None:
    one, cluster = _route(1), _cluster()
    cluster.view.misled = frozenset({(2, _ENDPOINTS[2])})
    assert cluster.others(one, [one]) == {3: _ENDPOINTS[3]}
    cluster.view.misled = frozenset({(2, Endpoint("elsewhere", 9092, None))})
    assert cluster.others(one, [one]) == {2: _ENDPOINTS[2], 3: _ENDPOINTS[3]}


def test_who_is_polled_is_found_at_little_cost_with_many_routes_and_brokers() -> None:
    routes = [_route(node, f"r{node}") for node in range(100)]
    for route in routes:
        route.broker.endpoints = {n: Endpoint(f"b-{n}", 9092, None) for n in range(200)}
    others: list[dict[int, Endpoint] | None] = []
    cluster = _cluster()
    assert lines_of(lambda: others.append(cluster.others(routes[0], routes))) < 2500
    assert (others[0] or {}).keys() == {*range(100, 200)}


def _moves(cluster: Cluster, route: Route) -> None:
    route.broker.endpoints = {**_ENDPOINTS, 4: Endpoint("b-4", 9092, None)}


def _is_misled(cluster: Cluster, route: Route) -> None:
    cluster.view.misled = frozenset({(2, _ENDPOINTS[2])})


def _is_guessed(cluster: Cluster, route: Route) -> None:
    route.broker.guessed = True


def _rules_out(cluster: Cluster, route: Route) -> None:
    route.broker.others = frozenset({2})


@pytest.mark.parametrize("change", [_moves, _is_misled, _is_guessed, _rules_out])
def test_it_is_looked_at_again_only_where_something_has_changed(
    change: Callable[[Cluster, Route], None],
) -> None:
    cluster, one = _cluster(), _route(1)
    assert cluster.others(one, [one]) is not None
    assert cluster.others(one, [one]) is None
    change(cluster, one)
    assert cluster.others(one, [one]) is not None
    assert cluster.others(one, [one]) is None


@given(
    st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), st.booleans()), min_size=1, max_size=3),
    st.frozensets(st.integers(1, 3)),
)
def test_no_broker_of_a_route_is_ever_polled_as_another(
    nodes: list[tuple[int | None, bool]], ruled_out: frozenset[int]
) -> None:
    routes = [_route(node, f"r{number}") for number, (node, _) in enumerate(nodes)]
    for route, (_, guessed) in zip(routes, nodes, strict=True):
        route.broker.guessed, route.broker.others = guessed, ruled_out - {route.broker.node}
    others = _cluster().others(routes[0], routes)
    assert others == {
        node: endpoint
        for node, endpoint in _ENDPOINTS.items()
        if all(route.broker.is_self(node) is False for route in routes)
    }


@pytest.mark.parametrize("proved", [True, False])
def test_a_further_route_costs_no_look_at_each_broker(*, proved: bool) -> None:
    """With 300 routes and 1000 brokers a look took 80 ms of one step, at each news of a route."""
    nodes = range(100)
    endpoints = {node: Endpoint(f"b-{node}", 9092, None) for node in nodes}
    routes = [_route(node if proved else None, f"r{node}") for node in range(50)]
    for route in routes:
        route.broker.endpoints, route.broker.others = endpoints, frozenset(range(50, 100))
    few, many = (
        lines_of(partial(_cluster().others, routes[0], routes[:count])) for count in (10, 50)
    )
    assert many - few < 40 * 20
    assert [*(_cluster().others(routes[0], routes) or ())] == [*range(50, 100)]


# All clusters.


def test_clusters_that_are_not_kept_are_forgotten() -> None:
    clusters = Clusters(lambda: 7.0)
    one, two = clusters.met("one"), clusters.met("two")
    assert clusters.met("one") is one
    assert clusters.get("two") is two
    assert clusters.get(None) is None
    assert clusters.get("three") is None
    assert clusters.keep({"two", "three"}) == [one]
    assert clusters.keep({"two", "three"}) == []
    assert [*clusters] == [two]
    assert clusters.get("one") is None
    assert clusters.met("one") is not one
