"""Tag sections: the tagged fields at the end of a flexible structure (KIP-482).

A section is a count and then, in ascending order of the tags, a tag, a size and that many
bytes for each field. Readers refuse a section whose tags do not ascend.
"""

from leader_hints.wire.reader import Reader
from leader_hints.wire.varint import Buffer, write_uvarint


def with_field(buffer: Buffer, start: int, end: int, tag: int, payload: bytes) -> bytes:
    """Return the section at ``start`` to ``end`` with the field of ``tag`` set to ``payload``.

    A field of that tag gives way; all others stay byte for byte.

    :raises WireError: the section does not end at ``end``.
    """
    field = write_uvarint(tag) + write_uvarint(len(payload)) + payload
    if end - start == 1 and buffer[start] == 0:
        return b"\x01" + field
    reader = Reader(buffer, start, end)
    count = reader.uvarint()
    before, after = b"", b""
    others = 0
    for _ in range(count):
        field_at = reader.at
        present = reader.uvarint()
        reader.skip(reader.uvarint())
        if present == tag:
            continue
        others += 1
        if present < tag:
            before += bytes(buffer[field_at : reader.at])
        else:
            after += bytes(buffer[field_at : reader.at])
    reader.done()
    return write_uvarint(others + 1) + before + field + after
