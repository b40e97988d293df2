from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import LeaderMoved
from tests.core.samples import topic_id

_Partitions = Mapping[int, tuple[int, int]]


def _said(
    partitions: _Partitions, *, name: str = "t", topic: bytes = ZERO_ID, error: int = 0
) -> TopicMetadata:
    led = tuple(Led(p, node, epoch) for p, (node, epoch) in partitions.items())
    return TopicMetadata(error, name, topic, led)


def _view(*partitions: _Partitions, topic: bytes = ZERO_ID) -> LeaderView:
    view = LeaderView("cluster")
    for said in partitions:
        view.learn(_said(said, topic=topic), None)
    return view


# What is known.


def test_nothing_is_known_of_what_nobody_told() -> None:
    view = _view({0: (1, 5), 2: (1, 5)})
    assert view.leader("t", 0) == Leader(1, 5)
    unknown: list[tuple[Topic, int]] = [("t", 1), ("t", 3), ("t", -1), ("u", 0), (topic_id(1), 0)]
    for topic, partition in unknown:
        assert view.leader(topic, partition) is None
        assert view.before(topic, partition) is None


def test_a_leader_without_an_epoch_is_not_known() -> None:
    view = _view({0: (1, -1)})
    assert view.leader("t", 0) is None
    assert not list(view.one_led_by_each())


def test_a_topic_is_known_by_name_and_by_id() -> None:
    view = _view({0: (1, 5)}, topic=topic_id(1))
    assert view.leader("t", 0) == view.leader(topic_id(1), 0) == Leader(1, 5)
    assert view.key("t") == topic_id(1)
    assert view.name(topic_id(1)) == "t"
    assert view.name(topic_id(2)) is None


def test_brokers_are_told_by_partitions_that_are_not_hidden() -> None:
    """Of a hidden topic brokers answer TOPIC_AUTHORIZATION_FAILED, which proves nothing."""
    view = _view({0: (1, 5)})
    view.learn(_said({0: (1, 3)}, name="u"), None)
    view.permitted(_said({}, error=29))
    assert [*view.one_led_by_each()] == [("u", 0, Leader(1, 3))]
    view.permitted(_said({0: (1, 5)}))
    assert [*view.one_led_by_each()] == [("t", 0, Leader(1, 5))]


def test_a_partition_number_out_of_all_reason_takes_no_memory() -> None:
    view = _view({0: (1, 5), 2**31 - 1: (1, 5), 100_000: (1, 5), -1: (1, 5)})
    assert len(view) == 1


def test_partitions_are_counted_by_topic() -> None:
    view = _view({0: (1, 5), 2: (1, 5)})
    assert view.partitions("t") == 3
    assert view.partitions("u") == 0


# Moves.


def test_when_a_move_was_learnt_is_remembered() -> None:
    now = 3.0
    view = LeaderView("cluster", lambda: now)
    view.learn(_said({0: (1, 5), 1: (1, 5)}), None)
    assert view.moved_at("t", 0) is None
    view.learn(_said({0: (2, 6)}), None)
    now = 4.0
    view.learn(_said({0: (2, 6)}), 2)
    assert (view.moved_at("t", 0), view.moved_at("t", 1)) == (3.0, None)
    view.leader_confirms("t", 0, Leader(3, 7))
    assert view.moved_at("t", 0) == 4.0


def test_only_so_many_moves_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.leader_view.RECENT_MOVES", 2)
    view = _view(dict.fromkeys(range(3), (1, 5)))
    for partition in (0, 1, 2):
        view.learn(_said({partition: (2, 6)}), None)
    assert [view.before("t", p) for p in range(3)] == [None, Leader(1, 5), Leader(1, 5)]
    # Where a move is not remembered, the leader counts as one that has led for long.
    assert [view.is_confirmed("t", p) for p in range(3)] == [True, None, None]


def test_a_move_is_told_with_both_leaders_from_their_own_answers() -> None:
    view = _view({0: (1, 5)})
    assert view.learn(_said({0: (2, 6)}), None) == [
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
    assert view.learn(_said({0: (1, 5)}), None) == []
    assert view.is_confirmed("t", 0)


def test_an_epoch_that_rises_under_the_same_leader_is_a_move() -> None:
    view = _view({0: (1, 5)})
    (moved,) = view.learn(_said({0: (1, 6)}), None)
    assert (moved.leader_before, moved.leader, moved.epoch) == (1, 1, 6)


@pytest.mark.parametrize("topic", [ZERO_ID, topic_id(1)])
@pytest.mark.parametrize("poll", [False, True])
def test_a_lagging_broker_changes_nothing(topic: bytes, poll: bool) -> None:
    view = _view({0: (2, 6)}, topic=topic)
    assert view.learn(_said({0: (1, 5)}, topic=topic), None, poll=poll) == []
    assert view.leader("t", 0) == Leader(2, 6)


def test_nobody_leads_at_a_higher_epoch_and_then_somebody() -> None:
    view = _view({0: (1, 5)}, {0: (-1, 6)})
    assert view.leader("t", 0) == Leader(-1, 6)
    assert not list(view.one_led_by_each())
    # A broker that sees the leader's endpoint names it at the same epoch.
    view.learn(_said({0: (2, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)
    # One that does not yet cannot take it back.
    view.learn(_said({0: (-1, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)


def test_a_move_is_confirmed_by_the_new_leaders_own_word() -> None:
    view = _view({0: (1, 5)})
    view.learn(_said({0: (2, 6)}), 1)
    assert None is view.is_confirmed("t", 0)
    for source in (None, 3):
        view.learn(_said({0: (2, 6)}), source)
        assert None is view.is_confirmed("t", 0)
    view.learn(_said({0: (2, 6)}), 2)
    assert view.is_confirmed("t", 0)
    view.learn(_said({0: (3, 7)}), 3)
    assert view.is_confirmed("t", 0)
    view.learn(_said({0: (2, 8)}), 3)
    assert None is view.is_confirmed("t", 0)


def test_who_says_that_it_leads_at_a_higher_epoch_is_the_leader() -> None:
    view = _view({0: (1, 5)}, topic=topic_id(1))
    (moved,) = view.leader_confirms("t", 0, Leader(2, 6))
    assert (moved.leader_before, moved.epoch_before) == (1, 5)
    assert (moved.leader, moved.epoch) == (2, 6)
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.is_confirmed("t", 0)


def test_who_says_that_it_leads_as_is_known_confirms_it() -> None:
    view = _view({0: (1, 5)}, {0: (2, 6)})
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
    view = _view({0: (1, 5)}, {0: (2, 6)})
    assert view.leader_confirms(topic, partition, Leader(*leader)) == []
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.is_confirmed("t", 0) is None
    assert list(view.names) == ["t"]


def test_a_leader_may_say_that_it_does_not_lead_yet() -> None:
    view = _view({0: (1, 5)}, {0: (2, 6)})
    for other in (Leader(3, 6), Leader(2, 7), Leader(2, 5)):
        view.leader_denies("t", 0, other)
        assert view.is_confirmed("t", 0) is None
    view.leader_denies("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0) is False
    view.leader_confirms("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0)


def test_a_leader_that_was_in_office_is_not_taken_out_of_it() -> None:
    # What it said last may have been asked first: only a higher epoch ends an office.
    view = _view({0: (1, 5)}, {0: (2, 6)})
    view.leader_confirms("t", 0, Leader(2, 6))
    view.leader_denies("t", 0, Leader(2, 6))
    assert view.is_confirmed("t", 0)


# Topics made anew, and deleted.


def test_a_topic_made_anew_begins_at_its_own_epochs() -> None:
    view = _view({0: (1, 50), 1: (1, 50)}, topic=topic_id(1))
    view.learn(_said({0: (2, 0)}, topic=topic_id(2)), None)
    assert view.leader("t", 0) == view.leader(topic_id(2), 0) == Leader(2, 0)
    assert view.leader(topic_id(1), 0) is None
    assert view.leader("t", 1) is None
    assert view.before("t", 0) is None


def test_a_lagging_broker_does_not_bring_the_old_topic_back() -> None:
    view = _view({0: (1, 50)}, topic=topic_id(1))
    view.learn(_said({0: (2, 0)}, topic=topic_id(2)), None)
    for poll in (False, False, True, False):
        view.learn(_said({0: (1, 51)}, topic=topic_id(1)), None, poll=poll)
        assert view.leader("t", 0) == Leader(2, 0)
        assert view.leader(topic_id(1), 0) is None


def test_a_cluster_that_has_ids_no_more_goes_on_to_be_learnt() -> None:
    """It was downgraded, or its metadata version was."""
    view = _view({0: (1, 5)}, topic=topic_id(1))
    view.learn(_said({0: (2, 6)}), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 5)
    view.learn(_said({0: (2, 6)}), None, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)
    assert view.leader(topic_id(1), 0) is None
    assert not view.topic_ids
    # And is upgraded again.
    view.learn(_said({0: (3, 7)}, topic=topic_id(1)), None)
    assert view.leader(topic_id(1), 0) == Leader(3, 7)


@pytest.mark.parametrize("poll", [False, True])
def test_a_broker_without_ids_among_others_takes_no_id_away(poll: bool) -> None:
    view = _view({0: (1, 5)}, topic=topic_id(1))
    for _ in range(4):
        view.learn(_said({0: (2, 6)}), None, poll=True)
        view.learn(_said({0: (1, 5)}, topic=topic_id(1)), None, poll=poll)
        assert view.leader(topic_id(1), 0) == Leader(1, 5)


def test_only_polls_take_an_id_away() -> None:
    view = _view({0: (1, 5)}, topic=topic_id(1))
    for _ in range(4):
        view.learn(_said({0: (2, 6)}), None)
    assert view.leader(topic_id(1), 0) == Leader(1, 5)


def test_a_former_id_that_two_polls_in_a_row_report_is_the_living_one() -> None:
    # At the start the new id was heard first, and then the old one from a broker that lagged.
    living, dead = topic_id(1), topic_id(2)
    view = _view({0: (1, 5)}, topic=living)
    view.learn(_said({0: (2, 9)}, topic=dead), None)

    view.learn(_said({0: (1, 5)}, topic=living), None)
    view.learn(_said({0: (1, 5)}, topic=living), None, poll=True)
    assert view.key("t") == dead
    view.learn(_said({0: (1, 5)}, topic=living), None, poll=True)

    assert view.leader("t", 0) == Leader(1, 5)


def test_polls_that_differ_bring_no_former_id_back() -> None:
    living, former = topic_id(1), topic_id(2)
    view = _view({0: (1, 5)}, topic=former)
    view.learn(_said({0: (1, 0)}, topic=living), None)

    for said in (former, living, former):
        view.learn(_said({0: (1, 0)}, topic=said), None, poll=True)

    assert view.key("t") == living


def test_a_cluster_that_gets_ids_keeps_none_of_the_entries_without() -> None:
    view = _view({0: (1, 50)})
    view.learn(_said({0: (2, 3)}, topic=topic_id(1)), None)
    assert view.leader("t", 0) == Leader(2, 3)
    # A broker that is not upgraded yet gives none, and says nothing that is not known.
    view.learn(_said({0: (3, 4)}), None)
    assert view.leader("t", 0) == Leader(2, 3)


def test_without_ids_a_lower_epoch_counts_from_the_second_poll_on() -> None:
    view = _view({0: (1, 50), 1: (1, 50)})
    view.learn(_said({0: (2, 0), 1: (1, 50)}), None)
    view.learn(_said({0: (2, 0), 1: (1, 50)}), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 50)
    view.learn(_said({0: (2, 0), 1: (3, 1)}), None, poll=True)
    assert view.leader("t", 0) == Leader(2, 0)
    assert view.leader("t", 1) == Leader(1, 50)


def test_without_ids_another_leader_at_the_same_epoch_counts_from_the_second_poll_on() -> None:
    view = _view({0: (1, 0)})
    view.learn(_said({0: (2, 0)}), 3, poll=True)
    assert view.leader("t", 0) == Leader(1, 0)
    view.learn(_said({0: (2, 0)}), 3, poll=True)
    assert view.leader("t", 0) == Leader(2, 0)
    assert view.before("t", 0) is None


def test_two_brokers_that_lag_at_the_same_time_do_not_bring_a_former_leader_back() -> None:
    view = _view({0: (1, 5)}, {0: (2, 6)})
    for source in (1, 3):
        view.learn(_said({0: (1, 5)}), source, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)


def test_two_routes_whose_brokers_are_not_known_yet_are_never_taken_for_one() -> None:
    view = _view({0: (1, 5)}, {0: (2, 6)})
    for route in ("one", "two"):
        view.learn(_said({0: (1, 5)}), None, route=route, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)
    # It said so before: two polls of one broker.
    view.learn(_said({0: (1, 5)}), None, route="two", poll=True)
    assert view.leader("t", 0) == Leader(1, 5)


def test_without_ids_polls_must_agree_one_after_the_other() -> None:
    view = _view({0: (1, 50)})
    for epoch in (0, 50, 0, 51, 1):
        view.learn(_said({0: (1, epoch)}), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 51)


def test_without_ids_partitions_that_a_recreated_topic_lacks_are_forgotten() -> None:
    view = _view({0: (1, 5), 1: (3, 5), 2: (2, 5)})
    for source, poll in ((2, True), (1, True), (1, False)):
        view.learn(_said({0: (1, 5)}), source, poll=poll)
        assert view.leader("t", 1) == Leader(3, 5)
    view.learn(_said({0: (1, 5)}), 1, poll=True)
    assert [view.leader("t", partition) for partition in range(3)] == [Leader(1, 5), None, None]
    assert (view.partitions("t"), len(view)) == (1, 1)
    # Nobody is asked about them to find out who is behind a route.
    assert [*view.one_led_by_each()] == [("t", 0, Leader(1, 5))]
    view.learn(_said({0: (1, 5), 1: (2, 0)}), 1)
    assert (view.leader("t", 1), view.partitions("t")) == (Leader(2, 0), 2)


def test_without_ids_a_broker_that_has_not_heard_of_added_partitions_takes_none_away() -> None:
    view = _view({0: (1, 5)}, {0: (1, 5), 1: (3, 0)})
    view.learn(_said({0: (1, 5)}), 2, poll=True)
    view.learn(_said({0: (1, 5), 1: (3, 0)}), 2, poll=True)
    view.learn(_said({0: (1, 5)}), 2, poll=True)
    assert view.leader("t", 1) == Leader(3, 0)


def test_with_ids_a_partition_is_never_forgotten() -> None:
    view = LeaderView("k")
    view.learn(_said({0: (1, 5), 1: (3, 0)}, topic=topic_id(1)), None)
    for _ in range(3):
        view.learn(_said({0: (1, 5)}, topic=topic_id(1)), 2, poll=True)
    assert view.leader("t", 1) == Leader(3, 0)


# Doubts.


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _doubtful(*, claim: tuple[int, int] = (2, 2), by: int | None = 1) -> tuple[LeaderView, _Time]:
    """Return a view that has leader 3 at epoch 8, which a broker contradicts."""
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(_said({0: (3, 8)}), None)
    view.learn(_said({0: claim}), by)
    return view, time


@pytest.mark.parametrize("claim", [(1, 0), (2, 7), (3, 7), (2, 8), (-1, 7)])
def test_a_lower_epoch_or_another_leader_at_the_same_puts_a_partition_in_doubt(
    claim: tuple[int, int],
) -> None:
    view, _ = _doubtful(claim=claim)
    assert view.leader("t", 0) == Leader(3, 8)
    assert view.in_doubt("t", 0)
    assert view.claim("t", 0) == Leader(*claim)
    assert not view.in_doubt("t", 1)


@pytest.mark.parametrize("claim", [(3, 8), (-1, 8), (3, 9), (2, 9)])
def test_what_agrees_or_is_newer_puts_nothing_in_doubt(claim: tuple[int, int]) -> None:
    view, _ = _doubtful(claim=claim)
    assert not view.in_doubt("t", 0)
    assert view.claim("t", 0) is None


def test_a_topic_with_an_id_is_in_doubt_only_where_two_lead_at_one_epoch() -> None:
    view = _view({0: (3, 8), 1: (3, 8)}, {0: (1, 0), 1: (1, 8)}, topic=topic_id(1))
    assert not view.in_doubt("t", 0)
    assert view.in_doubt("t", 1)


def test_the_leaders_own_confirmation_ends_a_doubt_and_outweighs_who_lags() -> None:
    view, time = _doubtful()
    news = view.changes
    assert view.leader_confirms("t", 0, Leader(3, 8)) == []
    assert not view.in_doubt("t", 0)
    assert view.changed_since(news) == {view.aliases("t")}
    view.learn(_said({0: (1, 7)}), 1)
    assert not view.in_doubt("t", 0)
    time.now += 1
    view.learn(_said({0: (1, 7)}), 1)
    assert view.in_doubt("t", 0)


def test_a_doubt_ends_when_all_who_contradicted_have_caught_up() -> None:
    view, _ = _doubtful()
    view.learn(_said({0: (1, 7)}), 2)
    view.learn(_said({0: (3, 8)}), 1)
    assert view.in_doubt("t", 0)
    view.learn(_said({0: (3, 8)}), 2)
    assert not view.in_doubt("t", 0)


def test_a_newer_leader_ends_a_doubt() -> None:
    view, _ = _doubtful()
    view.learn(_said({0: (1, 9)}), 2)
    assert not view.in_doubt("t", 0)


def test_a_doubt_that_nobody_renews_is_over() -> None:
    view, time = _doubtful()
    time.now += 29
    assert view.in_doubt("t", 0)
    time.now += 2
    assert not view.in_doubt("t", 0)
    assert view.leader("t", 0) == Leader(3, 8)


@pytest.mark.parametrize("denied_first", [True, False])
@pytest.mark.parametrize("claim", [(2, 2), (2, 8)])
def test_who_leads_instead_is_taken_over_when_both_leaders_say_so(
    denied_first: bool, claim: tuple[int, int]
) -> None:
    view, time = _doubtful(claim=claim)
    time.now += 1
    forgotten = view.forgotten

    def deny() -> list[LeaderMoved]:
        return view.leader_denies("t", 0, Leader(3, 8))

    def confirm() -> list[LeaderMoved]:
        return view.leader_confirms("t", 0, Leader(*claim))

    first, second = (deny, confirm) if denied_first else (confirm, deny)
    assert first() == []
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(3, 8), True)
    (moved,) = second()
    assert (moved.leader, moved.epoch, moved.epoch_before) == (*claim, 8)
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(*claim), False)
    # The former topic's leader never led this one.
    assert (view.before("t", 0), view.is_confirmed("t", 0)) == (None, True)
    assert view.forgotten > forgotten


def test_a_leader_that_says_that_it_leads_at_a_lower_epoch_denies_the_other() -> None:
    view, time = _doubtful(claim=(3, 2))
    time.now += 1
    view.leader_confirms("t", 0, Leader(3, 2))
    assert view.leader("t", 0) == Leader(3, 2)


def test_of_two_that_both_lead_the_higher_epoch_counts() -> None:
    view, time = _doubtful()
    time.now += 1
    view.leader_confirms("t", 0, Leader(2, 2))
    view.leader_confirms("t", 0, Leader(3, 8))
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(3, 8), False)


def test_while_some_broker_agrees_with_the_view_its_leader_may_be_the_last_to_hear_of_it() -> None:
    view, time = _doubtful(claim=(1, 7))
    for _ in range(10):
        time.now += 0.4
        view.learn(_said({0: (3, 8)}), 2)
        view.leader_denies("t", 0, Leader(3, 8))
        view.leader_confirms("t", 0, Leader(1, 7))
        assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(3, 8), True)
    time.now += 0.5
    view.leader_denies("t", 0, Leader(3, 8))
    assert view.leader("t", 0) == Leader(1, 7)


def test_what_was_denied_long_ago_settles_nothing() -> None:
    view, time = _doubtful()
    time.now += 1
    view.leader_denies("t", 0, Leader(3, 8))
    time.now += 2
    view.leader_confirms("t", 0, Leader(2, 2))
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(3, 8), True)


def test_a_forgotten_topic_is_in_no_doubt() -> None:
    view, _ = _doubtful()
    view.learn(_said({}, error=3), None)
    view.learn(_said({0: (1, 0)}), 1)
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(1, 0), False)


def test_only_so_many_doubts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.leader_view.RECENT_MOVES", 2)
    view = _view(dict.fromkeys(range(3), (1, 5)), dict.fromkeys(range(3), (2, 4)))
    assert [view.in_doubt("t", p) for p in range(3)] == [False, True, True]


def test_nobody_is_known_by_a_partition_that_is_in_doubt() -> None:
    view = _view({0: (1, 5), 1: (1, 5), 2: (2, 5)}, {0: (3, 4), 2: (3, 4)})
    assert [*view.one_led_by_each()] == [("t", 1, Leader(1, 5))]


def test_with_ids_a_lower_epoch_never_counts() -> None:
    view = _view({0: (1, 50)}, topic=topic_id(1))
    for _ in range(3):
        view.learn(_said({0: (2, 49)}, topic=topic_id(1)), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 50)


def test_without_ids_a_topic_reported_absent_is_forgotten() -> None:
    view = _view({0: (1, 50)})
    view.learn(_said({}, error=3), None)
    assert view.leader("t", 0) is None
    view.learn(_said({0: (2, 0)}), None)
    assert view.leader("t", 0) == Leader(2, 0)


def test_without_ids_a_forgotten_topics_moves_are_forgotten_too() -> None:
    view = _view({0: (1, 50)}, {0: (2, 51)})
    view.learn(_said({}, error=3), None)
    view.learn(_said({0: (2, 0)}), None)
    assert view.before("t", 0) is None
    assert view.is_confirmed("t", 0)


def test_with_ids_a_lagging_broker_that_lacks_a_topic_costs_nothing() -> None:
    view = _view({0: (1, 50)}, topic=topic_id(1))
    view.learn(_said({}, error=3), None)
    assert view.leader("t", 0) == Leader(1, 50)


@pytest.mark.parametrize("error", [3, 5, 29, 100])
def test_an_error_without_partitions_teaches_nothing(error: int) -> None:
    view = LeaderView("cluster")
    assert view.learn(_said({}, error=error), None) == []
    assert not view.names


@pytest.mark.parametrize("topic", [ZERO_ID, topic_id(1)])
def test_a_topic_absent_from_two_polls_of_everything_is_forgotten(topic: bytes) -> None:
    view = _view({0: (1, 5)}, topic=topic)
    view.forget_absent({"other"})
    assert view.leader("t", 0) == Leader(1, 5)
    view.forget_absent(set())
    assert view.leader("t", 0) is None
    assert len(view) == 0
    assert not view.names


def test_a_topic_seen_between_two_polls_is_not_forgotten() -> None:
    view = _view({0: (1, 5)})
    view.forget_absent(set())
    view.learn(_said({0: (1, 5)}), None)
    view.forget_absent(set())
    assert view.leader("t", 0) == Leader(1, 5)


def test_topics_that_are_gone_are_forgotten_one_at_a_time() -> None:
    """Thousands may go at once, and others are to have their turn in between."""
    view = LeaderView("cluster")
    names = [f"topic-{number}" for number in range(100)]
    for number, name in enumerate(names):
        led = TopicMetadata(0, name, topic_id(number + 1), (Led(0, 1, 5), Led(1, 1, 5)))
        view.learn(led, None)
    view.forget_absent(set())
    steps = view.forgetting(set())
    for left in range(99, 49, -1):
        next(steps)
        assert (len(view.names), len(view)) == (left, 2 * left)
    # Meanwhile another broker says that one is there, and that one is another by now.
    view.learn(TopicMetadata(0, names[-1], topic_id(100), (Led(0, 1, 5),)), None)
    view.learn(TopicMetadata(0, names[-2], topic_id(500), (Led(0, 2, 0),)), None)
    assert list(steps)
    assert {*view.names} == {*names[-2:]}
    assert view.leader(names[-2], 0) == Leader(2, 0)


# Everything at once, against a model.

_NAMES = st.sampled_from(["a", "b"])
_SAID = st.dictionaries(
    st.integers(0, 2), st.tuples(st.integers(-1, 3), st.integers(-1, 6)), max_size=3
)
_SOURCE = st.none() | st.integers(0, 3)


class View(RuleBasedStateMachine):
    """A view that hears anything from anybody, and the simplest model of what it may believe.

    ``told``: every (node, epoch) that was ever said of a partition. ``known``: what the model
    believes, by topic (id, or name without one) and partition. ``current``: the topic of a name.
    """

    @initialize(ids=st.booleans())
    def begin(self, ids: bool) -> None:
        self.ids = ids
        self.view = LeaderView("cluster")
        self.told: set[tuple[bytes | str, int, int, int]] = set()
        self.known: dict[tuple[bytes | str, int], Leader] = {}
        self.current: dict[str, bytes | str] = {}
        self.retired: dict[str, list[bytes | str]] = {}
        self.claims: dict[str, bytes | str] = {}
        self.contradicted: dict[str, set[tuple[int | None, int]]] = {}
        self.absent: dict[str, int] = {}

    def _id(self, name: str, number: int) -> bytes:
        return topic_id(ord(name) * 10 + number) if self.ids else ZERO_ID

    @rule(name=_NAMES, number=st.integers(0, 2), said=_SAID, source=_SOURCE, poll=st.booleans())
    def hear(
        self, name: str, number: int, said: _Partitions, source: int | None, poll: bool
    ) -> None:
        ident = self._id(name, number)
        topic = ident if self.ids else name
        before, listed = dict(self.known), self.view.partitions(name)
        moves = self.view.learn(_said(said, name=name, topic=ident), source, poll=poll)
        if topic in self.retired.get(name, []):
            claims = self.claims.get(name)
            if poll:
                self.claims[name] = topic
            if not poll or claims != topic:
                assert moves == []
                return
            self.retired[name].remove(topic)
        old = self.current.get(name)
        if old is not None and old != topic:
            self.retired.setdefault(name, []).append(old)
            self._forget(name)
        elif poll:
            self.claims.pop(name, None)
        self.current[name] = topic
        self.absent[name] = 0
        contradicted = set()
        for partition, (node, epoch) in said.items():
            self.told.add((topic, partition, node, epoch))
            known = self.known.get((topic, partition))
            if epoch < 0:
                continue
            if known is None or epoch > known.epoch or (epoch == known.epoch and known.node == -1):
                self.known[topic, partition] = Leader(node, epoch)
            elif (epoch < known.epoch and not self.ids) or (
                epoch == known.epoch and node not in (-1, known.node)
            ):
                contradicted.add((source, partition))
                twice = (source, partition) in self.contradicted.get(name, set())
                if twice and poll:
                    self.known[topic, partition] = Leader(node, epoch)
        listed = max(listed, 1 + max(said, default=-1))
        for partition in set(range(listed)) - set(said) if len(said) < listed else ():
            if not self.ids:
                contradicted.add((source, partition))
                if poll and (source, partition) in self.contradicted.get(name, set()):
                    self.known.pop((topic, partition), None)
        if poll:
            of_all = self.contradicted.get(name, set())
            others = {pair for pair in of_all if pair[0] != source}
            self.contradicted[name] = others | contradicted
        for moved in moves:
            was = before[topic, moved.partition]
            assert was == Leader(moved.leader_before, moved.epoch_before)
            assert self.known[topic, moved.partition] == Leader(moved.leader, moved.epoch)
            assert self.ids is False or moved.epoch >= moved.epoch_before

    @rule(name=_NAMES)
    def hear_that_it_is_unknown(self, name: str) -> None:
        self.view.learn(_said({}, name=name, error=3), None)
        if not self.ids:
            self._forget(name)

    @rule(present=st.sets(_NAMES))
    def poll_everything(self, present: set[str]) -> None:
        self.view.forget_absent(present)
        for name in set(self.current) - present:
            self.absent[name] += 1
            if self.absent[name] >= 2:
                self._forget(name)
                self.retired.pop(name, None)

    def _forget(self, name: str) -> None:
        topic = self.current.pop(name, None)
        self.contradicted.pop(name, None)
        self.claims.pop(name, None)
        self.known = {key: leader for key, leader in self.known.items() if key[0] != topic}

    @invariant()
    def believes_what_the_model_does(self) -> None:
        if not hasattr(self, "view"):
            return
        topics = [self._id(n, k) for n in "ab" for k in range(3)] if self.ids else ["a", "b"]
        for topic in topics:
            for partition in range(4):
                leader = self.view.leader(topic, partition)
                assert leader == self.known.get((topic, partition))
                if leader is not None:
                    assert (topic, partition, *leader) in self.told
        for name, topic in self.current.items():
            assert self.view.key(name) == topic
        assert {*self.view.names} == {*self.current}
        led = [*self.view.one_led_by_each()]
        leading = {
            leader.node
            for place, leader in self.known.items()
            if leader.node >= 0 and not self.view.in_doubt(*place)
        }
        assert sorted(leader.node for _, _, leader in led) == sorted(leading)
        for name, partition, leader in led:
            assert self.known[self.current[name], partition] == leader
        names = {topic: name for name, topic in self.current.items()}
        assert sorted(self.view.leaders()) == sorted(
            (names[topic], partition, leader)
            for (topic, partition), leader in self.known.items()
            if topic in names and leader is not None
        )
        assert len(self.view) == sum(self.view.partitions(name) for name in self.view.names)


TestView = View.TestCase
TestView.settings = settings(max_examples=60, stateful_step_count=30)


# Large topics.

_LARGE = 1000


def _large(node: int, epoch: int) -> TopicMetadata:
    return _said(dict.fromkeys(range(_LARGE), (node, epoch)))


def test_a_large_topic_is_learnt_in_steps() -> None:
    view = LeaderView("cluster")
    view.learn(_large(1, 5), None)
    steps = [*view.learning(_large(2, 6), None)]
    assert max(map(len, steps)) <= 100
    moved = [move.partition for moves in steps for move in moves]
    assert moved == [*range(_LARGE)]
    assert len(view) == _LARGE


def test_a_topic_that_is_deleted_while_it_is_learnt_stays_forgotten() -> None:
    view = LeaderView("cluster")
    view.learn(_large(1, 5), None)
    steps = view.learning(_large(2, 6), None)
    next(steps)
    view.learn(_said({}, error=3), None)
    assert [*steps] == []
    assert view.leader("t", 0) is None
    assert len(view) == 0


# Synthetic ids.


_SYNTHETIC = synthetic_id("cluster", "t")


def test_a_synthetic_id_leads_to_the_topic() -> None:
    for known in (ZERO_ID, topic_id(1)):
        view = _view({0: (1, 5)}, {0: (2, 6)}, topic=known)
        assert view.name(_SYNTHETIC) == "t"
        assert view.key(_SYNTHETIC) == view.key("t")
        assert view.leader(_SYNTHETIC, 0) == Leader(2, 6)
        assert view.before(_SYNTHETIC, 0) == Leader(1, 5)


def test_a_synthetic_id_is_no_id_to_the_view() -> None:
    view = _view({0: (1, 5)}, topic=_SYNTHETIC)
    assert view.key("t") == "t"
    assert not view.topic_ids
    view.learn(_said({0: (2, 6)}), None)
    assert view.leader("t", 0) == Leader(2, 6)


def test_a_synthetic_id_does_not_take_the_place_of_a_real_one() -> None:
    """It cannot tell the topic from a former one of its name, whose epochs were higher."""
    view = _view({0: (1, 0)}, topic=topic_id(2))
    view.learn(_said({0: (2, 50)}, topic=_SYNTHETIC), None)
    assert view.leader("t", 0) == Leader(1, 0)
    assert view.key("t") == topic_id(2)


def test_a_topic_made_anew_keeps_its_synthetic_id() -> None:
    view = _view({0: (1, 5)})
    view.learn(_said({}, error=3), None)
    assert view.name(_SYNTHETIC) == "t"
    assert view.leader(_SYNTHETIC, 0) is None
    view.learn(_said({0: (2, 0)}), None)
    assert view.leader(_SYNTHETIC, 0) == Leader(2, 0)


def test_names_are_made_known_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.leader_view._ALIASES", 2)
    view = LeaderView("cluster")
    made = [view.make_up(name) for name in ("a", "b", "a", "c")]
    assert made[0] == made[2] == synthetic_id("cluster", "a")
    assert [view.name(one) for one in made[1:]] == [None, "a", "c"]


def test_what_merely_does_not_exist_is_not_remembered() -> None:
    view = _view({0: (1, 5)})
    view.learn(_said({}, name="u", error=3), None)
    assert view.name(synthetic_id("cluster", "u")) is None
