from collections.abc import Mapping

import pytest

from leader_hints.apis.metadata import UNTOLD_ID, ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from tests.core.cluster.views import answer, view_of
from tests.core.samples import topic_id
from tests.harness.lines import most_lines

# Topics recreated, and deleted.


def test_a_recreated_topic_begins_at_its_own_epochs() -> None:
    view = view_of({0: (1, 50), 1: (1, 50)}, topic=topic_id(1))
    view.learn(answer({0: (2, 0)}, topic=topic_id(2)), None)
    assert view.leader("t", 0) == view.leader(topic_id(2), 0) == Leader(2, 0)
    assert view.leader(topic_id(1), 0) is None
    assert view.leader("t", 1) is None
    assert view.before("t", 0) is None


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_former_topics_leader_brings_no_epoch_into_a_recreated_one() -> None:
    """It is asked by name, and has not heard yet that the topic is another."""
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(answer({0: (1, 5)}, topic=topic_id(1)), None)
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), None)
    assert not view.leader_confirms("t", 0, Leader(1, 5))
    assert view.leader("t", 0) == Leader(3, 0)
    assert view.disagreements.topics(10) == {topic_id(2)}
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 1)
    # Its Metadata may have learnt that before its replica.
    assert not view.leader_confirms("t", 0, Leader(1, 5))
    time.now += 11.0
    assert view.leader_confirms("t", 0, Leader(1, 1))
    assert view.leader("t", 0) == Leader(1, 1)
    assert not view.disagreements


def test_an_id_that_another_topic_has_teaches_nothing() -> None:
    """A hostile broker's. It took the other topic's place, and what was noted of that one raised an
    exception each time that a broker was advertised elsewhere, on the connection that said so."""
    view = view_of({0: (1, 5), 9: (1, 5)}, topic=topic_id(1))
    view.learn(answer({0: (1, 5), 9: (1, 5)}, topic=topic_id(1)), 2)
    assert view.leader_confirms("t", 9, Leader(2, 6))
    view.learn(TopicMetadata(0, "another", topic_id(1), (Led(0, 3, 7),)), 3)
    assert view.topics.name(topic_id(1)) == "t"
    assert view.topics.name(topic_id(1)) == "t"
    assert view.leader("another", 0) is None
    assert view.topics.have_ids
    view.withdraw({2})
    assert view.leader("t", 9) == Leader(-1, 6)


@pytest.mark.parametrize("absent", [0, 2])
def test_a_broker_that_is_cut_off_for_long_brings_no_epoch_into_a_recreated_topic(
    absent: int,
) -> None:
    """It leads the former topic for as long as it hears nothing of its controller.

    ``absent``: polls of another broker between the two topics.
    """
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(answer({0: (1, 5)}, topic=topic_id(1)), 1)
    for _ in range(absent):
        for _ in view.topics.forget_absent(()):
            pass
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 3)
    time.now += 60.0
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 3)
    assert not view.leader_confirms("t", 0, Leader(1, 5))
    assert view.leader("t", 0) == Leader(3, 0)
    # It has learnt of the topic at last.
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 1)
    assert view.leader_confirms("t", 0, Leader(1, 1))


def test_in_a_new_view_a_node_leads_at_a_higher_epoch_if_its_metadata_has_the_topics_id() -> None:
    """Another may lead a former topic of the name: it may have been recreated just before.

    In simulated worlds consumers were hinted at such a leader, by the ids of the recreated topic.
    """
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 3)
    assert not view.leader_confirms("t", 0, Leader(1, 1))
    # It may be the answer of any other broker.
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), None)
    assert not view.leader_confirms("t", 0, Leader(1, 1))
    assert view.leader("t", 0) == Leader(3, 0)
    # It has learnt of the topic, but not of its own leadership: of that a broker's Metadata lags.
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 1)
    assert view.leader_confirms("t", 0, Leader(1, 1))
    assert view.leader("t", 0) == Leader(1, 1)
    assert not view.disagreements


def test_in_a_view_that_is_old_a_node_leads_at_a_higher_epoch() -> None:
    """No broker lags for so long: it cannot lead a former topic of the name any more."""
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(answer({0: (3, 0)}, topic=topic_id(2)), 3)
    time.now += 11.0
    assert view.leader_confirms("t", 0, Leader(1, 1))
    view.learn(answer({0: (3, 2)}, topic=topic_id(2)), 3)
    assert view.leader_confirms("t", 0, Leader(2, 3))


def test_a_lagging_broker_does_not_bring_the_old_topic_back() -> None:
    view = view_of({0: (1, 50)}, topic=topic_id(1))
    view.learn(answer({0: (2, 0)}, topic=topic_id(2)), None)
    for poll in (False, False, True, False):
        view.learn(answer({0: (1, 51)}, topic=topic_id(1)), None, poll=poll)
        assert view.leader("t", 0) == Leader(2, 0)
        assert view.leader(topic_id(1), 0) is None


def test_a_cluster_that_has_ids_no_more_goes_on_to_be_learnt() -> None:
    """It was downgraded, or its metadata version was."""
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    view.learn(answer({0: (2, 6)}), 2, poll=True)
    assert view.leader("t", 0) == Leader(1, 5)
    view.learn(answer({0: (2, 6)}), 2, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.leader(topic_id(1), 0) is None
    assert not view.topics.have_ids
    # And is upgraded again.
    view.learn(answer({0: (3, 7)}, topic=topic_id(1)), None)
    assert view.leader(topic_id(1), 0) == Leader(3, 7)


@pytest.mark.parametrize("poll", [False, True])
def test_a_broker_without_ids_among_others_takes_no_id_away(poll: bool) -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    for _ in range(4):
        view.learn(answer({0: (2, 6)}), None, poll=True)
        view.learn(answer({0: (1, 5)}, topic=topic_id(1)), None, poll=poll)
        assert view.leader(topic_id(1), 0) == Leader(1, 5)


def test_only_polls_take_an_id_away() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    for _ in range(4):
        view.learn(answer({0: (2, 6)}), None)
    assert view.leader(topic_id(1), 0) == Leader(1, 5)


def test_a_former_id_that_two_polls_in_a_row_report_is_the_living_one() -> None:
    # At the start the new id was heard first, and then the old one from a broker that lagged.
    living, dead = topic_id(1), topic_id(2)
    view = view_of({0: (1, 5)}, topic=living)
    view.learn(answer({0: (2, 9)}, topic=dead), None)

    view.learn(answer({0: (1, 5)}, topic=living), 1)
    view.learn(answer({0: (1, 5)}, topic=living), 1, poll=True)
    assert view.topics.key("t") == dead
    view.learn(answer({0: (1, 5)}, topic=living), 1, poll=True)

    assert view.leader("t", 0) == Leader(1, 5)


def test_polls_that_differ_bring_no_former_id_back() -> None:
    living, former = topic_id(1), topic_id(2)
    view = view_of({0: (1, 5)}, topic=former)
    view.learn(answer({0: (1, 0)}, topic=living), None)

    for said in (former, living, former):
        view.learn(answer({0: (1, 0)}, topic=said), None, poll=True)

    assert view.topics.key("t") == living


def test_brokers_that_lag_at_the_same_time_bring_no_former_id_back() -> None:
    """All brokers behind the routes of a process are polled at the same time."""
    living, former = topic_id(1), topic_id(2)
    view = view_of({0: (1, 5)}, topic=former)
    view.learn(answer({0: (1, 0)}, topic=living), 1, poll=True)
    for source in (2, 3):
        view.learn(answer({0: (1, 5)}, topic=former), source, poll=True)
        assert view.topics.key("t") == living
        assert view.leader(living, 0) == Leader(1, 0)
    # Others have not said so in between.
    view.learn(answer({0: (1, 5)}, topic=former), 2, poll=True)
    assert view.topics.key("t") == former


def _poll(view: LeaderView, reports: Mapping[int, bytes]) -> None:
    """Have brokers behind routes of their own polled, in this order."""
    for node, reported in reports.items():
        route, about = f"r{node}", answer({0: (node, 5)}, topic=reported)
        view.learn(about, node, route=route, poll=True)
        view.hidden.take(about, route)


def test_a_broker_that_is_cut_off_brings_no_former_id_back() -> None:
    """It answered last in one poll of all brokers and first in the next one, so no other did in
    between."""
    living, former = topic_id(1), topic_id(2)
    view = view_of({0: (3, 41)}, topic=former)
    _poll(view, {1: living, 2: living, 3: former})
    for _ in range(3):
        _poll(view, {3: former, 1: living, 2: living})
        assert view.topics.key("t") == living
        _poll(view, {1: living, 2: living, 3: former})
        assert view.topics.key("t") == living


def test_a_broker_with_two_routes_is_one_that_is_cut_off() -> None:
    """By two listeners; the other broker has one. The former topic was taken for the present one in
    356 of 360 polls."""
    living, former = topic_id(1), topic_id(2)
    view = view_of({0: (1, 41)}, topic=former)
    for _ in range(4):
        for node, route, reported in (
            (1, "inside", former),
            (1, "outside", former),
            (2, "two", living),
        ):
            about = answer({0: (node, 5)}, topic=reported)
            view.learn(about, node, route=route, poll=True)
            view.hidden.take(about, route)
    assert view.topics.key("t") == living
    # Before it is known which node they lead to, they may be two brokers.
    for _ in range(2):
        for route in ("inside", "outside"):
            view.learn(answer({0: (1, 5)}, topic=former), None, route=route, poll=True)
    assert view.topics.key("t") == former


def test_most_brokers_bring_a_former_id_back() -> None:
    living, former = topic_id(1), topic_id(2)
    view = view_of({0: (1, 5)}, topic=living)
    _poll(view, {1: living, 3: former, 2: living})
    assert view.topics.key("t") == former
    # The one that goes on to report it takes back what it has said itself alone.
    _poll(view, {1: living, 3: former, 2: living})
    assert view.topics.key("t") == living


def test_what_a_broker_said_that_cannot_be_asked_brings_no_former_id_back() -> None:
    """Two are cut off of four. One of them is stopped, and then another one restarts."""
    living, former = topic_id(1), topic_id(2)
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    view.learn(answer({0: (1, 5)}, topic=former), None)
    for _ in range(3):
        _poll(view, {1: living, 4: living, 2: former, 3: former})
    view.hidden.lost("r2")
    now[0] = 60.0
    view.hidden.lost("r4")
    for now[0] in (60.0, 120.0, 180.0):
        _poll(view, {1: living, 3: former})
        assert view.topics.key("t") == living


@pytest.mark.parametrize("seconds", [1, 20, 40, 900])
def test_a_poll_before_an_outage_is_not_the_first_of_two(seconds: float) -> None:
    """The one that is cut off was connected again before the others, and the only one for once."""
    living, former = topic_id(1), topic_id(2)
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    view.learn(answer({0: (1, 5)}, topic=former), None)
    for _ in range(2):
        _poll(view, {1: living, 2: living, 3: former})
    for node in (1, 2, 3):
        view.hidden.lost(f"r{node}")
    now[0] = seconds
    for order in ((3, 1, 2), (3, 1, 2), (1, 2, 3)):
        for node in order:
            # Of another topic, which comes first.
            view.hidden.take(answer({0: (1, 1)}, name="u"), f"r{node}")
            _poll(view, {node: former if node == 3 else living})
            assert view.topics.key("t") == living


def test_connections_that_end_between_two_polls_keep_nothing_from_being_learnt() -> None:
    """Brokers close idle ones, and the next poll is on another one: no former id came back."""
    living, former = topic_id(1), topic_id(2)
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    _poll(view, {1: living})
    view.learn(answer({0: (1, 5)}, topic=former), None)
    for now[0] in (900.0, 1800.0):
        assert view.topics.key("t") == former
        for node in (1, 2, 3):
            view.hidden.lost(f"r{node}")
        now[0] += 0.1
        _poll(view, {1: living, 2: living, 3: living})
    assert view.topics.key("t") == living


def test_nodes_that_know_recreated_topics_are_noted_once_for_all() -> None:
    """5,000 topics of 300 brokers kept 42 MB for good."""
    names, brokers = [f"t{number}" for number in range(50)], range(40)
    view = LeaderView("cluster")
    for generation in (1, 2):
        for node in brokers:
            for number, name in enumerate(names):
                of = topic_id(generation * 100 + number)
                view.learn(answer({0: (1, 0)}, name=name, topic=of), node)
    knowing = [topic.knowing for topic in view.topics]
    assert knowing == [frozenset(brokers)] * len(names)
    assert len({id(nodes) for nodes in knowing}) == 1


def test_a_broker_that_cannot_be_asked_keeps_no_former_id() -> None:
    living, former = topic_id(1), topic_id(2)
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    view.learn(answer({0: (1, 5)}, topic=living), None)
    _poll(view, {1: living, 2: former})
    for _ in range(3):
        _poll(view, {2: former, 1: living})
        assert view.topics.key("t") == former
    view.hidden.lost("r2")
    # It may be back at any moment.
    now[0] = 29.0
    _poll(view, {1: living})
    assert view.topics.key("t") == former
    now[0] = 30.0
    _poll(view, {1: living})
    assert view.topics.key("t") == living


def test_a_cluster_that_gets_ids_keeps_none_of_the_entries_without() -> None:
    view = view_of({0: (1, 50)})
    view.learn(answer({0: (2, 3)}, topic=topic_id(1)), None)
    assert view.leader("t", 0) == Leader(2, 3)
    # A broker that is not upgraded yet gives none, and says nothing that is not known.
    view.learn(answer({0: (3, 4)}), None)
    assert view.leader("t", 0) == Leader(2, 3)


def test_without_ids_a_topic_reported_absent_is_forgotten() -> None:
    view = view_of({0: (1, 50)})
    view.learn(answer({}, error=3), None)
    assert view.leader("t", 0) is None
    view.learn(answer({0: (2, 0)}), None)
    assert view.leader("t", 0) == Leader(2, 0)


def test_without_ids_a_forgotten_topics_moves_are_forgotten_too() -> None:
    view = view_of({0: (1, 50)}, {0: (2, 51)})
    view.learn(answer({}, error=3), None)
    view.learn(answer({0: (2, 0)}), None)
    assert view.before("t", 0) is None
    assert view.is_confirmed("t", 0)


def test_with_ids_a_lagging_broker_that_lacks_a_topic_costs_nothing() -> None:
    view = view_of({0: (1, 50)}, topic=topic_id(1))
    view.learn(answer({}, error=3), None)
    assert view.leader("t", 0) == Leader(1, 50)


@pytest.mark.parametrize("error", [3, 5, 29, 100])
def test_an_error_without_partitions_teaches_nothing(error: int) -> None:
    view = LeaderView("cluster")
    assert view.learn(answer({}, error=error), None) == []
    assert not view.topics.names


@pytest.mark.parametrize("topic", [ZERO_ID, topic_id(1)])
def test_a_topic_absent_from_two_polls_of_everything_is_forgotten(topic: bytes) -> None:
    view = view_of({0: (1, 5)}, topic=topic)
    list(view.topics.forget_absent({"other"}))
    assert view.leader("t", 0) == Leader(1, 5)
    list(view.topics.forget_absent(set()))
    assert view.leader("t", 0) is None
    assert len(view) == 0
    assert not view.topics.names


def test_a_topic_seen_between_two_polls_is_not_forgotten() -> None:
    view = view_of({0: (1, 5)})
    list(view.topics.forget_absent(set()))
    view.learn(answer({0: (1, 5)}), None)
    list(view.topics.forget_absent(set()))
    assert view.leader("t", 0) == Leader(1, 5)


def test_a_topic_is_forgotten_by_a_route_that_has_shown_it() -> None:
    """Two routes whose principal may not see it said that it was deleted."""
    view = view_of({0: (1, 5)})
    view.hidden.take(answer({0: (1, 5)}), "seeing")
    for _ in range(3):
        for blind in ("one", "another"):
            list(view.topics.forget_absent(set(), blind))
    assert view.leader("t", 0) == Leader(1, 5)
    for _ in range(2):
        assert view.leader("t", 0) == Leader(1, 5)
        list(view.topics.forget_absent(set(), "seeing"))
    assert view.leader("t", 0) is None


def test_each_routes_polls_count_for_themselves() -> None:
    view = view_of({0: (1, 5)})
    for route in ("one", "another"):
        view.hidden.take(answer({0: (1, 5)}), route)
    for route in ("one", "another"):
        list(view.topics.forget_absent(set(), route))
    assert view.leader("t", 0) == Leader(1, 5)
    list(view.topics.forget_absent(set(), "another"))
    assert view.leader("t", 0) is None


def _forgotten(*ids: bytes) -> LeaderView:
    """Return a view that knows a topic of these ids, one after the other, no more."""
    view = LeaderView("cluster")
    for node, one in enumerate(ids, 1):
        for route in ("one", "another"):
            view.learn(answer({0: (node, 5)}, topic=one), node, route=route)
            view.hidden.take(answer({0: (node, 5)}, topic=one), route)
    for _ in range(2):
        list(view.topics.forget_absent(set(), "one"))
    assert view.leader("t", 0) is None
    return view


def test_a_former_id_is_not_back_though_polls_lacked_the_topic_meanwhile() -> None:
    """One broker, which was away from before it was deleted, brought it back for two minutes."""
    view = _forgotten(topic_id(1))
    view.learn(answer({0: (2, 0)}, topic=topic_id(2)), 2, route="one")
    topic = view.topics.get("t")
    assert topic is not None
    assert [topic.is_another_to(Source(None, one)) for one in ("one", "another")] == [False, True]
    view.learn(answer({0: (1, 5)}, topic=topic_id(1)), 3, route="third")
    assert view.leader("t", 0) == Leader(2, 0)
    assert topic.is_another_to(Source(3, "third"))
    # Each route counts once it has reported the new id, in any answer.
    for route in ("another", "third"):
        view.learn(answer({0: (2, 0)}, topic=topic_id(2)), 3, route=route)
        assert not topic.is_another_to(Source(3, route))


@pytest.mark.parametrize(("shown", "another"), [(ZERO_ID, True), (UNTOLD_ID, False)])
def test_a_topic_without_an_id_may_be_another_than_the_one_with_an_id(
    shown: bytes, another: bool
) -> None:
    """While an upgrade to ids is half done, a recreated topic has none. Its leader was taken to be
    the former one's: it led it at the same epoch. Of clients' Metadata without ids nothing follows.
    """
    view = view_of({0: (2, 0)}, topic=topic_id(1))
    view.learn(answer({0: (3, 0)}, topic=shown), None, route="third", poll=True)
    topic = view.topics.get("t")
    assert topic is not None
    assert topic.is_another_to(Source(None, "third")) == another
    found: dict[tuple[str, int], Leader] = {}
    list(view.one_led_by_each(found, Source(None, "third")))
    assert bool(found) != another
    view.learn(answer({0: (3, 1)}, topic=topic_id(1)), None, route="third")
    assert not topic.is_another_to(Source(3, "third"))


@pytest.mark.parametrize("first", [1, 2])
def test_a_topic_that_is_shown_again_is_the_same(first: int) -> None:
    """Nothing tells whether its id or a former one of its name is shown first."""
    view = _forgotten(topic_id(1), topic_id(2))
    for number in (first, 2, 1):
        view.learn(answer({0: (number, 5)}, topic=topic_id(number)), 3, route="one")
    assert view.leader(topic_id(2), 0) == view.leader("t", 0) == Leader(2, 5)


@pytest.mark.parametrize("untold", [UNTOLD_ID, ZERO_ID])
def test_a_topic_that_is_shown_without_its_id_first_gets_it_from_any_answer(untold: bytes) -> None:
    """A client's Metadata has no ids up to version 9. Polls take two minutes."""
    view = _forgotten(topic_id(1), topic_id(2))
    for one in (untold, topic_id(1), topic_id(2)):
        view.learn(answer({0: (2, 5)}, topic=one), 2, route="one")
    assert view.leader(topic_id(2), 0) == Leader(2, 5)
    topic = view.topics.get("t")
    assert topic is not None
    assert not topic.is_another_to(Source(2, "one"))


def test_no_former_id_is_back_though_the_topic_was_shown_without_one_meanwhile() -> None:
    view = _forgotten(topic_id(1))
    view.learn(answer({0: (2, 0)}, topic=UNTOLD_ID), 2, route="one")
    view.learn(answer({0: (2, 0)}, topic=topic_id(2)), 2, route="one")
    view.learn(answer({0: (1, 5)}, topic=topic_id(1)), 3, route="third")
    assert view.leader("t", 0) == Leader(2, 0)


@pytest.mark.parametrize("why", ["left", "hidden", "never shown"])
def test_what_no_route_shows_is_forgotten_by_any(why: str) -> None:
    """Clients' Metadata shows it, or has."""
    view = view_of({0: (1, 5)})
    if why != "never shown":
        view.hidden.take(answer({0: (1, 5)}), "seeing")
    if why == "left":
        view.leave("seeing")
    if why == "hidden":
        view.hidden.take(answer({}, error=29), "seeing")
    for _ in range(2):
        assert view.leader("t", 0) == Leader(1, 5)
        list(view.topics.forget_absent(set(), "blind"))
    assert view.leader("t", 0) is None


def test_topics_share_sets_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set for each of 100,000 topics takes 20 MB."""
    view = LeaderView("cluster")
    for name in ("a", "b"):
        view.learn(answer({0: (1, 5)}, name=name), None)
        for route in ("one", "another"):
            view.hidden.take(answer({0: (1, 5)}, name=name), route)
    one, another = view.topics
    assert one.seen is another.seen
    assert one.seen == {"one", "another"}
    monkeypatch.setattr("leader_hints.core.cluster.known_topics._MOST_GROUPS", 1)
    view.hidden.take(answer({}, name="a", error=29), "one")
    assert one.seen == {"another"}


def test_topics_that_are_gone_are_forgotten_one_at_a_time() -> None:
    """Thousands may go at once, and others are to have their turn in between."""
    view = LeaderView("cluster")
    names = [f"topic-{number}" for number in range(100)]
    for number, name in enumerate(names):
        led = TopicMetadata(0, name, topic_id(number + 1), (Led(0, 1, 5), Led(1, 1, 5)))
        view.learn(led, None)
    list(view.topics.forget_absent(set()))
    steps = view.topics.forget_absent(set())
    for left in range(99, 49, -1):
        next(steps)
        assert (len(view.topics.names), len(view)) == (left, 2 * left)
    # Meanwhile another broker says that one is there, and that one is another by now.
    view.learn(TopicMetadata(0, names[-1], topic_id(100), (Led(0, 1, 5),)), None)
    view.learn(TopicMetadata(0, names[-2], topic_id(500), (Led(0, 2, 0),)), None)
    assert list(steps)
    assert {*view.topics.names} == {*names[-2:]}
    assert view.leader(names[-2], 0) == Leader(2, 0)


def test_topics_are_looked_up_in_steps_also_where_none_is_gone() -> None:
    view = LeaderView("cluster")
    names = [f"topic-{number}" for number in range(5000)]
    for number, name in enumerate(names):
        view.learn(TopicMetadata(0, name, topic_id(number + 1), (Led(0, 1, 5),)), None)
    assert len([*view.topics.forget_absent({*names})]) == 5
    assert len(view) == 5000


def test_all_topics_are_forgotten_in_short_steps() -> None:
    """Python's search for garbage took 200 ms longer where it found and freed 100,000."""
    view = LeaderView("cluster")
    for number in range(1000):
        led = TopicMetadata(0, f"topic-{number}", topic_id(number + 1), (Led(0, 1, 5),))
        view.learn(led, None)
    for epoch in (5, 6):
        view.learn(answer(dict.fromkeys(range(4000), (1, epoch))), None)
    assert most_lines(view.forgetting()) < 16_000
    assert (len(view), [*view.topics], [*view.topics.names]) == (0, [], [])
    assert view.moved_at("t", 3999) is None
    assert view.topics.name(synthetic_id("cluster", "t")) is None


# Answers that have no ids for any topic.


def test_a_topic_in_an_answer_without_ids_takes_no_ids_from_the_cluster() -> None:
    """A client of Java 2.7 asks for it. New links got no Fetch by ids until the next poll, in front
    of 2.8 and 3.0, and that for as long as they lived."""
    view = view_of({0: (1, 5)}, topic=topic_id(1))

    view.learn(answer({0: (1, 0)}, name="new", topic=UNTOLD_ID), 1)

    assert view.topics.have_ids
    assert view.leader("new", 0) == Leader(1, 0)

    view.learn(answer({0: (2, 1)}, name="new", topic=topic_id(2)), 1)
    assert view.topics.have_ids
    assert view.leader(topic_id(2), 0) == Leader(2, 1)


def test_a_topic_without_an_id_is_one_as_soon_as_an_answer_can_tell() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    view.learn(answer({0: (1, 0)}, name="new", topic=UNTOLD_ID), 1)

    view.learn(answer({0: (2, 1)}, name="new"), 1)

    assert not view.topics.have_ids
    assert view.leader("new", 0) == Leader(2, 1)
    # What one answer has shown is not taken back.
    view.learn(answer({0: (2, 1)}, name="new", topic=UNTOLD_ID), 1)
    assert not view.topics.have_ids
    view.topics.drop("new")
    assert view.topics.have_ids


def test_answers_without_ids_show_no_ids() -> None:
    view = view_of({0: (1, 5)}, topic=UNTOLD_ID)
    view.learn(answer({0: (1, 5)}, name="other"), 1, poll=True)
    assert not view.topics.have_ids
    # Nor do they take an id away.
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    for _ in range(4):
        view.learn(answer({0: (2, 6)}, topic=UNTOLD_ID), None)
    assert view.topics.have_ids
    assert view.leader(topic_id(1), 0) == Leader(1, 5)


# Synthetic ids.


_SYNTHETIC = synthetic_id("cluster", "t")


def test_a_synthetic_id_leads_to_the_topic() -> None:
    for known in (ZERO_ID, topic_id(1)):
        view = view_of({0: (1, 5)}, {0: (2, 6)}, topic=known)
        assert view.topics.name(_SYNTHETIC) == "t"
        assert view.topics.key(_SYNTHETIC) == view.topics.key("t")
        assert view.leader(_SYNTHETIC, 0) == Leader(2, 6)
        assert view.before(_SYNTHETIC, 0) == Leader(1, 5)


def test_a_synthetic_id_is_no_id_to_the_view() -> None:
    view = view_of({0: (1, 5)}, topic=_SYNTHETIC)
    assert view.topics.key("t") == "t"
    assert not view.topics.have_ids
    view.learn(answer({0: (2, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)


def test_a_synthetic_id_does_not_take_the_place_of_a_real_one() -> None:
    """It cannot tell the topic from a former one of its name, whose epochs were higher."""
    view = view_of({0: (1, 0)}, topic=topic_id(2))
    view.learn(answer({0: (2, 50)}, topic=_SYNTHETIC), None)
    assert view.leader("t", 0) == Leader(1, 0)
    assert view.topics.key("t") == topic_id(2)


def test_a_recreated_topic_keeps_its_synthetic_id() -> None:
    view = view_of({0: (1, 5)})
    view.learn(answer({}, error=3), None)
    assert view.topics.name(_SYNTHETIC) == "t"
    assert view.leader(_SYNTHETIC, 0) is None
    view.learn(answer({0: (2, 0)}), None)
    assert view.leader(_SYNTHETIC, 0) == Leader(2, 0)


def test_names_are_made_known_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.known_topics._SYNTHETIC_IDS", 2)
    view = LeaderView("cluster")
    made = [view.topics.synthesize_id(name) for name in ("a", "b", "a", "c")]
    assert made[0] == made[2] == synthetic_id("cluster", "a")
    assert [view.topics.name(one) for one in made[1:]] == [None, "a", "c"]


def test_what_merely_does_not_exist_is_not_remembered() -> None:
    view = view_of({0: (1, 5)})
    view.learn(answer({}, name="u", error=3), None)
    assert view.topics.name(synthetic_id("cluster", "u")) is None
