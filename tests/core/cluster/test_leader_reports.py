import tracemalloc
from collections.abc import Mapping

import pytest

from leader_hints.apis.metadata import TopicMetadata
from leader_hints.core.cluster.doubts import Disagreements
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import EpochRose, LeaderChange, LeaderMoved
from tests.core.cluster.views import answer, led_by_each, view_of
from tests.core.samples import topic_id
from tests.harness.lines import lines_of, most_lines


def test_without_ids_a_lower_epoch_counts_from_the_second_poll_on() -> None:
    view = view_of({0: (1, 50), 1: (1, 50)})
    view.learn(answer({0: (2, 0), 1: (1, 50)}), None)
    view.learn(answer({0: (2, 0), 1: (1, 50)}), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 50)
    view.learn(answer({0: (2, 0), 1: (3, 1)}), None, poll=True)
    assert view.leader("t", 0) == Leader(2, 0)
    assert view.leader("t", 1) == Leader(1, 50)


def test_without_ids_the_former_topics_leader_never_led_the_recreated_one() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    assert view.before("t", 0) == Leader(1, 5)
    for _ in range(2):
        view.learn(answer({0: (3, 0)}), None, poll=True)
    assert view.leader("t", 0) == Leader(3, 0)
    assert view.before("t", 0) is None
    assert view.moved_at("t", 0) is None


def test_without_ids_another_leader_at_the_same_epoch_counts_from_the_second_poll_on() -> None:
    view = view_of({0: (1, 0)})
    view.learn(answer({0: (2, 0)}), 3, poll=True)
    assert view.leader("t", 0) == Leader(1, 0)
    view.learn(answer({0: (2, 0)}), 3, poll=True)
    assert view.leader("t", 0) == Leader(2, 0)
    assert view.before("t", 0) is None


def test_two_brokers_that_lag_at_the_same_time_do_not_bring_a_former_leader_back() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for source in (1, 3):
        view.learn(answer({0: (1, 5)}), source, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)


def test_two_routes_whose_brokers_are_not_known_yet_are_never_taken_for_one() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for route in ("one", "two"):
        view.learn(answer({0: (1, 5)}), None, route=route, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)
    # It said so before: two polls of one broker.
    view.learn(answer({0: (1, 5)}), None, route="two", poll=True)
    assert view.leader("t", 0) == Leader(1, 5)


def test_two_routes_to_one_broker_that_lags_do_not_bring_a_former_leader_back() -> None:
    """To two listeners of it, say: both are polled at the same time."""
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for route in ("inside", "outside"):
        view.learn(answer({0: (1, 5)}), 3, route=route, poll=True)
    assert view.leader("t", 0) == Leader(2, 6)
    view.learn(answer({0: (1, 5)}), 3, route="inside", poll=True)
    assert view.leader("t", 0) == Leader(1, 5)


def _moves(view: LeaderView, source: int, leader: tuple[int, int]) -> list[LeaderChange]:
    """Return the moves that a poll of a broker reveals."""
    return view.learn(answer({0: leader}), source, poll=True)


def test_a_leader_that_stays_at_a_higher_epoch_has_not_moved() -> None:
    """A reassignment raises the epoch under the same leader before it moves the partition."""
    view = view_of({0: (1, 5), 1: (1, 5)})
    assert view.learn(answer({0: (1, 6), 1: (2, 6)}), None) == [
        EpochRose(cluster="cluster", topic="t", partition=0, leader=1, epoch_before=5, epoch=6),
        LeaderMoved(
            cluster="cluster",
            topic="t",
            partition=1,
            leader_before=1,
            epoch_before=5,
            leader=2,
            epoch=6,
        ),
    ]
    # None is another one, too.
    (gone,) = view.learn(answer({0: (-1, 7)}), None)
    assert isinstance(gone, LeaderMoved)


def test_without_ids_a_broker_that_is_cut_off_does_not_outvote_several_others() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for _ in range(5):
        assert _moves(view, 3, (1, 5)) == []
        assert _moves(view, 1, (2, 6)) == []
        assert _moves(view, 2, (2, 6)) == []
    (moved,) = _moves(view, 1, (1, 7))
    assert (moved.leader, moved.epoch) == (1, 7)
    for _ in range(5):
        assert _moves(view, 3, (1, 5)) == []
    assert view.leader("t", 0) == Leader(1, 7)


def test_without_ids_a_broker_that_is_cut_off_brings_its_leader_back_once_at_most() -> None:
    """The proxy polls it alone; others report what is true while a response is held."""
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    assert _moves(view, 3, (1, 5)) == []
    assert len(_moves(view, 3, (1, 5))) == 1
    for epoch in (6, 7, 8):
        assert len(view.learn(answer({0: (2, epoch)}), 1)) == 1
        for _ in range(3):
            assert _moves(view, 3, (1, 5)) == []


def test_without_ids_a_broker_that_still_reports_the_former_topic_is_outvoted() -> None:
    view = view_of({0: (3, 8)})
    for _ in range(2):
        assert _moves(view, 1, (1, 0)) == []
        assert _moves(view, 3, (3, 8)) == []
    assert _moves(view, 2, (1, 0)) == []
    (moved,) = _moves(view, 1, (1, 0))
    assert (moved.leader, moved.epoch) == (1, 0)
    for _ in range(3):
        assert _moves(view, 3, (3, 8)) == []
        assert _moves(view, 1, (1, 0)) == _moves(view, 2, (1, 0)) == []
    # What it has not reported before is news.
    assert len(_moves(view, 3, (3, 1))) == 1
    assert len(_moves(view, 3, (3, 8))) == 1


def test_without_ids_most_brokers_count_until_one_of_them_has_caught_up() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    for source, leader in ((1, (1, 5)), (3, (1, 5)), (2, (2, 6)), (1, (1, 5))):
        _moves(view, source, leader)
    assert view.leader("t", 0) == Leader(1, 5)
    assert _moves(view, 2, (2, 6)) == []
    assert len(_moves(view, 3, (2, 6))) == 1
    assert _moves(view, 1, (1, 5)) == []


def test_without_ids_the_leaders_own_answer_is_news_whatever_its_metadata_repeats() -> None:
    view = view_of({0: (2, 6)})
    for source, leader in ((1, (1, 5)), (2, (2, 6)), (3, (1, 5)), (1, (1, 5))):
        _moves(view, source, leader)
    assert view.leader("t", 0) == Leader(1, 5)
    assert len(view.leader_confirms("t", 0, Leader(2, 6))) == 1


def test_a_broker_has_one_voice_before_and_after_its_node_is_known() -> None:
    view = view_of({0: (1, 5)}, {0: (2, 6)})
    view.learn(answer({0: (1, 5)}), None, route="three", poll=True)
    for _ in range(3):
        view.learn(answer({0: (2, 6)}), 1, poll=True)
        view.learn(answer({0: (1, 5)}), 3, route="three", poll=True)
    assert view.leader("t", 0) == Leader(2, 6)


def test_what_a_broker_repeats_is_no_news_once_it_is_known_which_node_it_is() -> None:
    """It still reports the former topic; see above."""
    view = view_of({0: (3, 8)})
    for _ in range(2):
        _moves(view, 1, (1, 0))
        view.learn(answer({0: (3, 8)}), None, route="three", poll=True)
    _moves(view, 2, (1, 0))
    assert len(_moves(view, 1, (1, 0))) == 1
    assert view.learn(answer({0: (3, 8)}), 3, route="three", poll=True) == []
    assert view.leader("t", 0) == Leader(1, 0)


def test_topics_about_which_brokers_disagree_are_named_until_they_agree() -> None:
    view = view_of(dict.fromkeys(range(3), (2, 6)))
    assert view.disagreements.topics(10) == set()
    view.learn(answer({0: (1, 5), 1: (2, 6)}), 1)
    view.learn(answer({0: (1, 5)}, name="u"), 1)
    view.learn(answer({0: (2, 4)}, name="u"), 3)
    assert view.disagreements.topics(10) == {"t", "u"}
    assert view.disagreements.topics(1) | view.disagreements.topics(1) == {"t", "u"}
    view.learn(answer({0: (2, 6)}), 1)
    assert view.disagreements.topics(10) == {"u"}
    view.learn(answer({}, name="u", error=3), 1)
    assert view.disagreements.topics(10) == set()


def test_without_ids_polls_must_agree_one_after_the_other() -> None:
    view = view_of({0: (1, 50)})
    for epoch in (0, 50, 0, 51, 1):
        view.learn(answer({0: (1, epoch)}), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 51)


def test_without_ids_polls_must_contradict_the_same_leader() -> None:
    """World 500537: a broker was late at two polls, each time after another move."""
    view = view_of({0: (3, 3)})
    assert not _moves(view, 1, (3, 1))
    assert _moves(view, 2, (3, 13))
    assert not _moves(view, 1, (1, 12))
    assert not _moves(view, 2, (1, 12))
    assert view.leader("t", 0) == Leader(3, 13)
    assert _moves(view, 1, (1, 12))


def test_without_ids_partitions_that_a_recreated_topic_lacks_are_forgotten() -> None:
    view = view_of({0: (1, 5), 1: (3, 5), 2: (2, 5)})
    for source, poll in ((2, True), (1, True), (1, False)):
        view.learn(answer({0: (1, 5)}), source, poll=poll)
        assert view.leader("t", 1) == Leader(3, 5)
    view.learn(answer({0: (1, 5)}), 1, poll=True)
    assert [view.leader("t", partition) for partition in range(3)] == [Leader(1, 5), None, None]
    assert (view.partitions("t"), len(view)) == (1, 1)
    # Nobody is asked about them to find out who is behind a route.
    assert led_by_each(view) == [("t", 0, Leader(1, 5))]
    view.learn(answer({0: (1, 5), 1: (2, 0)}), 1)
    assert (view.leader("t", 1), view.partitions("t")) == (Leader(2, 0), 2)


def test_without_ids_a_broker_that_lacks_added_partitions_takes_none_away() -> None:
    view = view_of({0: (1, 5)}, {0: (1, 5), 1: (3, 0)})
    view.learn(answer({0: (1, 5)}), 2, poll=True)
    view.learn(answer({0: (1, 5), 1: (3, 0)}), 2, poll=True)
    view.learn(answer({0: (1, 5)}), 2, poll=True)
    assert view.leader("t", 1) == Leader(3, 0)


def test_without_ids_a_broker_that_is_cut_off_takes_no_added_partition_away() -> None:
    """It never learns of it, and is polled each minute as the others are."""
    view, whole = LeaderView("k"), {0: (1, 5), 1: (2, 0)}
    for _ in range(4):
        for node, shown in ((1, whole), (2, whole), (3, {0: (1, 5)})):
            reported, route = answer(shown), f"r{node}"
            view.learn(reported, node, route=route, poll=True)
            view.hidden.take(reported, route)
            assert view.leader("t", 1) == Leader(2, 0)


def test_what_a_broker_lacked_that_cannot_be_asked_takes_no_added_partition_away() -> None:
    """It had not learnt of it when it was stopped; another one is cut off for long."""
    now = [0.0]
    view, whole, former = LeaderView("k", lambda: now[0]), {0: (1, 5), 1: (2, 0)}, {0: (1, 5)}
    for node, shown in ((1, whole), (2, former), (3, former), (1, whole)):
        view.learn(answer(shown), node, route=f"r{node}", poll=True)
        view.hidden.take(answer(shown), f"r{node}")
    view.hidden.lost("r2")
    for now[0] in (60.0, 120.0, 180.0, 240.0):
        for node, shown in ((1, whole), (3, former)):
            view.learn(answer(shown), node, route=f"r{node}", poll=True)
            view.hidden.take(answer(shown), f"r{node}")
            assert view.leader("t", 1) == Leader(2, 0)


def _without_ids(view: LeaderView, reports: Mapping[int, tuple[int, int]]) -> None:
    """Have brokers behind routes of their own polled about a topic without an id."""
    for node, leader in reports.items():
        reported = answer({0: leader})
        view.learn(reported, node, route=f"r{node}", poll=True)
        view.hidden.take(reported, f"r{node}")


def test_without_ids_what_a_stopped_broker_reported_last_outvotes_nobody() -> None:
    """Two of four are cut off while the topic is recreated, and one of these is stopped then."""
    now = [0.0]
    view, former, recreated = LeaderView("k", lambda: now[0]), (1, 8), (4, 0)
    _without_ids(view, dict.fromkeys((1, 2, 3, 4), former))
    for _ in range(3):
        _without_ids(view, {1: recreated, 2: former, 3: former, 4: recreated})
    assert view.leader("t", 0) == Leader(*former)
    view.hidden.lost("r3")
    now[0] = 60.0
    _without_ids(view, {1: recreated, 2: former, 4: recreated})
    assert view.leader("t", 0) == Leader(*recreated)
    # It is still no news from the one that is cut off.
    _without_ids(view, {2: former})
    assert view.leader("t", 0) == Leader(*recreated)


def test_without_ids_a_broker_that_is_back_has_a_say_again() -> None:
    now = [0.0]
    view, former, recreated = LeaderView("k", lambda: now[0]), (1, 8), (4, 0)
    _without_ids(view, dict.fromkeys((1, 2), former))
    view.hidden.lost("r2")
    for now[0] in (60.0, 120.0, 180.0):
        _without_ids(view, {2: former, 1: recreated})
    assert view.leader("t", 0) == Leader(*former)


@pytest.mark.parametrize("seconds", [1, 20, 40, 900])
def test_without_ids_a_poll_before_an_outage_is_not_the_first_of_two(seconds: float) -> None:
    """All connections were lost, and that of the broker that is cut off is there first."""
    now = [0.0]
    view, known, former = LeaderView("k", lambda: now[0]), (1, 8), (2, 7)
    for _ in range(3):
        _without_ids(view, {1: known, 2: former, 3: known})
    for node in (1, 2, 3):
        view.hidden.lost(f"r{node}")
    now[0] = seconds
    for node in (2, 1, 3, 2):
        _without_ids(view, {node: former if node == 2 else known})
        assert view.leader("t", 0) == Leader(*known)


@pytest.mark.parametrize("seconds", [1, 20, 40, 900])
def test_without_ids_a_partition_that_a_broker_lacked_before_an_outage_stays(
    seconds: float,
) -> None:
    now = [0.0]
    view, whole = LeaderView("k", lambda: now[0]), {0: (1, 5), 1: (1, 0)}

    def poll(node: int) -> None:
        view.hidden.take(answer({}, name="another"), f"r{node}")
        reported = answer(whole if node != 2 else {0: (1, 5)})
        view.learn(reported, node, route=f"r{node}", poll=True)
        view.hidden.take(reported, f"r{node}")

    for node in (1, 2, 3):
        poll(node)
    for node in (1, 2, 3):
        view.hidden.lost(f"r{node}")
    now[0] = seconds
    for node in (2, 1, 3, 2):
        poll(node)
        assert view.leader("t", 1) == Leader(1, 0)


@pytest.mark.parametrize("lost_at", [0, 20, 29, 59])
def test_with_ids_lower_epochs_before_an_outage_count_for_nothing(lost_at: float) -> None:
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    for node in (1, 3, 2):
        _polled_by_route(view, node, (1, 8) if node != 2 else (1, 7))
    now[0] = lost_at
    for node in (1, 2, 3):
        view.hidden.lost(f"r{node}")
    now[0] = 60.0
    view.hidden.take(answer({}, name="another"), "r2")
    assert _polled_by_route(view, 2, (1, 7)) == []
    assert view.leader("t", 0) == Leader(1, 8)


def test_a_broker_of_more_partitions_than_are_remembered_brings_no_former_leader_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirty brokers, 4,000 partitions, one broker is cut off, and all leaders move once: half of
    them were back at each of its polls, and thousands of moves were reported that never were.
    """
    monkeypatch.setattr(Disagreements.__init__, "__defaults__", (20,))
    view, count = LeaderView("k"), 50
    before, after = (dict.fromkeys(range(count), led) for led in ((1, 5), (2, 6)))
    moves: list[LeaderChange] = []
    for minute in range(4):
        for node in (1, 2, 3, 4):
            reported = answer(after if minute and node != 4 else before)
            moves += view.learn(reported, node, route=f"r{node}", poll=True)
            view.hidden.take(reported, f"r{node}")
    assert len(moves) == count
    assert view.leader("t", count - 1) == Leader(2, 6)


def test_of_more_partitions_than_are_remembered_lower_epochs_count_if_most_report_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a restore: of 60,000 partitions none was ever learnt."""
    monkeypatch.setattr(Disagreements.__init__, "__defaults__", (20,))
    view, count = LeaderView("k"), 50
    for minute in range(3):
        for node in (1, 2, 3):
            reported = answer(dict.fromkeys(range(count), (2, 1) if minute else (1, 5)))
            view.learn(reported, node, route=f"r{node}", poll=True)
            view.hidden.take(reported, f"r{node}")
    assert {view.leader("t", partition) for partition in range(count)} == {Leader(2, 1)}


def test_what_a_node_behind_no_route_reported_last_outvotes_nobody_while_it_is_away() -> None:
    """It is listed, and cannot be reached: a sidecar's own broker was contradicted for days."""
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    view.learn(answer({0: (2, 6)}), 2)
    for _ in range(3):
        _without_ids(view, {1: (1, 0)})
        view.learn(answer({0: (2, 6)}), 2)
    view.topics.lost(2)
    now[0] = 20.0
    _without_ids(view, {1: (1, 0)})
    assert view.leader("t", 0) == Leader(2, 6)
    now[0] = 60.0
    _without_ids(view, {1: (1, 0)})
    assert view.leader("t", 0) == Leader(1, 0)
    # What it repeats is no news.
    view.learn(answer({0: (2, 6)}), 2)
    assert view.leader("t", 0) == Leader(1, 0)


def test_moves_of_a_topic_that_many_routes_contradicted_are_learnt_in_short_steps() -> None:
    """1,000 routes: 15 ms in one step."""
    view, routes, count = LeaderView("k"), 200, 100
    for leader in ((1, 8), (2, 0)):
        for node in range(routes):
            reported = answer(dict.fromkeys(range(count), leader))
            view.learn(reported, node, route=f"r{node}", poll=leader == (2, 0))
    moved = answer(dict.fromkeys(range(count), (3, 9)))
    assert most_lines(view.learning(moved, 3, route="r3")) < 20_000


def test_what_many_brokers_report_of_a_partition_is_remembered_as_one_report() -> None:
    view, brokers, partitions = LeaderView("k"), 30, 40
    for node in range(brokers):
        view.learn(answer(dict.fromkeys(range(partitions), (1, 6 if node else 5))), node)
    view.learn(answer(dict.fromkeys(range(partitions), (1, 5))), 0)
    for node in range(1, brokers):
        view.learn(answer(dict.fromkeys(range(partitions), (1, 6))), node)
    assert len(view.disagreements) == partitions
    assert view.disagreements._size == 2 * partitions


def test_a_broker_with_two_routes_that_is_cut_off_lacks_no_partition_as_two() -> None:
    """By two listeners; the other broker has one."""
    view, whole = LeaderView("k"), {0: (1, 5), 1: (2, 0)}
    for _ in range(4):
        for node, route in ((2, "two"), (1, "in"), (1, "out")):
            reported = answer(whole if node == 2 else {0: (1, 5)})
            view.learn(reported, node, route=route, poll=True)
            view.hidden.take(reported, route)
            assert view.leader("t", 1) == Leader(2, 0)


def test_a_broker_with_two_routes_that_is_cut_off_restores_nothing_as_two() -> None:
    """With an id it reports a lower epoch, for longer than brokers lag."""
    times = [0.0]
    view = LeaderView("k", lambda: times[-1])
    for node, route, epoch in ((2, "two", 9), (1, "in", 5), (1, "out", 5)) * 3:
        reported = answer({0: (node, epoch)}, topic=topic_id(1))
        if node == 1 or len(times) == 1:
            view.learn(reported, node, route=route, poll=True)
            view.hidden.take(reported, route)
        times.append(times[-1] + 20.0)
    assert view.leader("t", 0) == Leader(2, 9)


_LARGE = 20_000
#: Lines of a step at most: some two milliseconds.
_MOST = 16_000


def _large(partitions: int) -> TopicMetadata:
    return answer(dict.fromkeys(range(partitions), (1, 5)))


def test_what_a_large_topic_lacks_is_found_in_short_steps() -> None:
    """One topic of 100,000 partitions took 110 ms of one step, and 37 ms of another."""
    view = LeaderView("k")
    assert most_lines(view.learning(_large(_LARGE), 1, poll=True)) < _MOST
    for known in (_LARGE, 1):
        assert most_lines(view.learning(_large(1), 2, poll=True)) < _MOST
        assert len(view) == known
    assert most_lines(view.learning(_large(_LARGE), 3, poll=True)) < _MOST
    assert most_lines(view.learning(_large(_LARGE - 1), 2, poll=True)) < _MOST
    assert len(view) == _LARGE - 1


def test_partitions_that_polls_of_many_routes_lack_are_forgotten_in_short_steps() -> None:
    """With 1000 routes a step took 17 ms."""
    view, routes, partitions = LeaderView("k"), 300, 200
    view.learn(_large(partitions), 1)
    for number in range(routes):
        view.learn(_large(1), number, route=f"r{number}", poll=True)
        view.hidden.take(_large(1), f"r{number}")
    again = view.learning(_large(1), 0, route="r0", poll=True)
    assert 200 < most_lines(again) < _MOST
    assert len(view) == 1


def test_a_broker_that_lacked_a_partition_once_and_was_stopped_takes_it_not_away() -> None:
    """Without ids one of three was cut off, and the second was stopped before it had learnt of the
    partition: for half a minute that was added was known and unknown in turn.
    """
    time = [0.0]
    view = LeaderView("k", lambda: time[0])
    before, added = answer({0: (1, 5)}), answer({0: (1, 5), 1: (1, 0)})
    for node in (1, 2, 3):
        view.learn(before, node, route=f"r{node}", poll=True)
        view.hidden.take(before, f"r{node}")
    view.learn(added, 1, route="r1", poll=True)
    view.learn(before, 2, route="r2", poll=True)
    view.topics.lost("r2")
    for _ in range(4):
        time[0] += 5
        for node, said in ((3, before), (1, added)):
            view.learn(said, node, route=f"r{node}", poll=True)
            assert view.leader("t", 1) == Leader(1, 0)
    # Two polls of most of them are believed.
    view.topics.answers("r2")
    for _ in range(2):
        for node in (2, 3):
            view.learn(before, node, route=f"r{node}", poll=True)
    assert view.leader("t", 1) is None


def test_a_broker_that_restarts_again_and_again_keeps_no_partition_that_is_gone() -> None:
    """Without ids: a topic was recreated with fewer partitions. One of two brokers is away for
    longer than a moment between any two polls, so it never lacks them twice.
    """
    time = [0.0]
    view = LeaderView("k", lambda: time[0])
    for node in (1, 2):
        view.learn(answer({0: (1, 5), 1: (2, 5)}), node, route=f"r{node}", poll=True)
        view.hidden.take(answer({0: (1, 5), 1: (2, 5)}), f"r{node}")
    for _ in range(3):
        time[0] += 45
        view.topics.lost("r2")
        view.learn(answer({0: (1, 0)}), 1, route="r1", poll=True)
        time[0] += 12
        view.learn(answer({0: (1, 0)}), 2, route="r2", poll=True)
        view.topics.answers("r2")
    assert len(view) == 1


def test_partitions_of_which_many_brokers_disagree_are_learnt_in_short_steps() -> None:
    """With 499 routes a step took 9 ms."""
    view, routes, partitions = LeaderView("k"), 300, 120
    now = answer(dict.fromkeys(range(partitions), (1, 5)))
    former = answer(dict.fromkeys(range(partitions), (2, 4)))
    for _ in range(3):
        for node in range(routes):
            steps = view.learning(now if node else former, node, route=f"r{node}", poll=True)
            if node:
                list(steps)
            else:
                most = most_lines(steps)
    assert 1000 < most < _MOST
    assert view.leader("t", 0) == Leader(1, 5)


def test_a_large_topic_is_forgotten_in_a_short_step() -> None:
    view = LeaderView("k")
    view.learn(_large(_LARGE), 1)
    view.learn(answer({0: (2, 4), 1: (2, 6)}), 2)
    view.learn(answer({0: (2, 4), 1: (2, 4)}, name="u"), 2)
    view.learn(answer({0: (1, 3)}, name="u"), 1)
    assert lines_of(lambda: view.learn(answer({}, error=3), 1)) < 1000
    assert (view.in_doubt("t", 0), view.in_doubt("u", 0)) == (False, True)
    assert view.disagreements.topics(10) == {"u"}
    view.learn(_large(2), 1)
    assert view.moved_at("t", 1) is None


#: Partitions of which as many lines would be too many in one step.
_MANY = 4000


def _disputed() -> LeaderView:
    """Return a view of a large topic about which brokers disagree, and that has moved."""
    view = LeaderView("k")
    view.learn(_large(_MANY), 1)
    view.learn(answer(dict.fromkeys(range(_MANY), (1, 6))), 1)
    view.learn(answer(dict.fromkeys(range(_MANY), (2, 4))), 2)
    return view


def test_what_was_noted_of_a_large_topic_is_forgotten_in_short_steps() -> None:
    """Of 50,000 partitions about which brokers disagreed it took 33 ms of one step."""
    view = _disputed()
    assert most_lines(view.learning(answer({}, error=3), 1)) < _MOST
    assert view.leader("t", 0) is None
    assert most_lines(view.dropping()) < _MOST
    assert not view.disagreements
    assert not view.in_doubt("t", _MANY - 1)


def test_what_was_noted_of_a_forgotten_topic_is_not_of_the_next_one() -> None:
    """Nothing was dropped in steps in between, or not all."""
    for steps in (0, 3):
        view = _disputed()
        view.learn(answer({}, error=3), 1)
        for _ in zip(range(steps), view.dropping(), strict=False):
            pass
        view.learn(_large(_MANY), 1)
        for partition in (0, _MANY // 2, _MANY - 1):
            assert not view.in_doubt("t", partition)
            assert view.moved_at("t", partition) is None
        assert not view.disagreements


def test_what_a_node_alone_has_said_of_a_large_topic_is_not_of_the_next_one_of_its_name() -> None:
    view = LeaderView("k")
    view.learn(_large(2000), 1)
    for partition in range(2000):
        view.leader_confirms("t", partition, Leader(2, 6))
    view.learn(answer({0: (2, 0)}, topic=topic_id(1)), 1)
    view.withdraw({2})
    assert view.leader("t", 0) == Leader(2, 0)


def test_what_is_lacked_counts_no_more_once_the_topic_is_deleted() -> None:
    view = LeaderView("k")
    view.learn(_large(_LARGE), 1)
    view.learn(_large(1), 2, poll=True)
    steps = view.learning(_large(1), 2, poll=True)
    next(steps)
    view.learn(answer({}, error=3), 1)
    view.learn(_large(10), 1)
    assert [*steps] == []
    assert len(view) == 10


def test_two_brokers_that_lack_partitions_at_the_same_time_take_them_away_once() -> None:
    view = LeaderView("k")
    view.learn(_large(_LARGE), 1)
    for source in (2, 3):
        view.learn(_large(1), source, poll=True)
    some, others = (view.learning(_large(1), source, poll=True) for source in (2, 3))
    next(some)
    list(others)
    list(some)
    assert (len(view), view.partitions("t")) == (1, 1)


def test_with_ids_a_partition_is_never_forgotten() -> None:
    view = LeaderView("k")
    view.learn(answer({0: (1, 5), 1: (3, 0)}, topic=topic_id(1)), None)
    for _ in range(3):
        view.learn(answer({0: (1, 5)}, topic=topic_id(1)), 2, poll=True)
    assert view.leader("t", 1) == Leader(3, 0)


def _polled(view: LeaderView, source: int, *partitions: tuple[int, int]) -> list[LeaderChange]:
    reported = answer(dict(enumerate(partitions)), topic=topic_id(1))
    return view.learn(reported, source, poll=True)


def test_with_ids_lower_epochs_count_if_nobody_reports_the_known_one_for_long() -> None:
    """The cluster was restored from a backup: brokers, ids and topics are those of before."""
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    _polled(view, 1, (2, 8), (1, 7))
    for now[0] in (60.0, 80.0):
        assert _polled(view, 1, (1, 3), (1, 7)) == []
    # One broker that lags for so long is contradicted by the others.
    view.learn(answer({0: (2, 8)}, topic=topic_id(1)), 2)
    for now[0] in (100.0, 129.0):
        assert _polled(view, 1, (1, 3), (1, 7)) == []
    assert view.leader("t", 0) == Leader(2, 8)
    now[0] = 160.0
    (moved,) = _polled(view, 1, (1, 3), (1, 7))
    assert (moved.leader, moved.epoch) == (1, 3)
    assert view.leader("t", 0) == Leader(1, 3)
    assert view.leader("t", 1) == Leader(1, 7)
    assert _polled(view, 3, (3, 4), (1, 7)) != []


def test_with_ids_lower_epochs_of_one_broker_among_others_never_count() -> None:
    """It is cut off. It answers last in one poll of all brokers and first in the next one."""
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    routes = {1: (2, 8), 2: (2, 8), 3: (3, 7)}
    for minute, order in enumerate(((1, 2, 3), (3, 1, 2)) * 3):
        now[0] = 60.0 * minute
        moves = [move for node in order for move in _polled_by_route(view, node, routes[node])]
        assert moves == []
    assert view.leader("t", 0) == Leader(2, 8)
    # The others cannot be asked any more, or say so as well.
    view.hidden.lost("r1")
    now[0] += 60.0
    _polled_by_route(view, 2, (3, 7))
    now[0] += 60.0
    assert _polled_by_route(view, 3, (3, 7)) == []
    assert _polled_by_route(view, 2, (3, 7)) == []
    now[0] += 60.0
    assert len(_polled_by_route(view, 3, (3, 7))) == 1
    assert view.leader("t", 0) == Leader(3, 7)


def test_with_ids_lower_epochs_of_a_broker_that_restarts_never_count() -> None:
    """It reports at one poll what it knew before, while one is cut off and one does not answer."""
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    for node in (1, 2, 3):
        _polled_by_route(view, node, (3, 7) if node == 3 else (2, 8))
    view.hidden.lost("r1")
    now[0] = 60.0
    assert _polled_by_route(view, 2, (2, 8)) == []
    assert _polled_by_route(view, 3, (3, 7)) == []
    for now[0], of_restarting in ((120.0, (3, 7)), (180.0, (2, 8))):
        assert _polled_by_route(view, 3, (3, 7)) == []
        assert _polled_by_route(view, 2, of_restarting) == []
    assert view.leader("t", 0) == Leader(2, 8)


def test_what_polls_of_a_restored_cluster_report_is_noted_in_little_memory() -> None:
    """A minute after a restore each route has reported lower epochs of each partition.

    A time for each of a route and a partition took 206 MB for 300 routes and 30,000 partitions.
    """
    routes, partitions = 60, 3000
    view = LeaderView("k", lambda: 0.0)
    view.learn(answer(dict.fromkeys(range(partitions), (1, 5)), topic=topic_id(1)), None)
    lower = answer(dict.fromkeys(range(partitions), (1, 4)), topic=topic_id(1))
    tracemalloc.start()
    try:
        for number in range(routes):
            view.learn(lower, number, route=f"r{number}", poll=True)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 5 * routes * partitions


def _polled_by_route(view: LeaderView, node: int, partition: tuple[int, int]) -> list[LeaderChange]:
    reported = answer({0: partition}, topic=topic_id(1))
    moves = view.learn(reported, node, route=f"r{node}", poll=True)
    view.hidden.take(reported, f"r{node}")
    return moves


def test_with_ids_so_they_do_not_while_the_leader_itself_says_that_it_leads() -> None:
    now = [0.0]
    view = LeaderView("k", lambda: now[0])
    _polled(view, 1, (2, 8))
    for now[0] in range(0, 600, 20):
        assert _polled(view, 1, (1, 7)) == []
        assert view.leader_confirms("t", 0, Leader(2, 8)) == []
    assert view.leader("t", 0) == Leader(2, 8)


def test_with_ids_a_lower_epoch_of_a_broker_that_lags_never_counts() -> None:
    view = view_of({0: (1, 50)}, topic=topic_id(1))
    for _ in range(3):
        view.learn(answer({0: (2, 49)}, topic=topic_id(1)), None, poll=True)
    assert view.leader("t", 0) == Leader(1, 50)
