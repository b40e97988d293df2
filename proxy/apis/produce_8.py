"""Produce 9 and 10 before brokers that take Produce 8 (2.4 to 2.7).

The two differ in their encoding alone: up to v8 lengths are of 16 or 32 bits, from v9 on they
are compact and structures end with tags (KIP-482). Records are the same bytes in both; record
errors and messages came with v8 (KIP-467). Tags of a request say nothing that v8 could take, and
there are none yet.
"""

import struct

from proxy.apis.header import header_as
from proxy.wire.reader import Reader
from proxy.wire.recode import to_compact, to_old
from proxy.wire.scatter import Scatter
from proxy.wire.varint import write_uvarint

VERSION = 8

_INT32 = struct.Struct(">i")
#: Partition index and size of its records.
_INDEX = struct.Struct(">ii")
#: Partition index, error code, base offset, log append time, log start offset.
_PARTITION = 30
_ACKS_AND_TIMEOUT = 6
#: Of a request: name, partitions and tags; index, records and tags.
_SMALLEST_TOPIC, _SMALLEST_ASKED = 3, 6


def request_down(frame: memoryview) -> list[memoryview | bytes]:
    """Return a whole request of v9 or v10 as v8, in pieces; records are views of ``frame``.

    :raises WireError: the request is not well formed.
    """
    scatter = Scatter()
    header, body = header_as(frame, VERSION)
    scatter.out += header
    reader = Reader(frame, body)
    scatter.out += to_old(reader)
    scatter.out += reader.take(_ACKS_AND_TIMEOUT)
    topics = reader.nullable_compact_array(_SMALLEST_TOPIC)
    scatter.out += _INT32.pack(topics)
    for _ in range(topics):
        scatter.out += to_old(reader)
        partitions = reader.nullable_compact_array(_SMALLEST_ASKED)
        scatter.out += _INT32.pack(partitions)
        for _ in range(partitions):
            index, size = reader.int32(), reader.uvarint() - 1
            at = reader.at
            # Before it is written: a size that the frame does not hold may not fit its 32 bits.
            reader.skip(max(size, 0))
            scatter.out += _INDEX.pack(index, size)
            if size > 0:
                scatter.passed(frame[at : at + size])
            reader.skip_tags()
        reader.skip_tags()
    reader.skip_tags()
    reader.done()
    return scatter.finish()


def response_up(frame: memoryview) -> bytes:
    """Return a whole response of v8 as v9, which is v10 without hints.

    :raises WireError: the response is not well formed.
    """
    out = bytearray(frame[:8])
    out += b"\0"
    reader = Reader(frame, 8)
    topics = reader.nullable_array(6)
    out += write_uvarint(topics + 1)
    for _ in range(topics):
        out += to_compact(reader)
        partitions = reader.nullable_array(_PARTITION + 6)
        out += write_uvarint(partitions + 1)
        for _ in range(partitions):
            out += reader.take(_PARTITION)
            errors = reader.nullable_array(6)
            out += write_uvarint(errors + 1)
            for _ in range(errors):
                out += reader.take(4)
                out += to_compact(reader) + b"\0"
            out += to_compact(reader) + b"\0"
        out += b"\0"
    out += reader.take(4)
    out += b"\0"
    reader.done()
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)
