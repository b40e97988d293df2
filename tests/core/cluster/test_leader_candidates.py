"""Who is worth asking whether it leads, and at which epoch."""

import pytest

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_candidates import LeaderCandidates
from leader_hints.core.cluster.leader_view import LeaderView

_T0 = ("t", 0)


_ID, _OTHER_ID = b"i" * 16, b"o" * 16


def _view(leader: int, epoch: int) -> LeaderView:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", _ID, (Led(0, leader, epoch),)), 1)
    return view


def test_a_broker_declines_one_epoch_for_good_and_no_other() -> None:
    candidates = LeaderCandidates(_view(1, 5))
    candidates.denied(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6)
    assert candidates.may_lead(2, _T0, 7)
    assert candidates.may_lead(2, ("t", 1), 6)
    assert candidates.may_lead(3, _T0, 6)
    candidates.denied(2, _T0, 7)
    assert not candidates.may_lead(2, _T0, 7)


def test_a_recreated_topic_has_other_epochs() -> None:
    view = _view(1, 5)
    candidates = LeaderCandidates(view)
    candidates.denied(2, _T0, 6)
    view.learn(TopicMetadata(0, "t", _OTHER_ID, (Led(0, 1, 5),)), 1)
    assert candidates.may_lead(2, _T0, 6)


def test_a_recreated_topic_without_an_id_is_asked_about_at_its_own_epochs() -> None:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 5),)), 1)
    candidates = LeaderCandidates(view)
    candidates.denied(2, _T0, 6)
    view.learn(TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t", ZERO_ID, ()), 1)
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 5),)), 1)
    assert candidates.may_lead(2, _T0, 6)


def test_of_an_epoch_whose_leader_is_named_only_that_one_is_asked() -> None:
    candidates = LeaderCandidates(_view(2, 6))
    candidates.denied(2, _T0, 6)
    assert candidates.may_lead(2, _T0, 6)
    assert not candidates.may_lead(3, _T0, 6)
    assert candidates.may_lead(3, _T0, 7)


def test_without_a_leader_any_broker_may_lead() -> None:
    candidates = LeaderCandidates(_view(-1, 6))
    assert candidates.may_lead(2, _T0, 6)
    candidates.denied(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6)


def test_a_broker_of_which_it_is_not_known_who_it_is_is_always_asked() -> None:
    assert LeaderCandidates(_view(2, 6)).may_lead(None, _T0, 6)
    assert LeaderCandidates(_view(1, 5)).may_lead(None, _T0, 6)


def test_behind_an_epoch_that_is_over_the_next_one_is_asked() -> None:
    candidates = LeaderCandidates(_view(1, 5))
    assert candidates.epoch(_T0, 6) == 6
    assert candidates.fenced(_T0, 6)
    assert candidates.epoch(_T0, 6) == 7
    assert candidates.epoch(_T0, 9) == 9
    assert candidates.epoch(("t", 1), 6) == 6
    # All brokers say so, and those that were slow say it again.
    assert not candidates.fenced(_T0, 6)
    assert candidates.fenced(_T0, 7)
    assert not candidates.fenced(_T0, 6)
    assert candidates.epoch(_T0, 6) == 8


@pytest.mark.parametrize("topic_id", [_ID, ZERO_ID], ids=["id", "no id"])
def test_what_is_over_counts_until_the_view_moves(topic_id: bytes) -> None:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", topic_id, (Led(0, 1, 5),)), 1)
    candidates = LeaderCandidates(view)
    candidates.fenced(_T0, 8)
    assert candidates.epoch(_T0, 6) == 9
    view.learn(TopicMetadata(0, "t", topic_id, (Led(0, 2, 6),)), 1)
    assert candidates.epoch(_T0, 7) == 7


def test_a_recreated_topic_without_an_id_is_not_asked_about_at_former_epochs() -> None:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 5),)), 1)
    candidates = LeaderCandidates(view)
    candidates.fenced(_T0, 8)
    view.learn(TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t", ZERO_ID, ()), 1)
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 1, 0),)), 1)
    assert candidates.epoch(_T0, 1) == 1


def test_what_is_remembered_is_bounded() -> None:
    candidates = LeaderCandidates(_view(9, 5), capacity=2)
    for node in (1, 2, 3):
        candidates.denied(node, _T0, 6)
    assert len(candidates) == 2
    assert candidates.may_lead(1, _T0, 6)
    for partition in (1, 2, 3):
        candidates.fenced(("t", partition), 6)
    assert len(candidates) == 2
    assert candidates.epoch(("t", 1), 6) == 6
    assert candidates.epoch(("t", 3), 6) == 7


def test_behind_the_last_epoch_is_none() -> None:
    candidates = LeaderCandidates(_view(9, 5))
    candidates.fenced(_T0, 2**31 - 1)
    assert candidates.epoch(_T0, 6) == 2**31 - 1
