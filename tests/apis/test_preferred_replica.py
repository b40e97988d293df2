"""The preferred replica in Fetch responses, against kio, in any pieces."""

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.preferred_replica import (
    NONE,
    SCANNED,
    Offered,
    PreferredReplicaScan,
    without,
)
from tests.apis.messages import (
    element,
    entities,
    plain,
    read_response_frame,
    response_frame,
    response_type,
)

FETCH = 1
#: Versions that kio knows.
VERSIONS = [version for version in SCANNED if version <= 16]


def _topic(kind: type[object], number: int) -> dict[str, object]:
    names = getattr(kind, "__dataclass_fields__")  # noqa: B009
    return {"topic": f"t{number}"} if "topic" in names else {}


def _frame(version: int, records: Sequence[bytes], aborted: int = 0) -> bytes:
    kind = response_type(FETCH, version)
    topic_kind = element(kind, "responses")
    partition_kind = element(topic_kind, "partitions")
    aborted_kind = element(partition_kind, "aborted_transactions")
    partitions = tuple(
        plain(
            partition_kind,
            partition_index=number,
            high_watermark=90,
            log_start_offset=7,
            records=some,
            preferred_read_replica=-1,
            aborted_transactions=(plain(aborted_kind),) * aborted,
        )
        for number, some in enumerate(records)
    )
    topics = tuple(
        plain(topic_kind, **_topic(topic_kind, number), partitions=partitions)
        for number in range(2)
    )
    return response_frame(plain(kind, responses=topics), 5)


def _see(
    version: int, frame: bytes, cuts: Sequence[int], node: int, *, gathered: bool = False
) -> tuple[bytes, list[Offered]]:
    """Return the frame after the scan, in pieces, and what it found."""
    data = bytearray(frame)
    found: list[Offered] = []

    def place(offered: Offered) -> int:
        found.append(offered)
        return node

    scan = PreferredReplicaScan(version, len(frame), place)
    ends = [*sorted({cut for cut in cuts if 0 < cut < len(frame)}), len(frame)]
    begin = 0
    for end in ends:
        scan.see(memoryview(data)[begin:end], begin)
        begin = 0 if gathered else end
    assert scan.done
    return bytes(data), found


RECORDS = [struct.pack(">q", 30) + bytes(90), b"", bytes(3)]


@pytest.mark.parametrize("aborted", [0, 2])
@pytest.mark.parametrize("version", VERSIONS)
def test_all_partitions_are_found_and_written_to(version: int, aborted: int) -> None:
    frame = _frame(version, RECORDS, aborted)
    data, found = _see(version, frame, [], 9)
    read = read_response_frame(response_type(FETCH, version), data)
    replicas = [p.preferred_read_replica for t in read.responses for p in t.partitions]
    assert replicas == [9] * 6
    assert [(o.partition, o.size, o.position) for o in found[:3]] == [
        (0, 98, 30),
        (1, 0, None),
        (2, 3, None),
    ]
    assert {(o.error, o.high, o.start, o.preferred) for o in found} == {(0, 90, 7, -1)}
    assert _see(version, frame, [], NONE)[0] == frame


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("stable", "position"), [(-1, 90), (60, 60)])
def test_a_consumer_that_gets_no_records_is_at_the_end(
    version: int, stable: int, position: int
) -> None:
    frame = bytearray(_frame(version, [b"", b"r"]))
    begin = struct.pack(">ihq", 0, 0, 90)
    at = frame.index(begin) + len(begin)
    struct.pack_into(">q", frame, at, stable)
    _, found = _see(version, bytes(frame), [], NONE)
    # Behind records of others nobody knows.
    assert [o.position for o in found] == [position, None, None, None]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("gathered", [False, True])
@settings(max_examples=60)
@given(st.data())
def test_in_pieces_only_the_field_changes(
    version: int, gathered: bool, data: st.DataObject
) -> None:
    frame = _frame(version, RECORDS, data.draw(st.integers(0, 2)))
    cuts = data.draw(st.lists(st.integers(1, len(frame)), max_size=12))
    whole, _ = _see(version, frame, [], 0x01020304)
    changed, found = _see(version, frame, cuts, 0x01020304, gathered=gathered)
    if gathered:
        assert (changed, len(found)) == (whole, 6)
        return
    # Each field is as it was, or as it is wanted: never something between.
    fields = [at for at in range(len(frame)) if whole[at] != frame[at]]
    for at in range(0, len(fields), 4):
        begin = fields[at]
        assert changed[begin : begin + 4] in (frame[begin : begin + 4], whole[begin : begin + 4])
    rest = [at for at in range(len(frame)) if at not in fields]
    assert all(changed[at] == frame[at] for at in rest)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=60)
@given(st.data())
def test_any_response_is_read_to_its_end(version: int, data: st.DataObject) -> None:
    frame = response_frame(data.draw(entities(response_type(FETCH, version))), 5)
    read = read_response_frame(response_type(FETCH, version), frame)
    cuts = data.draw(st.lists(st.integers(1, len(frame)), max_size=6))
    _, found = _see(version, frame, cuts, NONE, gathered=True)
    partitions = [p.partition_index for t in read.responses or () for p in t.partitions or ()]
    assert [offered.partition for offered in found] == partitions


def test_what_is_no_response_ends_it_and_changes_nothing() -> None:
    for frame in (bytes(4) + b"\xff" * 60, _frame(16, RECORDS)[:70]):
        assert _see(16, frame, [20], NONE)[0] == frame


def test_of_very_many_partitions_the_first_ones_are_looked_at() -> None:
    _, found = _see(12, _frame(12, [b"r"] * 500), [], NONE)
    assert 290 <= len(found) <= 300


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=60)
@given(st.data())
def test_records_beside_what_is_named_are_taken_out(version: int, data: st.DataObject) -> None:
    records = data.draw(st.lists(st.binary(max_size=300), max_size=5))
    frame = _frame(version, records, data.draw(st.integers(0, 2)))
    named = data.draw(st.sets(st.integers(0, 4)))

    def place(offered: Offered) -> int:
        return 9 if offered.partition in named else NONE

    scan = PreferredReplicaScan(version, len(frame), place, takes_out=True)
    memory = bytearray(frame)
    scan.see(memoryview(memory), 0)
    left = bytes(without(memoryview(memory), scan.cuts or ()))
    kind = response_type(FETCH, version)
    before, after = read_response_frame(kind, frame), read_response_frame(kind, left)
    expected = [
        replace(partition, preferred_read_replica=9, records=b"")
        if partition.partition_index in named
        else partition
        for topic in before.responses
        for partition in topic.partitions
    ]
    assert [p for topic in after.responses for p in topic.partitions] == expected
    assert len(left) == int.from_bytes(left[:4]) + 4


def test_nothing_is_taken_out_of_a_response_that_ends_too_soon() -> None:
    frame = bytearray(_frame(11, [bytes(900)]))[:-100]
    scan = PreferredReplicaScan(11, len(frame), lambda _: 9, takes_out=True)
    scan.see(memoryview(frame), 0)
    assert len(without(memoryview(frame), scan.cuts or ())) == len(frame) - 904 + 4
