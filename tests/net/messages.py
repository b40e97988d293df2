"""Requests and responses of the protocol, packed by hand, sharing no code with the proxy."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA, SASL_HANDSHAKE, API_VERSIONS = 0, 1, 2, 3, 17, 18
NOT_LEADER, FENCED, UNKNOWN_EPOCH, UNSUPPORTED_VERSION = 6, 74, 75, 35
TOPIC_ID = bytes(range(16))
_TAGS = b"\0"
_FLEXIBLE_FROM = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, API_VERSIONS: 3}


class Broker(NamedTuple):
    """A broker as Metadata shows it."""

    node: int
    host: str
    port: int


class Partition(NamedTuple):
    """A partition as Metadata shows it."""

    number: int
    leader: int
    epoch: int
    in_sync: tuple[int, ...] = (1,)


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(value: str | None) -> bytes:
    """A compact nullable string."""
    return b"\0" if value is None else varint(len(value.encode()) + 1) + value.encode()


def old_text(value: str) -> bytes:
    """A string of the old encoding."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def array(elements: Iterable[bytes]) -> bytes:
    """A compact array."""
    packed = list(elements)
    return varint(len(packed) + 1) + b"".join(packed)


def framed(payload: bytes) -> bytes:
    """The size before the payload."""
    return struct.pack(">i", len(payload)) + payload


def request(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A whole request of the client "c"."""
    tags = _TAGS if version >= _FLEXIBLE_FROM.get(key, 1 << 15) else b""
    return framed(struct.pack(">hhi", key, version, correlation) + old_text("c") + tags + body)


def response(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A whole response."""
    flexible = version >= _FLEXIBLE_FROM.get(key, 1 << 15) and key != API_VERSIONS
    return framed(struct.pack(">i", correlation) + (_TAGS if flexible else b"") + body)


def produce_request(
    version: int, correlation: int, *, acks: int = 1, records: bytes = b"records"
) -> bytes:
    """A Produce request, v9 or v10, for partition 0 of topic t."""
    partition = struct.pack(">i", 0) + varint(len(records) + 1) + records + _TAGS
    topic = text("t") + array([partition]) + _TAGS
    body = text(None) + struct.pack(">hi", acks, 1000) + array([topic]) + _TAGS
    return request(PRODUCE, version, correlation, body)


def produce_response(correlation: int, errors: Mapping[int, int]) -> bytes:
    """A Produce response v9 or v10 with an error code for each partition of topic t."""
    partitions = [
        struct.pack(">ihqqq", number, error, -1, -1, -1) + array([]) + text(None) + _TAGS
        for number, error in errors.items()
    ]
    topic = text("t") + array(partitions) + _TAGS
    return response(PRODUCE, 9, correlation, array([topic]) + struct.pack(">i", 0) + _TAGS)


def fetch_request(version: int, correlation: int, *, epoch: int) -> bytes:
    """A full Fetch request, v15 or v16, for partition 0 of TOPIC_ID."""
    partition = struct.pack(">iiqiqi", 0, epoch, 0, -1, -1, 1 << 20) + _TAGS
    topic = TOPIC_ID + array([partition]) + _TAGS
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    return request(
        FETCH, version, correlation, head + array([topic]) + array([]) + text("") + _TAGS
    )


def fetch_response(correlation: int, error: int = 0, records: bytes = b"") -> bytes:
    """A Fetch response v13 to v16 for partition 0 of TOPIC_ID."""
    partition = struct.pack(">ihqqq", 0, error, 9, 9, 0) + array([]) + struct.pack(">i", -1)
    partition += varint(len(records) + 1) + records + _TAGS
    topic = TOPIC_ID + array([partition]) + _TAGS
    body = struct.pack(">ihi", 0, 0, 0) + array([topic]) + _TAGS
    return response(FETCH, 15, correlation, body)


def large_fetch_response(correlation: int, partitions: Sequence[tuple[int, int]]) -> bytes:
    """A Fetch response v13 to v16 for partitions of TOPIC_ID: error, and bytes of records."""
    packed = [
        struct.pack(">ihqqq", number, error, 9, 9, 0)
        + array([])
        + struct.pack(">i", -1)
        + varint(size + 1)
        + bytes([number + 1]) * size
        + _TAGS
        for number, (error, size) in enumerate(partitions)
    ]
    body = struct.pack(">ihi", 0, 0, 0) + array([TOPIC_ID + array(packed) + _TAGS]) + _TAGS
    return response(FETCH, 15, correlation, body)


def fetch_response_by_name(correlation: int) -> bytes:
    """A Fetch response v12 without partitions."""
    return response(FETCH, 12, correlation, struct.pack(">ihi", 0, 0, 0) + array([]) + _TAGS)


def api_versions_request(correlation: int, version: str = "3.9.1") -> bytes:
    """An ApiVersions request v3 of a Java client of ``version``."""
    body = text("apache-kafka-java") + text(version) + _TAGS
    return request(API_VERSIONS, 3, correlation, body)


def api_versions_response(correlation: int, version: int, maxima: Mapping[int, int]) -> bytes:
    """What a broker offers, by API key."""
    ranges = [struct.pack(">hhh", key, 0, maximum) for key, maximum in maxima.items()]
    if version < 3:
        body = struct.pack(">hi", 0, len(ranges)) + b"".join(ranges)
    else:
        entries = array(entry + _TAGS for entry in ranges)
        body = struct.pack(">h", 0) + entries + struct.pack(">i", 0) + _TAGS
    return response(API_VERSIONS, version, correlation, body)


def unsupported_api_versions(correlation: int) -> bytes:
    """The answer to a version of ApiVersions that a broker lacks: the body is that of v0."""
    body = struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, 2)
    return response(API_VERSIONS, 0, correlation, body)


def metadata_request(version: int, correlation: int) -> bytes:
    """A Metadata request for all topics, v11 or v12."""
    return request(METADATA, version, correlation, b"\0\1\0\0")


def metadata_response(
    correlation: int,
    version: int,
    brokers: Iterable[Broker],
    topics: Mapping[str, Iterable[Partition]],
    *,
    cluster: str = "k",
    ids: Mapping[str, bytes] | None = None,
    errors: Mapping[str, int] | None = None,
) -> bytes:
    """A Metadata response, v9 to v12. ``errors``: topics that are reported with an error."""
    ids, errors = ids or {}, errors or {}
    body = struct.pack(">i", 0)
    body += array(
        struct.pack(">i", b.node) + text(b.host) + struct.pack(">i", b.port) + text(None) + _TAGS
        for b in brokers
    )
    body += text(cluster) + struct.pack(">i", 1)
    body += array(
        struct.pack(">h", errors.get(name, 0))
        + text(name)
        + (ids.get(name, bytes(16)) if version >= 10 else b"")
        + b"\0"
        + array(map(_partition, partitions))
        + struct.pack(">i", 0)
        + _TAGS
        for name, partitions in topics.items()
    )
    body += (struct.pack(">i", 0) if version <= 10 else b"") + _TAGS
    return response(METADATA, version, correlation, body)


def _partition(shown: Partition) -> bytes:
    replicas = array([struct.pack(">i", 1)])
    head = struct.pack(">hiii", 0, shown.number, shown.leader, shown.epoch)
    in_sync = array(struct.pack(">i", node) for node in shown.in_sync)
    return head + replicas + in_sync + array([]) + _TAGS


def list_offsets_response(correlation: int, errors: Mapping[tuple[str, int], int]) -> bytes:
    """A ListOffsets response v4 with an error code for each partition."""
    body = struct.pack(">ii", 0, len(errors))
    for (name, number), error in errors.items():
        body += old_text(name) + struct.pack(">iihqqi", 1, number, error, -1, 7, 0)
    return response(LIST_OFFSETS, 4, correlation, body)
