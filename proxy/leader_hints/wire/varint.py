"""Unsigned varints: seven bits a byte, lowest first (KIP-482)."""

from leader_hints.wire.errors import Malformed, Truncated

Buffer = bytes | bytearray | memoryview

#: A 32-bit value takes five bytes at most.
MAX_BYTES = 5
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def read_uvarint(buffer: Buffer, at: int, end: int) -> tuple[int, int]:
    """Read the varint at ``at``; return its value and the position behind it.

    Longer forms than needed (padding with 0x80) are taken as the brokers take them.

    :raises Truncated: the varint goes on at ``end``.
    :raises Malformed: it is longer than a 32-bit value allows.
    """
    value = 0
    for shift in range(0, 7 * MAX_BYTES, 7):
        if at >= end:
            raise Truncated("varint")
        byte = buffer[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise Malformed("varint above 32 bits")
            return value, at
    raise Malformed(f"varint of more than {MAX_BYTES} bytes")


def write_uvarint(value: int) -> bytes:
    """Return the shortest form of ``value``, which is not negative."""
    if value <= 0x7F:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
