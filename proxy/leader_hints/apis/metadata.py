"""Metadata: the leader of each partition, and the addresses of the brokers.

Response v9: flexible. v10 (KIP-516): topic ids. v11: no cluster authorized operations.
v12: a topic's name may be null. Before v9 (brokers older than 2.4) leader epochs are not
reliable, and clients discard them: such brokers give no hints.
Request v9: topics by name, null for all. v10: an id before each name (zero: by name). v11: no
include cluster authorized operations.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string

#: The versions that :func:`read_response` and :func:`write_request_body` know.
OLDEST, NEWEST = 9, 12
#: First version whose answers have topic ids.
TOPIC_IDS_FROM = 10
#: The newest version with the cluster's authorized operations.
CLUSTER_OPERATIONS_UNTIL = 10
#: A topic may be asked for by its id alone.
BY_ID_FROM = 12

#: Error code, which is passed over, partition, leader, leader epoch.
_PARTITION = struct.Struct(">2xiii")
_SMALLEST_PARTITION = _PARTITION.size + 4
#: Bytes that a list of nodes takes, by its length as a varint of one byte.
_NODES = [1 + 4 * max(length - 1, 0) for length in range(0x80)]
_SMALLEST_TOPIC = 10
#: Letters of a topic's name; brokers take 249. What one broker lists is asked of the others, and in
#: ListOffsets no name above 32 KB can be.
_LONGEST_NAME = 1000
#: Partitions that are read in one go: a millisecond or two.
_READ_AT_ONCE = 1000
_SMALLEST_BROKER = 11
#: Brokers of a cluster. They are read at once, and each is connected to.
_MOST_BROKERS = 10_000
#: And of their list, which is compared with the last one at each answer.
_MOST_BROKER_BYTES = 1 << 22

#: Bytes of memory that one answer may cost besides itself, and what its parts cost: a topic for as
#: long as it is known, a partition while its topic is read (it is kept in 8 bytes).
_MOST_MEMORY = 1 << 28
_TOPIC_MEMORY = 1024
_PARTITION_MEMORY = 200

ZERO_ID = bytes(16)
#: In place of an id: the answer has none for any topic, so the topic may have one or not.
UNTOLD_ID = b"?"
#: A topic to ask for by name: whether it exists does not matter, only whether that may be known.
#: Where all topics are asked for, brokers leave out silently what the asker may not see.
ANY_TOPIC = "leader-hints-check"


class Led(NamedTuple):
    """A partition's leader and its epoch; leader -1: there is none, or it is not known."""

    partition: int
    leader: int
    epoch: int


class TopicMetadata(NamedTuple):
    """One topic of an answer. ``id`` is all zeros where the cluster has no topic ids; for those who
    read what others asked for it may be :data:`UNTOLD_ID`.

    ``in_sync``: of each partition the node ids of the replicas in sync, four bytes each, where they
    were asked for.
    """

    error: int
    name: str
    id: bytes
    partitions: tuple[Led, ...]
    in_sync: tuple[bytes, ...] = ()


class Brokers(NamedTuple):
    """The brokers on the listener that was asked, and how they stand in an answer."""

    endpoints: dict[int, Endpoint]
    raw: bytes


NO_BROKERS = Brokers({}, b"\1")


class ClusterMetadata(NamedTuple):
    """The part of a response before its topics.

    ``steps``: its topics; ``None`` where so much of one was read that others may have their turn.
    """

    brokers: Brokers
    cluster_id: str
    steps: Iterator[TopicMetadata | None]

    @property
    def endpoints(self) -> dict[int, Endpoint]:
        """Where the brokers are."""
        return self.brokers.endpoints

    @property
    def tells(self) -> bool:
        """Whether it shows anything of the cluster; where it lists no broker it does not.

        A broker that refuses a request as a whole names no cluster either, and each topic with that
        error (``AbstractRequest.getErrorResponse``). One that has just been started knows nothing
        until the controller (ZooKeeper) has sent it everything, and no topic.
        """
        return bool(self.brokers.endpoints)

    @property
    def topics(self) -> Iterator[TopicMetadata]:
        """Its topics, for those who have the time."""
        return (topic for topic in self.steps if topic is not None)


def write_request_body(version: int, topics: Iterable[str] | None) -> bytes:
    """Return the body of a request for ``topics`` by name; ``None`` asks for all of them.

    Topics are never created by it.
    """
    if topics is None:
        out = b"\0"
    else:
        prefix = ZERO_ID if version >= TOPIC_IDS_FROM else b""
        entries = [prefix + compact_string(name) + b"\0" for name in topics]
        out = write_uvarint(len(entries) + 1) + b"".join(entries)
    auto_create, cluster_operations, topic_operations, tags = b"\0", b"\0", b"\0", b"\0"
    if version > CLUSTER_OPERATIONS_UNTIL:
        cluster_operations = b""
    return out + auto_create + cluster_operations + topic_operations + tags


def read_response(
    reader: Reader, version: int, before: Brokers = NO_BROKERS, *, in_sync: bool = False
) -> ClusterMetadata:
    """Read the answer at the reader's position, which is its body.

    ``before``: the brokers of the last answer. Mostly they are the same ones, and need not be read
    again: a hundred of them take as long as a thousand partitions. ``in_sync``: the replicas in
    sync are to be read, too.

    The topics are read as they are iterated over, so that a large answer can be taken in
    slices; what iterating raises is the same as here.

    :raises WireError: the response is not well formed.
    """
    reader.int32()
    begin, same = reader.at, len(before.raw)
    if reader.buffer[begin : min(begin + same, reader.end)] == before.raw:
        # The list has its own length.
        reader.skip(same)
        brokers = before
    else:
        endpoints = {}
        count = reader.compact_array(_SMALLEST_BROKER)
        if count > _MOST_BROKERS:
            raise Malformed(f"{count} brokers")
        for _ in range(count):
            node, host = reader.int32(), reader.compact_string() or ""
            endpoints[node] = Endpoint(host, reader.int32(), reader.compact_string())
            reader.skip_tags()
            if reader.at - begin > _MOST_BROKER_BYTES:
                raise Malformed(f"a list of {count} brokers that is longer than any")
        brokers = Brokers(endpoints, bytes(reader.buffer[begin : reader.at]))
    cluster_id = reader.compact_string() or ""
    reader.int32()
    return ClusterMetadata(brokers, cluster_id, _read_topics(reader, version, in_sync=in_sync))


def _read_topics(reader: Reader, version: int, *, in_sync: bool) -> Iterator[TopicMetadata | None]:
    count = reader.compact_array(_SMALLEST_TOPIC)
    if count * _TOPIC_MEMORY > _MOST_MEMORY:
        raise Malformed(f"Metadata of {count} topics needs too much memory")
    for _ in range(count):
        error, name = reader.int16(), reader.compact_string() or ""
        if len(name) > _LONGEST_NAME:
            raise Malformed(f"topic's name of {len(name)} letters")
        topic_id = reader.uuid() if version >= TOPIC_IDS_FROM else ZERO_ID
        reader.int8()
        partitions_at = reader.at
        partitions: list[Led] = []
        reading = _read_partitions(reader, name)
        while read := [*islice(reading, _READ_AT_ONCE)]:
            partitions += read
            if len(read) == _READ_AT_ONCE:
                yield None
        nodes: list[bytes] = []
        if in_sync:
            reading_nodes = _read_in_sync(Reader(reader.buffer, partitions_at, reader.at))
            while some := [*islice(reading_nodes, _READ_AT_ONCE)]:
                nodes += some
                if len(some) == _READ_AT_ONCE:
                    yield None
        reader.int32()
        reader.skip_tags()
        yield TopicMetadata(error, name, topic_id, tuple(partitions), tuple(nodes))


def _read_partitions(reader: Reader, topic: str) -> Iterator[Led]:
    """Read the partitions of a topic.

    A large cluster has 100,000 of them, so there is no call for what nearly all are: lists of
    nodes whose lengths are one byte each, and no tags. All else is read field by field.
    """
    count = reader.compact_array(_SMALLEST_PARTITION)
    if count * _PARTITION_MEMORY > _MOST_MEMORY:
        raise Malformed(f"Metadata of {count} partitions of {topic[:64]!r} needs too much memory")
    buffer, nodes, unpack = reader.buffer, _NODES, _PARTITION.unpack_from
    for _ in range(count):
        at = reader.at
        try:
            after = at + _PARTITION.size
            after += nodes[buffer[after]]
            after += nodes[buffer[after]]
            after += nodes[buffer[after]]
            plain = not buffer[after] and after < reader.end
        except IndexError:
            plain = False
        if plain:
            reader.at = after + 1
            yield Led(*unpack(buffer, at))
        else:
            yield _read_partition(reader)


def _read_partition(reader: Reader) -> Led:
    at = reader.at
    reader.skip(_PARTITION.size)
    for _ in ("replicas", "in-sync replicas", "offline replicas"):
        reader.skip(4 * max(reader.uvarint() - 1, 0))
    reader.skip_tags()
    return Led(*_PARTITION.unpack_from(reader.buffer, at))


def _read_in_sync(reader: Reader) -> Iterator[bytes]:
    """Read the replicas in sync of the partitions of a topic, which have been read before."""
    for _ in range(reader.compact_array(_SMALLEST_PARTITION)):
        reader.skip(_PARTITION.size)
        reader.skip(4 * max(reader.uvarint() - 1, 0))
        yield reader.take(4 * max(reader.uvarint() - 1, 0))
        reader.skip(4 * max(reader.uvarint() - 1, 0))
        reader.skip_tags()
