"""Fetch responses of v10 to v12 as clients of newer versions want them.

v12 to v13 and above: ids for the names of topics; all else is the same. v11 to v12: compact
lengths and tags (KIP-482). v10 to v11: a preferred replica, which is none (KIP-392). Requests go
the other way by :mod:`leader_hints.apis.fetch_request`.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from leader_hints.apis.error_codes import HINTABLE, ErrorCode
from leader_hints.apis.fetch_request import RACK_FROM
from leader_hints.apis.fetch_response import pass_aborted, pass_plain
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader
from leader_hints.wire.scatter import Rest, Scatter
from leader_hints.wire.steps import ANSWERS_AT_ONCE, ENTRIES_AT_ONCE, Steps
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string

#: The newest version with the old encoding.
OLD = 11
#: Throttle time, error code, session id.
_HEAD = struct.Struct(">ihi")
#: Partition, error code, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_FAILED = struct.Struct(">ih")
#: Of v12: behind a count of aborted transactions of one byte, and the preferred replica.
_RECORDS_AT = _PARTITION.size + 1 + 4
#: Error code, count of aborted transactions, size of the records where there are none of those.
_PLAIN_10 = struct.Struct(">4xh24xii")
_PLAIN_11 = struct.Struct(">4xh24xi4xi")
#: Of v10: aborted transactions and records take four bytes each at least.
_SMALLEST_OLD = _PARTITION.size + 8
_NO_REPLICA = struct.pack(">i", -1)
#: Producer id and first offset.
_ABORTED = 16
#: Behind the last records of v12: the tags of the partition, of the topic and of the body, all
#: empty.
_NO_TAGS = 3
#: A broker's answer for a partition that it refuses: no offsets, null aborted transactions, no
#: preferred replica, empty records, no tags.
_REFUSED = struct.pack(">qqqBiBB", -1, -1, -1, 0, -1, 1, 0)

#: A topic id and the partitions that are answered without the broker.
Refused = tuple[bytes, Sequence[int]]


class Names(NamedTuple):
    """Which id the client has for a topic that the broker knows by name.

    ``stale``: names whose topic is another one by now. What the broker says of them is none of
    the client's; their partitions are answered UNKNOWN_TOPIC_ID. ``unknown``: topics that were
    not asked for at the broker, since their names are not known; answered the same.
    """

    ids: Mapping[str, bytes]
    stale: Collection[str] = ()
    unknown: Sequence[Refused] = ()


class Raised(NamedTuple):
    """A response in the client's version.

    ``failed``: some partition has an error that a hint can answer. ``rest``: how the response
    goes on where not all of it was there.
    """

    pieces: list[memoryview | bytes]
    failed: bool
    error: int
    session_id: int
    rest: Rest | None


def response_up(frame: memoryview, length: int, version: int, names: Names | None) -> Steps[Raised]:
    """Return a response of ``version`` (10 to 12) as v12, or with ``names`` as v13 to v16.

    In steps. Records are views of ``frame`` where they are large. ``frame`` is as much as is there
    of ``length`` bytes; it may end within the last records.

    :raises Truncated: ``frame`` ends before that.
    :raises WireError: the response is not well formed.
    :raises KeyError: it has a topic that has no id in ``names``.
    """
    return _Walk(frame, length, version, names).run()


class _Walk:
    """One pass over a response, or over its beginning."""

    def __init__(self, frame: memoryview, length: int, version: int, names: Names | None) -> None:
        self._frame = frame
        self._length = length
        self._begun = False
        self._reader = Reader(frame, 4)
        self._old = version <= OLD
        self._plain = _PLAIN_11 if version >= RACK_FROM else _PLAIN_10
        self._names = names
        self._scatter = Scatter()
        self._failed = False
        #: Of the topic: whether what is said of it is another's, and where its partitions begin.
        self._stale = False
        self._partitions_at = 0

    def run(self) -> Steps[Raised]:
        reader, scatter, names = self._reader, self._scatter, self._names
        scatter.out += reader.take(4)
        if self._old:
            scatter.out += b"\0"
        else:
            self._tags()
        head = reader.take(_HEAD.size)
        scatter.out += head
        unknown = names.unknown if names is not None else ()
        topics = reader.nullable_array(6) if self._old else reader.uvarint() - 1
        scatter.out += write_uvarint(max(topics, 0) + len(unknown) + 1)
        room = ENTRIES_AT_ONCE
        for left in reversed(range(topics)):
            partitions = self._open_topic()
            room -= 1
            while partitions > 0 or room < 0:
                if partitions > room:
                    yield
                    room = ANSWERS_AT_ONCE
                some = partitions if partitions < room else room
                partitions -= some
                room -= self._pass_partitions(some, last=not left and not partitions)
            self._close_topic()
        for topic, numbers in unknown:
            room -= 1
            scatter.out += topic + write_uvarint(len(numbers) + 1)
            for begin in range(0, len(numbers) or 1, ANSWERS_AT_ONCE):
                refused = numbers[begin : begin + ANSWERS_AT_ONCE]
                if len(refused) > room:
                    yield
                    room = ANSWERS_AT_ONCE
                room -= len(refused)
                for partition in refused:
                    self._refuse(partition)
            scatter.out += b"\0"
        _, error, session_id = _HEAD.unpack(head)
        if self._begun:
            scatter.out += b"\0"
            pieces, rest = scatter.finish_begun(0 if self._old else _NO_TAGS)
            return Raised(pieces, self._failed, error, session_id, rest)
        if self._old:
            scatter.out += b"\0"
        else:
            self._tags()
        if len(self._frame) < self._length:
            raise Truncated("Fetch response")
        reader.done()
        return Raised(scatter.finish(), self._failed, error, session_id, None)

    def _open_topic(self) -> int:
        """Read and write what precedes the partitions of a topic; return how many it has."""
        reader, names = self._reader, self._names
        name = (reader.string() if self._old else reader.compact_string()) or ""
        self._scatter.out += compact_string(name) if names is None else names.ids[name]
        self._stale = names is not None and name in names.stale
        self._partitions_at = reader.at
        partitions = reader.nullable_array(_SMALLEST_OLD) if self._old else reader.uvarint() - 1
        if self._old or self._stale:
            self._scatter.out += write_uvarint(partitions + 1)
        return partitions

    def _close_topic(self) -> None:
        reader, scatter = self._reader, self._scatter
        if self._old:
            scatter.out += b"\0"
        elif self._begun:
            scatter.out += b"\0\0"
        else:
            reader.skip_tags()
            if self._stale:
                scatter.out += b"\0"
            else:
                scatter.passed(self._frame[self._partitions_at : reader.at])

    def _pass_partitions(self, count: int, *, last: bool) -> int:
        """Pass over so many partitions of a topic, ``last`` of all or not.

        Return how many partitions and aborted transactions those were.
        """
        entries = count
        if self._stale:
            for _ in range(count):
                entries += self._pass_stale()
        elif self._old:
            for left in reversed(range(count)):
                entries += self._old_partition(last=last and not left)
        else:
            reader = self._reader
            if count > 1:
                reader.at, count, _ = pass_plain(self._frame, reader.at, reader.end, count)
            for left in reversed(range(count)):
                entries += self._pass_flexible(last=last and not left)
        return entries

    def _begin(self, at: int, missing: int) -> None:
        self._scatter.begun(self._frame[at:], missing)
        self._begun = True

    # Each of these returns how many aborted transactions there were.

    def _old_partition(self, *, last: bool) -> int:
        reader, scatter, frame = self._reader, self._scatter, self._frame
        at = reader.at
        reader.skip(self._plain.size)
        error: int
        aborted: int
        error, aborted, size = self._plain.unpack_from(frame, at)
        self._failed |= error in HINTABLE
        behind = at + _PARTITION.size
        scatter.out += frame[at:behind]
        if aborted > 0:
            size = self._aborted(behind)
        else:
            scatter.out += b"\0" if aborted else b"\1"
            scatter.out += self._replica(behind + 4)
        if size < -1:
            raise Malformed(f"records of {size} bytes")
        scatter.out += write_uvarint(size + 1)
        if size > 0:
            at = reader.at
            missing = self._skip_records(size, last=last, behind=0)
            if missing:
                self._begin(at, missing)
            else:
                scatter.passed(frame[at : reader.at])
        scatter.out += b"\0"
        return aborted if aborted > 0 else 0

    def _aborted(self, at: int) -> int:
        """Write the aborted transactions that stand there; return the size of the records."""
        reader, out = self._reader, self._scatter.out
        reader.at = at
        aborted = reader.array(_ABORTED)
        out += write_uvarint(aborted + 1) + _with_tags(reader.take(_ABORTED * aborted), aborted)
        out += self._replica(reader.at)
        if self._plain is _PLAIN_11:
            reader.skip(4)
        return reader.int32()

    def _replica(self, at: int) -> bytes | memoryview:
        """Return the preferred replica, which stands there in v11."""
        return self._frame[at : at + 4] if self._plain is _PLAIN_11 else _NO_REPLICA

    def _skip_records(self, size: int, *, last: bool, behind: int) -> int:
        """Pass over records; return how many of their bytes have not come.

        These may be the ``last`` of all alone, with ``behind`` bytes between them and the end.
        """
        reader = self._reader
        missing = reader.at + size - len(self._frame)
        if missing <= 0 or not last or reader.at + size + behind != self._length:
            reader.skip(size)
            return 0
        return missing

    def _pass_flexible(self, *, last: bool) -> int:
        reader, aborted = self._reader, 0
        at = reader.at
        reader.skip(_RECORDS_AT)
        self._failed |= _FAILED.unpack_from(self._frame, at)[1] in HINTABLE
        if self._frame[at + _PARTITION.size] > 1:
            reader.at = at + _PARTITION.size
            aborted = reader.uvarint() - 1
            pass_aborted(reader, aborted)
            reader.skip(4)
        size = max(reader.uvarint() - 1, 0)
        missing = self._skip_records(size, last=last, behind=_NO_TAGS)
        if missing:
            self._begin(self._partitions_at, missing)
        else:
            reader.skip_tags()
        return aborted

    def _pass_stale(self) -> int:
        """Pass over a partition whose errors are another topic's."""
        reader, at, failed = self._reader, self._reader.at, self._failed
        aborted = 0
        if self._old:
            reader.skip(_PARTITION.size)
            reader.skip(_ABORTED * max(reader.int32(), 0))
            reader.skip(4 if self._plain is _PLAIN_11 else 0)
            reader.skip(max(reader.int32(), 0))
        else:
            aborted = self._pass_flexible(last=False)
        self._failed = failed
        self._refuse(_FAILED.unpack_from(self._frame, at)[0])
        return aborted

    def _refuse(self, partition: int) -> None:
        self._scatter.out += _FAILED.pack(partition, ErrorCode.UNKNOWN_TOPIC_ID) + _REFUSED

    def _tags(self) -> None:
        at = self._reader.at
        self._reader.skip_tags()
        self._scatter.out += self._frame[at : self._reader.at]


def _with_tags(aborted: bytes, count: int) -> bytearray:
    """Return aborted transactions with an empty tag section behind each.

    Byte by byte of all of them: there may be very many.
    """
    out = bytearray((_ABORTED + 1) * count)
    for at in range(_ABORTED):
        out[at :: _ABORTED + 1] = aborted[at::_ABORTED]
    return out
