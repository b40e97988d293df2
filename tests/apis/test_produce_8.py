import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis import produce_8
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.steps import at_once
from tests.apis.messages import (
    Entity,
    as_version,
    element,
    entities,
    plain,
    read_request_frame,
    read_response_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.apis.steps import short_steps

_REQUESTS = st.sampled_from([9, 10]).flatmap(
    lambda version: entities(request_type(ApiKey.PRODUCE, version))
)
_ANSWERS = entities(response_type(ApiKey.PRODUCE, 8))
_OLD_REQUEST = request_type(ApiKey.PRODUCE, 8)


def _down(frame: bytes) -> bytes:
    pieces, rest = at_once(produce_8.request_down(memoryview(frame), len(frame)))
    assert rest is None
    return b"".join(pieces)


@given(_REQUESTS, st.none() | st.text(max_size=200), st.none() | st.integers(0, 99))
def test_a_request_says_the_same_as_kio_reads_it(
    entity: Entity, client_id: str | None, unknown_tags: int | None
) -> None:
    frame = request_frame(entity, 77, client_id, unknown_tags)
    header, down = read_request_frame(_OLD_REQUEST, _down(frame))
    assert (header.request_api_version, header.correlation_id) == (8, 77)
    assert header.client_id == client_id
    assert down == as_version(entity, _OLD_REQUEST)


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 300_000])
def test_records_are_views_where_they_are_many(size: int) -> None:
    records = bytes(size)
    frame = memoryview(_request(records, records))
    pieces, _ = at_once(produce_8.request_down(frame, len(frame)))
    views = [p for p in pieces if isinstance(p, memoryview) and p.obj is frame.obj]
    assert [len(view) for view in views] == ([size, size] if size >= 2048 else [])
    _, down = read_request_frame(_OLD_REQUEST, b"".join(pieces))
    assert [p.records for p in down.topic_data[0].partition_data] == [records, records]


@pytest.mark.parametrize("records", [b"r", b"r" * 100, b"r" * 5000, b""])
def test_a_request_begins_before_all_of_its_last_records_are_there(records: bytes) -> None:
    frame = _request(b"first", records)
    whole = _down(frame)
    begun = 0
    for cut in range(4, len(frame)):
        try:
            pieces, rest = at_once(produce_8.request_down(memoryview(frame)[:cut], len(frame)))
        except Truncated:
            continue
        begun += 1
        assert rest is not None
        assert b"".join(pieces) + frame[cut : len(frame) - rest.dropped] + rest.put == whole
    assert begun == len(records)


def test_a_request_with_something_behind_its_records_does_not_begin_before_it_is_there() -> None:
    frame = memoryview(_request(b"r" * 100)[:-1] + b"\1\7\0")
    with pytest.raises(Truncated):
        at_once(produce_8.request_down(frame[:60], len(frame)))


def _request(*records: bytes) -> bytes:
    kind = request_type(ApiKey.PRODUCE, 10)
    topic = element(kind, "topic_data")
    partition = element(topic, "partition_data")
    partitions = tuple(plain(partition, index=n, records=raw) for n, raw in enumerate(records))
    return request_frame(plain(kind, topic_data=(plain(topic, partition_data=partitions),)))


@given(_ANSWERS, st.sampled_from([9, 10]))
def test_a_response_says_the_same_as_kio_reads_it(answer: Entity, version: int) -> None:
    kind = response_type(ApiKey.PRODUCE, version)
    view, failed = at_once(produce_8.response_up(memoryview(response_frame(answer, 5))))
    raised = bytes(view)
    with short_steps(produce_8):
        again = at_once(produce_8.response_up(memoryview(response_frame(answer, 5))))
    assert again == (view, failed)
    assert read_response_frame(kind, raised) == as_version(answer, kind)
    # And not one byte differs from what a broker would have sent.
    assert raised == response_frame(as_version(answer, kind), 5)
    assert failed == any(
        p.error_code.value in HINTABLE for t in answer.responses for p in t.partition_responses
    )


def test_a_name_that_the_old_encoding_cannot_hold_is_refused() -> None:
    name = b"n" * 40_000
    head = struct.pack(">hhihB", 0, 10, 1, -1, 0) + b"\0" + bytes(6) + b"\x02"
    body = head + b"\xc1\xb8\x02" + name + b"\x01\0\0"
    frame = memoryview(struct.pack(">i", len(body)) + body)
    with pytest.raises(Malformed, match="40000 bytes"):
        at_once(produce_8.request_down(frame, len(frame)))


@given(st.sampled_from([9, 10]), st.binary(max_size=150))
def test_any_bytes_give_a_message_or_a_wire_error(version: int, raw: bytes) -> None:
    frame = memoryview(bytes(4) + bytes([0, 0, 0, version]) + bytes(4) + b"\xff\xff\0" + raw)
    with contextlib.suppress(WireError):
        at_once(produce_8.request_down(frame, len(frame)))
    with contextlib.suppress(WireError):
        at_once(produce_8.response_up(memoryview(bytes(8) + raw)))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\xff\xff\xff\xff\x0f", id="topics"),
        pytest.param(b"\2\2t\xff\xff\xff\xff\x0f", id="partitions"),
        pytest.param(b"\2\2t\2\0\0\0\0\xff\xff\xff\xff\x0f", id="records"),
    ],
)
def test_a_size_that_no_older_version_can_say_is_a_wire_error(body: bytes) -> None:
    header = struct.pack(">hhih", 0, 10, 7, -1) + b"\0"
    payload = header + b"\0" + struct.pack(">hi", 1, 1000) + body
    with pytest.raises(WireError):
        _down(struct.pack(">i", len(payload)) + payload)
