"""Sets of partitions, held against Python's own."""

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.partition_bits import PartitionBits

_PARTITIONS = st.integers(0, 40)


@given(st.lists(st.tuples(st.booleans(), _PARTITIONS)))
def test_they_have_what_was_added_and_not_taken_out(steps: list[tuple[bool, int]]) -> None:
    bits, expected = PartitionBits(), set[int]()
    for adds, partition in steps:
        (bits.add if adds else bits.discard)(partition)
        (expected.add if adds else expected.discard)(partition)
        assert {one for one in range(50) if one in bits} == expected
        assert bool(bits) is bool(expected)


@given(st.sets(_PARTITIONS), st.sets(_PARTITIONS))
def test_what_two_have_is_in_both(one: set[int], other: set[int]) -> None:
    bits, its = PartitionBits(), PartitionBits()
    for partition in one:
        bits.add(partition)
    for partition in other:
        its.add(partition)
    assert {partition for partition in range(50) if partition in bits & its} == one & other


def test_what_is_no_number_is_in_none() -> None:
    assert None not in PartitionBits()
