"""Primitive types as bytes, for the few requests that the proxy asks on its own."""

import struct

from leader_hints.wire.errors import Malformed
from leader_hints.wire.varint import write_uvarint

_FRAME = struct.Struct(">i")
_LONGEST = 32_767


def string(text: str | None) -> bytes:
    """Nullable string of the old encoding: length as int16, -1 is null.

    :raises Malformed: it is longer than such a length can say.
    """
    if text is None:
        return b"\xff\xff"
    raw = text.encode()
    if len(raw) > _LONGEST:
        raise Malformed(f"string of {len(raw)} bytes")
    return struct.pack(">h", len(raw)) + raw


def compact_string(text: str | None) -> bytes:
    """Nullable string of the flexible encoding: length plus one as varint, 0 is null."""
    if text is None:
        return b"\0"
    raw = text.encode()
    return write_uvarint(len(raw) + 1) + raw


def frame(payload: bytes) -> bytes:
    """Put the size before ``payload``."""
    return _FRAME.pack(len(payload)) + payload
