import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.link.budget import Budget, network_of


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


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1:9092", "10.0.0.1"),
        ("[2001:db8:1:2:3:4:5:6]:9092", "2001:db8:1:2::"),
        ("[2001:db8:1:2::9]:1", "2001:db8:1:2::"),
        ("[fe80::1%eth0]:1", "fe80::"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.1"),
        ("a client that has gone", ""),
        ("", ""),
    ],
)
def test_clients_are_distinguished_by_what_they_cannot_choose(address: str, network: str) -> None:
    assert network_of(address) == network
