"""Fetch responses: records from leaders (or from a near replica, KIP-392).

Response v7: fetch sessions (KIP-227). v11: preferred read replica (KIP-392). v12: flexible;
partition tags 0 DivergingEpoch, 1 CurrentLeader, 2 SnapshotId. v13: topic ids (KIP-516). v16:
top-level tag 0 NodeEndpoints (KIP-951).
"""

import struct
from contextlib import suppress

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.leader_hint import Failure, Scanned
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader
from leader_hints.wire.varint import Buffer, read_uvarint

#: From here on topics are named by their id.
TOPIC_IDS_FROM = 13

#: Throttle time, error code, session id.
_RESPONSE = struct.Struct(">ihi")
#: Partition, error code, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
#: Aborted transactions: producer id and first offset, and no tags.
_ABORTED = 16
_SMALLEST_ABORTED = _ABORTED + 1
_INT16 = struct.Struct(">h")
#: Where the header's tags stand in a response; and the count of topics, if there are none.
_HEADER_TAGS_AT = 4 + 4
_TOPICS_AT = _HEADER_TAGS_AT + 1 + _RESPONSE.size
#: A frame shorter than this holds no partition's error code.
_SMALLEST_GLANCE = _TOPICS_AT + 2
#: The fixed part; aborted transactions, preferred replica, records and tags at their shortest.
SMALLEST_PARTITION = _PARTITION.size + 1 + 4 + 1 + 1

#: Topics and failed partitions that are looked at in one go: a millisecond. Of plain partitions as
#: many as this say cost what one of those does.
_LOOKED_AT_AT_ONCE = 200
_PLAIN_FOR_ONE = 4

#: Behind the fixed part, an empty array of aborted transactions, and the preferred replica.
_RECORDS_AT = _PARTITION.size + 1 + 4

Topic = str | bytes


def glance(frame: memoryview, version: int) -> tuple[int, int] | None:
    """Return session id and top-level error where one look shows that no hint is needed.

    So it is where the begun response of v12 or above holds no partition, or one whose error no
    hint can answer; that is what most responses are, and a scan costs several times as much.
    ``None``: it is not known.
    """
    if len(frame) <= _TOPICS_AT or frame[_HEADER_TAGS_AT]:
        return None
    _, error, session_id = _RESPONSE.unpack_from(frame, _TOPICS_AT - _RESPONSE.size)
    topics = frame[_TOPICS_AT]
    if topics <= 1:
        return session_id, error
    if topics > 2 or len(frame) < _SMALLEST_GLANCE:
        return None
    if version >= TOPIC_IDS_FROM:
        partitions = _TOPICS_AT + 1 + 16
    else:
        partitions = _TOPICS_AT + 1 + frame[_TOPICS_AT + 1]
        if not 0 < frame[_TOPICS_AT + 1] < 0x80:
            return None
    error_at = partitions + 1 + 4
    if len(frame) < error_at + 2 or frame[partitions] != 2:
        return None
    failed: int = _INT16.unpack_from(frame, error_at)[0]
    return None if failed in HINTABLE else (session_id, error)


def begun_session(frame: memoryview) -> tuple[int, int] | None:
    """Return session id and top-level error of a begun response of v12 or above.

    ``None`` where its header has tags, which no broker writes, or too little of it is there.
    """
    if len(frame) < _TOPICS_AT or frame[_HEADER_TAGS_AT]:
        return None
    _, error, session_id = _RESPONSE.unpack_from(frame, _TOPICS_AT - _RESPONSE.size)
    return session_id, error


def read_topic(reader: Reader, version: int) -> Topic:
    """Read a topic's name or, where the version has them, its id."""
    return reader.uuid() if version >= TOPIC_IDS_FROM else reader.compact_string() or ""


def pass_plain(frame: Buffer, at: int, end: int, partitions: int) -> tuple[int, int, bool]:
    """Pass over partitions of v12 or above as nearly all are, up to a topic's last, at less cost.

    Those are wholly at hand, without error, aborted transactions and tags. Return where the
    first other one stands, how many of ``partitions`` are left, and whether one had records.
    """
    carries = False
    while partitions > 1 and at + SMALLEST_PARTITION <= end:
        _, error, _, _, _ = _PARTITION.unpack_from(frame, at)
        if error in HINTABLE or frame[at + _PARTITION.size] > 1:
            break
        try:
            length, records = read_uvarint(frame, at + _RECORDS_AT, end)
        except Truncated:
            break
        tags = records + max(length - 1, 0)
        if tags >= end or frame[tags]:
            break
        carries |= length > 1
        partitions -= 1
        at = tags + 1
    return at, partitions, carries


def pass_aborted(reader: Reader, count: int) -> None:
    """Pass over the aborted transactions of a partition of v12 or above.

    There may be very many, one for each 150 bytes of records, and mostly none has tags.

    :raises WireError: not all of them are there, or their tags are not well formed.
    """
    at = reader.at
    reader.skip(_SMALLEST_ABORTED * count)
    tags = bytes(reader.buffer[at : reader.at])[_ABORTED::_SMALLEST_ABORTED]
    if tags.count(0) == count:
        return
    reader.at = at
    for _ in range(count):
        reader.skip(_ABORTED)
        reader.skip_tags()


class FetchScan:
    """Looks for failures in a response of v12 or above while its bytes still arrive.

    The size prefix stands first and hints stand last, so every partition's error must be seen
    before the first byte goes on. :meth:`advance` is called with more and more of one frame.

    ``clean``: the last partition's header has been seen and none failed: no need to wait for
    the records behind it. ``scanned``: at least one failed, and the whole frame has been seen.
    ``started``: ``error`` and ``session_id`` are known. ``paused``: so much was looked at that
    others may have their turn, and there is more at hand.

    ``at``: where the next bytes of interest are, which may be far beyond those that have come. They
    may be seen without the records before them, see :meth:`look`, unless it must be ``whole``.
    """

    __slots__ = (
        "_carries",
        "_failures",
        "_open",
        "_partitions",
        "_topic",
        "_topics",
        "_version",
        "at",
        "clean",
        "error",
        "paused",
        "scanned",
        "session_id",
        "started",
        "whole",
    )

    def __init__(self, version: int) -> None:
        self._version = version
        self.at = 8
        self.started = False
        self._topics = 0
        self._partitions = 0
        self._topic: Topic = ""
        self._open: tuple[int, int] | None = None
        self._failures: list[Failure] = []
        self._carries = False
        self.paused = False
        self.whole = False
        self.clean = False
        self.scanned: Scanned | None = None
        self.error = 0
        self.session_id = 0

    @property
    def failed(self) -> bool:
        """Whether a partition that was seen has failed."""
        return bool(self._failures)

    def advance(self, frame: memoryview, have: int, size: int) -> None:
        """Go on with the first ``have`` bytes of ``frame``, which will have ``size`` in all.

        The frame begins with its size prefix. Does nothing once ``clean`` or ``scanned``.

        :raises Malformed: the bytes cannot be a response of this version.
        :raises Truncated: the whole frame is at hand and yet too short.
        """
        self.paused = False
        try:
            self._advance(Reader(frame, self.at, have), size)
        except Truncated:
            if have == size or self.at > size:
                raise

    def look(self, window: memoryview, size: int) -> None:
        """Go on with bytes that stand from :attr:`at` on, without those before them.

        ``size``: of the frame in all. This is as if :meth:`advance` had seen all bytes up to there.
        But a window with a failure, or with too little of a head, counts as not seen: from then on
        the frame must be ``whole``.

        :raises Malformed: as :meth:`advance`.
        """
        started, before = self.started, (self._topics, self._partitions, self._topic, self._open)
        begin, self.at, self.paused = self.at, 0, False
        try:
            # Where even the whole frame is too short, that shows when it is at hand.
            with suppress(Truncated):
                self._advance(Reader(window), size - begin)
        finally:
            self.at += begin
        if self._failures or self.at == begin:
            self.at, self.started = begin, started
            self._topics, self._partitions, self._topic, self._open = before
            self._failures.clear()
            self.scanned = None
            self.clean = self.paused = False
            self.whole = True

    def _advance(self, reader: Reader, size: int) -> None:
        if not self.started:
            self._start(reader)
        left = _LOOKED_AT_AT_ONCE
        while not self.clean:
            if self._open is not None:
                self._close_partition(reader)
            elif left <= 0:
                self.paused = True
                return
            elif self._partitions:
                if self._partitions > 1:
                    left = self._pass_plain(reader, left - 1)
                    left = self._take_failed(reader, left)
                self._open_partition(reader)
            elif self._topics:
                left -= 1
                self._open_topic(reader)
            else:
                self._finish(reader, size)
                return

    def _start(self, reader: Reader) -> None:
        reader.skip_tags()
        at = reader.at
        reader.skip(_RESPONSE.size)
        _, self.error, self.session_id = _RESPONSE.unpack_from(reader.buffer, at)
        self._topics = self._count(reader)
        self.started = True
        self.at = reader.at
        self.clean = self._topics == 0

    def _open_topic(self, reader: Reader) -> None:
        topic = read_topic(reader, self._version)
        partitions = self._count(reader)
        if not partitions:
            reader.skip_tags()
            self._topics -= 1
        self._topic, self._partitions = topic, partitions
        self.at = reader.at

    def _count(self, reader: Reader) -> int:
        # Not compact_array: that refuses what the bytes at hand cannot hold, and here more
        # may come. Nothing is allocated for the count.
        return max(reader.uvarint() - 1, 0)

    def _pass_plain(self, reader: Reader, most: int) -> int:
        """Pass over plain partitions, up to a topic's last; return what is left of ``most``."""
        some = min(self._partitions, _PLAIN_FOR_ONE * most + 1)
        at, others, carries = pass_plain(reader.buffer, reader.at, reader.end, some)
        self._partitions -= some - others
        self._carries |= carries
        self.at = reader.at = at
        return most - (some - others) // _PLAIN_FOR_ONE

    def _take_failed(self, reader: Reader, most: int) -> int:
        """Take failed partitions as nearly all are, up to a topic's last, at less cost.

        Those have neither aborted transactions nor records nor tags. There may be thousands: return
        how many more of ``most`` may be taken.
        """
        frame, at, left, topic = reader.buffer, reader.at, self._partitions, self._topic
        last = reader.end - SMALLEST_PARTITION
        until = max(1, left - most)
        while left > until and at <= last:
            partition, error, _, _, _ = _PARTITION.unpack_from(frame, at)
            tags = at + SMALLEST_PARTITION - 1
            if (
                error not in HINTABLE
                or frame[at + _PARTITION.size] > 1
                or frame[tags - 1] > 1
                or frame[tags]
            ):
                break
            at = tags + 1
            left -= 1
            self._failures.append(Failure(topic, partition, error, tags, at))
        most -= self._partitions - left
        self._partitions = left
        self.at = reader.at = at
        return most

    def _open_partition(self, reader: Reader) -> None:
        """Read a partition up to its records, and pass over those: they need not be here."""
        at = reader.at
        reader.skip(_PARTITION.size)
        partition, error, _, _, _ = _PARTITION.unpack_from(reader.buffer, at)
        # Not before all of them can be here: there may be very many, and whenever more bytes have
        # come this begins again with the first.
        pass_aborted(reader, reader.compact_array(_SMALLEST_ABORTED))
        reader.skip(4)
        length, records = read_uvarint(reader.buffer, reader.at, reader.end)
        if length > 1:
            self._carries = True
        self._open = (partition, error)
        self.at = reader.at = records + max(length - 1, 0)
        if error not in HINTABLE and not self._failures:
            self.clean = self._topics == 1 and self._partitions == 1

    def _close_partition(self, reader: Reader) -> None:
        assert self._open is not None
        tags = reader.at
        reader.skip_tags()
        partition, error = self._open
        at = reader.at
        if self._partitions == 1:
            reader.skip_tags()
        if error in HINTABLE:
            self._failures.append(Failure(self._topic, partition, error, tags, at))
        if self._partitions == 1:
            self._topics -= 1
        self._open = None
        self._partitions -= 1
        self.at = reader.at

    def _finish(self, reader: Reader, size: int) -> None:
        if not self._failures:
            # The last topics had no partitions: nothing is left that could fail.
            self.clean = True
            return
        tags = reader.at
        reader.skip_tags()
        if reader.at != size:
            raise Malformed(f"{size - reader.at} bytes behind the response")
        self.scanned = Scanned(tuple(self._failures), self._carries, tags, reader.at)
