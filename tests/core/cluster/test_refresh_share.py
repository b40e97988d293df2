from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.cluster.refresh_share import RefreshShare

_SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=8)


def test_all_are_asked_for_everything_where_that_is_little() -> None:
    share = RefreshShare(100)
    for _ in range(2):
        assert [*share.pairs(3, [10, 20])] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_what_is_too_much_for_one_refresh_goes_on_in_the_next() -> None:
    share = RefreshShare(45)
    assert [*share.pairs(2, [20, 20])] == [(0, 0), (0, 1)]
    assert [*share.pairs(2, [20, 20])] == [(1, 0), (1, 1)]
    assert [*share.pairs(2, [20, 20])] == [(0, 0), (0, 1)]


def test_a_topic_that_is_too_large_by_itself_is_asked_for_alone() -> None:
    share = RefreshShare(10)
    assert [*share.pairs(2, [11])] == [(0, 0)]
    assert [*share.pairs(2, [11])] == [(1, 0)]


def test_topics_of_which_no_partition_is_known_do_not_come_free() -> None:
    """5,000 of them, which a restarting broker of 2.4 had denied, were asked of all brokers."""
    assert len([*RefreshShare(2000).pairs(100, [0] * 5000)]) == 2000


def test_nothing_is_asked_of_nobody_or_for_nothing() -> None:
    assert [*RefreshShare(10).pairs(0, [1])] == []
    assert [*RefreshShare(10).pairs(2, [])] == []


@given(st.integers(1, 5), _SIZES, st.integers(1, 200))
def test_every_broker_is_asked_for_every_topic_in_turn(
    brokers: int, sizes: list[int], most: int
) -> None:
    share = RefreshShare(most)
    asked: set[tuple[int, int]] = set()
    for _ in range(brokers * len(sizes)):
        pairs = [*share.pairs(brokers, sizes)]
        assert sum(sizes[topic] for _, topic in pairs) <= max(most, sizes[pairs[0][1]])
        asked.update(pairs)
    assert len(asked) == brokers * len(sizes)
