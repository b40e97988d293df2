import pytest

from leader_hints.apis.metadata import ZERO_ID
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import LeaderMoved
from tests.core.cluster.views import answer, led_by_each, view_of
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


def test_an_epoch_that_rises_under_the_same_leader_is_a_move() -> None:
    view = view_of({0: (1, 5)})
    (moved,) = view.learn(answer({0: (1, 6)}), None)
    assert (moved.leader_before, moved.leader, moved.epoch) == (1, 1, 6)


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
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    (moved,) = view.leader_confirms("t", 0, Leader(2, 6))
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
