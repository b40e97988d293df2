"""Which partitions a Produce or Fetch response answers, read while its bytes go by.

For responses that go on at once: nothing of them is kept but a field that is cut in two.

Produce v3 and v4: error, base offset, append time. v5: log start offset. v8 (KIP-467): record
errors and a message. v9: flexible. v10: tags.
Fetch v4 (KIP-98): last stable offset and aborted transactions. v5: log start offset. v7
(KIP-227): error and session id. v11 (KIP-392): preferred read replica. v12: flexible. v13
(KIP-516): topic ids.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from leader_hints.apis import fetch_response, produce
from leader_hints.apis.error_codes import HINTABLE, ErrorCode
from leader_hints.apis.fetch_response import Topic, pass_plain, read_topic
from leader_hints.apis.header import FLEXIBLE_FROM
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader

#: Versions whose responses can be read. Brokers of 2.4 to 3.6 take older ones too, which no
#: client asks that knows a newer one: they are from before Kafka 0.11.
SCANNED = {ApiKey.PRODUCE: range(3, 11), ApiKey.FETCH: range(4, 17)}

_INT32 = struct.Struct(">i")
_FAILED = struct.Struct(">ih")
#: Of the old encoding: how many topics, and the size of the first one's name.
_FIRST_TOPIC = struct.Struct(">ih")
#: How many partitions, number and error of the first.
_FIRST_PARTITION = struct.Struct(">iih")
#: Size prefix and correlation id.
_HEADER = 8
#: Producer id and first offset.
_ABORTED = 16
#: No field that is read is longer; a topic's name has 249 letters at most.
_MOST_CARRIED = 65_536
#: Partitions that are found in one go, of which a response may have thousands, and steps that are
#: done in one go, each of which passes a plain partition or reads a part of another.
_FOUND_AT_ONCE = 50
_STEPS_AT_ONCE = 300


class Answered(NamedTuple):
    """A partition in a response.

    ``topic`` is the name or the id, as the response says it. ``brings``: it has records.
    """

    topic: Topic
    partition: int
    error: int
    brings: bool


class _Layout(NamedTuple):
    """What a version's response has.

    ``head``: bytes before the topics. ``fixed``: those of a partition up to what is variable.
    ``items``: whether record errors or aborted transactions follow, ``replica``: the bytes of
    the preferred replica. ``plain``: of a partition up to its records: error, count of aborted
    transactions, size of the records.
    """

    fetch: bool
    flexible: bool
    version: int
    head: int
    fixed: int
    items: bool
    replica: int
    plain: struct.Struct | None


def _layout(key: ApiKey, version: int) -> _Layout:
    flexible = version >= FLEXIBLE_FROM[key]
    fixed = 30 if version >= 5 else 22
    if key is ApiKey.PRODUCE:
        return _Layout(False, flexible, version, 0, fixed, version >= 8, 0, None)
    replica = 4 if version >= 11 else 0
    plain = None if flexible else struct.Struct(f">4xh{fixed - 6}xi{replica}xi")
    head = 10 if version >= 7 else 4
    return _Layout(True, flexible, version, head, fixed, True, replica, plain)


_LAYOUTS: dict[tuple[int, int], _Layout] = {
    (key, version): _layout(key, version)
    for key, versions in SCANNED.items()
    for version in versions
}


def has_no_failure(frame: memoryview, key: int, version: int) -> bool:
    """Whether one look at a begun response shows that no partition has a hintable error.

    So it is where it holds no partition, or one; that is what most responses are, and a scan
    costs several times as much. ``False`` says nothing.
    """
    layout = _LAYOUTS[key, version]
    if layout.flexible:
        if layout.fetch:
            return fetch_response.glance(frame, version) is not None
        return produce.has_no_failure(frame)
    at = _HEADER + layout.head
    if len(frame) < at + _FIRST_TOPIC.size:
        # An empty response has nothing where the name would begin.
        return len(frame) == at + _INT32.size and _INT32.unpack_from(frame, at)[0] == 0
    topics, name = _FIRST_TOPIC.unpack_from(frame, at)
    if topics != 1 or name < 0:
        return bool(topics == 0)
    at += _FIRST_TOPIC.size + name
    if len(frame) < at + _FIRST_PARTITION.size:
        return False
    partitions, _, error = _FIRST_PARTITION.unpack_from(frame, at)
    return partitions == 1 and error not in HINTABLE


class AnswerScan:
    """Reads a response piece by piece.

    Partitions with an error that a hint can answer are found, and with ``successes`` those
    without an error. ``done``: all partitions have been seen; the records of the last need not.
    ``carries``: some that were seen have records, or were acknowledged. ``left``: bytes at the end
    of the last piece that must be given again: enough was found before them.
    """

    __slots__ = (
        "_carry",
        "_error",
        "_found",
        "_items",
        "_layout",
        "_partition",
        "_partitions",
        "_skip",
        "_step",
        "_successes",
        "_topic",
        "_topics",
        "carries",
        "done",
        "left",
    )

    def __init__(self, key: int, version: int, *, successes: bool) -> None:
        self._layout = _LAYOUTS[key, version]
        self._successes = successes
        # No bound method: it would keep the object in a cycle.
        self._step: Callable[[AnswerScan, Reader], int] = AnswerScan._start
        self._carry = b""
        self._skip = 0
        self._topics = 0
        self._topic: Topic = ""
        self._partitions = 0
        self._partition = 0
        self._error = 0
        self._items = 0
        self._found: list[Answered] = []
        self.carries = False
        self.done = False
        self.left = 0

    @property
    def passing(self) -> int:
        """How many of the bytes that come next are of no interest, whatever they are.

        They may be left out: then call :meth:`passed`.
        """
        return self._skip

    def passed(self, size: int) -> None:
        """Take note of ``size`` bytes, at most :attr:`passing`, that are not given."""
        self._skip -= size

    def advance(self, piece: memoryview) -> list[Answered]:
        """Take the frame's next bytes, its size prefix first; return what they tell.

        :raises Malformed: the bytes cannot be a response of this version.
        """
        self.left = 0
        if self._skip >= len(piece):
            self._skip -= len(piece)
            return []
        if self._carry:
            piece = memoryview(self._carry + piece)
        # Behind each step, which may lie beyond the end: what is passed over need not be here.
        at = self._skip
        reader = Reader(piece, at)
        carry = b""
        try:
            room = _STEPS_AT_ONCE
            # What needs no more bytes is done with those that are here: there may be no others.
            while (
                not self.done
                and (room > 0 or at >= len(piece))
                and len(self._found) < _FOUND_AT_ONCE
            ):
                room -= self._step(self, reader)
                at = reader.at
            self.left = 0 if self.done else max(len(piece) - at, 0)
        except Truncated:
            if len(piece) - at > _MOST_CARRIED:
                raise Malformed(f"field of more than {_MOST_CARRIED} bytes") from None
            carry = bytes(piece[at:])
        self._skip = max(at - len(piece), 0)
        self._carry = carry
        found, self._found = self._found, []
        return found

    # Each step reads to its end before it changes anything, since it is repeated with more
    # bytes if these are not enough. It returns how much it cost, which is 1 for nearly all.

    def _start(self, reader: Reader) -> int:
        reader.skip(_HEADER)
        self._tags(reader)
        reader.skip(self._layout.head)
        self._topics = self._count(reader)
        self.done = self._topics == 0
        self._step = AnswerScan._open_topic
        return 1

    def _open_topic(self, reader: Reader) -> int:
        layout = self._layout
        if layout.flexible:
            topic = read_topic(reader, layout.version if layout.fetch else 0)
        else:
            topic = reader.string() or ""
        self._partitions = self._count(reader)
        self._topic = topic
        self._step = self._next()
        return 1

    def _pass_plain(self, reader: Reader) -> int:
        """Pass over partitions of Fetch as nearly all are, up to the last, at less cost."""
        self._step = AnswerScan._open_partition
        if self._partitions == 1:
            return 1
        layout = self._layout
        some = left = min(self._partitions, _STEPS_AT_ONCE)
        if layout.plain is None:
            reader.at, left, brought = pass_plain(reader.buffer, reader.at, reader.end, some)
            if brought:
                self.carries = True
        else:
            frame, at = reader.buffer, reader.at
            plain, width = layout.plain.unpack_from, layout.plain.size
            last = reader.end - width
            while left > 1 and at <= last:
                error, aborted, size = plain(frame, at)
                if error in HINTABLE or aborted > 0:
                    break
                left -= 1
                at += width + size if size > 0 else width
            if at - reader.at > width * (some - left):
                self.carries = True
            reader.at = at
        self._partitions -= some - left
        return 1 + some - left

    def _open_partition(self, reader: Reader) -> int:
        at = reader.at
        reader.skip(self._layout.fixed)
        items = self._count(reader) if self._layout.items else 0
        self._partition, self._error = _FAILED.unpack_from(reader.buffer, at)
        self._items = items
        self._step = AnswerScan._item if items else AnswerScan._body
        return 1

    def _item(self, reader: Reader) -> int:
        """Pass over an aborted transaction, or a record error."""
        if self._layout.fetch:
            reader.skip(_ABORTED)
        else:
            reader.skip(_INT32.size)
            size = self._size(reader, Reader.int16)
            reader.at += size
        self._tags(reader)
        self._items -= 1
        if not self._items:
            self._step = AnswerScan._body
        return 1

    def _body(self, reader: Reader) -> int:
        """Pass over the records of a partition, or the message; they need not be here."""
        layout = self._layout
        size = 0
        if layout.fetch:
            reader.skip(layout.replica)
            size = self._size(reader, Reader.int32)
            if size:
                self.carries = True
        else:
            if layout.items:
                size = self._size(reader, Reader.int16)
            if not self._error:
                self.carries = True
        if self._error in HINTABLE or (self._successes and self._error == ErrorCode.NONE):
            brings = layout.fetch and size > 0
            self._found.append(Answered(self._topic, self._partition, self._error, brings))
        reader.at += size
        self._partitions -= 1
        self.done = self._topics == 1 and not self._partitions
        if layout.flexible:
            self._step = AnswerScan._close_partition
        else:
            self._step = self._next()
        return 1

    def _close_partition(self, reader: Reader) -> int:
        reader.skip_tags()
        self._step = self._next()
        return 1

    def _next(self) -> Callable[["AnswerScan", Reader], int]:
        if not self._partitions:
            return AnswerScan._close_topic
        if self._layout.fetch and not self._successes:
            return AnswerScan._pass_plain
        return AnswerScan._open_partition

    def _close_topic(self, reader: Reader) -> int:
        self._tags(reader)
        self._topics -= 1
        self.done = self._topics == 0
        self._step = AnswerScan._open_topic
        return 1

    # The two encodings.

    def _tags(self, reader: Reader) -> None:
        if self._layout.flexible:
            reader.skip_tags()

    def _count(self, reader: Reader) -> int:
        # Nothing is made for it, so it may claim more than there is.
        return self._size(reader, Reader.int32)

    def _size(self, reader: Reader, old: Callable[[Reader], int]) -> int:
        """Read a size, which up to the flexible versions is of a fixed width; 0 for null."""
        return max(reader.uvarint() - 1 if self._layout.flexible else old(reader), 0)
