"""Metadata 10 to 12 for brokers that accept less, or whose topics have no ids (KIP-516).

Down: topics go by name alone, which every version knows; what a client asks by id is named first.
Up: ids beside the names. v10 and older say besides what a client may do to the cluster; v11 and
newer do not, so a client that wants to know asks DescribeCluster.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.header import header_as
from leader_hints.apis.metadata import BY_ID_FROM, CLUSTER_OPERATIONS_UNTIL, TOPIC_IDS_FROM, ZERO_ID
from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.scatter import Scatter
from leader_hints.wire.steps import ENTRIES_AT_ONCE, Steps
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string

#: Error, partition, leader, leader epoch.
_PARTITION = 14
#: The same with three arrays and tags, each empty.
_SMALLEST_PARTITION = _PARTITION + 4
_SMALLEST_BROKER, _SMALLEST_TOPIC = 11, 10
#: Topics that one request asks for: more would stop the event loop for longer than others may wait.
_MOST_ASKED = 50_000
#: Brokers that one step passes over, field by field.
_BROKERS_AT_ONCE = 100
#: As how many of what is done in one step a topic of a response counts, whose id is made; and how
#: many of its partitions count as one, which are passed over.
_TOPIC_COUNTS, _PARTITIONS_FOR_ONE = 2, 2
_SIZE = struct.Struct(">i")
_ERROR = struct.Struct(">h")
#: What precedes the id of a topic that a broker does not know: the error, no name.
_BEFORE_UNKNOWN = _ERROR.pack(ErrorCode.UNKNOWN_TOPIC_ID) + compact_string(None)
#: And what follows it: not internal, no partitions, operations that were not asked for (the
#: smallest number), no tags.
_UNKNOWN = b"\0\1" + struct.pack(">i", -(1 << 31)) + b"\0"

#: Bytes of memory that an id takes, and one that is found by its name.
_ID_MEMORY, _NAMED_MEMORY = 64, 192

#: Returns a topic's id, from the cluster's id and the topic's name.
MakeId = Callable[[str, str], bytes]


class AskedById(NamedTuple):
    """Topics that a client asked for by id.

    ``ids``: by the name under which the broker is asked. ``unknown``: ids that have no name, for
    which it is not asked.
    """

    ids: Mapping[str, bytes]
    unknown: tuple[bytes, ...]

    def size(self, *, named: bool) -> int:
        """Return how many bytes of memory it takes, roughly; with the ids that are ``named``."""
        return _ID_MEMORY * len(self.unknown) + (_NAMED_MEMORY * len(self.ids) if named else 0)


def request_down(
    original: memoryview, asked: int, version: int, name: Callable[[bytes], str | None]
) -> Steps[tuple[list[memoryview | bytes], AskedById]]:
    """Return a whole request of v10 to v12 as ``version``, v9 to v12, by names, in steps.

    In pieces: names may have megabytes, and to join all of them takes long.

    Brokers go by an id where there is one, whatever name is beside it (Java sends an empty one),
    and create no topic then.

    ``name``: returns the name for an id, ``None`` where it is not known.

    :raises WireError: the request is not well formed.
    """
    header, body = header_as(original, version)
    reader = Reader(original, body)
    ids: dict[str, bytes] = {}
    unknown: list[bytes] = []
    pieces: list[memoryview | bytes] = []
    entries: list[bytes] = []
    prefix = ZERO_ID if version >= TOPIC_IDS_FROM else b""
    count = reader.nullable_compact_array(len(ZERO_ID) + 2)
    if count > _MOST_ASKED:
        raise Malformed(f"{count} topics")
    for number in range(1, count + 1):
        if not number % ENTRIES_AT_ONCE:
            pieces.append(b"".join(entries))
            entries.clear()
            yield
        topic_id, text = reader.uuid(), reader.clients_string()
        reader.skip_tags()
        if text is None and asked < BY_ID_FROM:
            raise Malformed(f"topic without a name in v{asked}")
        if text is None or (topic_id != ZERO_ID and asked >= BY_ID_FROM):
            text = name(topic_id)
            if text is None:
                unknown.append(topic_id)
                continue
            ids[text] = topic_id
        entries.append(prefix + compact_string(text) + b"\0")
    topics = b"\0" if count < 0 else write_uvarint(count - len(unknown) + 1)
    creates = reader.take(1)
    flags = b"\0" if ids or unknown else creates
    cluster = reader.take(1) if asked <= CLUSTER_OPERATIONS_UNTIL else b"\0"
    flags += (cluster if version <= CLUSTER_OPERATIONS_UNTIL else b"") + reader.take(1)
    # What stands behind is nobody's: librdkafka, asking for all topics, writes three bytes too
    # many, and brokers do not look.
    reader.skip_tags()
    pieces.append(b"".join((*entries, flags, b"\0")))
    head = b"".join((header, topics))
    size = len(head) + sum(map(len, pieces))
    return [_SIZE.pack(size) + head, *pieces], AskedById(ids, tuple(unknown))


def is_refusal(response: memoryview) -> bool:
    """Whether a whole response, of v9 to v12, refuses its request: then it lists no broker.

    A broker refuses a request as a whole also to clients that it does not serve.
    """
    reader = Reader(response, 8)
    reader.skip_tags()
    reader.int32()
    return not reader.compact_array(_SMALLEST_BROKER)


def response_up(
    original: memoryview, version: int, asked: int, by_id: AskedById, make_id: MakeId
) -> Steps[list[memoryview | bytes]]:
    """Return a whole response of ``version``, v9 to v12, as ``asked``, v10 to v12, in pieces.

    In steps: a client may ask for all topics of a cluster.

    Every topic without an error has the id that it was asked by, or the one that ``make_id`` makes.
    With an error it keeps what id there is; one that was asked by id has that and no name, since a
    client that may not describe a topic is not to learn of its name. Partitions are views of
    ``original`` where they are many.

    :raises WireError: the response is not well formed.
    """
    reader = Reader(original, 8)
    reader.skip_tags()
    reader.int32()
    for number in range(1, reader.compact_array(_SMALLEST_BROKER) + 1):
        if not number % _BROKERS_AT_ONCE:
            yield
        reader.int32()
        reader.skip_compact()
        reader.int32()
        reader.skip_compact()
        reader.skip_tags()
    cluster_id = reader.compact_string() or ""
    reader.int32()
    scatter = Scatter()
    scatter.out += original[4 : reader.at]
    count = reader.compact_array(_SMALLEST_TOPIC)
    scatter.out += write_uvarint(count + len(by_id.unknown) + 1)
    room = ENTRIES_AT_ONCE
    for _ in range(count):
        if room <= 0:
            yield
            room = ENTRIES_AT_ONCE
        room -= _TOPIC_COUNTS
        error, name = reader.int16(), reader.compact_string()
        topic_id = reader.uuid() if version >= TOPIC_IDS_FROM else ZERO_ID
        if error and name is not None and name in by_id.ids:
            topic_id, name = by_id.ids[name], None
            if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not error and name is not None:
            topic_id = by_id.ids.get(name) or make_id(cluster_id, name)
        scatter.out += _ERROR.pack(error) + compact_string(name) + topic_id
        at = reader.at
        room = yield from _skip_topic(reader, room)
        scatter.passed(original[at : reader.at])
    if by_id.unknown:
        # Joined at once: a client may ask for thousands, and nothing else goes on meanwhile.
        scatter.out += _BEFORE_UNKNOWN + (_UNKNOWN + _BEFORE_UNKNOWN).join(by_id.unknown) + _UNKNOWN
    operations = reader.take(4) if version <= CLUSTER_OPERATIONS_UNTIL else b""
    if asked <= CLUSTER_OPERATIONS_UNTIL:
        scatter.out += operations
    at = reader.at
    reader.skip_tags()
    scatter.out += original[at : reader.at]
    reader.done()
    return scatter.finish()


def _skip_topic(reader: Reader, room: int) -> Steps[int]:
    """Pass over what stands behind a topic's id, in steps.

    ``room``: for how much this step has room; return the same of the last one.
    """
    reader.int8()
    left = reader.compact_array(_SMALLEST_PARTITION)
    while left:
        if room <= 0:
            yield
            room = ENTRIES_AT_ONCE
        some = min(left, room * _PARTITIONS_FOR_ONE)
        _skip_partitions(reader, some)
        left -= some
        room -= some // _PARTITIONS_FOR_ONE
    reader.int32()
    reader.skip_tags()
    return room


def _skip_partitions(reader: Reader, count: int) -> None:
    """Pass over so many partitions of a topic."""
    buffer, at, end = reader.buffer, reader.at, reader.end
    for _ in range(count):
        # Written out: clusters have 100,000 partitions, and nothing else goes on meanwhile.
        at += _PARTITION
        for _ in range(3):
            if at >= end:
                break
            size = buffer[at]
            if size > 127:
                reader.at = at
                size = reader.uvarint()
                at = reader.at - 1
            at += 1 + 4 * (size - 1 if size else 0)
        if at >= end:
            raise Malformed("partitions go on beyond the response")
        if buffer[at]:
            reader.at = at
            reader.skip_tags()
            at = reader.at
        else:
            at += 1
    reader.at = at
