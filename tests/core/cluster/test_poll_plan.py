"""What polls of a broker ask for."""

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.poll_plan import FULL_POLL_EVERY, PollPlan

_FULL = [[ANY_TOPIC], None]


def _view(*sizes: int) -> LeaderView:
    view = LeaderView("k")
    for number, size in enumerate(sizes):
        led = tuple(Led(partition, 1, 1) for partition in range(size))
        view.learn(TopicMetadata(0, f"t{number}", ZERO_ID, led), 1)
    return view


def test_the_first_poll_of_a_connection_asks_for_everything() -> None:
    plan = PollPlan(10)
    assert [*plan.poll(None)] == _FULL
    assert [*plan.poll(_view(1))] == [["t0"]]
    plan.reset()
    assert [*plan.poll(_view(1))] == _FULL


def test_while_nothing_is_known_everything_is_asked_for() -> None:
    plan = PollPlan(10)
    for _ in range(FULL_POLL_EVERY):
        assert [*plan.poll(_view())] == _FULL


def test_every_fifth_poll_asks_for_everything() -> None:
    plan, view = PollPlan(10), _view(1)
    whole = [None in [*plan.poll(view)] for _ in range(2 * FULL_POLL_EVERY)]
    assert whole == 2 * [True, *[False] * (FULL_POLL_EVERY - 1)]


def test_topics_that_were_hidden_are_asked_for_by_name() -> None:
    view = _view(1)
    hidden = TopicMetadata(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "secret", ZERO_ID, ())
    view.hidden.take(hidden, "r")
    assert [*PollPlan(10).poll(view, "r")] == [[ANY_TOPIC, "secret"], None]
    assert [*PollPlan(10).poll(view, "another")] == _FULL


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(1, 20))
def test_slices_have_each_topic_once_and_no_more_partitions_than_they_may(
    sizes: list[int], most: int
) -> None:
    view, plan = _view(*sizes), PollPlan(most)
    assert [*plan.poll(view)] == _FULL
    asked = [[*(topics or ())] for topics in plan.poll(view)]
    assert sorted(name for topics in asked for name in topics) == sorted(view.topics.names)
    for topics in asked:
        assert len(topics) == 1 or sum(view.partitions(name) for name in topics) <= most


def test_a_topic_that_is_learnt_or_forgotten_meanwhile_does_no_harm() -> None:
    view, plan = _view(5, 5, 5), PollPlan(5)
    assert [*plan.poll(view)] == _FULL
    asked = plan.poll(view)
    assert next(asked) == ["t0"]
    for name in ("t0", "t2"):
        gone = TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, ZERO_ID, ())
        view.learn(gone, 1)
    view.learn(TopicMetadata(0, "new", ZERO_ID, (Led(0, 1, 1),)), 1)
    assert [*asked] == [["t1", "t2"]]
