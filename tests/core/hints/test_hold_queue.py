"""The rules one by one; times in seconds, as in the default rules."""

import itertools
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import HintGiven, HintMissed
from leader_hints.core.hints import hold_queue
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.wire.steps import at_once
from tests.core.hold_queues import BEGIN, NODES, Counter, as_kraft, failed, hint, learn, route
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import FENCED, NOT_LEADER, UNKNOWN_EPOCH, topic_id

T = BEGIN


def _link(
    mode: Mode = Mode.ON,
    *,
    node: int | None = 1,
    number: int = 1,
    clock: Callable[[], float] = lambda: BEGIN,
) -> LinkState:
    """Return a link to node 1, which led partitions 0 and 1 at epoch 5 by the last answer."""
    link = LinkState(route(mode, node=node, clock=clock), number)
    learn(link.route, {0: (1, 5), 1: (1, 5)})
    return link


def _view(link: LinkState) -> LeaderView:
    assert link.route.broker.view is not None
    return link.route.broker.view


# Rule 1: a good hint goes at once.


def test_a_fetch_whose_leader_is_known_goes_at_once() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.fetch(link, T, {0: 5}) == [hint(2, 6)]
    (event,) = counter.take_events()
    assert isinstance(event, HintGiven)
    assert (event.leader, event.epoch, event.answered.hold_ms) == (2, 6, 0)


def test_a_produce_whose_broker_was_seen_to_lead_goes_at_once() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T) == [hint(2, 6)]


def test_every_failure_gets_its_own_hint() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6), 1: (3, 8)}, source=2)
    learn(link.route, {0: (2, 6), 1: (3, 8)}, source=3)
    assert counter.produce(link, T, 1, 0) == [hint(3, 8), hint(2, 6)]


def test_a_topic_may_be_named_by_its_id() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2, topic="u", topic_id=topic_id(1))
    assert counter.fetch(link, T, {0: 5}, topic=topic_id(1)) == [hint(2, 6)]
    (event,) = counter.take_events()
    assert isinstance(event, HintGiven)
    assert event.answered.topic == "u"


# The epoch is above the client's.


@pytest.mark.parametrize("epoch", [6, 7])
def test_a_client_that_knows_as_much_gets_no_hint(epoch: int) -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.fetch(link, T, {0: epoch}) is None
    assert counter.review(T + 0.1) == [[None]]
    assert counter.reasons() == ["hold_expired"]


def test_the_view_that_rises_above_the_client_wakes_it() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    assert counter.review(T + 0.004) == []
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.005) == [[hint(2, 6)]]
    assert counter.queue.next_deadline() is None
    (event,) = counter.take_events()
    assert isinstance(event, HintGiven)
    assert event.answered.hold_ms == pytest.approx(5)


def test_an_epoch_that_rose_under_the_same_leader_answers_fenced_at_once() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 6)}, source=3)
    assert counter.fetch(link, T, {0: 5}, error=FENCED) == [hint(1, 6)]


def test_a_kraft_broker_that_does_not_know_yet_that_it_leads_is_waited_for() -> None:
    # The view says that the answering broker itself leads: it must say so too, after the error.
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 6)}, source=1)
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    counter.queue.probed(link.route, {("t", 0): 0}, T - 0.001)
    assert counter.review(T + 0.02) == []
    counter.queue.probed(link.route, {("t", 0): UNKNOWN_EPOCH}, T + 0.021)
    assert counter.review(T + 0.05) == []
    counter.queue.probed(link.route, {("t", 0): 0}, T + 0.051)
    assert counter.review(T + 0.06) == [[hint(1, 6)]]


def test_another_routes_or_topics_answer_says_nothing_of_this_broker() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 6)}, source=1)
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    at_once(counter.queue.asked(route(name="other"), {"t"}, T + 1))
    at_once(counter.queue.asked(link.route, {"u"}, T + 1))
    counter.queue.probed(route(name="other"), {("t", 0): 0}, T + 1)
    counter.queue.probed(link.route, {("t", 1): 0, ("u", 0): 0}, T + 1)
    assert counter.review(T + 0.06) == []


def test_a_broker_may_answer_when_the_view_has_forgotten_all_topics() -> None:
    # The only topic is deleted while an error of it is held.
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    view = link.route.broker.view
    assert view is not None
    list(view.topics.forget_absent(()))
    list(view.topics.forget_absent(()))
    assert len(view) == 0
    counter.queue.probed(link.route, {("t", 0): UNKNOWN_EPOCH}, T + 0.001)
    assert counter.review(T + 0.05) == []


# Produce says no epoch: what is known of the answering broker must do.


def test_a_produce_whose_broker_still_leads_by_the_view_waits() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.003) == [[hint(2, 6)]]


def test_a_produce_whose_broker_never_led_by_the_view_waits_for_its_word() -> None:
    # The view may be a move behind: what it says of another leader may be old.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    learn(link.route, {0: (3, 7)}, source=3)
    assert counter.produce(link, T) is None
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.002) == [[hint(3, 7)]]


@pytest.mark.parametrize(("since", "held"), [(0.999, False), (1.001, True), (11.0, True)])
def test_a_produce_long_after_its_leader_went_waits_for_its_brokers_word(
    since: float, held: bool
) -> None:
    # Leaders 1, 2, 1, 2 at epochs 5 to 8: nobody told this proxy of the two moves in the middle,
    # and the producer, which knows epoch 7, takes no hint of epoch 6.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T + since) == (None if held else [hint(2, 6)])
    if held:
        at_once(counter.queue.asked(link.route, {"t"}, T + since))
        learn(link.route, {0: (2, 8)}, source=2)
        assert counter.review(T + since + 0.002) == [[hint(2, 8)]]


def test_a_hint_that_was_found_in_time_stays_good_while_it_is_held() -> None:
    link, counter = _link(), Counter(replace(DEFAULT_RULES, deadline=5, link_second=5, confirm=4))
    learn(link.route, {0: (2, 6)})
    assert counter.produce(link, T + 0.9) is None
    learn(link.route, {1: (2, 6)})
    assert counter.review(T + 2) == []
    assert _view(link).leader_confirms("t", 0, Leader(2, 6)) == []
    assert counter.review(T + 2.1) == [[hint(2, 6)]]


def test_a_fetch_whose_broker_leads_again_at_a_higher_epoch_waits_for_its_word() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: -1}, error=NOT_LEADER) is None
    learn(link.route, {0: (1, 6)}, source=1)
    assert counter.review(T + 0.002) == []
    counter.queue.probed(link.route, {("t", 0): 0}, T + 0.001)
    assert counter.review(T + 0.003) == [[hint(1, 6)]]


def test_a_produce_to_a_broker_of_unknown_node_gets_no_hint() -> None:
    link, counter = _link(node=None), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    for proved in (False, True):
        assert counter.produce(link, T) is None
        # The node is proved to be another one: that is enough.
        link.route.broker.others = frozenset({2} if proved else ())
        at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
        assert counter.review(T + 0.002) == [[hint(2, 6) if proved else None]]


def test_a_topic_recreated_while_a_produce_waits_gives_no_hint() -> None:
    # The producer knows the old topic's epoch 5, and would not take a lower one.
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    assert link.route.broker.view is not None
    link.route.broker.view.learn(TopicMetadata(3, "t", ZERO_ID, ()), None)
    learn(link.route, {0: (2, 0)}, source=2)
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.05) == [[None]]


def test_a_fetch_without_an_epoch_follows_the_rule_of_produce() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: -1}, error=NOT_LEADER) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.003) == [[hint(2, 6)]]


# Rule 3: there is no leader, or no broker can be asked.


def test_without_a_leader_a_response_goes_on_immediately() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (-1, 6)})
    assert counter.fetch(link, T, {0: 5}) == [None]
    assert counter.reasons() == ["no_leader"]


def test_news_of_no_leader_releases_what_is_held() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    learn(link.route, {0: (-1, 6)})
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.01) == [[None]]
    assert counter.reasons() == ["no_leader"]


def test_a_produce_waits_for_its_brokers_answer_that_there_is_no_leader() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (-1, 6)})
    assert counter.produce(link, T) is None
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.002) == [[None]]
    assert counter.reasons() == ["no_leader"]


def test_old_news_of_no_leader_releases_nothing() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (-1, 6)})
    assert counter.fetch(link, T, {0: 6}) is None


def test_that_there_was_no_leader_a_while_ago_releases_nothing() -> None:
    """Node 1 was fenced for a moment, and leads again since, of which nobody has told the view."""
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 5)}, topic_id=topic_id(1))
    learn(link.route, {0: (-1, 6)}, topic_id=topic_id(1))
    assert counter.fetch(link, T + 50, {0: 5}, topic=topic_id(1)) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.topics == {topic_id(1)}
    learn(link.route, {0: (1, 7)}, source=1, topic_id=topic_id(1))
    at_once(counter.queue.asked(link.route, {topic_id(1)}, T + 50.001))
    assert counter.review(T + 50.002) == [[hint(1, 7)]]


def test_a_topics_own_id_and_news_of_no_leader_are_enough() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 5)}, topic_id=topic_id(1))
    learn(link.route, {0: (-1, 6)}, topic_id=topic_id(1))
    assert counter.fetch(link, T + 0.9, {0: 4}, topic=topic_id(1)) == [None]
    assert counter.reasons() == ["no_leader"]


def test_nobody_to_ask_goes_at_once() -> None:
    link, counter = _link(), Counter()
    link.route.broker.reachable = False
    assert counter.produce(link, T) == [None]
    assert counter.reasons() == ["no_fresher_view"]


def test_nobody_to_ask_takes_no_hint_away_that_is_known() -> None:
    link, counter = _link(), Counter()
    link.route.broker.reachable = False
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T) == [hint(2, 6)]


def test_a_route_without_a_view_has_no_hints() -> None:
    link, counter = _link(), Counter()
    link.route.broker.view = None
    assert counter.fetch(link, T, {0: 5}) is None
    assert [(w.route, w.topics) for w in counter.queue.wanted_leaders()] == [(link.route, {"t"})]
    assert counter.review(T + 0.1) == [[None]]


def test_a_leader_without_an_endpoint_waits_for_it() -> None:
    link, counter = _link(), Counter()
    link.route.broker.endpoints = {1: NODES[1]}
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.05) == []
    link.route.broker.endpoints = {2: Endpoint("here", 1, "rack")}
    (hints,) = counter.review(T + 0.06)
    assert hints[0] is not None
    assert hints[0].endpoint == ("here", 1, "rack")


def test_a_leader_whose_endpoint_never_comes_is_reported_so() -> None:
    link, counter = _link(), Counter()
    link.route.broker.endpoints = {1: NODES[1]}
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.1) == [[None]]
    assert counter.reasons() == ["no_endpoint"]


# Many at once.


def test_a_review_of_very_many_is_done_in_steps() -> None:
    first, counter = _link(), Counter()
    links = [first, *(LinkState(first.route, number) for number in (2, 3, 4))]
    for number, link in enumerate(links):
        partitions = range(120 * number, 120 * (number + 1))
        learn(first.route, dict.fromkeys(partitions, (1, 5)), source=1)
        assert counter.produce(link, T, *partitions) is None
    learn(first.route, dict.fromkeys(range(480), (2, 6)), source=2)
    assert len(counter.review(T + 0.01)) == 2
    assert counter.queue.unfinished
    done = counter.review(T + 0.01)
    assert len(done) == 2
    assert all(hint is not None for hints in done for hint in hints)
    assert not counter.queue.unfinished
    assert not counter.queue.busy


def _very_many() -> tuple[LinkState, Counter]:
    """Three responses of 150 failed partitions each, which are more than one review judges."""
    first, counter = _link(), Counter()
    for number in range(3):
        partitions = range(150 * number, 150 * (number + 1))
        learn(first.route, dict.fromkeys(partitions, (1, 5)), source=1)
        assert counter.produce(LinkState(first.route, number + 1), T, *partitions) is None
    return first, counter


def test_what_a_broker_says_again_is_no_news() -> None:
    first, counter = _very_many()
    at_once(counter.queue.asked(first.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.002) == []
    assert counter.queue.unfinished
    assert counter.review(T + 0.002) == []
    assert not counter.queue.unfinished
    at_once(counter.queue.asked(first.route, {"t"}, T + 0.003))
    assert counter.review(T + 0.004) == []
    assert not counter.queue.unfinished


def test_what_is_still_looked_for_is_judged_in_steps_too() -> None:
    first, counter = _very_many()
    while counter.review(T + 0.1001):
        pass
    learn(first.route, dict.fromkeys(range(450), (2, 6)), source=2)
    assert counter.review(T + 0.2) == []
    assert counter.queue.unfinished
    assert counter.queue.busy
    assert counter.review(T + 0.2) == []
    assert not counter.queue.unfinished
    assert not counter.queue.busy


def test_what_very_many_want_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_queue, "_WANTED_AT_ONCE", 2)
    first, counter = _link(), Counter()
    for number, topic in enumerate("abc", 1):
        assert counter.produce(LinkState(first.route, number), T, topic=topic) is None
    topics = []
    for _ in range(3):
        (wanted,) = counter.queue.wanted_leaders()
        topics.append(wanted.topics)
    assert topics == [{"a", "b"}, {"c", "a"}, {"b", "c"}]


def test_in_a_storm_who_is_named_is_asked_and_the_others_are_looked_for() -> None:
    first, counter = _link(), Counter()
    learn(first.route, dict.fromkeys(range(5), (1, 5)), source=1)
    learn(first.route, {0: (1, 5)}, source=1, topic="u")
    for number in (1, 2):
        assert counter.produce(LinkState(first.route, number), T, *range(5)) is None
    assert counter.produce(LinkState(first.route, 3), T, topic="u") is None
    learn(first.route, {0: (2, 6), 1: (2, 6), 2: (2, 7), 3: (3, 6), 4: (3, 6)})
    assert counter.review(T + 0.01) == []
    (wanted,) = counter.queue.wanted_leaders()
    assert len(wanted) == 11
    wanted.single()
    assert len(wanted) == 6
    assert wanted.topics == {"t", "u"}
    assert wanted.unknown == {"u"}
    asked = [(node, wanted.epochs_of(some)) for node, some in wanted.questions(2)]
    assert asked == [
        (2, {("t", 0): 6, ("t", 1): 6}),
        (2, {("t", 2): 7}),
        (3, {("t", 3): 6, ("t", 4): 6}),
    ]


def test_an_answer_counts_for_the_topics_that_it_is_about() -> None:
    link, counter = LinkState(route(), 1), Counter()
    for topic in ("t", "u"):
        learn(link.route, {0: (2, 5)}, topic=topic)
    held, other = [failed(link, {0: -1}, ApiKey.FETCH, topic) for topic in ("t", "u")]
    held.scanned = held.scanned._replace(failures=(*held.scanned.failures, *other.scanned.failures))
    held.epochs = [-1, -1]
    assert counter.queue.submit(held, T) is None
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.001))
    assert counter.review(T + 0.002) == []
    at_once(counter.queue.asked(link.route, {"u"}, T + 0.003))
    assert counter.review(T + 0.004) == [[hint(2, 5), hint(2, 5)]]


def test_an_answer_to_an_earlier_question_does_not_count() -> None:
    link, counter = LinkState(route(), 1), Counter()
    learn(link.route, {0: (2, 5)})
    assert counter.fetch(link, T, {0: -1}) is None
    at_once(counter.queue.asked(link.route, {"t"}, T - 0.001))
    assert counter.review(T + 0.001) == []
    at_once(counter.queue.asked(link.route, {"t"}, T))
    assert counter.review(T + 0.002) == [[hint(2, 5)]]


def test_which_node_a_broker_is_not_is_news() -> None:
    link, counter = LinkState(route(node=None), 1), Counter()
    learn(link.route, {0: (2, 5)})
    assert counter.fetch(link, T, {0: -1}) is None
    at_once(counter.queue.asked(link.route, {"t"}, T))
    assert counter.review(T + 0.001) == []
    link.route.broker.others = frozenset({2})
    assert counter.review(T + 0.002) == [[hint(2, 5)]]


@pytest.mark.parametrize(("doubtful", "epoch"), [(False, 6), (True, 5)])
def test_in_doubt_the_leader_is_asked_at_its_own_epoch(doubtful: bool, epoch: int) -> None:
    link, counter = _link(), Counter()
    if doubtful:
        learn(link.route, {0: (3, 0)}, source=3)
    assert counter.fetch(link, T, {0: 5}) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): epoch}


# Rule 4: a deadline from the first error on, then calm.


def test_the_deadline_runs_from_the_first_error_on() -> None:
    first, counter = _link(), Counter()
    second = LinkState(first.route, 2)
    assert counter.produce(first, T) is None
    assert counter.produce(second, T + 0.06) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.1)
    assert counter.review(T + 0.099) == []
    assert counter.review(T + 0.1001) == [[None], [None]]
    assert counter.reasons() == ["hold_expired"] * 2


def test_a_response_is_held_until_the_last_deadline_of_its_partitions() -> None:
    first, counter = _link(), Counter()
    counter.produce(first, T)
    assert counter.produce(LinkState(first.route, 2), T + 0.06, 0, 1) is None
    assert counter.review(T + 0.1001) == [[None]]
    assert counter.queue.next_deadline() == pytest.approx(T + 0.16)
    assert counter.review(T + 0.1601) == [[None, None]]


@pytest.mark.parametrize(("after", "holds"), [(0.5, False), (1.0999, False), (1.1001, True)])
def test_after_the_deadline_errors_are_not_held_for_a_while(after: float, holds: bool) -> None:
    first, counter = _link(), Counter()
    counter.produce(first, T)
    counter.review(T + 0.101)
    later = counter.produce(LinkState(first.route, 2), T + after)
    assert later == (None if holds else [None])
    assert counter.reasons() == ["hold_expired"] * (1 if holds else 2)


def test_so_many_responses_are_held_and_no_more() -> None:
    counter = Counter(replace(DEFAULT_RULES, most=2))
    assert [counter.produce(_link(number=number), T) for number in (1, 2)] == [None, None]
    assert counter.produce(_link(number=3), T) == [None]
    (event,) = counter.take_events()
    assert isinstance(event, HintMissed)
    assert (event.reason, event.answered.link) == (MissReason.BUDGET, 3)


def test_only_so_many_first_errors_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.hints.hold_allowance.MOST_FIRST_ERRORS", 3)
    first, counter = _link(), Counter()
    learn(first.route, dict.fromkeys(range(5), (1, 5)))
    assert counter.produce(first, T, *range(5)) is None
    assert counter.review(T + 0.1001) == [[None] * 5]
    # The last ones have had their time; of the first one that is not known any more.
    for partition, held in ((2, False), (3, False), (4, False), (0, True)):
        later = counter.produce(LinkState(first.route, 2 + partition), T + 0.2, partition)
        assert later == (None if held else [None])


def _kraft_link() -> LinkState:
    link = _link()
    as_kraft(link.route)
    return link


def test_a_kraft_broker_is_waited_for_until_it_may_have_heard_that_it_leads() -> None:
    link, counter = _kraft_link(), Counter()
    assert counter.produce(link, T) is None
    assert counter.review(T + 0.4999) == []
    assert counter.review(T + 0.5001) == [[None]]
    assert counter.reasons() == ["hold_expired"]
    # Then the link has had its time in this second, and the partition until a second later.
    assert counter.produce(link, T + 0.6, 1) == [None]
    other = LinkState(link.route, 2)
    assert counter.produce(other, T + 1.4999) == [None]
    assert counter.produce(other, T + 1.5001) is None


def test_longer_bounds_than_for_kraft_hold_there_too() -> None:
    link, counter = _kraft_link(), Counter(replace(DEFAULT_RULES, deadline=2, link_second=1))
    assert counter.produce(link, T) is None
    assert counter.review(T + 0.999) == []
    assert counter.review(T + 1.001) == [[None]]


@pytest.mark.parametrize("bound", ["deadline", "link_second"])
def test_where_nothing_is_to_be_held_a_kraft_broker_is_not_waited_for(bound: str) -> None:
    link, counter = _kraft_link(), Counter(replace(DEFAULT_RULES, **{bound: 0}))
    assert counter.produce(link, T) == [None]


def test_a_kraft_broker_that_restarts_is_still_known_as_one() -> None:
    link, counter = _kraft_link(), Counter()
    link.route.broker.lose()
    link.route.broker.reachable = True
    assert counter.produce(link, T) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.5)


def test_an_error_that_is_answered_at_once_begins_no_hold() -> None:
    # A reassignment raises the epoch under the same leader, and the election that follows soon
    # moves it: the second error comes under the epoch of the first one's answer.
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 6)}, source=1)
    assert counter.fetch(link, T, {0: 5}) == [hint(1, 6)]
    assert counter.fetch(link, T + 0.35, {0: 6}) is None
    learn(link.route, {0: (2, 7)}, source=2)
    assert counter.review(T + 0.36) == [[hint(2, 7)]]


def test_other_partitions_and_epochs_have_their_own_deadline() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T)
    counter.review(T + 0.101)
    assert counter.produce(LinkState(link.route, 2), T + 0.2, 1) is None
    learn(link.route, {0: (3, 6)}, source=3)
    assert counter.fetch(LinkState(link.route, 3), T + 0.2, {0: 6}) is None


def test_a_client_that_is_behind_begins_no_calm_for_those_that_are_not() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 4}) is None
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.003))
    assert counter.review(T + 0.004) == [[hint(1, 5)]]
    # And then the leader goes.
    assert counter.fetch(LinkState(link.route, 2), T + 0.3, {0: 5}, error=NOT_LEADER) is None
    assert counter.produce(LinkState(link.route, 3), T + 0.3) is None
    # Nor is the one that is behind held again.
    assert counter.fetch(LinkState(link.route, 4), T + 0.3, {0: 4}) == [None]


def test_calm_takes_no_hint_away_that_is_known() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.fetch(link, T, {0: 5}) == [hint(2, 6)]
    assert counter.fetch(LinkState(link.route, 2), T + 0.5, {0: 5}) == [hint(2, 6)]


# Rule 5: a link is held for a bounded part of each second.


def test_a_link_whose_hold_is_spent_is_not_held() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0) is None
    counter.review(T + 0.1001)
    assert counter.produce(link, T + 0.2, 1) == [None]
    assert counter.reasons() == ["hold_expired", "link_hold_spent"]
    assert counter.produce(LinkState(link.route, 2), T + 0.2, 1) is None


def test_what_is_left_of_the_links_hold_is_used() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {2: (1, 5)})
    assert counter.produce(link, T, 0) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.07) == [[hint(2, 6)]]
    assert counter.produce(link, T + 0.5, 1) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.53)
    counter.review(T + 0.54)
    assert counter.produce(link, T + 0.6, 2) == [None]


def test_the_links_hold_comes_back_with_time() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0) is None
    counter.review(T + 0.1)
    counter.review(T + 1.1001)
    assert counter.produce(link, T + 1.101, 1) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 1.201)


def test_two_seconds_share_no_hold_at_their_border() -> None:
    link, counter = _link(), Counter()
    learn(link.route, dict.fromkeys(range(3), (1, 5)))
    assert counter.produce(link, T, 0) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert len(counter.review(T + 0.01)) == 1
    assert counter.produce(link, T + 0.95, 1) is None
    assert len(counter.review(T + 1.045)) == 1
    # 95 ms of the last second were spent.
    assert counter.produce(link, T + 1.05, 2) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 1.055)


def test_a_large_response_is_judged_for_a_grace_beyond_the_links_hold_and_no_longer() -> None:
    """In a storm each attempt was held until all before it were judged: half of the time."""
    link, counter = _link(), Counter()
    epochs = dict.fromkeys(range(1000), 5)
    assert counter.fetch(link, T, epochs, error=NOT_LEADER) is None
    assert counter.review(T + 0.1) == [[None] * 1000]
    assert counter.fetch(link, T + 0.11, epochs, error=NOT_LEADER) is None
    assert counter.review(T + 0.129) == []
    assert counter.review(T + 0.1301) == [[None] * 1000]
    assert counter.fetch(link, T + 0.14, epochs, error=NOT_LEADER) == [None] * 1000
    assert counter.fetch(LinkState(link.route, 2), T + 0.14, epochs, error=NOT_LEADER) is None


@pytest.mark.parametrize("known", [True, False])
def test_so_it_is_where_nothing_is_to_be_held_by_the_deadline(known: bool) -> None:
    """Hints that were known already were lost beyond the first 200."""
    link, counter = _link(), Counter(replace(DEFAULT_RULES, deadline=0))
    epochs = dict.fromkeys(range(1000), 5)
    learn(link.route, dict.fromkeys(epochs, (1, 5)))
    if known:
        learn(link.route, dict.fromkeys(epochs, (2, 6)), source=2)
    assert counter.fetch(link, T, epochs, error=NOT_LEADER) is None
    answers = []
    for _ in range(10):
        answers += counter.review(T + 0.001)
    assert answers == [[hint(2, 6) if known else None] * 1000]


def test_so_it_is_where_others_wait_for_what_it_brings() -> None:
    link, counter = _link(), Counter()
    epochs = dict.fromkeys(range(1000), 5)
    assert counter.fetch(link, T, epochs, error=NOT_LEADER, carries=True) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.04)
    assert counter.review(T + 0.0401) == [[None] * 1000]


def test_what_others_wait_for_is_held_more_briefly() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0, carries=True) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.02)
    assert counter.review(T + 0.0201) == [[None]]


# Reviews that come late.


@pytest.mark.parametrize(
    ("carries", "ahead", "over"),
    [(False, 0.01, 0.09), (False, 0.5, 0.075), (True, 0.001, 0.019), (True, 0.01, 0.015)],
)
def test_a_hold_is_cut_by_what_reviews_are_late_and_by_a_quarter_at_most(
    carries: bool, ahead: float, over: float
) -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0, carries=carries) is None
    assert counter.queue.next_deadline(ahead) == pytest.approx(T + over)
    assert counter.review(T + over - 0.0001, ahead) == []
    assert counter.review(T + over + 0.0001, ahead) == [[None]]


def test_so_is_the_grace() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0, 1) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.03, 0.1) == []
    assert counter.queue.next_deadline(0.1) == pytest.approx(T + 0.045)
    assert counter.review(T + 0.0451, 0.1) == [[hint(2, 6), None]]


# Rule 6: a short grace after the first hint.


def test_the_others_have_a_grace_after_the_first_hint() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, 0, 1) is None
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.03) == []
    assert [(w.route, w.topics) for w in counter.queue.wanted_leaders()] == [(link.route, {"t"})]
    assert counter.queue.next_deadline() == pytest.approx(T + 0.05)
    assert counter.review(T + 0.0501) == [[hint(2, 6), None]]
    assert counter.reasons() == [None, "hold_expired"]


def test_the_grace_is_never_longer_than_the_deadline() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, 0, 1)
    learn(link.route, {0: (2, 6)}, source=2)
    counter.review(T + 0.095)
    assert counter.queue.next_deadline() == pytest.approx(T + 0.1)


def test_the_second_hint_within_the_grace_releases() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, 0, 1)
    learn(link.route, {0: (2, 6)}, source=2)
    counter.review(T + 0.03)
    learn(link.route, {1: (3, 6)}, source=3)
    assert counter.review(T + 0.04) == [[hint(2, 6), hint(3, 6)]]


# Rule 7: the client is gone, or hints are off.


# Rule 9: what may be written behind a held error.


def test_a_produce_is_not_held_by_a_broker_that_has_just_come_to_lead() -> None:
    # The view knows it, and the broker does not yet: it may serve what the client sends next.
    link, counter = _link(node=2), Counter()
    learn(link.route, {0: (2, 6)}, source=1)
    assert counter.produce(link, T) == [None]
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    assert counter.reasons() == ["leader_not_ready"]
    # It has led for a while by now, and so may have gone again.
    assert counter.produce(link, T + 1.5) is None


def test_nor_by_one_of_which_only_metadata_says_that_it_leads() -> None:
    link, counter = _link(node=2), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T) == [None]
    # A KRaft broker's own Metadata names it before it serves; ListOffsets shows that it does.
    _view(link).leader_confirms("t", 0, Leader(2, 6))
    assert counter.produce(link, T) is None


def test_a_produce_is_held_by_a_broker_that_has_served_since_it_came_to_lead() -> None:
    # It may have gone again within the second, and its client waits for the next leader.
    now = T
    link, counter = _link(node=2, clock=lambda: now), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    now += 0.4
    _view(link).served("t", 0, 2)
    assert counter.produce(link, now) is None
    learn(link.route, {0: (3, 7)}, source=3)
    assert counter.review(now + 0.002) == [[hint(3, 7)]]


def test_a_produce_is_released_when_its_broker_comes_to_lead_again() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    learn(link.route, {0: (1, 7)}, source=2)
    assert counter.review(T + 0.002) == [[None]]
    assert counter.reasons() == ["leader_not_ready"]


def test_a_produce_is_held_by_a_leader_whose_epoch_rose_while_it_stayed() -> None:
    # Nobody led between two epochs in a row, so it served on until it went.
    link, counter = _link(), Counter()
    learn(link.route, {0: (1, 6)}, source=2)
    assert counter.produce(link, T) is None
    learn(link.route, {0: (1, 7)}, source=2)
    assert counter.review(T + 0.002) == []
    learn(link.route, {0: (2, 8)}, source=2)
    assert counter.review(T + 0.004) == [[hint(2, 8)]]


def test_nor_does_a_rise_prove_that_one_serves_that_has_just_come_to_lead() -> None:
    link, counter = _link(node=2), Counter()
    learn(link.route, {0: (2, 6)}, source=1)
    learn(link.route, {0: (2, 7)}, source=1)
    assert counter.produce(link, T) == [None]


def test_one_such_partition_releases_the_whole_response_with_the_hints_that_are_known() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T, 0, 1) is None
    learn(link.route, {1: (1, 7)}, source=2)
    assert counter.review(T + 0.002) == [[hint(2, 6), None]]


@pytest.mark.parametrize("topic", ["t", "new"])
def test_a_produce_whose_broker_is_not_known_to_have_led_waits_for_the_grace(topic: str) -> None:
    # The client may know of a move to this broker of which the view has not heard.
    link, counter = _link(node=3), Counter()
    assert counter.produce(link, T, topic=topic) is None
    assert counter.review(T + 0.019) == []
    assert counter.review(T + 0.021) == [[None]]


def test_a_link_that_is_gone_is_forgotten() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T)
    counter.queue.forget(link.number)
    assert counter.queue.next_deadline() is None
    assert counter.queue.wanted_leaders() == []
    assert counter.review(T + 1) == []


def test_what_a_link_spent_is_forgotten_with_it() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T, 0)
    counter.review(T + 0.1001)
    counter.queue.forget(link.number)
    assert counter.produce(link, T + 0.2, 1) is None


def test_hints_off_goes_at_once() -> None:
    link, counter = _link(Mode.OFF), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T) == [None]
    assert counter.reasons() == ["hints_off"]


# The leader confirms.


def test_a_leader_that_has_not_said_so_itself_is_waited_for_a_little() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.025)
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.004) == [[hint(2, 6)]]


def test_a_leader_that_does_not_say_so_in_time_is_named_all_the_same() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.0251) == [[hint(2, 6)]]


def test_a_leader_that_cannot_be_waited_for_is_named_at_once() -> None:
    # A hint that satisfies the epoch rule is better than none: without it the client backs off.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    link.route.broker.reachable = False
    assert counter.fetch(link, T, {0: 5}) == [hint(2, 6)]
    assert counter.reasons() == [None]


def test_a_silent_leader_is_waited_for_once_not_by_each_response() -> None:
    # A producer has five requests under way: each would wait in turn, since answers keep order.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.0251) == [[hint(2, 6)]]
    assert counter.fetch(link, T + 0.026, {0: 5}) == [hint(2, 6)]
    learn(link.route, {0: (3, 7)}, source=1)
    assert counter.fetch(link, T + 0.027, {0: 5}) is None


def test_leaders_that_have_been_overtaken_are_forgotten() -> None:
    link, counter = _link(), Counter()

    def move(times: int) -> None:
        for _ in range(times):
            epoch = next(epochs)
            now = T + epoch
            learn(
                link.route, {0: (2 + epoch % 2, epoch)}, source=1, topic="u", topic_id=topic_id(1)
            )
            assert counter.fetch(link, now, {0: epoch - 1}, topic=topic_id(1)) is None
            assert len(counter.review(now + 0.0251)) == 1
            counter.take_events()

    epochs = itertools.count(6)
    learn(link.route, {0: (1, 5)}, topic="u", topic_id=topic_id(1))
    tracemalloc.start()
    try:
        # Python keeps some thousand freed objects of each kind for later.
        move(2000)
        before, _ = tracemalloc.get_traced_memory()
        move(1000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1000 * 30


def test_how_long_a_link_was_held_is_forgotten_after_a_second() -> None:
    """Also if all leaders of its large responses are known, which takes two reviews."""
    link, counter = _link(), Counter()
    partitions = range(201)
    for node in (1, 2):
        leaders = dict.fromkeys(partitions, (node, 4 + node))
        learn(link.route, leaders, source=node, topic="u", topic_id=topic_id(1))

    def fail(begin: int, times: int) -> None:
        for now in range(begin, begin + times):
            epochs = dict.fromkeys(partitions, 5)
            assert counter.fetch(link, T + now, epochs, topic=topic_id(1)) is None
            assert counter.review(T + now + 0.001) == [[hint(2, 6)] * len(partitions)]
            counter.take_events()

    tracemalloc.start()
    try:
        fail(0, 20)
        before, _ = tracemalloc.get_traced_memory()
        fail(20, 120)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 120 * 60


def test_a_leader_that_says_that_it_does_not_lead_yet_is_waited_for_to_the_end() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    _view(link).leader_denies("t", 0, Leader(2, 6))
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.queue.next_deadline() == pytest.approx(T + 0.1)
    assert counter.review(T + 0.05) == []
    _view(link).leader_confirms("t", 0, Leader(2, 6))
    assert counter.review(T + 0.06) == [[hint(2, 6)]]


def test_a_leader_that_never_says_that_it_leads_is_not_named() -> None:
    # The client would go there, be refused, and back off for longer than without a hint.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    _view(link).leader_denies("t", 0, Leader(2, 6))
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.1001) == [[None]]
    assert counter.reasons() == ["leader_not_ready"]


# What brokers are asked.


@pytest.mark.parametrize(
    ("view", "client", "epoch"),
    [
        pytest.param((1, 5), 5, 6, id="the next one: its leader is not known"),
        pytest.param((1, 4), 5, 6, id="above the client's, though the view is behind"),
        pytest.param((2, 6), 5, 6, id="the view's: its leader is to say so itself"),
        pytest.param((2, 7), 5, 7, id="the view's, more than one move on"),
    ],
)
def test_a_leader_is_looked_for_at_an_epoch(view: tuple[int, int], client: int, epoch: int) -> None:
    link, counter = LinkState(route(), 1), Counter()
    learn(link.route, {0: (1, 4)})
    learn(link.route, {0: view})
    assert counter.fetch(link, T, {0: client}, error=NOT_LEADER) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert (wanted.topics, wanted.epochs) == ({"t"}, {("t", 0): epoch})


def test_no_claim_of_a_client_keeps_others_from_finding_the_next_leader() -> None:
    link, counter = _link(), Counter()
    for epoch in (5, 1_000_000, 2**31 - 1):
        assert counter.fetch(link, T, {0: epoch}, error=NOT_LEADER) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): 6}


def test_nor_does_it_in_a_storm() -> None:
    link, counter = _link(), Counter()
    for epoch in (5, 1_000_000):
        assert counter.fetch(link, T, {0: epoch}, error=NOT_LEADER) is None
    learn(link.route, {0: (2, 6)})
    assert counter.review(T + 0.01) == []
    (wanted,) = counter.queue.wanted_leaders()
    wanted.single()
    assert len(wanted) == 1
    assert wanted.unknown == set()
    assert [(node, wanted.epochs_of(some)) for node, some in wanted.questions(2)] == [
        (2, {("t", 0): 6})
    ]


def test_no_epoch_is_looked_for_that_no_message_can_have() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 2**31 - 1}, error=NOT_LEADER) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): 2**31 - 1}


def test_a_produce_looks_above_the_epoch_at_which_its_broker_led() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): 6}


def test_nothing_is_looked_for_where_nothing_is_known() -> None:
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 5}, topic=topic_id(9)) is None
    (wanted,) = counter.queue.wanted_leaders()
    assert (wanted.topics, wanted.epochs) == ({topic_id(9)}, {})


@pytest.mark.parametrize(
    ("error", "enough"),
    [(0, True), (NOT_LEADER, True), (UNKNOWN_EPOCH, True), (FENCED, False), (3, False)],
)
def test_a_broker_at_an_older_epoch_or_none_has_spoken(error: int, enough: bool) -> None:
    # FENCED_LEADER_EPOCH: it knows a newer epoch, of which it may be the leader.
    link, counter = _link(node=3), Counter()
    learn(link.route, {0: (2, 6)}, source=2, topic="u", topic_id=topic_id(1))
    assert counter.produce(link, T, topic=topic_id(1)) is None
    counter.queue.probed(link.route, {("u", 0): error}, T + 0.001)
    assert counter.review(T + 0.002) == ([[hint(2, 6)]] if enough else [])


@pytest.mark.parametrize("known", [ZERO_ID, topic_id(9)])
@pytest.mark.parametrize("error", [NOT_LEADER, UNKNOWN_EPOCH])
def test_without_an_id_a_brokers_metadata_must_say_that_the_topic_is_the_same(
    error: int, known: bytes
) -> None:
    # A broker of a recreated topic has not learnt of the former one's epochs either. The client
    # gives the name, whatever the view has.
    link, counter = _link(node=3), Counter()
    learn(link.route, {0: (2, 6)}, source=2, topic_id=known)
    assert counter.produce(link, T) is None
    counter.queue.probed(link.route, {("t", 0): error}, T + 0.001)
    assert counter.review(T + 0.002) == []
    learn(link.route, {0: (2, 6)}, source=3, topic_id=known)
    at_once(counter.queue.asked(link.route, {"t"}, T + 0.003))
    assert counter.review(T + 0.004) == [[hint(2, 6)]]


# Topics without ids that may be recreated.


class _Time:
    now = BEGIN

    def __call__(self) -> float:
        return self.now


def _stale() -> tuple[LinkState, _Time]:
    """Return a link to node 1 whose view has leader 3 at epoch 8, of long ago."""
    time = _Time()
    link = LinkState(route(clock=time), 1)
    learn(link.route, {0: (3, 8)})
    time.now += 100
    return link, time


def test_without_an_id_a_fetch_asks_its_broker_whether_the_topic_is_the_same() -> None:
    link, time = _stale()
    counter = Counter()
    assert counter.fetch(link, time.now, {0: 7}) is None
    learn(link.route, {0: (3, 8)}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.001))
    assert counter.review(time.now + 0.002) == [[hint(3, 8)]]


@pytest.mark.parametrize("synthetic", [False, True])
def test_a_fetch_that_gives_no_real_id_gets_no_hint_of_the_former_topic(synthetic: bool) -> None:
    # The view has the former topic's id; the consumer is at epoch 0 of the recreated one. A hint
    # of epoch 8 would have it drop all Metadata of the topic below that.
    time = _Time()
    link, counter = LinkState(route(clock=time), 1), Counter()
    learn(link.route, {0: (3, 8)}, topic_id=topic_id(1))
    time.now += 100
    topic = synthetic_id("cluster", "t") if synthetic else "t"
    assert counter.fetch(link, time.now, {0: 0}, error=NOT_LEADER, topic=topic) is None
    counter.queue.probed(link.route, {("t", 0): UNKNOWN_EPOCH}, time.now + 0.001)
    assert counter.review(time.now + 0.002) == []
    learn(link.route, {0: (2, 1)}, source=1, topic_id=topic_id(2))
    at_once(counter.queue.asked(link.route, {"t", topic_id(2)}, time.now + 0.003))
    assert counter.review(time.now + 0.004) == [[hint(2, 1)]]


def test_what_the_broker_said_of_one_topic_proves_nothing_of_another_of_its_name() -> None:
    """A view that is new takes for the newer topic whichever it learns of last.

    What a broker had said of the recreated one had a consumer hinted at the former one.
    """
    time = _Time()
    link, counter = LinkState(route(clock=time), 1), Counter()
    learn(link.route, {0: (2, 0)}, topic_id=topic_id(2))
    time.now += 100
    assert counter.fetch(link, time.now, {0: 0}) is None
    learn(link.route, {0: (2, 0)}, source=1, topic_id=topic_id(2))
    at_once(counter.queue.asked(link.route, {"t", topic_id(2)}, time.now + 0.001))
    assert counter.review(time.now + 0.002) == []
    learn(link.route, {0: (3, 1)}, source=3, topic_id=topic_id(1))
    assert counter.review(time.now + 0.003) == []
    for _ in range(2):
        recreated = TopicMetadata(0, "t", topic_id(2), (Led(0, 2, 1),))
        _view(link).learn(recreated, 1, poll=True)
    assert counter.review(time.now + 0.004) == []
    at_once(counter.queue.asked(link.route, {"t", topic_id(2)}, time.now + 0.005))
    assert counter.review(time.now + 0.006) == [[hint(2, 1)]]


def test_no_former_leader_is_named_by_a_broker_that_leads_at_an_epoch_that_is_not_believed() -> (
    None
):
    # The view took the id that a lagging broker reported for the newer one, and asks by name at
    # the epochs above the one that it has: the broker comes to lead the recreated topic at 3.
    link, counter = _link(), Counter()
    learn(link.route, {0: (3, 1)}, topic_id=topic_id(2))
    learn(link.route, {0: (3, 0)}, topic_id=topic_id(1))
    assert counter.produce(link, T) is None
    assert _view(link).leader_confirms("t", 0, Leader(1, 3)) == []
    counter.queue.probed(link.route, {("t", 0): 0}, T + 0.001)
    # It is not held either: the broker takes what the client sends behind it (rule 9).
    assert counter.review(T + 0.002) == [[None]]


def test_a_broker_that_fences_an_epoch_may_have_been_overtaken_as_leader() -> None:
    # It led at 6, and follows at 7 by now: it fences 5 all the same (KIP-320).
    time = _Time()
    link, counter = LinkState(route(clock=time), 1), Counter()
    learn(link.route, {0: (1, 5)}, source=1, topic_id=topic_id(1))
    learn(link.route, {0: (1, 6)}, source=1, topic_id=topic_id(1))
    time.now += 2
    assert counter.fetch(link, time.now, {0: 5}, topic=topic_id(1)) is None
    counter.queue.probed(link.route, {("t", 0): FENCED}, time.now + 0.001)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.002))
    assert counter.review(time.now + 0.05) == []
    learn(link.route, {0: (2, 7)}, source=2, topic_id=topic_id(1))
    assert counter.review(time.now + 0.051) == [[hint(2, 7)]]


def test_a_broker_that_fences_an_epoch_and_still_leads_is_named() -> None:
    time = _Time()
    link, counter = LinkState(route(clock=time), 1), Counter()
    learn(link.route, {0: (1, 6)}, source=1, topic_id=topic_id(1))
    time.now += 2
    assert counter.fetch(link, time.now, {0: 5}, topic=topic_id(1)) is None
    counter.queue.probed(link.route, {("t", 0): 0}, time.now + 0.001)
    assert counter.review(time.now + 0.002) == [[hint(1, 6)]]


def test_a_broker_that_knows_a_newer_epoch_does_not_lead_at_this_one() -> None:
    # Its Metadata is behind what its replica knows, and says that it still leads.
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: -1}, error=NOT_LEADER, topic="new") is None
    learn(link.route, {0: (1, 7)}, source=1, topic="new", topic_id=topic_id(1))
    at_once(counter.queue.asked(link.route, {"new"}, T + 0.001))
    counter.queue.probed(link.route, {("new", 0): FENCED}, T + 0.002)
    assert counter.review(T + 0.05) == []
    assert counter.review(T + 0.1) == [[None]]
    assert counter.reasons() == ["leader_not_ready"]


@pytest.mark.parametrize("heard", [(1, 0), (2, 2), (2, 8)])
@pytest.mark.parametrize("client", [-1, 0])
@pytest.mark.parametrize("first", [False, True])
def test_what_the_broker_contradicts_is_no_hint(
    heard: tuple[int, int], client: int, first: bool
) -> None:
    link, time = _stale()
    counter = Counter()
    if first:
        learn(link.route, {0: heard}, source=1)
    assert counter.fetch(link, time.now, {0: client}) is None
    learn(link.route, {0: heard}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.001))
    assert counter.review(time.now + 0.05) == []
    assert counter.review(time.now + 0.1) == [[None]]


def test_what_a_leader_confirms_that_the_broker_contradicts_is_no_hint() -> None:
    """It has not learnt that the topic was recreated, and still leads the former one."""
    link, time = _stale()
    counter = Counter()
    assert counter.fetch(link, time.now, {0: -1}, error=NOT_LEADER) is None
    learn(link.route, {0: (3, 0)}, source=2)
    _view(link).leader_confirms("t", 0, Leader(3, 8))
    learn(link.route, {0: (3, 0)}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.001))
    assert not _view(link).in_doubt("t", 0)
    assert counter.review(time.now + 0.05) == []
    learn(link.route, {0: (3, 8)}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.051))
    assert counter.review(time.now + 0.052) == [[hint(3, 8)]]


def test_a_recreated_topic_is_hinted_once_its_leader_and_the_former_one_have_said_so() -> None:
    link, time = _stale()
    counter = Counter()
    learn(link.route, {0: (1, 0)}, source=1)
    time.now += 1
    assert counter.fetch(link, time.now, {0: -1}, error=NOT_LEADER) is None
    learn(link.route, {0: (2, 2)}, source=1)
    at_once(counter.queue.asked(link.route, {"t"}, time.now + 0.001))
    (wanted,) = counter.queue.wanted_leaders()
    assert wanted.epochs == {("t", 0): 8}
    assert wanted.claims == {("t", 0): Leader(2, 2)}
    _view(link).leader_denies("t", 0, Leader(3, 8))
    assert counter.review(time.now + 0.002) == []
    _view(link).leader_confirms("t", 0, Leader(2, 2))
    assert counter.review(time.now + 0.003) == [[hint(2, 2)]]


def test_a_lagging_broker_delays_a_hint_until_the_leader_itself_confirms_it() -> None:
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    learn(link.route, {0: (1, 5)}, source=1)
    assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER) is None
    assert counter.review(T + 0.05) == []
    _view(link).leader_confirms("t", 0, Leader(2, 6))
    assert counter.review(T + 0.051) == [[hint(2, 6)]]
    learn(link.route, {0: (1, 5)}, source=1)
    assert counter.fetch(link, T + 0.06, {0: 5}, error=NOT_LEADER) == [hint(2, 6)]


# What was asked, and what is looked for.


def test_a_leader_that_did_not_come_in_time_is_still_looked_for() -> None:
    # The client comes back soon, and its next error is not held.
    link, counter = _link(), Counter()
    counter.produce(link, T)
    counter.review(T + 0.1001)
    (wanted,) = counter.queue.wanted_leaders()
    assert (wanted.topics, wanted.epochs) == ({"t"}, {("t", 0): 6})
    counter.produce(LinkState(link.route, 2), T + 0.3)
    assert counter.queue.next_deadline() == pytest.approx(T + 1.1001)
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.4) == []
    assert counter.queue.wanted_leaders() == []
    assert counter.queue.next_deadline() is None
    assert counter.produce(LinkState(link.route, 3), T + 0.5) == [hint(2, 6)]
    assert counter.reasons() == ["hold_expired", "hold_expired", None]


def test_a_leader_that_does_not_come_is_not_looked_for_beyond_the_calm() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T)
    counter.review(T + 0.1001)
    assert counter.review(T + 1.1002) == []
    assert counter.queue.wanted_leaders() == []


def test_nobody_is_asked_where_nobody_can_be_or_hints_are_off() -> None:
    link, counter = _link(Mode.OFF), Counter()
    counter.produce(link, T)
    link.route.mode = Mode.ON
    link.route.broker.reachable = False
    counter.produce(link, T)
    assert counter.queue.wanted_leaders() == []


def test_calm_takes_no_hint_away_that_is_only_unconfirmed() -> None:
    # The new leader may be out of our reach, so that its word never comes.
    link, counter = _link(), Counter()
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.fetch(link, T, {0: 5}) is None
    assert counter.review(T + 0.0251) == [[hint(2, 6)]]
    assert counter.fetch(LinkState(link.route, 2), T + 0.5, {0: 5}) == [hint(2, 6)]


def test_the_deadline_takes_no_hint_away_that_is_only_unconfirmed() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.review(T + 0.095) == []
    assert counter.review(T + 0.1001) == [[hint(2, 6)]]


def test_a_second_move_is_waited_for_again() -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T) is None
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.review(T + 0.001) == []
    learn(link.route, {0: (3, 7)}, source=2)
    assert counter.review(T + 0.009) == []
    assert counter.review(T + 0.0335) == []
    assert counter.review(T + 0.0345) == [[hint(3, 7)]]


@pytest.mark.parametrize("overtaken", [(-1, 7), (4, 7)])
def test_a_leader_that_is_overtaken_makes_nobody_busy(overtaken: tuple[int, int]) -> None:
    # Partition 1 still waits; the moment at which 2 would have been named must be forgotten.
    link, counter = _link(), Counter()
    assert counter.fetch(link, T, {0: 5, 1: 5}) is None
    learn(link.route, {0: (2, 6)}, source=3)
    assert counter.review(T + 0.001) == []
    learn(link.route, {0: overtaken}, source=3)
    assert counter.review(T + 0.005) == []
    assert counter.queue.next_deadline() == pytest.approx(T + 0.1)


# Observe.


def test_observe_keeps_nothing_back_and_counts_what_would_have_come() -> None:
    link, counter = _link(Mode.OBSERVE), Counter()
    assert counter.produce(link, T, 0, 1) == [None, None]
    assert [(w.route, w.topics) for w in counter.queue.wanted_leaders()] == [(link.route, {"t"})]
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.review(T + 0.03) == []
    assert counter.review(T + 0.0501) == []
    given, missed = counter.take_events()
    assert isinstance(given, HintGiven)
    assert isinstance(missed, HintMissed)
    assert (given.leader, given.epoch, missed.reason) == (2, 6, "hold_expired")
    assert given.answered.observed
    assert missed.answered.observed
    assert given.answered.hold_ms == pytest.approx(50.1)


def test_observe_changes_nothing_even_where_the_hint_is_known() -> None:
    link, counter = _link(Mode.OBSERVE), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    assert counter.produce(link, T) == [None]
    assert counter.reasons() == [None]


# What is reported.


def test_an_event_says_who_asked_what_and_how_long_it_took() -> None:
    link, counter = _link(), Counter()
    link.client.id = "client-7"
    counter.fetch(link, T, {0: 5}, topic=topic_id(9))
    counter.review(T + 0.1)
    (missed,) = counter.take_events()
    assert isinstance(missed, HintMissed)
    told = missed.answered
    assert (told.route, told.link, told.client_id) == ("route", 1, "client-7")
    assert (told.api, told.version, told.partition, told.error) == ("Fetch", 16, 0, FENCED)
    assert (told.topic, told.client_epoch, told.observed) == (topic_id(9).hex(), 5, False)
    assert told.hold_ms == pytest.approx(100)


@pytest.mark.parametrize("known", [ZERO_ID, topic_id(9)])
def test_topics_by_synthetic_ids_are_those_of_the_name(known: bytes) -> None:
    synthetic = synthetic_id("cluster", "t")
    # A consumer without an epoch, at a broker that never led: its own answer is waited for.
    link, counter = _link(node=3), Counter()
    learn(link.route, {0: (1, 5)}, topic_id=known)
    learn(link.route, {0: (2, 6)}, source=2, topic_id=known)
    assert counter.fetch(link, T, {0: -1}, error=NOT_LEADER, topic=synthetic) is None
    assert link.route.broker.view is not None
    at_once(counter.queue.asked(link.route, {link.route.broker.view.topics.key("t")}, T + 0.001))
    assert counter.review(T + 0.002) == [[hint(2, 6)]]
    assert [event.answered.topic for event in counter.take_events()] == ["t"]  # type: ignore[union-attr]


# Modes that change at run time.


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
def test_what_is_held_goes_on_without_a_hint_when_the_mode_changes(mode: Mode) -> None:
    link, counter = _link(), Counter()
    other = LinkState(route(name="another"), 2)
    assert counter.produce(link, T) is None
    assert counter.produce(other, T) is None
    learn(link.route, {0: (2, 6)}, source=3)
    counter.review(T + 0.001)  # The hint is found now, and waits for the leader's word.

    link.route.switch(mode)
    done = counter.queue.switched(link.route, T + 0.002)
    assert [(held.link, hints) for held, hints in done] == [(link, [None])]
    (event,) = counter.take_events()
    assert isinstance(event, HintMissed)
    assert (event.reason, event.answered.observed) == ("hints_off", False)
    assert counter.queue.next_deadline() is not None  # The other route's is still held.


def test_nothing_is_looked_for_where_hints_were_switched_off() -> None:
    link, counter = _link(), Counter()
    counter.produce(link, T)
    counter.review(T + 0.1001)  # Its time is over; the leader is still looked for.
    link.route.switch(Mode.OFF)
    assert counter.queue.switched(link.route, T + 0.2) == []
    assert counter.queue.wanted_leaders() == []
    assert counter.queue.next_deadline() is None


def test_what_was_only_counted_is_reported_once_and_sent_nowhere_when_hints_come_on() -> None:
    link, counter = _link(Mode.OBSERVE), Counter()
    assert counter.produce(link, T) == [None]
    link.route.switch(Mode.ON)
    assert counter.queue.switched(link.route, T + 0.001) == []
    (event,) = counter.take_events()
    assert isinstance(event, HintMissed)
    assert (event.reason, event.answered.observed) == ("hints_off", True)
    assert counter.review(T + 1) == []


def test_what_was_only_counted_uses_up_nothing_of_its_links_hold() -> None:
    link, counter = _link(Mode.OBSERVE), Counter()
    assert counter.produce(link, T, 0) == [None]
    counter.review(T + 0.1001)
    assert counter.reasons() == ["hold_expired"]
    assert counter.produce(link, T + 0.12, 1) == [None]
    assert counter.reasons() == []
    assert counter.queue.next_deadline() == pytest.approx(T + 0.22)


def test_what_was_asked_before_hints_came_on_gets_none() -> None:
    # Its version has no place for one.
    link, counter = _link(Mode.OBSERVE), Counter()
    learn(link.route, {0: (2, 6)}, source=2)
    held = failed(link, {0: -1}, ApiKey.PRODUCE)
    link.route.switch(Mode.ON)
    assert counter.queue.submit(held, T) == [None]
    assert counter.reasons() == ["hints_off"]


def test_one_response_of_thousands_of_partitions_is_looked_at_and_told_in_steps() -> None:
    most = 5000
    link, counter = _link(), Counter()
    learn(link.route, dict.fromkeys(range(most), (1, 5)), source=1)
    learn(link.route, dict.fromkeys(range(most), (2, 6)), source=2)
    # All hints are known, and still no step does all of it.
    assert counter.produce(link, T, *range(most)) is None
    now, told, steps = T, 0, 0
    decided: list[list[LeaderHint | None]] = []
    while counter.queue.unfinished:
        now += 0.001
        decided += counter.review(now)
        events = counter.take_events()
        assert len(events) <= 400
        told += len(events)
        steps += 1
        assert steps <= 100
    assert decided == [[hint(2, 6)] * most]
    assert told == most


def _in_a_storm(link: LinkState, most: int) -> Callable[[], None]:
    """Have the view know leaders of all partitions but 201; return what moves another one."""
    epochs = itertools.count(6)

    def move(node: int, *partitions: int) -> None:
        leaders = dict.fromkeys(partitions, (node, next(epochs)))
        learn(link.route, leaders, source=node, topic="u", topic_id=topic_id(1))

    learn(link.route, dict.fromkeys(range(most), (1, 5)), topic="u", topic_id=topic_id(1))
    move(2, *range(201, most))
    return lambda: move(3, most)


def test_a_large_response_is_judged_and_bounded_though_there_is_news_all_the_time() -> None:
    """It was held for 100 ms each time it came, and without the hints that were known."""
    most = 1000
    link, counter = _link(), Counter()
    news = _in_a_storm(link, most)
    now, held = T, []
    for _ in range(6):
        begun, done = now, list[list[LeaderHint | None]]()
        epochs = dict.fromkeys(range(most), 5)
        assert counter.fetch(link, now, epochs, error=NOT_LEADER, topic=topic_id(1)) is None
        while not done:
            now += 0.001
            news()
            done = counter.review(now)
        assert done == [[None] * 201 + [hint(2, 6)] * (most - 201)]
        held.append(now - begun)
    # All of it is judged in five steps, and the grace begins. After four times the link's second is
    # used up.
    assert held == pytest.approx([0.024] * 4 + [0.004] * 2, abs=0.0011)


def test_a_large_response_with_news_all_the_time_leaves_others_their_turn() -> None:
    link, counter = _link(), Counter()
    news = _in_a_storm(link, 1000)
    epochs = dict.fromkeys(range(201), 5)
    assert counter.fetch(link, T, epochs, error=NOT_LEADER, topic=topic_id(1)) is None
    assert counter.fetch(LinkState(link.route, 2), T, {0: 5}, error=NOT_LEADER) is None
    news()
    learn(link.route, {0: (2, 6)}, source=2)
    done: list[list[LeaderHint | None]] = []
    for step in range(1, 5):
        done += counter.review(T + step / 1000)
        news()
    assert done == [[hint(2, 6)]]


def test_a_large_response_whose_time_is_over_gets_the_hints_found_by_then() -> None:
    most = 1000
    link, counter = _link(), Counter()
    learn(link.route, dict.fromkeys(range(most), (1, 5)), source=1)
    learn(link.route, dict.fromkeys(range(most), (2, 6)), source=2)
    assert counter.produce(link, T, *range(most)) is None
    ((*hints,),) = counter.review(T + 0.2)
    found = sum(h is not None for h in hints)
    assert 0 < found < most
    assert hints == [hint(2, 6)] * found + [None] * (most - found)
    reasons = counter.reasons()
    while counter.queue.unfinished:
        counter.review(T + 0.2)
        reasons += counter.reasons()
    assert reasons == [None] * found + ["hold_expired"] * (most - found)
    # They are looked for no longer: nobody knows them here.
    assert counter.queue.held == 0


def test_a_large_response_is_held_for_what_is_missing_no_longer_than_any() -> None:
    most = 1000
    link, counter = _link(), Counter()
    learn(link.route, dict.fromkeys(range(most), (1, 5)), source=1)
    learn(link.route, dict.fromkeys(range(1, most), (2, 6)), source=2)
    assert counter.produce(link, T, *range(most)) is None
    now, decided = T, []
    while counter.queue.unfinished:
        now += 0.001
        decided += counter.review(now)
    assert decided == []
    # The grace runs from when all of it was looked at.
    until = counter.queue.next_deadline()
    assert until == pytest.approx(now + DEFAULT_RULES.grace)
    learn(link.route, {0: (3, 6)}, source=3)
    assert counter.review(now + 0.001) == [[hint(3, 6), *[hint(2, 6)] * (most - 1)]]


def test_news_in_the_midst_of_a_large_response_is_judged_by_all_of_it() -> None:
    most = 1000
    link, counter = _link(), Counter()
    learn(link.route, dict.fromkeys(range(most), (1, 5)), source=1)
    assert counter.produce(link, T, *range(most)) is None
    now, decided = T, []
    for step in range(40):
        now += 0.001
        if step % 2:
            # There is news at each other step, and all of it is judged all the same.
            moved = range(50 * (step - 1), 50 * (step + 1))
            learn(link.route, dict.fromkeys(moved, (2, 6)), source=2)
        decided += counter.review(now)
    assert decided == [[hint(2, 6)] * most]


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
def test_a_large_response_of_which_not_all_was_looked_at_goes_on_when_hints_are_switched(
    mode: Mode,
) -> None:
    link, counter = _link(), Counter()
    assert counter.produce(link, T, *range(1000)) is None
    link.route.switch(mode)
    ((_, hints),) = counter.queue.switched(link.route, T)
    assert hints == [None] * 1000
    reasons = counter.reasons()
    while counter.queue.unfinished:
        assert counter.review(T) == []
        reasons += counter.reasons()
    assert reasons == ["hints_off"] * 1000
