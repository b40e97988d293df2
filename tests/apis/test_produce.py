import contextlib
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from leader_hints.apis import produce
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Truncated, WireError
from tests.apis.messages import (
    Entity,
    element,
    entities,
    plain,
    prefixes,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.apis.steps import short_steps
from tests.core.samples import NUMBERED, UNNUMBERED, produce_request
from tests.harness.lines import lines_of

_REQUESTS = st.sampled_from(range(3, 11)).flatmap(
    lambda version: entities(request_type(ApiKey.PRODUCE, version))
)
_ANSWERS = st.sampled_from([9, 10]).flatmap(
    lambda version: entities(response_type(ApiKey.PRODUCE, version))
)


@given(_REQUESTS, st.none() | st.text(max_size=300))
def test_reads_acks_as_soon_as_they_are_there(entity: Entity, client_id: str | None) -> None:
    frame = memoryview(request_frame(entity, 1, client_id))
    assert produce.read_acks(frame) == entity.acks
    (least,) = [end for end in range(len(frame)) if _acks_end_at(frame, end)]
    assert produce.read_acks(frame[:least]) == entity.acks
    for begun in prefixes(bytes(frame[:least])):
        with pytest.raises(Truncated):
            produce.read_acks(begun)


@pytest.mark.parametrize("version", range(3, 11))
@pytest.mark.parametrize(
    ("records", "expected"), [(NUMBERED, True), (UNNUMBERED, False), (b"", False), (None, False)]
)
def test_sees_a_producers_id_as_soon_as_it_is_there(
    version: int, records: bytes | None, expected: bool
) -> None:
    request = memoryview(produce_request(version, 1, records=records, transactional_id="tx"))
    assert produce.has_producer_id(request) is expected
    ends = range(len(request) + 1)
    readable = [end for end in ends if _sees_producer(request[:end], expected)]
    # From some byte on, and never otherwise.
    assert readable == [*ends[readable[0] :]]


def _sees_producer(begun: memoryview, expected: bool) -> bool:
    try:
        seen = produce.has_producer_id(begun)
    except Truncated:
        return False
    assert seen is expected
    return True


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_before_record_batches_are_of_no_producer_with_an_id(magic: int) -> None:
    older = bytearray(NUMBERED)
    older[16] = magic
    request = produce_request(3, 1, records=bytes(older))
    assert not produce.has_producer_id(memoryview(request))


@pytest.mark.parametrize("version", [3, 9])
def test_a_request_without_partitions_is_of_no_producer_with_an_id(version: int) -> None:
    for topics in (0, 1):
        request = produce_request(version, 1, partitions=0)
        if not topics:
            entity = plain(request_type(ApiKey.PRODUCE, version))
            request = request_frame(entity, 1, None)
        assert not produce.has_producer_id(memoryview(request))


def _acks_end_at(frame: memoryview, end: int) -> bool:
    """Whether acks end there: one byte less is not enough, and here they can be read."""
    return _readable(frame[:end]) and not _readable(frame[: end - 1])


def _readable(begun: memoryview) -> bool:
    try:
        produce.read_acks(begun)
    except Truncated:
        return False
    return True


@given(_ANSWERS, st.integers(0, 99))
def test_finds_the_failures_that_kio_wrote(answer: Entity, seed: int) -> None:
    frame = response_frame(answer, 3, seed)
    scanned = produce.scan_response(memoryview(frame))
    with short_steps(produce):
        assert produce.scan_response(memoryview(frame)) == scanned
    parts = [(t.name, p) for t in answer.responses for p in t.partition_responses]
    assert [failure[:3] for failure in scanned.failures] == [
        (name, p.index, p.error_code.value) for name, p in parts if p.error_code.value in HINTABLE
    ]
    assert scanned.carries == any(p.error_code.value == 0 for _, p in parts)
    assert scanned.tags_end == len(frame)


def _failing(partitions: Iterable[int], **values: object) -> tuple[Entity, ...]:
    """Return partitions that failed, with ``values``."""
    kind = element(element(response_type(ApiKey.PRODUCE, 9), "responses"), "partition_responses")
    values = {"error_code": ErrorCode.not_leader_or_follower} | values
    return tuple(plain(kind, index=n, **values) for n in partitions)


def _topics(*partitions: tuple[Entity, ...]) -> memoryview:
    kind = response_type(ApiKey.PRODUCE, 9)
    topic = element(kind, "responses")
    topics = tuple(
        plain(topic, name=f"t{number}", partition_responses=some)
        for number, some in enumerate(partitions)
    )
    return memoryview(response_frame(plain(kind, responses=topics), 1))


def test_failures_of_all_shapes_are_found_among_each_other() -> None:
    wrong = element(
        element(element(response_type(ApiKey.PRODUCE, 9), "responses"), "partition_responses"),
        "record_errors",
    )
    said = plain(wrong, batch_index=1, batch_index_error_message="x")
    some = (
        *_failing(range(3)),
        *_failing([3], error_message="why"),
        *_failing([4], record_errors=(said,)),
        *_failing([5, 6], error_code=ErrorCode.none),
        *_failing([7, 8]),
    )
    scanned = produce.scan_response(_topics(some, _failing([0, 1])))
    found = [(failure.topic, failure.partition) for failure in scanned.failures]
    assert found == [("t0", n) for n in (0, 1, 2, 3, 4, 7, 8)] + [("t1", 0), ("t1", 1)]
    assert scanned.carries


def test_many_failures_are_found_at_little_cost() -> None:
    """20,000 took 62 ms of one step."""
    frame = _topics(_failing(range(5000)))
    assert lines_of(lambda: produce.scan_response(frame)) < 60_000


@given(_ANSWERS, st.none() | st.integers(0, 99))
def test_the_short_look_never_misses_a_failure(answer: Entity, seed: int | None) -> None:
    frame = response_frame(answer, 3, seed)
    failed = bool(produce.scan_response(memoryview(frame)).failures)
    for begun in [*prefixes(frame), memoryview(frame)]:
        assert not (produce.has_no_failure(begun) and failed)


@pytest.mark.parametrize(("error", "none"), [(0, True), (6, False), (74, False), (75, True)])
def test_one_look_is_enough_for_the_common_shape(error: int, none: bool) -> None:
    kind = response_type(ApiKey.PRODUCE, 9)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partition_responses"), error_code=ErrorCode(error))
    answer = plain(kind, responses=(plain(topic, name="t", partition_responses=(partition,)),))
    assert produce.has_no_failure(memoryview(response_frame(answer))) == none


@pytest.mark.parametrize("topics", [1, 2])
def test_one_look_is_not_enough_where_there_is_more(topics: int) -> None:
    kind = response_type(ApiKey.PRODUCE, 9)
    topic = element(kind, "responses")
    well = plain(element(topic, "partition_responses"))
    failed = plain(type(well), error_code=ErrorCode.not_leader_or_follower)
    rows = [(well,), (failed,)] if topics == 2 else [(well, failed)]
    answer = plain(
        kind, responses=tuple(plain(topic, name="t", partition_responses=row) for row in rows)
    )
    assert not produce.has_no_failure(memoryview(response_frame(answer)))


@settings(max_examples=25)
@given(_ANSWERS, st.integers(0, 99))
def test_every_truncation_is_reported(answer: Entity, seed: int) -> None:
    for begun in prefixes(response_frame(answer, 3, seed)):
        with pytest.raises(Truncated):
            produce.scan_response(begun)


@given(st.binary(max_size=150))
def test_any_bytes_give_a_scan_or_a_wire_error(raw: bytes) -> None:
    with contextlib.suppress(WireError):
        produce.scan_response(memoryview(bytes(8) + raw))
    with contextlib.suppress(WireError):
        produce.read_acks(memoryview(bytes(4) + b"\0\0\0\x09" + raw))


@given(_ANSWERS, st.data())
def test_any_changed_byte_gives_a_scan_or_a_wire_error(answer: Entity, data: st.DataObject) -> None:
    frame = bytearray(response_frame(answer))
    frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        produce.scan_response(memoryview(frame))
