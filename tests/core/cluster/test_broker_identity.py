import pytest

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.broker_identity import (
    Probe,
    conclude,
    is_settled,
    listed,
    next_conclusion,
    presume,
    probing,
)
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.harness.lines import most_lines

NOT_LEADER, FENCED, UNKNOWN_EPOCH = 6, 74, 75
_ASKED = {("t", p): Leader(node, 5) for p, node in enumerate((1, 2, 3))}


def _route(nodes: tuple[int, ...] = (1, 2, 3)) -> Route:
    route = Route("r", Mode.ON)
    route.broker.endpoints = {node: Endpoint("host", node, None) for node in nodes}
    return route


def _answer(*errors: int) -> dict[tuple[str, int], int]:
    return {("t", p): error for p, error in enumerate(errors)}


def test_one_partition_of_each_leader_is_asked_for_with_its_epoch() -> None:
    view = LeaderView("c")
    partitions = (Led(0, 1, 5), Led(1, 2, 6), Led(2, 1, 7), Led(3, -1, 8), Led(4, 4, -1))
    view.learn(TopicMetadata(0, "t", ZERO_ID, partitions), None)
    asked: Probe = {}
    assert not list(probing(view, asked, Source(None)))
    assert asked == {("t", 0): Leader(1, 5), ("t", 1): Leader(2, 6)}


def test_a_broker_is_not_asked_about_what_it_reports_otherwise() -> None:
    """It lags, say, and leads the former topic of the name at the same epoch (world 505968)."""
    view = LeaderView("c")
    news = TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 0), Led(1, 1, 0)))
    view.learn(news, 1)
    former = TopicMetadata(0, "t", ZERO_ID, (Led(0, 3, 0), Led(1, 1, 0)))
    view.learn(former, None, route="r")
    # The leader confirms it to the proxy, so the partition is not in doubt.
    view.leader_confirms("t", 0, Leader(2, 0))
    asked: Probe = {}
    assert not list(probing(view, asked, Source(None, "r")))
    assert asked == {("t", 1): Leader(1, 0)}
    asked = {}
    assert not list(probing(view, asked, Source(None, "other")))
    assert asked == {("t", 0): Leader(2, 0), ("t", 1): Leader(1, 0)}
    # Since then it knows the new one.
    view.learn(news, None, route="r")
    asked = {}
    assert not list(probing(view, asked, Source(None, "r")))
    assert ("t", 0) in asked


def test_a_broker_is_not_asked_about_a_topic_of_which_it_reports_a_former_id() -> None:
    """One that is cut off goes on to lead the former topic, mostly at epoch 0, too."""
    former_id, topic_id = b"o" * 16, b"n" * 16
    view = LeaderView("c")
    former = TopicMetadata(0, "t", former_id, (Led(0, 1, 0),))
    view.learn(former, 1, route="r1", poll=True)
    view.hidden.take(former, "r1")
    present = TopicMetadata(0, "t", topic_id, (Led(0, 2, 0),))
    view.learn(present, 2, route="r2", poll=True)
    view.hidden.take(present, "r2")
    # As soon as another broker has reported the new one: at a start all are asked together.
    for _ in range(2):
        for source in (Source(1, "r1"), Source(None, "r1")):
            # Which node it is may not stay proved.
            asked: Probe = {}
            assert not list(probing(view, asked, source))
            assert asked == {}
        view.learn(former, 1, route="r1", poll=True)
    for source in (Source(2, "r2"), Source(None, "r3")):
        asked = {}
        assert not list(probing(view, asked, source))
        assert asked == {("t", 0): Leader(2, 0)}
    # It is connected again.
    view.learn(present, 1, route="r1", poll=True)
    view.hidden.take(present, "r1")
    asked = {}
    assert not list(probing(view, asked, Source(1, "r1")))
    assert asked == {("t", 0): Leader(2, 0)}


def test_what_is_asked_is_looked_up_in_steps() -> None:
    """100,000 topics of one partition took 26 ms of one step."""
    view = LeaderView("c")
    for number in range(3500):
        view.learn(TopicMetadata(0, f"t{number}", ZERO_ID, (Led(0, number // 100, 5),)), None)
    asked: Probe = {}
    steps = probing(view, asked, Source(None))
    next(steps)
    # One is deleted meanwhile, and one comes.
    view.learn(TopicMetadata(3, "t2000", ZERO_ID, ()), None)
    view.learn(TopicMetadata(0, "new", ZERO_ID, (Led(0, 77, 5),)), None)
    assert most_lines(steps) < 15_000
    assert asked[("t2001", 0)] == Leader(20, 5)
    assert {leader.node for leader in asked.values()} == {*range(35)}


def test_who_answers_as_the_leader_is_it() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0, NOT_LEADER))
    assert route.broker.node == 2
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [False, True, False]


def test_a_node_that_a_former_topic_ruled_out_may_be_the_broker_again() -> None:
    """The broker had not learnt yet that the topic was recreated, and leads nothing since: it was
    polled past its own route, as a broker behind none, for as long as its connection lasted.
    """
    route, view = _route(), LeaderView("c")
    route.broker.view = view
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 5), Led(1, 2, 5))), 1)
    conclude(route.broker, {("t", 0): Leader(1, 5), ("t", 1): Leader(2, 5)}, _answer(6, 6))
    assert route.broker.others == {1, 2}
    # By what it is asked about it is ruled out on.
    conclude(route.broker, {("t", 0): Leader(1, 5)}, _answer(75))
    assert route.broker.others == {1, 2}
    view.learn(TopicMetadata(3, "t", ZERO_ID, ()), 1)
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 0),)), 1)
    conclude(route.broker, {("t", 0): Leader(1, 0)}, _answer(6))
    assert route.broker.others == {1}
    assert route.broker.node is None


def test_who_refuses_is_another() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, FENCED, UNKNOWN_EPOCH))
    assert route.broker.node is None
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [False, None, None]


def test_the_last_one_left_is_it() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, FENCED, FENCED))
    conclude(route.broker, _ASKED, _answer(FENCED, NOT_LEADER, FENCED))
    assert route.broker.node == 3


@pytest.mark.parametrize("error", [3, FENCED, UNKNOWN_EPOCH, 78])
def test_other_errors_and_silence_prove_nothing(error: int) -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(error, error))
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [None] * 3


def test_a_broker_that_was_replaced_is_no_longer_taken_for_the_old_one() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, 0))
    assert route.broker.node == 3
    # Another broker stands there now. It leads nothing yet, so all it can say is who it is not.
    conclude(route.broker, _ASKED, _answer(FENCED, NOT_LEADER, NOT_LEADER))
    assert route.broker.node == 1
    conclude(route.broker, _ASKED, _answer(FENCED, NOT_LEADER, NOT_LEADER))
    assert route.broker.node == 1


def test_what_is_proved_outweighs_what_was_ruled_out_before() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, FENCED))
    assert route.broker.node == 3
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    assert route.broker.node == 1
    # It leads nothing for a while: that must not bring the broker before it back.
    conclude(route.broker, _ASKED, _answer(FENCED, NOT_LEADER, FENCED))
    assert route.broker.node == 1


# Guesses.

_TWO_LEADS = {("t", 0): Leader(2, 5)}


def test_a_guess_does_not_replace_a_proof() -> None:
    # A KRaft broker that restarts answers before its own Metadata lists it; node 3 leads nothing.
    route = _route()
    conclude(route.broker, {("t", 0): Leader(1, 4)}, _answer(0))
    presume(route.broker)
    route.broker.endpoints = {node: route.broker.endpoints[node] for node in (2, 3)}
    for _ in range(2):
        conclude(route.broker, _TWO_LEADS, _answer(NOT_LEADER))
        assert (route.broker.node, route.broker.proved_node) == (1, 1)
        assert [route.broker.is_self(node) for node in (1, 2, 3)] == [True, False, False]


def test_a_guess_is_made_again_at_each_look_and_says_nothing_of_nodes_not_listed() -> None:
    route = _route((2, 3))
    conclude(route.broker, _TWO_LEADS, _answer(NOT_LEADER))
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [None, False, True]
    assert route.broker.guessed
    route.broker.endpoints = _route().broker.endpoints
    conclude(route.broker, _TWO_LEADS, _answer(NOT_LEADER))
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [None, False, None]
    conclude(route.broker, {("t", 0): Leader(1, 6)}, _answer(0))
    assert not route.broker.guessed
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [True, False, False]


def test_a_guess_does_not_outlive_its_connection() -> None:
    route = _route((2, 3))
    conclude(route.broker, _TWO_LEADS, _answer(NOT_LEADER))
    presume(route.broker)
    assert (route.broker.node, route.broker.others) == (None, frozenset())


def test_a_broker_must_refuse_for_some_time_where_that_is_asked() -> None:
    route = _route()
    refuses = _answer(NOT_LEADER, FENCED, FENCED)
    conclude(route.broker, _ASKED, refuses, 10.0, 1.0)
    conclude(route.broker, _ASKED, refuses, 10.9, 1.0)
    assert route.broker.is_self(1) is None
    # It did not know yet what it leads.
    conclude(route.broker, _ASKED, _answer(UNKNOWN_EPOCH, FENCED, FENCED), 11.5, 1.0)
    conclude(route.broker, _ASKED, refuses, 12.0, 1.0)
    assert route.broker.is_self(1) is None
    conclude(route.broker, _ASKED, refuses, 13.0, 1.0)
    assert route.broker.is_self(1) is False


def test_a_refusal_counts_on_its_own_connection_alone() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 10.0, 2.0)
    presume(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 13.0, 2.0)
    assert route.broker.proved_node == 1
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 15.0, 2.0)
    assert route.broker.proved_node is None


def test_a_proof_is_not_undone_by_a_broker_that_does_not_know_yet_what_it_leads() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0), 10.0, 1.0)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER), 20.0, 1.0)
    assert route.broker.proved_node == 1
    conclude(route.broker, _ASKED, _answer(NOT_LEADER), 21.0, 1.0)
    assert route.broker.node is None


def test_a_broker_that_leads_for_two_nodes_is_neither() -> None:
    # What is known of one of the partitions is of a former topic.
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, 0, FENCED))
    assert route.broker.node is None


def test_a_proof_against_an_earlier_one_must_last() -> None:
    """A broker may lead the former topic of a name at the epoch at which another leads this one."""
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 10.0, 1.0)
    assert is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 11.0, 1.0)
    assert route.broker.proved_node == 1
    assert next_conclusion(route.broker, 11.0, 1.0) == 12.0
    assert not is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 11.5, 1.0)
    assert is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 12.5, 1.0)
    assert route.broker.proved_node == 1
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 13.5, 1.0)
    assert route.broker.proved_node is None


def test_a_proof_of_a_node_that_the_broker_is_not_must_last() -> None:
    """A topic was recreated, and nobody has said so: the broker leads that one, node 3 led it."""
    broker = _route().broker
    conclude(broker, _ASKED, _answer(FENCED, FENCED, NOT_LEADER))
    assert broker.others == {3}
    conclude(broker, _ASKED, _answer(FENCED, FENCED, 0), now=10.0, patience=1.0)
    assert (broker.node, broker.others) == (None, frozenset({3}))
    assert not is_settled(broker)
    assert next_conclusion(broker, 10.0, 1.0) == 11.0
    # By then the view knows of the topic: what is asked now is about that.
    conclude(broker, _ASKED, _answer(0, FENCED, FENCED), now=11.0, patience=1.0)
    assert broker.proved_node == 1


def test_such_a_proof_counts_once_it_has_lasted() -> None:
    broker = _route().broker
    conclude(broker, _ASKED, _answer(FENCED, FENCED, NOT_LEADER))
    for now in (10.0, 11.0):
        conclude(broker, _ASKED, _answer(FENCED, FENCED, 0), now=now, patience=1.0)
    assert (broker.proved_node, broker.others) == (3, frozenset())


def test_two_proofs_that_contradict_each_other_count_for_neither() -> None:
    """Broker 1 led a former topic of the name; the view still had node 2 for it. Afterwards neither
    led what the proxy may see, and it was taken for node 2 until a topic of its own was seen.
    """
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 10.0, 1.0)
    presume(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 20.0, 1.0)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 21.0, 1.0)
    assert route.broker.proved_node is None
    for now in (22.0, 50.9):
        # A broker that was restarted meanwhile may lag all the same.
        presume(route.broker)
        assert next_conclusion(route.broker, now, 1.0) == 51.0
        conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), now, 1.0)
        assert not is_settled(route.broker)
    # What has lasted for so long is no lag.
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 51.0, 1.0)
    assert route.broker.proved_node == 2
    assert is_settled(route.broker)


def test_where_the_name_leads_to_another_address_the_later_proof_counts() -> None:
    route = _route()
    presume(route.broker, "10.0.0.1")
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 10.0, 1.0)
    presume(route.broker, "10.0.0.2")
    # It may be the same broker with a new address, as a new pod has one.
    assert route.broker.proved_node == 1
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 20.0, 1.0)
    assert route.broker.proved_node == 1
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 21.0, 1.0)
    assert route.broker.proved_node == 2
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 22.0, 0.0)
    assert route.broker.proved_node is None


def test_a_dispute_of_two_nodes_ends_by_the_proof_of_a_third() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER), 10.0, 0.0)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0), 11.0, 0.0)
    assert route.broker.proved_node is None
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, 0), 12.0, 1.0)
    assert route.broker.proved_node == 3
    assert route.broker.disputed is None


def _moved(route: Route, **ports: int) -> dict[int, Endpoint]:
    moved = {int(node[1:]): Endpoint("host", port, None) for node, port in ports.items()}
    return {**route.broker.endpoints, **moved}


def test_a_node_that_is_advertised_elsewhere_may_not_stand_here_any_more() -> None:
    """New pods at each other's address lead nothing at first: no answer tells them apart."""
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    assert listed(route.broker, _moved(route, n1=2, n2=1)) == ({1, 2}, True)
    assert route.broker.node is None
    assert [route.broker.is_self(node) for node in (1, 2, 3)] == [None, None, None]
    conclude(route.broker, {("t", 1): Leader(2, 6)}, {("t", 1): 0})
    assert route.broker.proved_node == 2
    assert not listed(route.broker, _moved(route, n1=2, n2=1)).refuted
    assert route.broker.proved_node == 2


def test_a_node_is_the_same_where_another_one_has_moved_or_its_rack_is_another() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    assert not listed(route.broker, _moved(route, n2=9)).refuted
    assert not listed(route.broker, {1: Endpoint("host", 1, "rack")}).refuted
    assert route.broker.proved_node == 1


def test_who_has_moved_is_listed_elsewhere_than_before() -> None:
    broker = _route().broker
    assert listed(broker, _moved(_route(), n2=9)).moved == {2}
    third = broker.endpoints[3]
    same = {1: Endpoint("host", 1, "rack"), 3: third, 4: Endpoint("host", 4, None)}
    assert listed(broker, same).moved == set()


def test_who_was_not_listed_for_a_while_has_moved_if_it_is_listed_elsewhere_then() -> None:
    broker, came_back = _route().broker, _moved(_route(), n2=9)
    for nodes in ((1, 3), (1,)):
        fewer = {node: broker.endpoints[node] for node in nodes}
        assert listed(broker, fewer).moved == set()
    assert listed(broker, came_back).moved == {2}
    assert listed(broker, {**came_back, 2: Endpoint("host", 2, None)}).moved == {2}


def test_where_nodes_were_is_remembered_of_a_thousand() -> None:
    broker = _route(()).broker
    for begin in range(0, 3000, 600):
        endpoints = {node: Endpoint("host", node, None) for node in range(begin, begin + 600)}
        listed(broker, endpoints)
    assert [*broker.left] == [*range(1400, 2400)]


def test_a_node_is_not_listed_for_a_while_and_then_elsewhere() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    before = route.broker.endpoints
    assert not listed(route.broker, {2: before[2], 3: before[3]}).refuted
    presume(route.broker)
    assert not listed(route.broker, before).refuted
    assert not listed(route.broker, {2: before[2], 3: before[3]}).refuted
    assert listed(route.broker, _moved(route, n1=9)).refuted
    assert route.broker.node is None


def test_a_node_is_not_listed_and_another_is_advertised_where_it_was() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    after = _moved(route, n2=1)
    assert not listed(route.broker, after).refuted
    del after[1]
    assert listed(route.broker, after) == ({1}, True)
    assert route.broker.node is None


def test_where_a_node_was_says_nothing_of_another_that_is_proved_later() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER), 9.0)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0, NOT_LEADER), 10.0)
    assert not listed(route.broker, _moved(route, n1=9)).refuted
    assert route.broker.proved_node == 2


def test_a_new_list_is_no_list_of_those_that_are_left() -> None:
    route = _route((2, 3))
    conclude(route.broker, _TWO_LEADS, _answer(NOT_LEADER))
    assert route.broker.guessed
    assert not listed(route.broker, _route().broker.endpoints).refuted
    assert (route.broker.node, route.broker.guessed) == (None, False)


def test_a_broker_is_settled_that_is_proved_and_lists_itself() -> None:
    route = _route()
    assert not is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    assert is_settled(route.broker)
    route.broker.endpoints = {2: Endpoint("host", 2, None)}
    assert not is_settled(route.broker)


def test_a_broker_is_not_settled_while_it_refuses_to_be_what_it_is_proved_to_be() -> None:
    """It was asked again a whole poll later, and was taken for the other node until then."""
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0, NOT_LEADER), 10.0, 1.0)
    assert is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 70.0, 1.0)
    assert route.broker.node == 2
    assert not is_settled(route.broker)
    assert next_conclusion(route.broker, 70.0, 1.0) == 71.0
    # It may have come back, and not have known at once what it leads.
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, 0, NOT_LEADER), 70.5, 1.0)
    assert is_settled(route.broker)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 130.0, 1.0)
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, NOT_LEADER), 131.0, 1.0)
    assert route.broker.node is None


def test_what_a_broker_was_not_is_polled_on_until_the_next_connection_is_asked() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, 3))
    assert route.broker.others == {1, 2}
    for _ in range(2):
        presume(route.broker)
        assert route.broker.others == frozenset()
        assert route.broker.is_self(2) is None
        assert route.broker.elsewhere({1, 2, 3}) == {1, 2}
    # What it leads by now is not asked about; it does not know the topics yet.
    conclude(route.broker, _TWO_LEADS, _answer(3), 10.0, 1.0)
    assert route.broker.elsewhere({1, 2, 3}) == {2}
    listed(route.broker, _moved(route, n2=9))
    assert route.broker.elsewhere({1, 2, 3}) == frozenset()


def test_a_broker_that_is_proved_on_its_next_connection_was_nothing_else() -> None:
    route = _route()
    conclude(route.broker, _ASKED, _answer(NOT_LEADER, NOT_LEADER, 3))
    presume(route.broker)
    conclude(route.broker, _ASKED, _answer(0, NOT_LEADER, NOT_LEADER))
    assert route.broker.elsewhere({1, 2, 3}) == {2, 3}
    assert not route.broker.former_others
