import pytest

from leader_hints.core.cluster.doubts import Disagreements, Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import LeaderChange
from tests.core.cluster.views import answer, led_by_each, view_of
from tests.core.samples import topic_id


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _doubtful(*, claim: tuple[int, int] = (2, 2), by: int | None = 1) -> tuple[LeaderView, _Time]:
    """Return a view that has leader 3 at epoch 8, which a broker contradicts."""
    time = _Time()
    view = LeaderView("cluster", time)
    view.learn(answer({0: (3, 8)}), None)
    view.learn(answer({0: claim}), by)
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


def test_a_broker_that_agrees_is_the_one_that_did_not_before_it_was_known_which_node_it_is() -> (
    None
):
    view = view_of({0: (3, 8)})
    view.learn(answer({0: (2, 2)}), None, route="r")
    assert view.in_doubt("t", 0)
    view.learn(answer({0: (3, 8)}), 1, route="r")
    assert not view.in_doubt("t", 0)


def test_polls_are_not_in_a_row_if_the_broker_agreed_in_between_as_another_reporter() -> None:
    view = view_of({0: (3, 8)})
    view.learn(answer({0: (2, 2)}), None, route="r", poll=True)
    view.learn(answer({0: (3, 8)}), 1, route="r", poll=True)
    view.learn(answer({0: (2, 2)}), None, route="r", poll=True)
    assert view.leader("t", 0) == Leader(3, 8)


def test_a_topic_with_an_id_is_in_doubt_only_where_two_lead_at_one_epoch() -> None:
    view = view_of({0: (3, 8), 1: (3, 8)}, {0: (1, 0), 1: (1, 8)}, topic=topic_id(1))
    assert not view.in_doubt("t", 0)
    assert view.in_doubt("t", 1)


def test_the_leaders_own_confirmation_ends_a_doubt_and_outweighs_who_lags() -> None:
    view, time = _doubtful()
    news = view.changes.count
    assert view.leader_confirms("t", 0, Leader(3, 8)) == []
    assert not view.in_doubt("t", 0)
    assert view.changes.since(news) == {view.topics.aliases("t")}
    view.learn(answer({0: (1, 7)}), 1)
    assert not view.in_doubt("t", 0)
    time.now += 1
    view.learn(answer({0: (1, 7)}), 1)
    assert view.in_doubt("t", 0)


def test_a_leader_that_denies_has_not_confirmed_any_more() -> None:
    """The topic was recreated right after its leader had confirmed."""
    view, _ = _doubtful()
    view.leader_confirms("t", 0, Leader(3, 8))
    view.leader_denies("t", 0, Leader(3, 8))
    view.learn(answer({0: (3, 0)}), 1)
    assert view.in_doubt("t", 0)


def test_a_doubt_ends_when_all_who_contradicted_have_caught_up() -> None:
    view, _ = _doubtful()
    view.learn(answer({0: (1, 7)}), 2)
    view.learn(answer({0: (3, 8)}), 1)
    assert view.in_doubt("t", 0)
    view.learn(answer({0: (3, 8)}), 2)
    assert not view.in_doubt("t", 0)


def test_a_newer_leader_ends_a_doubt() -> None:
    view, _ = _doubtful()
    view.learn(answer({0: (1, 9)}), 2)
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
def test_the_other_leader_is_adopted_when_both_leaders_answer_so(
    denied_first: bool, claim: tuple[int, int]
) -> None:
    view, time = _doubtful(claim=claim)
    time.now += 1
    forgotten = view.topics.forgotten

    def deny() -> list[LeaderChange]:
        return view.leader_denies("t", 0, Leader(3, 8))

    def confirm() -> list[LeaderChange]:
        return view.leader_confirms("t", 0, Leader(*claim))

    first, second = (deny, confirm) if denied_first else (confirm, deny)
    assert first() == []
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(3, 8), True)
    (moved,) = second()
    assert (moved.leader, moved.epoch, moved.epoch_before) == (*claim, 8)
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(*claim), False)
    # The former topic's leader never led this one.
    assert (view.before("t", 0), view.is_confirmed("t", 0)) == (None, True)
    assert view.topics.forgotten > forgotten


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


def test_while_some_broker_agrees_with_the_view_its_leader_may_be_the_last_to_learn_of_it() -> None:
    view, time = _doubtful(claim=(1, 7))
    for _ in range(10):
        time.now += 0.4
        view.learn(answer({0: (3, 8)}), 2)
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
    view.learn(answer({}, error=3), None)
    view.learn(answer({0: (1, 0)}), 1)
    assert (view.leader("t", 0), view.in_doubt("t", 0)) == (Leader(1, 0), False)


def test_only_so_many_doubts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.leader_view.RECENT_MOVES", 2)
    view = view_of(dict.fromkeys(range(3), (1, 5)), dict.fromkeys(range(3), (2, 4)))
    assert [view.in_doubt("t", p) for p in range(3)] == [False, True, True]


def test_nobody_is_known_by_a_partition_that_is_in_doubt() -> None:
    view = view_of({0: (1, 5), 1: (1, 5), 2: (2, 5)}, {0: (3, 4), 2: (3, 4)})
    assert led_by_each(view) == [("t", 1, Leader(1, 5))]


def test_only_so_many_reports_are_kept() -> None:
    said = Disagreements(capacity=4)
    for partition in range(3):
        said.begin(("t", partition))
        for node in (1, 2):
            said.report(("t", partition), Source(node), Leader(node, 4), Leader(3, 5))
    assert [("t", partition) in said for partition in range(3)] == [False, True, True]
