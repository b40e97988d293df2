import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.header import (
    FLEXIBLE_FROM,
    plain_body,
    read_request_header,
    request,
    response_body,
)
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Truncated
from tests.apis.messages import (
    encode,
    entities,
    prefixes,
    read_request_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

#: What the proxy reads or writes itself, up to a version that is flexible.
_VERSIONS = [
    *((ApiKey.PRODUCE, v) for v in range(3, 11)),
    *((ApiKey.FETCH, v) for v in range(4, 18)),
    *((ApiKey.LIST_OFFSETS, v) for v in range(1, 9)),
    *((ApiKey.METADATA, v) for v in range(0, 13)),
    *((ApiKey.API_VERSIONS, v) for v in range(0, 5)),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0),
]
_INT32 = st.integers(-(2**31), 2**31 - 1)


@pytest.mark.parametrize(("key", "version"), _VERSIONS)
def test_flexible_versions_are_those_of_the_schemas(key: ApiKey, version: int) -> None:
    assert request_type(key, version).__flexible__ == (version >= FLEXIBLE_FROM[key])


@given(st.sampled_from(_VERSIONS), st.data(), _INT32, st.none() | st.text(max_size=300))
def test_a_request_header_is_read_up_to_the_body(
    which: tuple[ApiKey, int], data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    entity = data.draw(entities(request_type(*which)))
    frame = request_frame(entity, correlation_id, client_id)
    header = read_request_header(memoryview(frame))
    assert header[:4] == (*which, correlation_id, client_id)
    assert frame[header.body :] == encode(entity)
    for begun in prefixes(frame[: header.body]):
        with pytest.raises(Truncated):
            read_request_header(begun)


@given(st.data(), st.none() | st.text(max_size=300))
def test_the_short_way_leads_to_the_same_body(data: st.DataObject, client_id: str | None) -> None:
    which = data.draw(st.sampled_from(_VERSIONS).filter(lambda kv: kv[1] >= FLEXIBLE_FROM[kv[0]]))
    frame = request_frame(data.draw(entities(request_type(*which))), 1, client_id)
    body = read_request_header(memoryview(frame)).body
    assert plain_body(memoryview(frame)) == body
    for begun in prefixes(frame):
        assert plain_body(begun) == (body if len(begun) >= body else 0)
    tagged = bytearray(frame)
    tagged[body - 1] = 1
    assert plain_body(memoryview(tagged)) == 0


@pytest.mark.parametrize(
    ("raw", "client_id"), [(b"\x00\x04caf\xe9", "caf\ufffd"), (b"\xff\xfe", None)]
)
def test_a_client_id_is_read_as_brokers_read_it(raw: bytes, client_id: str | None) -> None:
    frame = bytes(4) + b"\0\0\0\x07\0\0\0\x01" + raw + b"body"
    header = read_request_header(memoryview(frame))
    assert header.client_id == client_id
    assert frame[header.body :] == b"body"


@given(st.sampled_from(_VERSIONS), st.data(), _INT32, st.text(max_size=300))
def test_a_request_is_written_as_kio_reads_it(
    which: tuple[ApiKey, int], data: st.DataObject, correlation_id: int, client_id: str
) -> None:
    entity = data.draw(entities(request_type(*which)))
    frame = request(*which, correlation_id, client_id, encode(entity))
    header, body = read_request_frame(type(entity), frame)
    assert body == entity
    assert (header.request_api_key, header.request_api_version) == which
    assert (header.correlation_id, header.client_id) == (correlation_id, client_id)


@given(st.sampled_from(_VERSIONS), st.data())
def test_a_response_header_is_passed_over(which: tuple[ApiKey, int], data: st.DataObject) -> None:
    entity = data.draw(entities(response_type(*which)))
    frame = response_frame(entity)
    reader = response_body(*which, memoryview(frame)[4:])
    assert frame[4 + reader.at :] == encode(entity)
