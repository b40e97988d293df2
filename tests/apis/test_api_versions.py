import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from leader_hints.apis import api_versions
from leader_hints.apis.api_versions import BODY, ClientSoftware
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.reader import Reader
from tests.apis.messages import (
    Entity,
    decode,
    element,
    encode,
    entities,
    prefixes,
    read_response_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

_KEY = ApiKey.API_VERSIONS
_VERSIONS = st.sampled_from([0, 1, 2, 3, 4])
_RAISED: dict[int, int] = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}


@st.composite
def _answers(draw: st.DrawFn) -> Entity:
    """An answer without error that offers each API at most once, Produce and Fetch often."""
    kind = response_type(_KEY, draw(_VERSIONS))
    offer = element(kind, "api_keys")
    keys = draw(st.lists(st.sampled_from([0, 1, 3, 18, 10_000, -1]), unique=True))
    offered = tuple(replace(draw(entities(offer)), api_key=key) for key in keys)
    return replace(draw(entities(kind)), error_code=ErrorCode.none, api_keys=offered)


@given(_answers(), st.integers(0, 99))
def test_only_the_maxima_of_what_is_raised_change(answer: Entity, seed: int) -> None:
    version = answer.__version__
    tags = seed if version >= 3 else None
    frame = bytearray(response_frame(answer, 7, tags))
    ranges = api_versions.read_ranges(Reader(frame, BODY), version)
    assert {key: (r.minimum, r.maximum) for key, r in ranges.items()} == {
        a.api_key: (a.min_version, a.max_version) for a in answer.api_keys
    }
    api_versions.raise_maxima(memoryview(frame), ranges, _RAISED)
    raised = replace(
        answer,
        api_keys=tuple(
            replace(a, max_version=_RAISED.get(a.api_key, a.max_version)) for a in answer.api_keys
        ),
    )
    assert frame == response_frame(raised, 7, tags)
    if tags is None:
        assert read_response_frame(type(answer), bytes(frame)) == raised


@settings(max_examples=25)
@given(_answers(), st.integers(0, 99))
def test_every_truncation_is_reported(answer: Entity, seed: int) -> None:
    frame = response_frame(answer, 0, seed if answer.__version__ >= 3 else None)
    whole = Reader(frame, BODY)
    api_versions.read_ranges(whole, answer.__version__)
    for begun in prefixes(frame[: whole.at]):
        if len(begun) >= BODY:
            with pytest.raises(Truncated):
                api_versions.read_ranges(Reader(begun, BODY), answer.__version__)


@given(entities(response_type(_KEY, 0)), _VERSIONS)
def test_an_answer_unsupported_version_offers_nothing(answer: Entity, asked: int) -> None:
    # Its body is that of v0, whatever was asked (KIP-511).
    refused = replace(answer, error_code=ErrorCode.unsupported_version)
    frame = response_frame(refused)
    assert api_versions.read_ranges(Reader(frame, BODY), asked) == {}


@given(_VERSIONS, st.binary(max_size=60))
def test_any_bytes_give_ranges_or_a_wire_error(version: int, raw: bytes) -> None:
    with contextlib.suppress(WireError):
        api_versions.read_ranges(Reader(b"\0\0" + raw), version)


@given(st.sampled_from([3, 4]), st.data(), st.none() | st.text())
def test_reads_what_a_client_says_of_itself(
    version: int, data: st.DataObject, client_id: str | None
) -> None:
    entity = data.draw(entities(request_type(_KEY, version)))
    software = api_versions.read_software(memoryview(request_frame(entity, 0, client_id)))
    assert software == (entity.client_software_name, entity.client_software_version)


@given(st.text(), st.text())
def test_says_of_itself_what_kio_reads(name: str, version: str) -> None:
    body = api_versions.write_request_body(ClientSoftware(name, version))
    entity = decode(request_type(_KEY, 3), body)
    assert (entity.client_software_name, entity.client_software_version) == (name, version)
    assert encode(entity) == body


@pytest.mark.parametrize("version", [0, 3])
def test_more_apis_than_any_broker_has_are_refused_before_they_are_read(version: int) -> None:
    count = b"\xea\x07" if version else (1001).to_bytes(4, "big")
    answer = b"\0\0" + count + bytes(7 * 1001)
    with pytest.raises(Malformed, match="versions of 1001 APIs"):
        api_versions.read_ranges(Reader(answer), version)
