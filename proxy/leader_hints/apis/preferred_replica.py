"""The preferred read replica of Fetch responses (KIP-392), set in place while the bytes pass.

Or set in a whole response, out of which the records beside it are taken: brokers send none there.

Response v11: each partition has it behind the aborted transactions; -1: none. v12: flexible; it
still takes four bytes, which stand there in any case. v13: topic ids.
"""

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from leader_hints.apis.fetch_request import RACK_FROM
from leader_hints.apis.fetch_response import Topic, pass_aborted, read_topic
from leader_hints.wire.errors import Truncated, WireError
from leader_hints.wire.reader import Reader

#: Versions that can be looked at: later ones have the body of 16.
SCANNED = range(RACK_FROM, 18)
_FLEXIBLE_FROM = 12

#: Size prefix and correlation id.
_HEADER = 8
#: Throttle time, error code, session id.
_HEAD = 10
#: Partition, error code, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
#: Producer id and first offset.
_ABORTED = 16
#: No preferred replica.
NONE = -1
#: The size of no records, as flexible versions have it, and as others do.
_EMPTY_COMPACT, _EMPTY = b"\x01", bytes(4)

#: Partitions of a response that are looked at, each of which costs some microseconds. The others
#: come first in other responses: brokers and clients rotate them.
_MOST = 300
#: Topics and partitions with very many aborted transactions are not looked at for long.
_MOST_ABORTED = 200
#: A field that is cut is kept; none that is read is longer, but for those transactions.
_MOST_CARRIED = 8192


class Offered(NamedTuple):
    """What a partition's part of a response says, as far as it matters here.

    ``size``: bytes of its records. ``position``: the offset behind which the consumer reads, at the
    earliest: of the first of these records, or where they end for it if there are none; ``None``
    where that has not come yet. So it is where others have records in front of it, and it has none:
    these may be all that fits into a response.
    """

    topic: Topic
    partition: int
    error: int
    high: int
    start: int
    preferred: int
    size: int
    position: int | None


#: Takes a partition, and returns the node that is to be named in it, ``NONE`` if none is.
Place = Callable[[Offered], int]


class PreferredReplicaScan:
    """Reads a response of v11 or above piece by piece, and writes what ``place`` returns.

    Nothing is kept back for it: where the field has gone on before all of its partition's header
    was there, it stays as it is; the next response has it again. ``done``: nothing more is of
    interest. ``size``: of the whole frame. ``cuts``: where records begin and end that are to be
    taken out by :func:`without`, those beside a named replica; then the frame is to be seen in one
    piece. ``None``: none are.
    """

    __slots__ = (
        "_at",
        "_carry",
        "_flexible",
        "_has_records",
        "_left",
        "_partitions",
        "_place",
        "_seen",
        "_step",
        "_topic",
        "_topics",
        "_version",
        "cuts",
        "done",
        "size",
    )

    def __init__(self, version: int, size: int, place: Place, *, takes_out: bool = False) -> None:
        self._version = version
        self._flexible = version >= _FLEXIBLE_FROM
        self._place = place
        # No bound method: it would keep the object in a cycle.
        self._step: Callable[[PreferredReplicaScan, Reader, memoryview, int], None]
        self._step = PreferredReplicaScan._start
        #: Where the next step begins, and how much of the frame has been seen.
        self._at = self._seen = 0
        self._carry = b""
        self._has_records = False
        self._left = _MOST
        self._topic: Topic = ""
        self._topics = self._partitions = 0
        self.cuts: list[tuple[int, int]] | None = [] if takes_out else None
        self.done = False
        self.size = size

    @property
    def looked_at(self) -> int:
        """How many topics and partitions were looked at."""
        return _MOST - self._left

    def see(self, piece: memoryview, begin: int) -> None:
        """Take a piece of the frame, of which the first byte is at ``begin``.

        It may have been seen, or a part of it: what is gathered comes again with more. Its bytes
        must not have gone on yet.
        """
        seen, end = self._seen, begin + len(piece)
        if self.done or end <= seen:
            return
        self._seen = end
        if self._at >= end:
            return
        if self._at >= begin:
            buffer, base = piece, begin
        else:
            buffer, base = memoryview(self._carry + bytes(piece[seen - begin :])), self._at
        self._carry = b""
        try:
            self._advance(buffer, base, piece, begin)
        except Truncated:
            left = len(buffer) - (self._at - base)
            if left > _MOST_CARRIED or end >= self.size:
                self.done = True
            elif left > 0:
                self._carry = bytes(buffer[-left:])
        except WireError:
            # Others report it.
            self.done = True

    def _advance(self, buffer: memoryview, base: int, piece: memoryview, begin: int) -> None:
        reader = Reader(buffer, self._at - base)
        # What may be written to begins here in the buffer.
        shift = begin - base
        while not self.done and self._left > 0:
            if reader.at > len(buffer):
                return
            self._step(self, reader, piece, shift)
            self._at = base + reader.at
        self.done = True

    # Each step reads to its end before it changes anything, since it is repeated with more
    # bytes if these are not enough.

    def _start(self, reader: Reader, _piece: memoryview, _shift: int) -> None:
        reader.skip(_HEADER)
        self._tags(reader)
        reader.skip(_HEAD)
        self._topics = self._count(reader)
        self.done = self._topics == 0
        self._step = PreferredReplicaScan._open_topic

    def _open_topic(self, reader: Reader, _piece: memoryview, _shift: int) -> None:
        topic = read_topic(reader, self._version) if self._flexible else reader.string() or ""
        self._partitions = self._count(reader)
        self._topic = topic
        self._left -= 1
        self._next()

    def _partition(self, reader: Reader, piece: memoryview, shift: int) -> None:
        at, frame = reader.at, reader.buffer
        reader.skip(_PARTITION.size)
        aborted = self._count(reader)
        if aborted > _MOST_ABORTED:
            self.done = True
            return
        if self._flexible:
            pass_aborted(reader, aborted)
        else:
            reader.skip(_ABORTED * aborted)
        field = reader.at
        reader.skip(_INT32.size)
        size = self._count(reader)
        partition, error, high, stable, start = _PARTITION.unpack_from(frame, at)
        (preferred,) = _INT32.unpack_from(frame, field)
        position = None
        if size >= _INT64.size <= len(frame) - reader.at:
            (position,) = _INT64.unpack_from(frame, reader.at)
        elif not size and not self._has_records:
            # A consumer of committed records alone gets none from the last stable offset on.
            position = stable if stable >= 0 else high
        self._has_records |= size > 0
        offered = Offered(self._topic, partition, error, high, start, preferred, size, position)
        node = NONE
        if field >= shift:
            node = self._place(offered)
        if node != NONE:
            _INT32.pack_into(piece, field - shift, node)
            if self.cuts is not None and 0 < size <= len(frame) - reader.at:
                empty = _EMPTY_COMPACT if self._flexible else _EMPTY
                begin = field + _INT32.size + len(empty)
                piece[begin - len(empty) : begin] = empty
                self.cuts.append((begin, reader.at + size))
        reader.at += size
        self._left -= 1
        self._partitions -= 1
        self.done = self._topics == 1 and not self._partitions
        if self._flexible:
            self._step = PreferredReplicaScan._close_partition
        else:
            self._next()

    def _close_partition(self, reader: Reader, _piece: memoryview, _shift: int) -> None:
        reader.skip_tags()
        self._next()

    def _close_topic(self, reader: Reader, _piece: memoryview, _shift: int) -> None:
        self._tags(reader)
        self._topics -= 1
        self.done = self._topics == 0
        self._step = PreferredReplicaScan._open_topic

    def _next(self) -> None:
        if self._partitions:
            self._step = PreferredReplicaScan._partition
        else:
            self._step = PreferredReplicaScan._close_topic

    # The two encodings.

    def _tags(self, reader: Reader) -> None:
        if self._flexible:
            reader.skip_tags()

    def _count(self, reader: Reader) -> int:
        return max(reader.uvarint() - 1 if self._flexible else reader.int32(), 0)


def without(frame: memoryview, cuts: Sequence[tuple[int, int]]) -> memoryview:
    """Take cuts out of a frame; return what is left: the same memory, and less of it."""
    if not cuts:
        return frame
    size = cuts[0][0]
    for (_, end), (begin, _) in pairwise([*cuts, (len(frame), 0)]):
        kept = begin - end
        frame[size : size + kept] = frame[end:begin]
        size += kept
    _INT32.pack_into(frame, 0, size - _INT32.size)
    return frame[:size]
