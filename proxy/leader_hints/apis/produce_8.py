"""Produce 9 and 10 for brokers that accept Produce 8 (2.4 to 2.7).

The two differ in their encoding alone: up to v8 lengths are of 16 or 32 bits, from v9 on they
are compact and structures end with tags (KIP-482). Records are the same bytes in both; record
errors and messages came with v8 (KIP-467). Tags of a request say nothing that v8 could take, and
there are none yet.
"""

import struct

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.header import header_as
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader
from leader_hints.wire.recode import (
    count_to_compact,
    count_to_old,
    past_tags,
    string_to_compact,
    string_to_old,
)
from leader_hints.wire.scatter import Rest, Scatter
from leader_hints.wire.steps import ANSWERS_AT_ONCE, ENTRIES_AT_ONCE, Steps

VERSION = 8

_INT32 = struct.Struct(">i")
#: Partition index, error code, base offset, log append time, log start offset.
_PARTITION = 30
_ACKS_AND_TIMEOUT = 6
_THROTTLE = 4
#: Of a partition of a response: error code, count of record errors, size of the message, if there
#: are none of those. In v9 these two are null or empty, and there are tags.
_ANSWERED = struct.Struct(">4xh24xih")
_PLAIN = b"\1\0\0"
#: Behind the last records: the tags of the partition, of the topic and of the body, all empty.
_NO_TAGS = 3
#: Topics and partitions of one request. Brokers lead some thousands of partitions; a request of
#: millions, which are six bytes each, would stop the event loop for seconds.
_MOST = 50_000


def request_down(
    frame: memoryview, length: int
) -> Steps[tuple[list[memoryview | bytes], Rest | None]]:
    """Return a request of v9 or v10 as v8, in steps and in pieces; records are views of ``frame``.

    ``frame`` is as much as is there of ``length`` bytes. If it ends within the last records, the
    pieces are the beginning of the new frame, and how that goes on is returned as well.

    :raises Truncated: ``frame`` ends before that.
    :raises WireError: the request is not well formed.
    """
    header, at = header_as(frame, VERSION)
    tags = Reader(frame)
    scatter = Scatter()
    out = scatter.out
    left = _MOST
    out += header
    try:
        at = string_to_old(out, frame, at)
        out += frame[at : at + _ACKS_AND_TIMEOUT]
        topics, at = count_to_old(out, frame, at + _ACKS_AND_TIMEOUT)
        left -= topics
        done = 0
        for topic in range(topics):
            at = string_to_old(out, frame, at)
            partitions, at = count_to_old(out, frame, at)
            left -= partitions
            if left < 0:
                raise Malformed(f"more than {_MOST} topics and partitions")
            done += 1
            if not done % ENTRIES_AT_ONCE:
                yield
            for partition in range(partitions):
                done += 1
                if not done % ENTRIES_AT_ONCE:
                    yield
                out += frame[at : at + _INT32.size]
                size, at = count_to_old(out, frame, at + _INT32.size)
                if size > 0:
                    missing = at + size - len(frame)
                    if missing > 0:
                        last = topic == topics - 1 and partition == partitions - 1
                        if not last or at + size + _NO_TAGS != length:
                            raise Truncated("Produce request")
                        scatter.begun(frame[at:], missing)
                        return scatter.finish_begun(_NO_TAGS)
                    scatter.passed(frame[at : at + size])
                    out = scatter.out
                    at += size
                at = past_tags(tags, at)
            at = past_tags(tags, at)
        at = past_tags(tags, at)
    except (IndexError, struct.error):
        raise Truncated("Produce request") from None
    if len(frame) < length:
        raise Truncated("Produce request")
    _check_end(frame, at)
    return scatter.finish(), None


def response_up(frame: memoryview) -> Steps[tuple[memoryview, bool]]:
    """Return a whole response of v8 as v9, which is v10 without hints, in steps.

    Return as well whether some partition has an error that a hint can answer.

    :raises WireError: the response is not well formed.
    """
    out = bytearray(frame[:8])
    out.append(0)
    failed = False
    room = ENTRIES_AT_ONCE
    try:
        topics, at = count_to_compact(out, frame, 8)
        for _ in range(topics):
            at = string_to_compact(out, frame, at)
            left, at = count_to_compact(out, frame, at)
            room -= 1
            while left > 0 or room < 0:
                if left > room:
                    yield
                    room = ANSWERS_AT_ONCE
                some = left if left < room else room
                at, entries, some_failed = yield from _partitions_up(out, frame, at, some)
                failed |= some_failed
                room -= entries
                left -= some
            out.append(0)
    except struct.error:
        raise Truncated("Produce response") from None
    out += frame[at : at + _THROTTLE]
    out.append(0)
    _check_end(frame, at + _THROTTLE)
    _INT32.pack_into(out, 0, len(out) - _INT32.size)
    return memoryview(out), failed


def _partitions_up(
    out: bytearray, frame: memoryview, at: int, count: int
) -> Steps[tuple[int, int, bool]]:
    """Write so many partitions of a response.

    Return the position behind them, how many partitions and record errors those were, and whether
    one failed.
    """
    entries, failed = count, False
    for _ in range(count):
        behind = at + _PARTITION
        error, errors, message = _ANSWERED.unpack_from(frame, at)
        out += frame[at:behind]
        if error in HINTABLE:
            failed = True
        if not errors and message < 0:
            # As nearly all.
            out += _PLAIN
            at += _ANSWERED.size
            continue
        errors, at = count_to_compact(out, frame, behind)
        entries += errors
        for number in range(1, errors + 1):
            if not number % ANSWERS_AT_ONCE:
                yield
            out += frame[at : at + _INT32.size]
            at = string_to_compact(out, frame, at + _INT32.size)
            out.append(0)
        at = string_to_compact(out, frame, at)
        out.append(0)
    return at, entries, failed


def _check_end(frame: memoryview, at: int) -> None:
    if at != len(frame):
        raise Malformed(f"{len(frame) - at} bytes behind the end")
