"""Messages whose arrays claim more than there is, and those that kio writes."""

import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.kio_counts import check_counts
from leader_hints.apis.kio_messages import read_request, read_response
from leader_hints.wire.errors import WireError
from tests.apis.messages import (
    Entity,
    encode,
    encode_with_unknown_tags,
    entities,
    framed,
    request_type,
    response_type,
)

_CONSUMER_GROUP_HEARTBEAT = 68
#: 2**32 - 2 elements.
_VERY_MANY = b"\xff\xff\xff\xff\x0f"
#: A Fetch 15 that names no topic, up to the count of these.
_FETCH_15 = struct.pack(">hhihBiiibii", ApiKey.FETCH, 15, 1, -1, 0, 500, 1, 1, 0, 0, 0)
#: The same of one topic, up to the count of its partitions; and a Fetch 11, up to that of topics.
_FETCH_15_OF_A_TOPIC = _FETCH_15 + b"\x02" + bytes(16)
_FETCH_11 = struct.pack(">hhihiiiibii", ApiKey.FETCH, 11, 1, -1, -1, 500, 1, 1, 0, 0, 0)
_KINDS = st.sampled_from(
    [
        *(request_type(ApiKey.PRODUCE, version) for version in range(3, 12)),
        *(request_type(ApiKey.FETCH, version) for version in range(4, 18)),
        *(response_type(ApiKey.PRODUCE, version) for version in range(3, 12)),
        *(response_type(ApiKey.FETCH, version) for version in range(4, 18)),
        *(response_type(ApiKey.METADATA, version) for version in range(13)),
        # It has a structure that may be null.
        response_type(_CONSUMER_GROUP_HEARTBEAT, 0),
    ]
)


@given(_KINDS.flatmap(entities), st.integers(0, 99))
def test_what_kio_writes_passes(entity: Entity, unknown_tags: int) -> None:
    check_counts(type(entity), memoryview(encode(entity)))
    if type(entity).__flexible__:
        tagged = encode_with_unknown_tags(entity, unknown_tags)
        check_counts(type(entity), memoryview(tagged))


@pytest.mark.parametrize(
    "begun",
    [
        _FETCH_15 + _VERY_MANY,
        _FETCH_15_OF_A_TOPIC + _VERY_MANY,
        _FETCH_11 + b"\x7f\xff\xff\xff",
    ],
)
def test_a_request_that_claims_very_much_does_not_end_the_process(begun: bytes) -> None:
    """It ended it without an exception: kio asked for 32 GB."""
    script = f"""
from leader_hints.faults.refusal import read_asked
from leader_hints.wire.errors import WireError
try:
    read_asked(memoryview({framed(begun)!r}))
except WireError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "do not fit" in run.stdout


def test_a_tagged_field_that_claims_very_much_is_refused() -> None:
    with pytest.raises(WireError, match="do not fit"):
        # Fetch 16: no topics, and the endpoints of very many nodes.
        read_response(
            ApiKey.FETCH, 16, memoryview(framed(bytes(15) + b"\x01\x01\x00\x05" + _VERY_MANY))
        )
    with pytest.raises(WireError, match="do not fit"):
        read_request(memoryview(framed(_FETCH_15 + _VERY_MANY)))


@pytest.mark.parametrize(
    "begun",
    [_FETCH_15 + b"\0", _FETCH_15_OF_A_TOPIC + bytes(2), _FETCH_11 + b"\xff\xff\xff\xff"],
    ids=["topics", "partitions", "of an old version"],
)
def test_an_array_that_is_null_and_must_not_be_is_refused(begun: bytes) -> None:
    """kio reads None there, over which nobody can go."""
    with pytest.raises(WireError, match="null that must not be"):
        read_request(memoryview(framed(begun)))


@pytest.mark.parametrize("topics", ["00", "ffffffff"])
def test_an_array_that_may_be_null_is_read(topics: str) -> None:
    version, flexible = (9, b"\0") if topics == "00" else (1, b"")
    header = struct.pack(">hhih", ApiKey.METADATA, version, 1, -1) + flexible
    body = bytes.fromhex(topics) + (bytes(4) if flexible else b"")
    assert read_request(memoryview(framed(header + body))).topics is None
