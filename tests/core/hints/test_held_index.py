"""What a step costs where many responses are held: lines of Python, and no times."""

from collections.abc import Iterator, Sequence
from itertools import chain

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure, LeaderHint, Scanned
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.held_index import HeldIndex
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hint_judge import JUDGED_AT_ONCE
from leader_hints.core.hints.hold_deadlines import HoldDeadlines
from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.wire.steps import at_once
from tests.core.hold_queues import BEGIN, NODES, Counter, failed, hint, learn, route
from tests.core.samples import NOT_LEADER, UNKNOWN_EPOCH, topic_id
from tests.harness.lines import lines_of, most_lines

T = BEGIN
_MANY = 2000
#: Lines that a step about one response may take; a walk takes at least one for each response.
_FEW = 600


@pytest.fixture(name="many")
def _many() -> tuple[Counter, list[LinkState]]:
    """Return a hold queue that holds an error of one topic for each link, and the links."""
    counter, on = Counter(), route()
    links = [LinkState(on, number) for number in range(_MANY)]
    for number, link in enumerate(links):
        learn(on, {0: (1, 5)}, source=1, topic=f"t{number}", topic_id=topic_id(number))
        assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER, topic=topic_id(number)) is None
    # All that came before they were held is taken note of.
    while counter.review(T) or counter.queue.unfinished:
        pass
    return counter, links


def test_a_move_costs_by_the_responses_that_wait_for_its_topic(
    many: tuple[Counter, list[LinkState]],
) -> None:
    counter, (link, *_) = many
    learn(link.route, {0: (2, 6)}, source=2, topic="t7", topic_id=topic_id(7))
    decided: list[object] = []
    assert lines_of(lambda: decided.extend(counter.review(T + 0.01))) < _FEW
    assert decided == [[hint(2, 6)]]
    assert counter.queue.held == _MANY - 1


def test_so_does_an_answer_of_the_broker_itself(many: tuple[Counter, list[LinkState]]) -> None:
    counter, (link, *_) = many
    queue = counter.queue
    assert lines_of(lambda: at_once(queue.asked(link.route, {"t7", topic_id(7)}, T + 0.001))) < _FEW
    assert lines_of(lambda: queue.probed(link.route, {("t7", 0): NOT_LEADER}, T + 0.001)) < _FEW
    assert lines_of(lambda: counter.review(T + 0.002)) < _FEW


def test_no_news_costs_nothing(many: tuple[Counter, list[LinkState]]) -> None:
    counter, (link, *_) = many
    learn(link.route, {0: (1, 5)}, source=3, topic="another", topic_id=topic_id(_MANY))
    assert lines_of(lambda: counter.review(T + 0.002)) < _FEW
    assert lines_of(lambda: counter.queue.next_deadline(0.01)) < _FEW


def test_partitions_for_which_one_response_waits_are_compared_with_none(
    many: tuple[Counter, list[LinkState]],
) -> None:
    """Of 10,000 it took 8 ms of the step in which questions are planned."""
    counter, _ = many
    (of_route,) = counter.queue.wanted_leaders()
    assert lines_of(of_route.single) < 7 * _MANY
    assert len(of_route) == len(of_route.unknown) == _MANY


def test_news_of_many_topics_is_looked_at_once_for_all_routes() -> None:
    """Of 1,300 topics, with 300 routes, it took 74 ms of one step."""
    counter, routes = Counter(), [route(name=f"r{number}") for number in range(100)]
    for number, on in enumerate(routes):
        on.broker.view = routes[0].broker.view
        learn(on, {0: (1, 5)}, source=1, topic="t", topic_id=topic_id(1))
        link = LinkState(on, number)
        assert counter.fetch(link, T, {0: 5}, error=NOT_LEADER, topic=topic_id(1)) is None
    counter.review(T)
    for number in range(200):
        learn(routes[0], {0: (1, 5)}, source=1, topic=f"u{number}")
    assert lines_of(lambda: counter.review(T + 0.001)) < 60 * len(routes)
    learn(routes[0], {0: (2, 6)}, source=2, topic="t", topic_id=topic_id(1))
    assert counter.review(T + 0.002) == [[hint(2, 6)]] * len(routes)


def test_a_link_that_ends_costs_by_what_it_waits_for(
    many: tuple[Counter, list[LinkState]],
) -> None:
    counter, links = many
    assert lines_of(lambda: counter.queue.forget(links[7].number)) < _FEW
    assert counter.queue.held == _MANY - 1


def test_what_is_only_counted_of_a_link_that_ends_is_dropped_in_steps() -> None:
    """10,000 once took 59 ms of one step."""
    counter, on = Counter(), route(Mode.OBSERVE)
    link, other = LinkState(on, 1), LinkState(on, 2)
    budget = Budget(1 << 20, 1 << 30)
    learn(on, {0: (1, 5)}, source=1)
    for number in range(_MANY):
        held = failed(link if number else other, {0: 5}, ApiKey.FETCH)
        held.account, held.reserved = Account(budget), 1
        held.account.trust()
        assert held.account.take(0, 1)
        assert counter.queue.submit(held, T) == [None]
    # There is news for each of them.
    at_once(counter.queue.asked(on, {"t"}, T + 0.001))
    steps = [lines_of(lambda: counter.queue.forget(link.number))]
    while counter.queue.unfinished:
        steps.append(lines_of(lambda: counter.review(T + 0.002)))
    assert max(steps) < _MANY * 20
    assert (counter.queue.held, budget.used) == (1, 1)
    while counter.review(T + 0.2) or counter.queue.unfinished:
        pass
    # Of those nothing was counted.
    assert (counter.reasons(), budget.used) == (["hold_expired"], 0)


def test_responses_of_many_topics_are_dropped_in_steps_when_their_link_ends() -> None:
    """500 with 100 topics each once took 31 ms of one step, 100 with 500 each 44 ms."""
    counter, on = Counter(), route(Mode.OBSERVE)
    link = LinkState(on, 1)
    failures = tuple(Failure(f"t{number}", 0, NOT_LEADER, 0, 0) for number in range(200))
    for failure in failures:
        learn(on, {0: (1, 5)}, topic=str(failure.topic), source=1)
    for _ in range(25):
        scanned = Scanned(failures, False, 0, 0)
        epochs = [5] * len(failures)
        counter.queue.submit(Held(link, ApiKey.FETCH, 15, memoryview(b""), scanned, epochs), T)
    while counter.queue.unfinished:
        counter.review(T + 0.001)
    assert counter.queue.held == 25
    # There is news for some of them.
    at_once(counter.queue.asked(on, {"t0"}, T + 0.001))
    steps = [lines_of(lambda: counter.queue.forget(link.number))]
    while counter.queue.unfinished:
        steps.append(lines_of(lambda: counter.review(T + 0.002)))
    assert counter.queue.held == 0
    assert max(steps) < 15_000


def _costs_of_topics(topics: int) -> tuple[int, int]:
    """Return what it costs to take a response of so many topics, and the most of what follows."""
    counter, on = Counter(), route()
    for number in range(topics):
        learn(on, {0: (1, 5)}, source=1, topic=f"t{number}", topic_id=topic_id(number))
    failures = tuple(Failure(topic_id(number), 0, NOT_LEADER, 0, 0) for number in range(topics))
    scanned = Scanned(failures, False, 0, 0)
    held = Held(LinkState(on, 1), ApiKey.FETCH, 16, memoryview(b""), scanned, [5] * topics)
    taken = lines_of(lambda: counter.queue.submit(held, T))
    later = []
    for now in (T + 0.01, T + 0.2, T + 2):
        later.append(lines_of(lambda now=now: counter.review(now)))  # type: ignore[misc]
        while counter.queue.unfinished:
            later.append(lines_of(lambda now=now: counter.review(now)))  # type: ignore[misc]
    assert not counter.queue.busy
    assert len(counter.reasons()) == topics
    return taken, max(later)


def test_a_response_is_taken_and_dropped_in_steps_however_many_topics_it_has() -> None:
    taken, later = _costs_of_topics(2000)
    taken_of_more, later_of_more = _costs_of_topics(6000)
    assert taken_of_more < taken + _FEW
    # But which leaders are sought is found at once.
    assert later_of_more < later + 4000 * 6


def test_what_is_held_when_hints_are_switched_off_goes_on_in_steps(
    many: tuple[Counter, list[LinkState]],
) -> None:
    """2,000 responses of a hundred partitions each once took 0.29 s of one step."""
    counter, (link, *_) = many
    link.route.switch(Mode.OFF)
    done = [*counter.queue.switched(link.route, T + 0.001)]
    assert 0 < len(done) <= 400
    # Also what has got its hint meanwhile.
    learn(link.route, {0: (2, 6)}, source=2, topic="t1999", topic_id=topic_id(1999))
    while counter.queue.unfinished:
        step = counter.queue.review(T + 0.002)
        assert len(step) <= 400
        done += step
    assert [hints for _, hints in done] == [[None]] * _MANY
    assert set(counter.reasons()) == {"hints_off"}
    assert counter.queue.held == 0


def test_a_repeated_answer_about_one_topic_looks_at_nothing_again() -> None:
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(_MANY), (1, 5)), source=1)
    for number in range(_MANY):
        link = LinkState(on, number)
        assert counter.fetch(link, T, {number: 5}, error=NOT_LEADER) is None
    assert lines_of(lambda: at_once(counter.queue.asked(on, {"t"}, T + 0.001))) > _MANY
    assert lines_of(lambda: at_once(counter.queue.asked(on, {"t"}, T + 0.002))) < _FEW


def test_an_answer_about_the_topics_of_a_large_response_looks_at_each_partition_once() -> None:
    counter, on = Counter(), route()
    link = LinkState(on, 1)
    ids = [topic_id(number) for number in range(_MANY)]
    for number, one in enumerate(ids):
        learn(on, {0: (1, 5)}, source=1, topic=f"t{number}", topic_id=one)
    failures = tuple(Failure(one, 0, NOT_LEADER, 0, 0) for one in ids)
    scanned = Scanned(failures, False, 0, 0)
    held = Held(link, ApiKey.FETCH, 16, memoryview(b""), scanned, [5] * _MANY)
    assert counter.queue.submit(held, T) is None
    while counter.queue.unfinished:
        counter.review(T)
    names = {f"t{number}" for number in range(_MANY)}
    errors = {(name, 0): NOT_LEADER for name in names}
    for step in (
        lambda: counter.queue.probed(on, errors, T + 0.001),
        lambda: at_once(counter.queue.asked(on, names | {*ids}, T + 0.001)),
    ):
        assert lines_of(step) < 100 * _MANY


def _add(index: HeldIndex, response: HeldResponse) -> None:
    """Have a response found of which all partitions were judged."""
    index.add(response)
    failures = response.held.scanned.failures
    index.judged(response, [FailedPartition(failure, 5, T, 5) for failure in failures])


def _asked(index: HeldIndex, on: Route, names: Sequence[str]) -> list[HeldResponse]:
    return [*chain.from_iterable(index.asked(on, dict.fromkeys(names), T))]


def _waiting(index: HeldIndex, on: Route, number: int, topics: Sequence[str]) -> HeldResponse:
    """Add a response that waits for an answer about ``topics``."""
    scanned = Scanned(tuple(Failure(name, 0, NOT_LEADER, 0, 0) for name in topics), False, 0, 0)
    held = Held(
        LinkState(on, number), ApiKey.FETCH, 12, memoryview(b""), scanned, [5] * len(topics)
    )
    response = HeldResponse(held, number, T, detached=False, deadline=T + 0.1)
    _add(index, response)
    return response


@pytest.mark.parametrize(("responses", "topics"), [(25, 2000), (20_000, 1)])
def test_an_answer_that_very_many_wait_for_is_looked_at_in_short_steps(
    responses: int, topics: int
) -> None:
    """With 50,000 of them one step took 25 ms."""
    index, on = HeldIndex(), route()
    names = [f"t{number}" for number in range(topics)]
    waiting = [_waiting(index, on, number, names) for number in range(responses)]
    found: list[HeldResponse] = []

    def steps() -> Iterator[None]:
        for some in index.asked(on, dict.fromkeys(names), T):
            found.extend(some)
            yield

    assert most_lines(steps()) < 50_000
    assert found == waiting * topics


def _all_news(index: HeldIndex) -> list[HeldResponse]:
    news = index.some_news()
    while index.unfinished:
        news += index.some_news()
    return news


def _learn_again(on: Route, names: Sequence[str]) -> None:
    for name in names:
        learn(on, {0: (2, 6)}, source=1, topic=name)


@pytest.mark.parametrize("news", ["endpoints", "topics", "probes"])
@pytest.mark.parametrize(("responses", "topics"), [(4000, 2), (2, 4000)])
def test_news_for_very_many_is_passed_on_in_short_steps(
    news: str, responses: int, topics: int
) -> None:
    """With 45,000 topics that had answers, other endpoints took 38 ms of one step."""
    index, on = HeldIndex(), route()
    names = [f"t{number}" for number in range(topics)]
    for name in names:
        learn(on, {0: (1, 5)}, source=1, topic=name)
    waiting = [_waiting(index, on, number, names) for number in range(responses)]
    assert _asked(index, on, names) == waiting * topics
    assert not _all_news(index)
    if news == "endpoints":
        on.broker.endpoints = {**NODES, 9: NODES[1]}
    elif news == "topics":
        _learn_again(on, names)
    else:
        index.probed(on, {(name, 0): NOT_LEADER for name in names}, T)
    found: list[HeldResponse] = []

    def steps() -> Iterator[None]:
        while True:
            found.extend(index.some_news())
            if not index.unfinished:
                return
            yield

    # To compare 4000 changed topics with those that are waited for takes two lines for each.
    assert most_lines(steps()) < 20_000
    assert found == waiting * topics


def test_more_news_and_ends_while_news_is_passed_on() -> None:
    index, on = HeldIndex(), route()
    names = [f"t{number}" for number in range(2000)]
    for name in names:
        learn(on, {0: (1, 5)}, source=1, topic=name)
    first, second = (_waiting(index, on, number, names) for number in range(2))
    assert not _all_news(index)
    on.broker.endpoints = {**NODES, 9: NODES[1]}
    assert {*index.some_news()} == {first, second}
    index.remove(first)
    while index.unfinished:
        index.drop_some()
        assert {*index.some_news()} <= {second}
    index.probed(on, {(names[0], 0): NOT_LEADER}, T)
    on.broker.endpoints = NODES
    # Once for each topic: what was probed is news of a topic for which there is news anyhow.
    assert _all_news(index) == [second] * len(names)


def test_an_answer_about_a_former_topic_does_not_count_although_the_news_was_not_passed_on() -> (
    None
):
    index, on = HeldIndex(), route()
    learn(on, {0: (1, 5)}, source=1, topic_id=topic_id(1))
    response = _waiting(index, on, 1, ["t"])
    (failure,) = response.held.scanned.failures
    assert _asked(index, on, ["t"]) == [response]

    def is_asked() -> bool:
        partition = FailedPartition(failure, 5, T, 5)
        response.apply_answers(partition)
        return partition.asked

    assert is_asked()
    learn(on, {0: (2, 0)}, source=1, topic_id=topic_id(2))
    assert not is_asked()
    assert _all_news(index) == [response]
    # So the next answer is news again.
    assert _asked(index, on, ["t"]) == [response]
    assert is_asked()


def test_what_is_removed_between_two_steps_of_an_answer_is_no_news() -> None:
    index, on = HeldIndex(), route()
    names = [f"t{number}" for number in range(2000)]
    first, second = (_waiting(index, on, number, names) for number in range(2))
    steps = index.asked(on, dict.fromkeys(names), T)
    next(steps)
    assert {*next(steps)} == {first, second}
    for response in (first, second):
        index.remove(response)
    while index.unfinished:
        index.drop_some()
    _waiting(index, on, 3, ["another"])
    assert not [*chain.from_iterable(steps)]


@pytest.mark.parametrize("others", [0, _MANY])
def test_responses_are_found_in_the_order_of_topics_and_of_their_coming(others: int) -> None:
    """In a set's order what goes on first would depend on the process."""
    index, on = HeldIndex(), route()
    names = [f"t{number * 7 % 20}" for number in range(20)]
    responses = []
    # Two of all topics, and one of each.
    for number, topics in enumerate([names, names, *([name] for name in sorted(names))]):
        responses.append(_waiting(index, on, number, topics))
    for name in [*names, *(f"other{number}" for number in range(others))]:
        learn(on, {0: (1, 5)}, topic=name)
    for number in range(others):
        held = failed(LinkState(on, number), {0: 5}, ApiKey.FETCH, f"other{number}")
        _add(index, HeldResponse(held, number, T, detached=False, deadline=T + 0.1))
    first, second, *singles = responses
    by_topic = dict(zip(sorted(names), singles, strict=True))
    found = [one for name in names for one in (first, second, by_topic[name])]
    _all_news(index)
    index.probed(on, {(name, 0): NOT_LEADER for name in names}, T)
    assert _all_news(index) == found
    assert _asked(index, on, names) == found
    assert _asked(index, on, names) == []
    index.contradicted(second, names[2])
    assert _asked(index, on, names) == [second]


def test_a_repeated_answer_costs_nothing_before_all_of_a_large_response_was_judged() -> None:
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(_MANY), (1, 5)), source=1)
    assert counter.fetch(LinkState(on, 1), T, dict.fromkeys(range(_MANY), 5)) is None
    for _ in range(4):
        counter.review(T)
    at_once(counter.queue.asked(on, {"t"}, T + 0.001))
    assert lines_of(lambda: at_once(counter.queue.asked(on, {"t"}, T + 0.001))) < _FEW
    # Nor is anything judged again for it: 200 of the others are in each step, and no more.
    steps = 0
    while counter.queue.unfinished:
        at_once(counter.queue.asked(on, {"t"}, T + 0.002))
        counter.review(T + 0.002)
        steps += 1
    assert steps <= 2 * _MANY // JUDGED_AT_ONCE


def _partly_judged() -> tuple[Counter, Route, list[float]]:
    """Return a hold queue, its route and the time, after some of a response was judged.

    All its partitions wait for their broker's answer, since it is long ago that the leader was
    learnt.
    """
    now = [T]
    counter, on = Counter(), route(clock=lambda: now[0])
    learn(on, dict.fromkeys(range(_MANY), (3, 8)))
    now[0] += 100
    epochs = dict.fromkeys(range(_MANY), 7)
    assert counter.fetch(LinkState(on, 1), now[0], epochs) is None
    counter.review(now[0])
    return counter, on, now


def _review_all(counter: Counter, now: float) -> list[list[LeaderHint | None]]:
    decided = counter.review(now)
    while counter.queue.unfinished:
        decided += counter.review(now)
    return decided


def test_an_answer_counts_for_partitions_that_are_judged_later() -> None:
    counter, on, now = _partly_judged()
    at_once(counter.queue.asked(on, {"t"}, now[0]))
    # The broker answers nothing more.
    assert _review_all(counter, now[0]) == [[hint(3, 8)] * _MANY]


def test_a_later_answer_counts_for_partitions_that_the_first_one_contradicted() -> None:
    counter, on, now = _partly_judged()
    view, last = on.broker.view, _MANY - 1
    assert view is not None
    learn(on, {last: (3, 0)}, source=2)
    view.leader_confirms("t", last, Leader(3, 8))
    learn(on, {last: (3, 0)}, source=1)
    at_once(counter.queue.asked(on, {"t"}, now[0]))
    assert not view.in_doubt("t", last)
    assert _review_all(counter, now[0]) == []
    learn(on, {last: (3, 8)}, source=1)
    at_once(counter.queue.asked(on, {"t"}, now[0] + 0.001))
    assert _review_all(counter, now[0] + 0.001) == [[hint(3, 8)] * _MANY]


def test_a_brokers_word_on_its_leadership_counts_for_partitions_that_are_judged_later() -> None:
    """Once it counted only for those that had been judged when it came."""
    now = [T]
    counter, on = Counter(), route(node=1, clock=lambda: now[0])
    learn(on, dict.fromkeys(range(_MANY), (1, 6)), source=1, topic_id=topic_id(1))
    now[0] += 2
    epochs = dict.fromkeys(range(_MANY), 5)
    assert counter.fetch(LinkState(on, 1), now[0], epochs, topic=topic_id(1)) is None
    counter.queue.probed(on, {("t", number): 0 for number in range(_MANY)}, now[0])
    # The broker says nothing more.
    assert _review_all(counter, now[0]) == [[hint(1, 6)] * _MANY]


def _many_partitions(responses: int, each: int) -> tuple[Counter, Route, list[float]]:
    """Return a hold queue that holds errors of the same partitions for many links, and a time."""
    now = [T]
    counter, on = Counter(), route(clock=lambda: now[0])
    learn(on, dict.fromkeys(range(each), (1, 5)), source=1, topic_id=topic_id(1))
    now[0] += 5
    for number in range(responses):
        epochs = dict.fromkeys(range(each), 5)
        link = LinkState(on, number)
        assert counter.fetch(link, now[0], epochs, error=NOT_LEADER, topic=topic_id(1)) is None
    assert _review_all(counter, now[0]) == []
    return counter, on, now


def test_a_brokers_answer_costs_by_what_is_asked_not_by_how_many_partitions_wait() -> None:
    """A hundred partitions of 1,000 responses each once took 63 ms of one step, each time."""
    responses, each = 50, 100
    counter, on, now = _many_partitions(responses, each)
    at = now[0] + 0.001
    for error in (UNKNOWN_EPOCH, UNKNOWN_EPOCH, NOT_LEADER, 0):
        errors = {("t", number): error for number in range(each)}
        assert lines_of(lambda: counter.queue.probed(on, errors, at)) < responses * each  # noqa: B023
    assert lines_of(lambda: at_once(counter.queue.asked(on, {"t"}, at))) < responses * each // 4


def test_what_a_broker_says_of_its_leadership_again_has_nothing_judged() -> None:
    counter, on, now = _many_partitions(20, 100)
    for number, news in enumerate((True, False, False)):
        at = now[0] + 0.001 * (number + 1)
        # Half of it at a time, as in a storm.
        for half in (range(50), range(50, 100)):
            counter.queue.probed(on, {("t", one): UNKNOWN_EPOCH for one in half}, at)
        counter.review(at)
        assert counter.queue.unfinished is news
        assert _review_all(counter, at) == []
    # An error that came since has not been answered.
    late = LinkState(on, 99)
    epochs, at = dict.fromkeys(range(100), 5), now[0] + 0.0035
    assert counter.fetch(late, at, epochs, error=NOT_LEADER, topic=topic_id(1)) is None
    counter.queue.probed(on, {("t", one): UNKNOWN_EPOCH for one in range(100)}, at)
    assert lines_of(lambda: counter.review(at)) > 100 * 10
    assert not counter.queue.unfinished


def test_leaders_that_are_sought_are_given_up_in_steps_when_hints_are_switched_off(
    many: tuple[Counter, list[LinkState]],
) -> None:
    """10,000 once took 50 ms of one step."""
    counter, (link, *_) = many
    while counter.queue.held or counter.queue.unfinished:
        counter.review(T + 0.2)
    assert len(counter.queue.wanted_leaders()[0]) == _MANY
    link.route.switch(Mode.OFF)
    steps = [lines_of(lambda: counter.queue.switched(link.route, T + 0.3))]
    while counter.queue.unfinished:
        steps.append(lines_of(lambda: counter.review(T + 0.3)))
    assert max(steps) < _MANY * 20
    assert not counter.queue.busy


def test_leaders_that_are_sought_no_longer_are_given_up_in_steps_where_the_loop_came_late(
    many: tuple[Counter, list[LinkState]],
) -> None:
    """Of 10,000 after a pause of the process that took 77 ms of one step."""
    counter, _ = many
    while counter.review(T + 0.2) or counter.queue.unfinished:
        pass
    assert counter.queue.busy
    steps = [lines_of(lambda: counter.review(T + 5))]
    while counter.queue.unfinished:
        steps.append(lines_of(lambda: counter.review(T + 5)))
    assert not counter.queue.busy
    assert max(steps) < _MANY * 20


def test_first_errors_that_are_over_are_forgotten_in_steps(
    many: tuple[Counter, list[LinkState]],
) -> None:
    """50,000 once took 20 ms of one step."""
    counter, links = many
    while counter.queue.held or counter.queue.unfinished:
        counter.review(T + 0.2)
    counter.review(T + 3)
    held: list[object] = []

    def one_more() -> None:
        topic = topic_id(_MANY - 1)
        held.append(counter.fetch(links[-1], T + 5, {0: 5}, error=NOT_LEADER, topic=topic))

    assert lines_of(one_more) < 4 * _FEW
    # It is over as well, and not forgotten yet.
    assert held == [None]


#: Partitions of one response, and the lines that a step about it may take: to look at all of them
#: in one step takes ten for each.
_LARGE = 10_000
_STEP = 6 * _LARGE


def _steps(counter: Counter, at: float) -> Iterator[list[list[LeaderHint | None]]]:
    """Review until all is done; give what goes on after each step."""
    done: list[list[LeaderHint | None]] = []

    def step() -> None:
        done[:] = counter.review(at)

    while True:
        assert lines_of(step) < _STEP
        yield [*done]
        if not counter.queue.unfinished:
            return


def _large_response() -> tuple[Counter, LinkState]:
    """Return a hold queue that holds a response of very many partitions, all judged."""
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(_LARGE), (1, 5)), source=1)
    link = LinkState(on, 1)
    assert counter.fetch(link, T, dict.fromkeys(range(_LARGE), 5), error=NOT_LEADER) is None
    assert not any(_steps(counter, T))
    return counter, link


def test_a_response_of_very_many_partitions_gets_its_hints_in_steps() -> None:
    """50,000 once took 34 ms when all were judged, and 24 ms more when it went on."""
    counter, link = _large_response()
    learn(link.route, dict.fromkeys(range(_LARGE), (2, 6)), source=2)
    done = [hints for step in _steps(counter, T + 0.05) for hints in step]
    assert done == [[hint(2, 6)] * _LARGE]
    assert counter.reasons() == [None] * _LARGE
    assert not counter.queue.busy


def test_a_response_of_very_many_partitions_goes_on_without_hints_in_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("leader_hints.core.hints.sought_leaders.MOST_SOUGHT", 100)
    counter, link = _large_response()
    assert [one for step in _steps(counter, T + 0.2) for one in step] == [[None] * _LARGE]
    assert counter.reasons() == ["hold_expired"] * _LARGE
    assert len(counter.queue.wanted_leaders()[0]) == 100
    # When each of them began to fail was noted: none is held again so soon.
    for partition in (0, 4999, _LARGE - 1):
        hints = counter.fetch(link, T + 0.3, {partition: 5}, error=NOT_LEADER)
        assert hints == [None]


def _large_response_that_goes_on() -> tuple[Counter, LinkState]:
    """Return one of which a part of what becomes of it is noted."""
    counter, link = _large_response()
    learn(link.route, dict.fromkeys(range(_LARGE), (2, 6)), source=2)
    (response,) = counter.queue._held
    while not response.outcomes:
        assert counter.review(T + 0.05) == []
    return counter, link


def test_what_becomes_of_a_large_response_may_change_before_it_goes_on() -> None:
    counter, link = _large_response_that_goes_on()
    link.route.switch(Mode.OFF)
    done = counter.queue.switched(link.route, T + 0.06)
    while counter.queue.unfinished:
        done += counter.queue.review(T + 0.06)
    assert [hints for _, hints in done] == [[None] * _LARGE]
    assert counter.reasons() == ["hints_off"] * _LARGE


def test_a_large_response_of_a_link_that_ends_meanwhile_does_not_go_on() -> None:
    counter, link = _large_response_that_goes_on()
    counter.queue.forget(link.number)
    assert not any(_steps(counter, T + 0.06))
    assert counter.reasons() == []
    assert not counter.queue.busy


def test_what_is_over_is_found_without_a_walk() -> None:
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(_MANY), (1, 5)), source=1)
    for number in range(_MANY):
        link, carries = LinkState(on, number), number == 7
        assert counter.fetch(link, T, {number: 5}, error=NOT_LEADER, carries=carries) is None
    assert counter.review(T + 0.019, 0.0001) == []
    decided: list[object] = []
    assert lines_of(lambda: decided.extend(counter.review(T + 0.0201))) < _FEW
    assert decided == [[None]]


def test_news_and_the_end_of_many_that_came_at_the_same_time_share_a_step() -> None:
    counter, on = Counter(), route()
    learn(on, dict.fromkeys(range(_MANY), (1, 5)), source=1)
    for number in range(_MANY):
        assert counter.fetch(LinkState(on, number), T, {number: 5}, error=NOT_LEADER) is None
    costs = []
    # The delay of reviews may let all of them go on from the second time on.
    for news, now in enumerate((T + 0.05, T + 0.08)):
        learn(on, {_MANY + news: (1, 5)}, source=1)
        costs.append(lines_of(lambda now=now: counter.review(now)))  # type: ignore[misc]
        assert counter.queue.unfinished
        while counter.queue.unfinished:
            assert counter.review(now) == []
    assert costs[1] < costs[0] + 5 * _FEW


def test_so_it_is_where_very_many_came_at_the_same_time() -> None:
    on, deadlines = route(), HoldDeadlines()
    over: list[HeldResponse | None] = []
    for number in range(_MANY):
        held = failed(LinkState(on, number), {0: -1}, ApiKey.PRODUCE)
        deadlines.enter(HeldResponse(held, number, T, detached=False, deadline=T + 0.1))
    # The delay of reviews may still let all of them go on.
    assert lines_of(lambda: deadlines.due(T + 0.09, 0.0)) < 2 * _FEW
    assert deadlines.next(0.0) == T + 0.1
    while deadlines.next(0.0) <= T + 0.1:
        assert lines_of(lambda: over.append(deadlines.due(T + 0.1, 0.0))) < 2 * _FEW
        if over[-1] is not None:
            deadlines.remove(over[-1])
    assert len({*over} - {None}) == _MANY
