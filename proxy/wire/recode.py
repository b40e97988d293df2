"""Strings from one encoding into the other, byte for byte (KIP-482)."""

import struct

from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from proxy.wire.varint import write_uvarint

_INT16 = struct.Struct(">h")
_LONGEST = 32_767
_NULL = b"\xff\xff"


def to_old(reader: Reader) -> bytes:
    """Read a compact nullable string; return it with a length of 16 bits.

    :raises Malformed: it is longer than such a length can say.
    """
    size = reader.uvarint() - 1
    if size < 0:
        return _NULL
    if size > _LONGEST:
        raise Malformed(f"string of {size} bytes")
    return _INT16.pack(size) + reader.take(size)


def to_compact(reader: Reader) -> bytes:
    """Read a nullable string whose length has 16 bits; return it as a compact one."""
    size = reader.int16()
    return b"\0" if size < 0 else write_uvarint(size + 1) + reader.take(size)
