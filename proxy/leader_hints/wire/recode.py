"""Values from one encoding into the other, byte for byte (KIP-482).

These are for messages that are rewritten by the thousand, where a method call for each value is
most of the cost. Each appends to ``out`` what stands at a position, and returns the position
behind it. What goes on beyond the buffer raises IndexError or struct.error, or yields a position
beyond the buffer's end: a caller that reads a whole message checks the position in the end.
"""

import struct

from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.varint import Buffer, read_uvarint, write_uvarint

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_LONGEST = 32_767
_NULL = b"\xff\xff"


def uvarint(buffer: Buffer, at: int) -> tuple[int, int]:
    """Read a varint; nearly all have one byte."""
    byte = buffer[at]
    return (byte, at + 1) if byte < 0x80 else read_uvarint(buffer, at, len(buffer))


def past_tags(reader: Reader, at: int) -> int:
    """Pass over a tag section; nearly all are empty.

    ``reader``: one for all sections of a message, since it bounds how many fields they may have.

    :raises WireError: see :meth:`leader_hints.wire.reader.Reader.skip_tags`.
    """
    if not reader.buffer[at]:
        return at + 1
    reader.at = at
    reader.skip_tags()
    return reader.at


def count_to_old(out: bytearray, buffer: Buffer, at: int) -> tuple[int, int]:
    """Write the count of a compact array as 32 bits; return it as well, -1 for null."""
    count = buffer[at]
    if count < 0x80:
        at += 1
    else:
        count, at = read_uvarint(buffer, at, len(buffer))
    out += _INT32.pack(count - 1)
    return count - 1, at


def count_to_compact(out: bytearray, buffer: Buffer, at: int) -> tuple[int, int]:
    """Write the count of an old array as a varint; return it as well, -1 for null."""
    count: int = _INT32.unpack_from(buffer, at)[0]
    if -1 <= count < 0x7F:
        out.append(count + 1)
    else:
        count = max(count, -1)
        out += write_uvarint(count + 1)
    return count, at + 4


def string_to_old(out: bytearray, buffer: Buffer, at: int) -> int:
    """Write a compact nullable string with a length of 16 bits.

    :raises Malformed: it is longer than such a length can say.
    """
    size = buffer[at]
    if size < 0x80:
        at += 1
    else:
        size, at = read_uvarint(buffer, at, len(buffer))
    if not size:
        out += _NULL
        return at
    end = at + size - 1
    if size - 1 > _LONGEST:
        raise Malformed(f"string of {size - 1} bytes")
    out += _INT16.pack(size - 1)
    out += buffer[at:end]
    return end


def string_to_compact(out: bytearray, buffer: Buffer, at: int) -> int:
    """Write a nullable string whose length has 16 bits as a compact one."""
    size: int = _INT16.unpack_from(buffer, at)[0]
    at += 2
    if size < 0:
        out.append(0)
        return at
    if size < 0x7F:
        out.append(size + 1)
    else:
        out += write_uvarint(size + 1)
    out += buffer[at : at + size]
    return at + size
