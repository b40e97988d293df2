"""Produce: records to leaders.

Request v3 to v8: transactional id (KIP-98), acks, timeout, topics. v9: flexible. v10 (KIP-951):
the body of v9. acks=0 means that no response will come.
Response v9: flexible; v10 adds the tags of KIP-951 and nothing else.
A producer with an id (KIP-98) numbers its batches (magic 2), so that a broker keeps their order.
Brokers refuse versions below 3 from 4.0 on; older requests have no transactional id.
"""

import struct

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.header import FLEXIBLE_FROM, plain_body, read_request_header
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure, Scanned
from leader_hints.wire.reader import Reader
from leader_hints.wire.steps import ANSWERS_AT_ONCE, ENTRIES_AT_ONCE, Steps, at_once

_FLEXIBLE = FLEXIBLE_FROM[ApiKey.PRODUCE]
_TRANSACTIONAL_FROM = 3
_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")
#: Of acks and timeout, and of a batch: where its magic stands, and its producer's id.
_ACKS_AND_TIMEOUT = 6
_MAGIC_AT, _PRODUCER_ID_AT = 16, 43
_NUMBERED = 2
#: Partition index, error code, base offset, log append time, log start offset.
_PARTITION = struct.Struct(">ihqqq")
#: The fixed part, and an empty array, a null message and an empty tag section.
_SMALLEST_PARTITION = _PARTITION.size + 3
_TAGS_AT = _PARTITION.size + 2
_SMALLEST_TOPIC = 3


def read_acks(frame: memoryview) -> int:
    """Return acks of a whole or begun request; ``frame`` begins with the size prefix.

    The records behind it need not have arrived.

    :raises Truncated: acks stands beyond ``frame``.
    """
    body = plain_body(frame)
    if body and frame[7] >= _FLEXIBLE and len(frame) >= body + 3 and not frame[body]:
        # No transactional id.
        acks: int = _INT16.unpack_from(frame, body + 1)[0]
        return acks
    header = read_request_header(frame)
    reader = Reader(frame, header.body)
    if header.version >= _FLEXIBLE:
        reader.skip_compact()
    elif header.version >= _TRANSACTIONAL_FROM:
        reader.skip(max(reader.int16(), 0))
    return reader.int16()


def has_producer_id(frame: memoryview) -> bool:
    """Whether the first batch of a whole or begun request is of a producer with an id.

    ``frame`` begins with the size prefix. The records behind the batch's head need not have
    arrived.

    :raises WireError: it is not well formed, or the head stands beyond ``frame``.
    """
    header = read_request_header(frame)
    reader, flexible = Reader(frame, header.body), header.version >= _FLEXIBLE
    if flexible:
        reader.skip_compact()
    elif header.version >= _TRANSACTIONAL_FROM:
        reader.skip(max(reader.int16(), 0))
    reader.skip(_ACKS_AND_TIMEOUT)
    # A topic, its name, a partition, its number, and the size of its records.
    if (reader.uvarint() - 1 if flexible else reader.int32()) <= 0:
        return False
    if flexible:
        reader.skip_compact()
    else:
        reader.skip(max(reader.int16(), 0))
    if (reader.uvarint() - 1 if flexible else reader.int32()) <= 0:
        return False
    reader.int32()
    size, batch = reader.uvarint() - 1 if flexible else reader.int32(), reader.at
    if size < _PRODUCER_ID_AT + _INT64.size:
        return False
    reader.skip(_PRODUCER_ID_AT + _INT64.size)
    producer: int = _INT64.unpack_from(frame, batch + _PRODUCER_ID_AT)[0]
    return frame[batch + _MAGIC_AT] >= _NUMBERED and producer >= 0


def has_no_failure(frame: memoryview) -> bool:
    """Whether one look at a whole response of v9 or above shows that no hint is needed.

    So it is where it holds one partition, whose error no hint can answer. ``False`` says nothing.
    """
    # Header tags, topics, and the name's size; each as a varint of one byte.
    if len(frame) < 12 or frame[8] or frame[9] != 2 or not 0 < frame[10] < 0x80:
        return False
    partitions = 10 + frame[10]
    error_at = partitions + 1 + 4
    if len(frame) < error_at + 2 or frame[partitions] != 2:
        return False
    return _INT16.unpack_from(frame, error_at)[0] not in HINTABLE


def scan_response(frame: memoryview) -> Scanned:
    """Look for failures in a whole response of v9 or above; it begins with the size prefix.

    :raises WireError: the response is not well formed.
    """
    return at_once(scan_in_steps(frame))


def scan_in_steps(frame: memoryview) -> Steps[Scanned]:
    """Do as :func:`scan_response`, in steps."""
    reader = Reader(frame, 8)
    reader.skip_tags()
    failures: list[Failure] = []
    carries = False
    room = ENTRIES_AT_ONCE
    for _ in range(reader.compact_array(_SMALLEST_TOPIC)):
        name_at = reader.at
        reader.skip_compact()
        left = reader.compact_array(_SMALLEST_PARTITION)
        room -= 1
        while left or room < 0:
            if left > room:
                yield
                room = ANSWERS_AT_ONCE
            some = left if left < room else room
            succeeded, entries = yield from _scan_partitions(reader, name_at, some, failures)
            carries |= succeeded
            room -= entries
            left -= some
        reader.skip_tags()
    reader.skip(4)
    tags = reader.at
    reader.skip_tags()
    reader.done()
    return Scanned(tuple(failures), carries, tags, reader.at)


def _scan_partitions(
    reader: Reader, name_at: int, count: int, failures: list[Failure]
) -> Steps[tuple[bool, int]]:
    """Look at so many partitions of the topic whose name stands there.

    Return whether one succeeded, and how many partitions and record errors those were.
    """
    frame, at, last = reader.buffer, reader.at, reader.end - _SMALLEST_PARTITION
    carries, entries, name = False, count, None
    for _ in range(count):
        tags = at + _TAGS_AT
        if at <= last and not frame[tags] and frame[tags - 1] <= 1 and frame[tags - 2] <= 1:
            # As nearly all: neither record errors nor a message nor tags.
            end = tags + 1
        else:
            reader.at = at
            tags, errors = yield from _pass_odd(reader)
            entries += errors
            end = reader.at
        partition, error, _, _, _ = _PARTITION.unpack_from(frame, at)
        at = end
        if error in HINTABLE:
            if name is None:
                name = Reader(frame, name_at).compact_string() or ""
            failures.append(Failure(name, partition, error, tags, end))
        elif error == 0:
            carries = True
    reader.at = at
    return carries, entries


def _pass_odd(reader: Reader) -> Steps[tuple[int, int]]:
    """Pass over any partition; return where its tags stand, and how many record errors it has.

    There may be one for each record of a batch.
    """
    reader.skip(_PARTITION.size)
    errors = reader.compact_array(6)
    for number in range(1, errors + 1):
        if not number % ANSWERS_AT_ONCE:
            yield
        reader.skip(4)
        reader.skip_compact()
        reader.skip_tags()
    reader.skip_compact()
    tags = reader.at
    reader.skip_tags()
    return tags, errors
