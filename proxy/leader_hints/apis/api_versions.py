"""ApiVersions: the versions that a broker accepts, and the client's software.

Request v0 to v2: empty. v3 (KIP-511, flexible): client software name and version. v4 (KIP-1022)
is the same; a broker that lacks it answers UNSUPPORTED_VERSION.
Response v0: error, array of (key, min, max). v1 adds throttle time; v2 is v1. v3 is flexible:
compact array with tags, then tagged features. The header is always v0.
An answer UNSUPPORTED_VERSION has the body of v0, whatever version was asked (KIP-511), and names
ApiVersions alone: nothing in it is raised.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.header import read_request_header
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed, WireError
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string
from leader_hints.wire.writer import frame as written_frame

_MAXIMUM = struct.Struct(">h")
#: Key, minimum and maximum, which stands behind so many bytes.
_RANGE = struct.Struct(">hhh")
_MAXIMUM_AT = 4
_COUNT = struct.Struct(">i")
#: Error, count, and the one entry: key, minimum, maximum.
_ENTRY = struct.Struct(">hihhh")
#: From this version on, requests name the client's software (KIP-511).
SOFTWARE_FROM = 3
#: In front of a response's body: size prefix and correlation id.
BODY = 8
#: APIs of a response: ten times as many as Kafka has. They are read at once.
_MOST = 1000


class ClientSoftware(NamedTuple):
    """The software that a client reports (KIP-511), such as apache-kafka-java, 3.9.1."""

    name: str
    version: str


class VersionRange(NamedTuple):
    """The versions of an API that a broker takes; ``at`` is where the maximum stands."""

    minimum: int
    maximum: int
    at: int


def read_software(frame: memoryview) -> ClientSoftware:
    """Return the client software in an ApiVersions request of v3 or later.

    :raises WireError: the request is not well formed.
    """
    reader = Reader(frame, read_request_header(frame).body)
    return ClientSoftware(reader.compact_string() or "", reader.compact_string() or "")


def write_request_body(software: ClientSoftware) -> bytes:
    """Return the body of a request v3."""
    return compact_string(software.name) + compact_string(software.version) + b"\0"


def read_ranges(reader: Reader, version: int) -> dict[int, VersionRange]:
    """Return what a response offers, by API key; empty for an error answer.

    ``reader`` stands at the body; ``version`` is the one asked for.

    :raises WireError: the response is not well formed.
    """
    if reader.int16() != ErrorCode.NONE:
        return {}
    flexible = version >= 3
    count = reader.compact_array(7) if flexible else reader.array(6)
    if count > _MOST:
        raise Malformed(f"versions of {count} APIs")
    ranges = {}
    for _ in range(count):
        at = reader.at
        reader.skip(_RANGE.size)
        key, minimum, maximum = _RANGE.unpack_from(reader.buffer, at)
        ranges[key] = VersionRange(minimum, maximum, at + _MAXIMUM_AT)
        if flexible:
            reader.skip_tags()
    # To the end: of a response that cannot be read as a whole nothing may be changed.
    if version >= 1:
        reader.int32()
    if flexible:
        reader.skip_tags()
    reader.done()
    return ranges


def raise_maxima(
    frame: memoryview, ranges: Mapping[int, VersionRange], raised: Mapping[int, int]
) -> None:
    """Write the maxima of ``raised`` into the response in place.

    Only entries that the broker sent are changed; the frame's size stays.
    """
    for key, maximum in raised.items():
        if key in ranges:
            _MAXIMUM.pack_into(frame, ranges[key].at, maximum)


def fixed_refusal(frame: memoryview) -> bytes | None:
    """Return what stands for a refusal of the asked version that no client could read.

    librdkafka's mock cluster writes a body of its own there. ``None``: the response is no such
    refusal, or has the body of v0, as it must.
    """
    reader = Reader(frame, BODY)
    try:
        if reader.int16() != ErrorCode.UNSUPPORTED_VERSION:
            return None
        reader.skip(6 * reader.array(6))
        reader.done()
    except WireError:
        entry = _ENTRY.pack(ErrorCode.UNSUPPORTED_VERSION, 1, ApiKey.API_VERSIONS, 0, 0)
        return written_frame(bytes(frame[4:BODY]) + entry)
    return None


def withhold(frame: memoryview, version: int, newest: Mapping[int, int]) -> list[Splice]:
    """Return the splices that take from a whole response what is not to be offered.

    ``newest``: by API key the newest version that stays; other APIs are taken out, and so are
    those that the broker takes in newer versions only. Nothing is changed in an error answer.

    :raises WireError: the response is not well formed.
    """
    reader = Reader(frame, BODY)
    if reader.int16() != ErrorCode.NONE:
        return []
    flexible = version >= 3
    count_at = reader.at
    count = reader.compact_array(7) if flexible else reader.array(6)
    entries_at = reader.at
    splices = []
    left = count
    for _ in range(count):
        start = reader.at
        reader.skip(_RANGE.size)
        key, minimum, maximum = _RANGE.unpack_from(reader.buffer, start)
        if flexible:
            reader.skip_tags()
        most = newest.get(key, -1)
        if minimum > most:
            left -= 1
            splices.append(Splice(start, reader.at, b""))
        elif maximum > most:
            maximum_at = start + _MAXIMUM_AT
            splices.append(Splice(maximum_at, start + _RANGE.size, _MAXIMUM.pack(most)))
    if left != count:
        written = write_uvarint(left + 1) if flexible else _COUNT.pack(left)
        splices.insert(0, Splice(count_at, entries_at, written))
    return splices
