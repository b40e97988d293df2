"""Reads primitive types from a buffer, one after the other."""

import struct

from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.varint import Buffer, read_uvarint

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

#: In one section, and in all sections that one reader passes. Messages of Kafka 4 have five in one
#: at most, and one for each partition. Work in steps counts sections and not what is in them.
_MOST_TAGS = 10
_MOST_TAGS_IN_ALL = 100_000
#: Bytes of a text that brokers read. Clients may send megabytes before they have authenticated, of
#: which a text and its encodings would take several times as much.
LONGEST_TEXT = 32_767


class Reader:
    """A position in ``buffer`` that never passes ``end``.

    Every method raises :class:`Truncated` where the value goes on beyond ``end``, and
    leaves the position where it was or beyond: a reader that raised is of no further use.
    """

    __slots__ = ("_tags", "at", "buffer", "end")

    def __init__(self, buffer: Buffer, at: int = 0, end: int | None = None) -> None:
        self.buffer = buffer
        self.at = at
        self.end = len(buffer) if end is None else end
        self._tags = 0

    def skip(self, size: int) -> None:
        """Pass over ``size`` bytes.

        :raises Malformed: ``size`` is negative.
        """
        if size < 0:
            raise Malformed(f"negative size {size}")
        self.at += size
        if self.at > self.end:
            raise Truncated(f"{self.at - self.end} bytes short")

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes as a copy."""
        start = self.at
        self.skip(size)
        return bytes(self.buffer[start : self.at])

    def int8(self) -> int:
        """Signed, one byte."""
        self.skip(1)
        byte = self.buffer[self.at - 1]
        return byte - 256 if byte > 127 else byte

    def int16(self) -> int:
        """Signed, two bytes."""
        self.skip(2)
        value: int = _INT16.unpack_from(self.buffer, self.at - 2)[0]
        return value

    def int32(self) -> int:
        """Signed, four bytes."""
        self.skip(4)
        value: int = _INT32.unpack_from(self.buffer, self.at - 4)[0]
        return value

    def uvarint(self) -> int:
        """Unsigned varint (KIP-482)."""
        value, self.at = read_uvarint(self.buffer, self.at, self.end)
        return value

    def uuid(self) -> bytes:
        """Sixteen bytes as they stand."""
        return self.take(16)

    def string(self) -> str | None:
        """Nullable string of the old encoding: length as int16, -1 is null."""
        size = self.int16()
        return None if size == -1 else _text(self.take(size))

    def compact_string(self) -> str | None:
        """Nullable string of the flexible encoding: length plus one as varint, 0 is null."""
        size = self.uvarint()
        return None if size == 0 else _text(self.take(size - 1))

    def clients_string(self) -> str | None:
        """The same in what a client sends.

        :raises Malformed: it is longer than any of the old encoding: brokers read no longer ones.
        """
        size = self.uvarint() - 1
        if size > LONGEST_TEXT:
            raise Malformed(f"string of {size} bytes")
        return None if size < 0 else _text(self.take(size))

    def skip_compact(self) -> None:
        """Pass over a compact nullable string or byte array."""
        self.skip(max(self.uvarint() - 1, 0))

    def array(self, smallest: int) -> int:
        """Length of an array of the old encoding, 0 for null. See :meth:`compact_array`."""
        return self._count(max(self.int32(), 0), smallest)

    def nullable_array(self, smallest: int) -> int:
        """Length of an array of the old encoding, -1 for null. See :meth:`compact_array`."""
        return self._count(max(self.int32(), -1), smallest)

    def compact_array(self, smallest: int) -> int:
        """Length of a compact array, 0 for null.

        ``smallest`` is the least number of bytes that an element takes: a count that the
        bytes up to ``end`` cannot hold is refused before anything is made for it.
        """
        return self._count(max(self.uvarint() - 1, 0), smallest)

    def nullable_compact_array(self, smallest: int) -> int:
        """Length of a compact array, -1 for null. See :meth:`compact_array`."""
        return self._count(self.uvarint() - 1, smallest)

    def _count(self, count: int, smallest: int) -> int:
        if count * smallest > self.end - self.at:
            raise Truncated(f"{count} elements do not fit into {self.end - self.at} bytes")
        return count

    def tag_count(self) -> int:
        """Count of a tag section.

        :raises Malformed: more than any message has. A million fields would stop the event loop
            for seconds.
        """
        count = self.uvarint()
        if count:
            self._tags += count
            if count > _MOST_TAGS or self._tags > _MOST_TAGS_IN_ALL:
                raise Malformed(f"{self._tags} tagged fields")
        return count

    def skip_tags(self) -> None:
        """Pass over a tag section (KIP-482)."""
        count = self.tag_count()
        if not count:
            return
        buffer, at, last = self.buffer, self.at, self.end - 2
        for _ in range(count):
            if at > last or buffer[at] > 127 or buffer[at + 1] > 127:
                self.at = at
                self.uvarint()
                self.skip(self.uvarint())
                at = self.at
            else:
                at += 2 + buffer[at + 1]
        self.skip(at - self.at)

    def done(self) -> None:
        """Check that nothing is left.

        :raises Malformed: bytes are left before ``end``.
        """
        if self.at != self.end:
            raise Malformed(f"{self.end - self.at} bytes too many")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"text is not UTF-8: {error.reason}") from None
