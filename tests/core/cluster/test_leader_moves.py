import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.metadata import ZERO_ID, Led
from leader_hints.core.cluster.doubts import Place, Reporter
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_moves import MOST_GONE, LeaderMoves
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import LeaderMoved
from tests.core.cluster.views import answer, led_by_each, old_view_of, view_of
from tests.core.samples import topic_id


def test_when_a_move_was_learnt_is_remembered() -> None:
    now = 3.0
    view = LeaderView("cluster", lambda: now)
    view.learn(answer({0: (1, 5), 1: (1, 5)}), None)
    assert view.moved_at("t", 0) is None
    view.learn(answer({0: (2, 6)}), None)
    now = 4.0
    view.learn(answer({0: (2, 6)}), 2)
    assert (view.moved_at("t", 0), view.moved_at("t", 1)) == (3.0, None)
    view.leader_confirms("t", 0, Leader(3, 7))
    assert view.moved_at("t", 0) == 4.0


@pytest.mark.parametrize(
    ("node", "later", "serves"), [(2, 0.25, True), (2, 0.24, False), (1, 0.25, False)]
)
def test_a_leader_that_has_served_a_client_serves(node: int, later: float, serves: bool) -> None:
    now = 3.0
    view = LeaderView("cluster", lambda: now)
    view.learn(answer({0: (1, 5)}), None)
    view.learn(answer({0: (2, 6)}), 2)
    assert not view.serves("t", 0)
    # What comes earlier may be the answer of an earlier term.
    now += later
    view.served("t", 0, node)
    assert view.serves("t", 0) is serves


def test_only_so_many_moves_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.leader_moves.RECENT_MOVES", 2)
    view = view_of(dict.fromkeys(range(3), (1, 5)))
    for partition in (0, 1, 2):
        view.learn(answer({partition: (2, 6)}), None)
    assert [view.before("t", p) for p in range(3)] == [None, Leader(1, 5), Leader(1, 5)]
    # Where a move is not remembered, the leader counts as one that has led for long.
    assert [view.is_confirmed("t", p) for p in range(3)] == [True, None, None]


def test_a_move_is_reported_with_both_leaders_from_their_own_answers() -> None:
    view = view_of({0: (1, 5)})
    assert view.learn(answer({0: (2, 6)}), None) == [
        LeaderMoved(
            cluster="cluster",
            topic="t",
            partition=0,
            leader_before=1,
            epoch_before=5,
            leader=2,
            epoch=6,
        )
    ]
    assert view.before("t", 0) == Leader(1, 5)


def test_the_first_word_of_a_partition_is_no_move() -> None:
    view = LeaderView("cluster")
    assert view.learn(answer({0: (1, 5)}), None) == []
    assert view.is_confirmed("t", 0)


@pytest.mark.parametrize("topic", [ZERO_ID, topic_id(1)])
@pytest.mark.parametrize("poll", [False, True])
def test_a_lagging_broker_changes_nothing(topic: bytes, poll: bool) -> None:
    view = view_of({0: (2, 6)}, topic=topic)
    assert view.learn(answer({0: (1, 5)}, topic=topic), None, poll=poll) == []
    assert view.leader("t", 0) == Leader(2, 6)


def test_a_higher_epoch_without_a_leader_gets_one() -> None:
    view = view_of({0: (1, 5)}, {0: (-1, 6)})
    assert view.leader("t", 0) == Leader(-1, 6)
    assert not led_by_each(view)
    # A broker that sees the leader's endpoint names it at the same epoch.
    view.learn(answer({0: (2, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)
    # One that does not yet cannot take it back.
    view.learn(answer({0: (-1, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)


def test_a_move_is_confirmed_by_the_new_leader_itself() -> None:
    view = view_of({0: (1, 5)})
    view.learn(answer({0: (2, 6)}), 1)
    assert None is view.is_confirmed("t", 0)
    for source in (None, 3):
        view.learn(answer({0: (2, 6)}), source)
        assert None is view.is_confirmed("t", 0)
    view.learn(answer({0: (2, 6)}), 2)
    assert view.is_confirmed("t", 0)
    view.learn(answer({0: (3, 7)}), 3)
    assert view.is_confirmed("t", 0)
    view.learn(answer({0: (2, 8)}), 3)
    assert None is view.is_confirmed("t", 0)


def test_a_node_that_answers_that_it_leads_at_a_higher_epoch_is_the_leader() -> None:
    view = old_view_of({0: (1, 5)}, topic=topic_id(1))
    (moved,) = view.leader_confirms("t", 0, Leader(2, 6))
    assert isinstance(moved, LeaderMoved)
    assert (moved.leader_before, moved.epoch_before) == (1, 5)
    assert (moved.leader, moved.epoch) == (2, 6)
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.is_confirmed("t", 0)


def test_a_node_that_answers_that_it_leads_as_is_known_confirms_it() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    assert view.leader_confirms("t", 0, Leader(2, 6)) == []
    assert view.is_confirmed("t", 0)


@pytest.mark.parametrize(
    ("topic", "partition", "leader"),
    [("t", 0, (3, 5)), ("t", 0, (3, 6)), ("t", 1, (3, 9)), ("t", -1, (3, 9)), ("u", 0, (3, 9))],
    ids=["overtaken", "another's epoch", "unknown partition", "no partition", "unknown topic"],
)
def test_other_words_of_leading_change_nothing(
    topic: str, partition: int, leader: tuple[int, int]
) -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    assert view.leader_confirms(topic, partition, Leader(*leader)) == []
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.is_confirmed("t", 0) is None
    assert list(view.topics.names) == ["t"]


def test_a_leader_may_say_that_it_does_not_lead_yet() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for other in (Leader(3, 6), Leader(2, 7), Leader(2, 5)):
        view.leader_denies("t", 0, other)
        assert view.is_confirmed("t", 0) is None
    view.leader_denies("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0) is False
    view.leader_confirms("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0)


def test_a_leader_may_not_know_of_the_topic_yet() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for place, other in ((("t", 0), Leader(3, 6)), (("t", 1), Leader(2, 6))):
        view.leader_is_unaware(*place, other)
        assert view.is_confirmed("t", 0) is None
    view.leader_is_unaware("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0) is False
    view.leader_confirms("t", 0, Leader(2, 6))
    view.leader_is_unaware("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0)


def test_a_leader_that_was_confirmed_stays_so() -> None:
    # What it said last may have been asked first: only a higher epoch ends an office.
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    view.leader_confirms("t", 0, Leader(2, 6))
    view.leader_denies("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0)


# Whose Metadata names the leaders.


@dataclass
class _Broker:
    reporter: Reporter
    unanswered_since: float = math.inf


class _Sets:
    """What :class:`MetadataBrokers` has, by sets."""

    def __init__(self) -> None:
        self.expected: set[Reporter] = set()
        self.known: set[Reporter] = set()
        self.named: dict[Place, set[Reporter]] = {}

    def know(self, reporter: Reporter) -> None:
        """Take note of a broker; if too many are known that are not expected, forget those."""
        if reporter not in self.known and len(self.known) >= len(self.expected) + MOST_GONE:
            self.known &= self.expected
            for named in self.named.values():
                named &= self.expected
        self.known.add(reporter)

    def all_name(self, place: Place) -> bool:
        """Whether all that are expected name the leader."""
        return place not in self.named or (
            bool(self.expected) and self.expected <= self.named[place]
        )


def _moves(*partitions: int) -> LeaderMoves:
    moves = LeaderMoves(lambda: 3.0)
    for partition in partitions:
        moves.add(("t", partition), Leader(1, 5), Led(partition, 2, 6), confirmed=False)
    return moves


#: Half of them come and go; there are routes whose node is not known.
_REPORTERS = st.integers(0, 3) | st.integers(0, 400) | st.sampled_from(["route", "another"])
_PLACES: st.SearchStrategy[Place] = st.tuples(st.just("t"), st.integers(0, 2))
_RUNS = st.tuples(st.integers(0, 400), st.integers(0, 90)).map(
    lambda run: [*range(run[0], sum(run))]
)


@given(
    st.lists(
        st.tuples(st.just("expect"), st.lists(_REPORTERS, max_size=5) | _RUNS)
        | st.tuples(_PLACES, st.lists(_REPORTERS, max_size=5) | _RUNS),
        max_size=30,
    )
)
def test_bits_say_what_sets_would(steps: list[tuple[str | Place, list[Reporter]]]) -> None:
    moves, sets, most = _moves(0, 1), _Sets(), 0
    brokers = moves.brokers
    sets.named = {place: set() for place in moves}
    for what, reporters in steps:
        if what == "expect":
            changed = sets.expected != {*reporters}
            sets.expected = {*reporters}
            most = max(most, len(sets.expected))
            assert brokers.expect([_Broker(one) for one in reporters], 0.0) is changed
            for one in reporters:
                sets.know(one)
        else:
            assert not isinstance(what, str)
            for one in reporters if what in moves else ():
                first = one not in sets.named[what]
                sets.know(one)
                first |= one not in sets.named[what]
                sets.named[what].add(one)
                assert brokers.names(one, what) is (first and sets.all_name(what))
        for place in [*moves, ("t", 2)]:
            assert brokers.all_name(place) is sets.all_name(place)
            for one in [*sets.known, 7, "route"]:
                lags = place in moves and one not in sets.named[place]
                assert brokers.lags(one, place) is lags
        bits = [brokers.awaited, *(move.named for move in moves.values())]
        assert max(map(int.bit_length, bits)) <= most + MOST_GONE


def test_brokers_that_come_and_go_cost_nothing_in_the_end() -> None:
    moves = _moves(0)
    brokers, [(place, move)] = moves.brokers, [*moves.items()]
    for node in range(0, 30_000, 3):
        several = [node, node + 1, node + 2]
        assert brokers.expect([_Broker(one) for one in several], 0.0)
        assert [brokers.names(one, place) for one in several] == [False, False, True]
        assert not brokers.lags(node, place)
        assert max(brokers.awaited, move.named).bit_length() <= 3 + MOST_GONE
    # Of those that have gone only some are remembered.
    assert brokers.lags(0, place)
    assert sum(not brokers.lags(one, place) for one in range(30_000)) <= 3 + MOST_GONE


def test_a_broker_that_is_silent_for_a_while_has_named_the_leaders_all_the_same() -> None:
    moves = _moves(0)
    brokers, (place,) = moves.brokers, [*moves]
    both = [_Broker(1), _Broker(2)]
    brokers.expect(both, 0.0)
    assert [brokers.names(one.reporter, place) for one in both] == [False, True]
    brokers.expect([both[0], _Broker(2, unanswered_since=0.0)], 1.0)
    brokers.expect(both, 2.0)
    assert brokers.all_name(place)


def test_brokers_that_hide_the_topic_are_not_waited_for() -> None:
    moves = _moves(0)
    brokers, (place,) = moves.brokers, [*moves]
    # Before any is awaited nothing is of interest: they will be asked again.
    assert not brokers.hides(3, "t", hidden=True)
    brokers.expect([_Broker(1), _Broker(2), _Broker(3)], 0.0)
    assert not brokers.names(1, place)
    assert [brokers.hides(2, "t", hidden=True) for _ in range(2)] == [True, False]
    assert not brokers.lags(2, place)
    assert brokers.names(3, place)
    assert brokers.all_name(place)
    # Once it shows the topic it is asked for its leaders.
    assert [brokers.hides(2, "t", hidden=False) for _ in range(2)] == [True, False]
    assert brokers.lags(2, place)
    assert not brokers.all_name(place)


def test_who_hides_a_topic_says_nothing_of_the_next_one() -> None:
    moves = _moves(0)
    brokers, (place,) = moves.brokers, [*moves]
    brokers.expect([_Broker(1), _Broker(2)], 0.0)
    brokers.names(1, place)
    brokers.hides(2, "t", hidden=True)
    assert brokers.all_name(place)
    brokers.forget("t")
    assert not brokers.all_name(place)


def test_who_hides_a_topic_is_forgotten_with_brokers_that_have_gone() -> None:
    moves = _moves(0)
    brokers, (place,) = moves.brokers, [*moves]
    for node in range(200):
        brokers.expect([_Broker(node)], 0.0)
        assert not brokers.all_name(place)
        assert brokers.hides(node, "t", hidden=True)
        assert brokers.all_name(place)


def test_of_so_many_topics_only_is_it_remembered_who_hides_them() -> None:
    brokers = _moves().brokers
    brokers.expect([_Broker(1)], 0.0)
    noted = [brokers.hides(1, f"t{number}", hidden=True) for number in range(10_100)]
    assert sum(noted) == 10_000
    assert brokers.hides(1, "t0", hidden=False)
    assert brokers.hides(1, "t10050", hidden=True)
