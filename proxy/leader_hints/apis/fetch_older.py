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
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader
from leader_hints.wire.scatter import Rest, Scatter
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string

#: The newest version with the old encoding.
OLD = 11
#: Throttle time, error code, session id.
_HEAD = struct.Struct(">ihi")
#: Partition, error code, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_FAILED = struct.Struct(">ih")
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


def response_up(frame: memoryview, length: int, version: int, names: Names | None) -> Raised:
    """Return a response of ``version`` (10 to 12) as v12, or with ``names`` as v13 to v16.

    Records are views of ``frame`` where they are large. ``frame`` is as much as is there of
    ``length`` bytes; it may end within the last records.

    :raises Truncated: ``frame`` ends before that.
    :raises WireError: the response is not well formed.
    :raises KeyError: it has a topic that has no id in ``names``.
    """
    return _Walk(frame, length, version, names).run()


class _Passed(NamedTuple):
    """Numbers of partitions, and how many bytes of the records of the last have not come."""

    numbers: list[int]
    missing: int


class _Walk:
    """One pass over a response, or over its beginning."""

    def __init__(self, frame: memoryview, length: int, version: int, names: Names | None) -> None:
        self._frame = frame
        self._length = length
        self._begun = False
        self._reader = Reader(frame, 4)
        self._old = version <= OLD
        self._replica = 4 if version >= RACK_FROM else 0
        self._names = names
        self._scatter = Scatter()
        self._failed = False

    def run(self) -> Raised:
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
        for left in reversed(range(topics)):
            self._topic(last=not left)
        for topic, partitions in unknown:
            self._scatter.out += topic + write_uvarint(len(partitions) + 1)
            for partition in partitions:
                self._refuse(partition)
            self._scatter.out += b"\0"
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

    def _topic(self, *, last: bool) -> None:
        reader = self._reader
        name = (reader.string() if self._old else reader.compact_string()) or ""
        names = self._names
        self._scatter.out += compact_string(name) if names is None else names.ids[name]
        if names is not None and name in names.stale:
            self._stale_partitions()
        elif self._old:
            self._old_partitions(last=last)
        else:
            at = reader.at
            missing = self._pass_partitions(last=last).missing
            if missing:
                self._begin(at, missing)
                self._scatter.out += b"\0\0"
                return
            reader.skip_tags()
            self._scatter.passed(self._frame[at : reader.at])

    def _begin(self, at: int, missing: int) -> None:
        self._scatter.begun(self._frame[at:], missing)
        self._begun = True

    def _old_partitions(self, *, last: bool) -> None:
        partitions = self._reader.nullable_array(_SMALLEST_OLD)
        self._scatter.out += write_uvarint(partitions + 1)
        for left in reversed(range(partitions)):
            self._old_partition(last=last and not left)
        self._scatter.out += b"\0"

    def _old_partition(self, *, last: bool) -> None:
        reader, scatter = self._reader, self._scatter
        at = reader.at
        reader.skip(_PARTITION.size)
        self._failed |= _FAILED.unpack_from(self._frame, at)[1] in HINTABLE
        scatter.out += self._frame[at : reader.at]
        aborted = reader.nullable_array(_ABORTED)
        scatter.out += write_uvarint(aborted + 1)
        for _ in range(aborted):
            scatter.out += reader.take(_ABORTED) + b"\0"
        scatter.out += reader.take(4) if self._replica else _NO_REPLICA
        size = reader.int32()
        if size < -1:
            raise Malformed(f"records of {size} bytes")
        scatter.out += write_uvarint(size + 1)
        if size > 0:
            at = reader.at
            missing = self._skip_records(size, last=last, behind=0)
            if missing:
                self._begin(at, missing)
            else:
                scatter.passed(self._frame[at : reader.at])
        scatter.out += b"\0"

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

    def _pass_partitions(self, *, last: bool) -> _Passed:
        """Pass over the partitions of a topic."""
        numbers = []
        missing = 0
        partitions = (
            self._reader.nullable_array(_SMALLEST_OLD) if self._old else self._reader.uvarint() - 1
        )
        for left in reversed(range(partitions)):
            if self._old:
                numbers.append(self._pass_old())
            else:
                number, missing = self._pass_flexible(last=last and not left)
                numbers.append(number)
        return _Passed(numbers, missing)

    def _pass_flexible(self, *, last: bool) -> tuple[int, int]:
        reader = self._reader
        at = reader.at
        reader.skip(_PARTITION.size)
        partition, error = _FAILED.unpack_from(self._frame, at)
        self._failed |= error in HINTABLE
        for _ in range(reader.uvarint() - 1):
            reader.skip(_ABORTED)
            reader.skip_tags()
        reader.skip(4)
        size = max(reader.uvarint() - 1, 0)
        missing = self._skip_records(size, last=last, behind=_NO_TAGS)
        if not missing:
            reader.skip_tags()
        return partition, missing

    def _pass_old(self) -> int:
        reader = self._reader
        partition = reader.int32()
        reader.skip(_PARTITION.size - 4)
        reader.skip(_ABORTED * max(reader.int32(), 0) + self._replica)
        reader.skip(max(reader.int32(), 0))
        return partition

    def _stale_partitions(self) -> None:
        failed = self._failed
        numbers = self._pass_partitions(last=False).numbers
        # Their errors are another topic's.
        self._failed = failed
        if not self._old:
            self._reader.skip_tags()
        self._scatter.out += write_uvarint(len(numbers) + 1)
        for number in numbers:
            self._refuse(number)
        self._scatter.out += b"\0"

    def _refuse(self, partition: int) -> None:
        self._scatter.out += _FAILED.pack(partition, ErrorCode.UNKNOWN_TOPIC_ID) + _REFUSED

    def _tags(self) -> None:
        at = self._reader.at
        self._reader.skip_tags()
        self._scatter.out += self._frame[at : self._reader.at]
