from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.workers.shares import share


@given(st.integers(1, 10**9), st.integers(1, 128))
def test_all_parts_together_are_no_less_than_the_whole_and_hardly_more(
    total: int, workers: int
) -> None:
    assert total <= share(total, workers) * workers < total + workers


def test_a_part_is_not_too_little_to_use() -> None:
    assert share(10, 4, least=8) == 8
