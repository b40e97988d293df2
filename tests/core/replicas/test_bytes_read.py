"""Bytes by topic: none is lost, and shares are those of what was looked at."""

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.replicas.bytes_read import EVERY, BytesRead


@given(
    st.integers(0, 10**12),
    st.dictionaries(st.text("abc", max_size=3), st.lists(st.integers(0, 10**9), max_size=3)),
)
def test_the_sum_is_what_was_read(size: int, records: dict[str, list[int]]) -> None:
    read = BytesRead()
    read.size = size
    for name, sizes in records.items():
        for one in sizes:
            read.add(name, one, avoidable=one % 2 == 0)
    taken = list(read.take())
    whole = sum(map(sum, records.values()))
    assert sum(of for _, of, _ in taken) == (size if whole else 0)
    assert read.size == (0 if whole else size)
    for topic, of, avoidable in taken:
        sizes = records[str(topic)]
        assert abs(of - size * sum(sizes) / whole) <= 1 + size * 1e-9
        assert avoidable == sum(one for one in sizes if one % 2 == 0)
    assert list(read.take()) == []


def test_topics_beyond_a_bound_count_as_the_others() -> None:
    read = BytesRead()
    read.size = 1000
    for number in range(5000):
        read.add(f"{number}", 1, avoidable=True)
    taken = list(read.take())
    assert len(taken) == 200
    assert sum(of for _, of, _ in taken) == 1000


def test_it_is_due_some_minutes_after_the_first_look() -> None:
    read = BytesRead()
    assert [read.due(at) for at in (100.0, 99 + EVERY, 100 + EVERY)] == [False, False, True]
    read.size = 5
    read.add("t", 5, avoidable=False)
    assert list(read.take()) == [("t", 5, 0)]
    assert not read.due(500 + EVERY)
