"""ListOffsets: asked by the proxy only, to learn whether a broker leads at an epoch.

Request v4 (KIP-320): current leader epoch of each partition. Only the leader answers. A replica
whose epoch is lower or higher returns that error before it checks whether it is the leader. v4 is
not flexible; every broker since 2.1 accepts it. The first offset is requested: a new leader returns
the last one only when its followers have caught up.
"""

import struct
from collections.abc import Collection, Mapping

from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.writer import string

VERSION = 4
_EARLIEST = -2
_CONSUMER = -1
_READ_UNCOMMITTED = 0
#: Replica id, isolation level, count of topics.
_ASKED = struct.Struct(">ibi")
#: A count of partitions.
_ONE = struct.pack(">i", 1)
_PARTITION = struct.Struct(">iiq")
_ANSWER = struct.Struct(">ihqqi")

Partition = tuple[str, int]


def write_request_body(epochs: Mapping[Partition, int]) -> bytes:
    """Return the body of a request for the start of each partition, at the epoch given."""
    out = [_ASKED.pack(_CONSUMER, _READ_UNCOMMITTED, len(epochs))]
    for (topic, partition), epoch in epochs.items():
        out += (string(topic), _ONE, _PARTITION.pack(partition, epoch, _EARLIEST))
    return b"".join(out)


def read_errors(reader: Reader, asked: Collection[Partition]) -> dict[Partition, int]:
    """Return the error code of each partition; 0: the broker led it at the epoch asked.

    ``asked``: the partitions that the broker was asked about.

    :raises WireError: the response is not well formed, or has more than was asked, or another.
    """
    reader.int32()
    errors: dict[Partition, int] = {}
    read = 0
    for _ in range(_at_most(len(asked), reader.array(6))):
        topic, count = reader.string() or "", reader.array(_ANSWER.size)
        read = _at_most(len(asked), read + count)
        for _ in range(count):
            at = reader.at
            reader.skip(_ANSWER.size)
            partition, error = _ANSWER.unpack_from(reader.buffer, at)[:2]
            if (topic, partition) not in asked:
                raise Malformed("offsets of a partition that nobody asked about")
            errors[topic, partition] = error
    return errors


def _at_most(asked: int, count: int) -> int:
    if count > asked:
        raise Malformed(f"offsets of {count} topics or partitions, of {asked} at most")
    return count
