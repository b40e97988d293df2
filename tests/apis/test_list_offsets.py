import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis import list_offsets
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.reader import Reader
from tests.apis.messages import (
    Entity,
    decode,
    encode,
    entities,
    prefixes,
    request_type,
    response_type,
)

_INT32 = st.integers(-(2**31), 2**31 - 1)
_ANSWER = response_type(ApiKey.LIST_OFFSETS, list_offsets.VERSION)


@given(st.dictionaries(st.tuples(st.text(max_size=5), _INT32), _INT32, max_size=6))
def test_asks_for_the_start_of_each_partition_at_its_epoch(
    epochs: dict[tuple[str, int], int],
) -> None:
    body = list_offsets.write_request_body(epochs)
    entity = decode(request_type(ApiKey.LIST_OFFSETS, list_offsets.VERSION), body)
    assert (entity.replica_id, entity.isolation_level) == (-1, 0)
    asked = {(t.name, p.partition_index): p for t in entity.topics for p in t.partitions}
    assert {at: p.current_leader_epoch for at, p in asked.items()} == epochs
    assert {p.timestamp for p in asked.values()} <= {-2}


@given(entities(_ANSWER))
def test_reads_each_partitions_error(answer: Entity) -> None:
    raw = encode(answer)
    errors = [
        ((topic.name, partition.partition_index), partition.error_code.value)
        for topic in answer.topics
        for partition in topic.partitions
    ]
    # One may be named more than once here, and a topic have no partition.
    asked = [
        *(partition for partition, _ in errors),
        *((topic.name, -1) for topic in answer.topics),
    ]
    assert list_offsets.read_errors(Reader(raw), asked) == dict(errors)
    for begun in prefixes(raw):
        with pytest.raises(Truncated):
            list_offsets.read_errors(Reader(begun), asked)


@given(st.binary(max_size=80))
def test_any_bytes_give_errors_or_a_wire_error(raw: bytes) -> None:
    with contextlib.suppress(WireError):
        list_offsets.read_errors(Reader(raw), [("", 0)] * 5)


@pytest.mark.parametrize(
    ("topics", "partitions"), [(3, 0), (1, 3), (2, 2)], ids=["topics", "partitions", "of-all"]
)
def test_no_more_is_read_than_was_asked(topics: int, partitions: int) -> None:
    """One answer of 8 MB took 1.4 s of one step."""
    partition = bytes(26)
    topic = b"\0\1t" + partitions.to_bytes(4, "big") + partitions * partition
    answer = Reader(bytes(4) + topics.to_bytes(4, "big") + topics * topic)
    with pytest.raises(Malformed):
        list_offsets.read_errors(answer, [("t", 0), ("t", 1)])


@pytest.mark.parametrize("other", [("u", 0), ("t", 1)], ids=["topic", "partition"])
def test_what_nobody_asked_about_is_not_believed(other: tuple[str, int]) -> None:
    answer = Reader(
        bytes(4) + (1).to_bytes(4, "big") + b"\0\1t" + (1).to_bytes(4, "big") + bytes(26)
    )
    with pytest.raises(Malformed, match="nobody asked"):
        list_offsets.read_errors(answer, [other])
