"""The messages of the world, packed and read by hand: no code is shared with the proxy."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

from tests.world.model.broker import ShownTopic
from tests.world.model.releases import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, PRODUCE
from tests.world.model.sessions import Asked, Place

_FLEXIBLE_FROM = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, API_VERSIONS: 3}
#: Fetch names topics by ids from here on.
IDS_FROM = 13
#: Records are of no interest here.
_RECORDS = b"records"
#: But of a producer with an id, else its errors are not settled: a batch's head with magic 2.
_BATCH = struct.pack(">qiibIhiqqqhii", 0, 49, -1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0)
_LEADER_HINT_TAG = {PRODUCE: 0, FETCH: 1}
#: API key, version, correlation id, and the length of the client id.
_HEAD = struct.Struct(">hhih")
#: Bodies that are remembered of each kind: the same are packed and read again and again.
_REMEMBERED = 1024
#: Nearly all varints are one byte.
_BYTES = [bytes([value]) for value in range(128)]


@cache
def _struct(layout: str) -> struct.Struct:
    return struct.Struct(">" + layout)


class Reader:
    """Reads one message from its beginning to its end."""

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self.data = data
        self.at = 0
        self.flexible = flexible

    def unpack(self, layout: str) -> tuple[int, ...]:
        """Read numbers."""
        packed = _struct(layout)
        values = packed.unpack_from(self.data, self.at)
        self.at += packed.size
        return values

    def number(self, layout: str) -> int:
        """Read one number."""
        return self.unpack(layout)[0]

    def take(self, size: int) -> bytes:
        """Read bytes."""
        data = self.data[self.at : self.at + size]
        assert len(data) == size
        self.at += size
        return data

    def varint(self) -> int:
        """Read an unsigned varint."""
        byte = self.data[self.at]
        self.at += 1
        value = byte & 127
        shift = 7
        while byte > 127:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
        return value

    def text(self) -> str | None:
        """Read a nullable string."""
        size = self.varint() - 1 if self.flexible else self.number("h")
        return None if size < 0 else self.take(size).decode()

    def data_or_none(self) -> bytes | None:
        """Read nullable bytes."""
        size = self.varint() - 1 if self.flexible else self.number("i")
        return None if size < 0 else self.take(size)

    def count(self) -> int:
        """Read the length of an array; 0 where it is null."""
        return max(self.varint() - 1 if self.flexible else self.number("i"), 0)

    def tags(self) -> dict[int, bytes]:
        """Read a tag section, if the version has any."""
        tags: dict[int, bytes] = {}
        if not self.flexible:
            return tags
        if not self.data[self.at]:
            self.at += 1
            return tags
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            tags[tag] = self.take(size)
        return tags


class Writer:
    """Packs by one of the two encodings."""

    def __init__(self, *, flexible: bool) -> None:
        self.flexible = flexible

    def text(self, value: str | None) -> bytes:
        """A nullable string."""
        data = None if value is None else value.encode()
        if self.flexible:
            return b"\0" if data is None else varint(len(data) + 1) + data
        return struct.pack(">h", -1) if data is None else struct.pack(">h", len(data)) + data

    def data(self, value: bytes) -> bytes:
        """Bytes."""
        return (varint(len(value) + 1) if self.flexible else struct.pack(">i", len(value))) + value

    def array(self, elements: Iterable[bytes]) -> bytes:
        """An array."""
        packed = [*elements]
        size = varint(len(packed) + 1) if self.flexible else struct.pack(">i", len(packed))
        return size + b"".join(packed)

    @property
    def tags(self) -> bytes:
        """No tags."""
        return b"\0" if self.flexible else b""


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 128:
        return _BYTES[value]
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _flexible(key: int, version: int) -> bool:
    return version >= _FLEXIBLE_FROM[key]


def frames(buffer: bytearray, data: bytes) -> list[bytes]:
    """Return the whole messages that have arrived with ``data``, without their sizes.

    ``buffer``: what has arrived before; the rest is kept there.
    """
    if not buffer and len(data) >= 4 and len(data) == 4 + int.from_bytes(data[:4]):
        return [data[4:]]
    buffer += data
    whole = []
    while len(buffer) >= 4:
        end = 4 + struct.unpack_from(">i", buffer)[0]
        if len(buffer) < end:
            break
        whole.append(bytes(buffer[4:end]))
        del buffer[:end]
    return whole


def _framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Request(NamedTuple):
    """A request, read as far as its header."""

    key: int
    version: int
    correlation: int
    client_id: str | None
    reader: Reader


def read_request(payload: bytes) -> Request:
    """Read the header of a request."""
    key, version, correlation, size = _HEAD.unpack_from(payload)
    reader = Reader(payload, flexible=_flexible(key, version))
    reader.at = _HEAD.size + max(size, 0)
    client_id = None if size < 0 else payload[_HEAD.size : reader.at].decode()
    reader.tags()
    return Request(key, version, correlation, client_id, reader)


def _request(key: int, version: int, correlation: int, client_id: str, body: bytes) -> bytes:
    encoded, tags = client_id.encode(), b"\0" if _flexible(key, version) else b""
    return _framed(_HEAD.pack(key, version, correlation, len(encoded)) + encoded + tags + body)


def _response(key: int, version: int, correlation: int, body: bytes) -> bytes:
    tags = b"\0" if _flexible(key, version) and key != API_VERSIONS else b""
    return _framed(struct.pack(">i", correlation) + tags + body)


def _body(key: int, version: int, payload: bytes) -> Reader:
    reader = Reader(payload, flexible=_flexible(key, version))
    reader.number("i")
    if key != API_VERSIONS:
        reader.tags()
    return reader


# ApiVersions.


def versions_request(correlation: int, client_id: str, name: str, version: str) -> bytes:
    """ApiVersions v3, by a client that says what it is."""
    writer = Writer(flexible=True)
    body = writer.text(name) + writer.text(version) + writer.tags
    return _request(API_VERSIONS, 3, correlation, client_id, body)


def versions_response(correlation: int, version: int, maxima: Mapping[int, int]) -> bytes:
    """What a broker takes."""
    writer = Writer(flexible=_flexible(API_VERSIONS, version))
    ranges = (struct.pack(">hhh", key, 0, most) + writer.tags for key, most in maxima.items())
    throttle = struct.pack(">i", 0) if version >= 1 else b""
    body = struct.pack(">h", 0) + writer.array(ranges) + throttle + writer.tags
    return _response(API_VERSIONS, version, correlation, body)


def read_versions(payload: bytes) -> dict[int, int]:
    """Read ApiVersions v3: maxima by API key."""
    reader = _body(API_VERSIONS, 3, payload)
    reader.number("h")
    maxima = {}
    for _ in range(reader.count()):
        key, _, maxima[key] = reader.unpack("hhh")
        reader.tags()
    return maxima


# Metadata.


class Endpoint(NamedTuple):
    """Where a broker is."""

    host: str
    port: int


def metadata_request(
    version: int, correlation: int, client_id: str, names: Sequence[str | None] | None
) -> bytes:
    """Metadata of some topics, ``None``: of all. A topic without a name is one that has an id."""
    writer = Writer(flexible=True)
    no_id = bytes(16) if version >= 10 else b""
    topics = (
        b"\0"
        if names is None
        else writer.array(no_id + writer.text(name) + writer.tags for name in names)
    )
    more = b"\0\0" if version <= 10 else b"\0"
    return _request(METADATA, version, correlation, client_id, topics + b"\0" + more + writer.tags)


def asks_for_all(request: Request) -> bool:
    """Whether a Metadata request is for all topics."""
    return read_metadata_request(request._replace(reader=copy(request.reader))) is None


def read_metadata_request(request: Request) -> list[str] | None:
    """Return the topics that are asked for, ``None`` for all; "" has no name."""
    reader = request.reader
    count = reader.varint() - 1
    if count < 0:
        return None
    names = []
    for _ in range(count):
        if request.version >= 10:
            reader.take(16)
        names.append(reader.text() or "")
        reader.tags()
    return names


def metadata_response(
    correlation: int,
    version: int,
    cluster: str | None,
    endpoints: Mapping[int, Endpoint],
    topics: Iterable[ShownTopic],
) -> bytes:
    """Metadata v9 to v12. One that refuses the request names no cluster, and lists nothing."""
    body = _metadata_body(version, cluster, tuple(endpoints.items()), tuple(topics))
    return _response(METADATA, version, correlation, body)


@lru_cache(_REMEMBERED)
def _metadata_body(
    version: int,
    cluster: str | None,
    endpoints: tuple[tuple[int, Endpoint], ...],
    topics: tuple[ShownTopic, ...],
) -> bytes:
    writer = Writer(flexible=True)
    body = struct.pack(">i", 0)
    body += writer.array(
        struct.pack(">i", node)
        + writer.text(endpoint.host)
        + struct.pack(">i", endpoint.port)
        + writer.text(None)
        + writer.tags
        for node, endpoint in endpoints
    )
    first = min((node for node, _ in endpoints), default=-1)
    body += writer.text(cluster) + struct.pack(">i", first)
    body += writer.array(_topic(writer, version, topic) for topic in topics)
    return body + (struct.pack(">i", 0) if version <= 10 else b"") + writer.tags


def _topic(writer: Writer, version: int, topic: ShownTopic) -> bytes:
    partitions = (
        struct.pack(">hiii", partition.error, number, *partition.leader)
        + writer.array(struct.pack(">i", node) for node in partition.replicas)
        + writer.array(struct.pack(">i", node) for node in partition.in_sync)
        + writer.array(())
        + writer.tags
        for number, partition in enumerate(topic.partitions)
    )
    return (
        struct.pack(">h", topic.error)
        + writer.text(topic.name)
        + ((topic.id or bytes(16)) if version >= 10 else b"")
        + b"\0"
        + writer.array(partitions)
        + struct.pack(">i", 0)
        + writer.tags
    )


class SeenPartition(NamedTuple):
    """A partition as a client reads it from Metadata."""

    error: int
    number: int
    leader: int
    epoch: int
    replicas: tuple[int, ...]


class SeenTopic(NamedTuple):
    """A topic as a client reads it from Metadata."""

    error: int
    name: str
    id: bytes
    partitions: list[SeenPartition]


def read_metadata(version: int, payload: bytes) -> tuple[dict[int, Endpoint], list[SeenTopic]]:
    """Read Metadata v9 to v12: endpoints by node, and topics."""
    endpoints, topics = _read_metadata(version, payload[4:])
    return endpoints.copy(), topics


@lru_cache(_REMEMBERED)
def _read_metadata(version: int, body: bytes) -> tuple[dict[int, Endpoint], list[SeenTopic]]:
    reader = Reader(body, flexible=True)
    reader.tags()
    reader.number("i")
    endpoints = {}
    for _ in range(reader.count()):
        node = reader.number("i")
        host = reader.text() or ""
        endpoints[node] = Endpoint(host, reader.number("i"))
        reader.text()
        reader.tags()
    reader.text()
    reader.number("i")
    topics = []
    for _ in range(reader.count()):
        error = reader.number("h")
        name = reader.text() or ""
        topic_id = reader.take(16) if version >= 10 else bytes(16)
        reader.number("b")
        partitions = []
        for _ in range(reader.count()):
            of, number, leader, epoch = reader.unpack("hiii")
            replicas = reader.unpack(f"{reader.count()}i")
            partitions.append(SeenPartition(of, number, leader, epoch, replicas))
            for _ in range(2):
                reader.take(4 * reader.count())
            reader.tags()
        reader.number("i")
        reader.tags()
        topics.append(SeenTopic(error, name, topic_id, partitions))
    return endpoints, topics


# Produce and Fetch.


class Result(NamedTuple):
    """What came of one partition. ``hint``: leader and epoch of CurrentLeader. ``preferred``: the
    preferred read replica, -1: none. ``records``: whether there were any.
    """

    place: Place
    error: int
    hint: tuple[int, int] | None = None
    preferred: int = -1
    records: bool = False


@dataclass(slots=True)
class Answer:
    """A Produce or Fetch response. ``error``: of the whole; ``session``: of a Fetch."""

    results: list[Result] = field(default_factory=list)
    endpoints: dict[int, Endpoint] = field(default_factory=dict)
    error: int = 0
    session: int = 0


def _by_topic(places: Iterable[Place]) -> dict[str | bytes, list[int]]:
    topics: dict[str | bytes, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    return topics


def _named(writer: Writer, places: Iterable[Place], pack: Callable[[Place], bytes]) -> bytes:
    return _tagged(writer, places, lambda place: pack(place) + writer.tags)


def _tagged(writer: Writer, places: Iterable[Place], pack: Callable[[Place], bytes]) -> bytes:
    """As :func:`_named`, where ``pack`` packs the tags as well."""
    return writer.array(
        (topic if isinstance(topic, bytes) else writer.text(topic))
        + writer.array(pack((topic, number)) for number in numbers)
        + writer.tags
        for topic, numbers in _by_topic(places).items()
    )


def produce_request(
    version: int,
    correlation: int,
    client_id: str,
    places: Sequence[Place],
    records: bytes = _BATCH,
) -> bytes:
    """Produce v8 to v10 with acks=1, of a producer with an id."""
    body = _produce_request_body(version, tuple(places), records)
    return _request(PRODUCE, version, correlation, client_id, body)


@lru_cache(_REMEMBERED)
def _produce_request_body(version: int, places: tuple[Place, ...], records: bytes) -> bytes:
    writer = Writer(flexible=_flexible(PRODUCE, version))
    body = writer.text(None) + struct.pack(">hi", 1, 1000)
    body += _named(writer, places, lambda place: struct.pack(">i", place[1]) + writer.data(records))
    return body + writer.tags


def read_produce_request(request: Request) -> tuple[Place, ...]:
    """Return the partitions that are written to."""
    reader = request.reader
    return _read_produce_body(reader.data[reader.at :], flexible=reader.flexible)


@lru_cache(_REMEMBERED)
def _read_produce_body(body: bytes, *, flexible: bool) -> tuple[Place, ...]:
    reader = Reader(body, flexible=flexible)
    reader.text()
    reader.unpack("hi")
    places: list[Place] = []
    for _ in range(reader.count()):
        name = reader.text() or ""
        for _ in range(reader.count()):
            places.append((name, reader.number("i")))
            reader.data_or_none()
            reader.tags()
        reader.tags()
    reader.tags()
    return tuple(places)


@dataclass(frozen=True, slots=True)
class Hints:
    """Leaders, as a broker reports them with its errors (KIP-951), and where that is."""

    leaders: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    endpoints: Mapping[int, Endpoint] = field(default_factory=dict)


_NO_HINTS = Hints()


def _tags(writer: Writer, tagged: Mapping[int, bytes]) -> bytes:
    if not writer.flexible:
        return b""
    return varint(len(tagged)) + b"".join(
        varint(tag) + varint(len(data)) + data for tag, data in tagged.items()
    )


def _hint(writer: Writer, key: int, hints: Hints, place: Place) -> bytes:
    """The tags of a partition."""
    leader = hints.leaders.get(place)
    if leader is None:
        return writer.tags
    return _tags(writer, {_LEADER_HINT_TAG[key]: struct.pack(">ii", *leader) + b"\0"})


def _node_endpoints(writer: Writer, hints: Hints) -> bytes:
    """The tags of a response."""
    if not hints.endpoints:
        return writer.tags
    packed = writer.array(
        struct.pack(">i", node)
        + writer.text(endpoint.host)
        + struct.pack(">i", endpoint.port)
        + writer.text(None)
        + writer.tags
        for node, endpoint in hints.endpoints.items()
    )
    return _tags(writer, {0: packed})


def produce_response(
    correlation: int, version: int, errors: Mapping[Place, int], hints: Hints = _NO_HINTS
) -> bytes:
    """Produce v8 to v10."""
    if hints.leaders:
        body = _produced(version, errors, hints)
    else:
        body = _produced_unhinted(version, tuple(errors.items()))
    return _response(PRODUCE, version, correlation, body)


@lru_cache(_REMEMBERED)
def _produced_unhinted(version: int, errors: tuple[tuple[Place, int], ...]) -> bytes:
    return _produced(version, dict(errors), _NO_HINTS)


def _produced(version: int, errors: Mapping[Place, int], hints: Hints) -> bytes:
    writer = Writer(flexible=_flexible(PRODUCE, version))

    def pack(place: Place) -> bytes:
        numbers = struct.pack(">ihqqq", place[1], errors[place], -1, -1, -1)
        rest = writer.array(()) + writer.text(None)
        return numbers + rest + _hint(writer, PRODUCE, hints, place)

    return _tagged(writer, errors, pack) + struct.pack(">i", 0) + _node_endpoints(writer, hints)


def fetch_request(
    version: int,
    correlation: int,
    client_id: str,
    epochs: Mapping[Place, int],
    *,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[Place] = (),
    wait: int = 100,
    size: int = 1 << 16,
    rack: str = "",
) -> bytes:
    """Fetch v10 to v16; ``epochs``: those that the client knows. ``session``: id and epoch.

    ``wait``: for so many milliseconds if there is nothing; ``size``: of a partition's records;
    ``rack``: in which the client is.
    """
    writer = Writer(flexible=_flexible(FETCH, version))
    body = struct.pack(">i", -1) if version < 15 else b""
    body += struct.pack(">iiibii", wait, min(wait, 1), 1 << 20, 0, *session)
    body += _fetched(version, tuple(epochs.items()), tuple(forgotten), size)
    if version >= 11:
        body += writer.text(rack)
    return _request(FETCH, version, correlation, client_id, body + writer.tags)


@lru_cache(_REMEMBERED)
def _fetched(
    version: int, epochs: tuple[tuple[Place, int], ...], forgotten: tuple[Place, ...], size: int
) -> bytes:
    """The partitions that are asked for, and left out from now on."""
    writer = Writer(flexible=_flexible(FETCH, version))
    known = dict(epochs)

    def pack(place: Place) -> bytes:
        last = struct.pack(">i", -1) if version >= 12 else b""
        numbers = struct.pack(">iiq", place[1], known[place], 0)
        return numbers + last + struct.pack(">qi", -1, size)

    return _named(writer, known, pack) + writer.array(
        (topic if isinstance(topic, bytes) else writer.text(topic))
        + writer.array(struct.pack(">i", number) for number in numbers)
        + writer.tags
        for topic, numbers in _by_topic(forgotten).items()
    )


def read_fetch_request(request: Request) -> Asked:
    """Read its session, the epochs by partition, and how long it may wait."""
    reader, version = request.reader, request.version
    if version < 15:
        reader.number("i")
    wait, *_, session, session_epoch = reader.unpack("iiibii")
    epochs, forgotten = _read_fetched(version, reader.data[reader.at :])
    return Asked(session, session_epoch, epochs, forgotten, wait / 1000)


@lru_cache(_REMEMBERED)
def _read_fetched(version: int, body: bytes) -> tuple[Mapping[Place, int], Sequence[Place]]:
    reader = Reader(body, flexible=_flexible(FETCH, version))
    epochs: dict[Place, int] = {}
    for _ in range(reader.count()):
        topic = reader.take(16) if version >= IDS_FROM else reader.text() or ""
        for _ in range(reader.count()):
            number, epoch, _ = reader.unpack("iiq")
            if version >= 12:
                reader.number("i")
            reader.unpack("qi")
            reader.tags()
            epochs[topic, number] = epoch
        reader.tags()
    forgotten: list[Place] = []
    for _ in range(reader.count()):
        topic = reader.take(16) if version >= IDS_FROM else reader.text() or ""
        forgotten += ((topic, number) for number in reader.unpack(f"{reader.count()}i"))
        reader.tags()
    return epochs, forgotten


def fetch_response(
    correlation: int,
    version: int,
    errors: Mapping[Place, int],
    hints: Hints = _NO_HINTS,
    *,
    error: int = 0,
    session: int = 0,
) -> bytes:
    """Fetch v10 to v16. ``error``: of the whole; ``session``: its id."""
    body = struct.pack(">ihi", 0, error, session)
    if hints.leaders:
        body += _fetched_topics(version, errors, hints)
    else:
        body += _fetched_unhinted(version, tuple(errors.items()))
    return _response(FETCH, version, correlation, body)


@lru_cache(_REMEMBERED)
def _fetched_unhinted(version: int, errors: tuple[tuple[Place, int], ...]) -> bytes:
    return _fetched_topics(version, dict(errors), _NO_HINTS)


def _fetched_topics(version: int, errors: Mapping[Place, int], hints: Hints) -> bytes:
    writer = Writer(flexible=_flexible(FETCH, version))

    def pack(place: Place) -> bytes:
        good = not errors[place]
        numbers = struct.pack(">ihqqq", place[1], errors[place], 9 if good else -1, 9, 0)
        replica = struct.pack(">i", -1) if version >= 11 else b""
        records = writer.data(_RECORDS if good else b"")
        rest = writer.array(()) + replica + records
        return numbers + rest + _hint(writer, FETCH, hints, place)

    return _tagged(writer, errors, pack) + _node_endpoints(writer, hints)


def read_answer(key: int, version: int, payload: bytes) -> Answer:
    """Read a Produce or Fetch response as a client does, with its hints."""
    return _read_answer(key, version, payload[4:])


@lru_cache(_REMEMBERED)
def _read_answer(key: int, version: int, body: bytes) -> Answer:
    reader = Reader(body, flexible=_flexible(key, version))
    reader.tags()
    answer = Answer()
    if key == FETCH:
        _, answer.error, answer.session = reader.unpack("ihi")
    for _ in range(reader.count()):
        by_id = key == FETCH and version >= IDS_FROM
        topic = reader.take(16) if by_id else reader.text() or ""
        for _ in range(reader.count()):
            number, error = reader.unpack("ih")
            preferred, records = _rest_of_partition(reader, key, version)
            hint = reader.tags().get(_LEADER_HINT_TAG[key])
            leader = struct.unpack_from(">ii", hint) if hint is not None else None
            result = Result((topic, number), error, leader, preferred, records)
            answer.results.append(result)
        reader.tags()
    if key == PRODUCE:
        reader.number("i")
    endpoints = reader.tags().get(0)
    if endpoints is not None:
        answer.endpoints = _read_endpoints(endpoints)
    assert reader.at == len(reader.data), "bytes behind the end"
    return answer


def _rest_of_partition(reader: Reader, key: int, version: int) -> tuple[int, bool]:
    """Pass over it, and return the preferred replica, and whether there are records."""
    reader.unpack("qqq")
    assert reader.count() == 0
    preferred = -1
    if key == PRODUCE:
        reader.text()
        return preferred, False
    if version >= 11:
        preferred = reader.number("i")
    return preferred, bool(reader.data_or_none())


def _read_endpoints(data: bytes) -> dict[int, Endpoint]:
    reader = Reader(data, flexible=True)
    endpoints = {}
    for _ in range(reader.count()):
        node = reader.number("i")
        host = reader.text() or ""
        endpoints[node] = Endpoint(host, reader.number("i"))
        reader.text()
        reader.tags()
    return endpoints


# ListOffsets.


def read_offsets_request(request: Request) -> dict[Place, int]:
    """Return the epochs by partition that ListOffsets v4 asks about."""
    reader = request.reader
    assert request.version == 4
    reader.unpack("ib")
    epochs: dict[Place, int] = {}
    for _ in range(reader.count()):
        name = reader.text() or ""
        for _ in range(reader.count()):
            number, epoch, _ = reader.unpack("iiq")
            epochs[name, number] = epoch
    return epochs


def offsets_response(correlation: int, errors: Mapping[Place, int]) -> bytes:
    """ListOffsets v4."""
    return _response(LIST_OFFSETS, 4, correlation, _offsets_body(tuple(errors.items())))


@lru_cache(_REMEMBERED)
def _offsets_body(errors: tuple[tuple[Place, int], ...]) -> bytes:
    writer, of = Writer(flexible=False), dict(errors)

    def pack(place: Place) -> bytes:
        return struct.pack(">ihqqi", place[1], of[place], -1, 7, 0)

    return struct.pack(">i", 0) + _named(writer, of, pack)
