from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.link.budget import Budget


@given(st.integers(0, 50), st.integers(0, 100), st.lists(st.integers(0, 60)))
def test_neither_bound_is_ever_passed(per_link: int, total: int, sizes: list[int]) -> None:
    budget = Budget(per_link, total)
    taken: list[int] = []
    for size in sizes:
        fits = size <= per_link and sum(taken) + size <= total
        assert budget.take(size) == fits
        if fits:
            taken.append(size)
        elif taken:
            budget.give_back(taken.pop())
        assert budget.used == sum(taken)
