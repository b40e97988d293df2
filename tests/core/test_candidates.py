"""Who is worth asking whether it leads."""

from proxy.apis.metadata import Led, TopicMetadata
from proxy.core.candidates import Candidates
from proxy.core.view import LeaderView

_T0 = ("t", 0)


_ID, _OTHER_ID = b"i" * 16, b"o" * 16


def _view(leader: int, epoch: int) -> LeaderView:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", _ID, (Led(0, leader, epoch),)), 1)
    return view


def test_a_broker_declines_one_epoch_for_good_and_no_other() -> None:
    candidates = Candidates(_view(1, 5))
    candidates.declined(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6)
    assert candidates.may_lead(2, _T0, 7)
    assert candidates.may_lead(2, ("t", 1), 6)
    assert candidates.may_lead(3, _T0, 6)
    candidates.declined(2, _T0, 7)
    assert not candidates.may_lead(2, _T0, 7)


def test_a_topic_that_is_made_anew_has_other_epochs() -> None:
    view = _view(1, 5)
    candidates = Candidates(view)
    candidates.declined(2, _T0, 6)
    view.learn(TopicMetadata(0, "t", _OTHER_ID, (Led(0, 1, 5),)), 1)
    assert candidates.may_lead(2, _T0, 6)


def test_of_an_epoch_whose_leader_is_named_only_that_one_is_asked() -> None:
    candidates = Candidates(_view(2, 6))
    candidates.declined(2, _T0, 6)
    assert candidates.may_lead(2, _T0, 6)
    assert not candidates.may_lead(3, _T0, 6)
    assert candidates.may_lead(3, _T0, 7)


def test_where_nobody_leads_anyone_may() -> None:
    candidates = Candidates(_view(-1, 6))
    assert candidates.may_lead(2, _T0, 6)
    candidates.declined(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6)


def test_a_broker_of_which_it_is_not_known_who_it_is_is_always_asked() -> None:
    assert Candidates(_view(2, 6)).may_lead(None, _T0, 6)
    assert Candidates(_view(1, 5)).may_lead(None, _T0, 6)


def test_what_is_remembered_is_bounded() -> None:
    candidates = Candidates(_view(9, 5), capacity=2)
    for node in (1, 2, 3):
        candidates.declined(node, _T0, 6)
    assert len(candidates) == 2
    assert candidates.may_lead(1, _T0, 6)
