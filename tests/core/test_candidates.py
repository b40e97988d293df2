"""Who is worth asking whether it leads."""

from proxy.apis.metadata import ZERO_ID, Led, TopicMetadata
from proxy.core.candidates import Candidates
from proxy.core.view import LeaderView

_T0 = ("t", 0)


def _view(leader: int, epoch: int) -> LeaderView:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, leader, epoch),)), 1)
    return view


def test_a_broker_declines_one_epoch_for_good_and_no_other() -> None:
    candidates, view = Candidates(), _view(1, 5)
    candidates.declined(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6, view)
    assert candidates.may_lead(2, _T0, 7, view)
    assert candidates.may_lead(2, ("t", 1), 6, view)
    assert candidates.may_lead(3, _T0, 6, view)
    candidates.declined(2, _T0, 7)
    assert not candidates.may_lead(2, _T0, 7, view)


def test_of_an_epoch_whose_leader_is_named_only_that_one_is_asked() -> None:
    candidates, view = Candidates(), _view(2, 6)
    candidates.declined(2, _T0, 6)
    assert candidates.may_lead(2, _T0, 6, view)
    assert not candidates.may_lead(3, _T0, 6, view)
    assert candidates.may_lead(3, _T0, 7, view)


def test_where_nobody_leads_anyone_may() -> None:
    candidates, view = Candidates(), _view(-1, 6)
    assert candidates.may_lead(2, _T0, 6, view)
    candidates.declined(2, _T0, 6)
    assert not candidates.may_lead(2, _T0, 6, view)


def test_a_broker_of_which_it_is_not_known_who_it_is_is_always_asked() -> None:
    candidates = Candidates()
    assert candidates.may_lead(None, _T0, 6, _view(2, 6))
    assert candidates.may_lead(None, _T0, 6, _view(1, 5))


def test_what_is_remembered_is_bounded() -> None:
    candidates = Candidates(capacity=2)
    for node in (1, 2, 3):
        candidates.declined(node, _T0, 6)
    assert len(candidates) == 2
    assert candidates.may_lead(1, _T0, 6, _view(9, 5))
