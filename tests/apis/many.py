"""Frames of thousands of topics and partitions: kio writes one of each, since it takes long."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from leader_hints.wire.varint import write_uvarint
from tests.apis.messages import Entity, element, encode, framed, plain


def array(elements: Sequence[bytes], *, flexible: bool) -> bytes:
    """Return an array of what is encoded already."""
    count = len(elements)
    size = write_uvarint(count + 1) if flexible else struct.pack(">i", count)
    return size + b"".join(elements)


def numbered(partition: Entity) -> Callable[[int], bytes]:
    """Return what encodes a partition with another number, which is its first field."""
    behind = encode(partition)[4:]
    return lambda number: struct.pack(">i", number) + behind


def topic(name: str | bytes, partitions: Sequence[bytes], *, flexible: bool) -> bytes:
    """Return a topic, by name or id, with nothing but its partitions."""
    tags = b"\0" if flexible else b""
    return _named(name, flexible=flexible) + array(partitions, flexible=flexible) + tags


def _named(name: str | bytes, *, flexible: bool) -> bytes:
    if isinstance(name, bytes):
        return name
    raw = name.encode()
    size = write_uvarint(len(raw) + 1) if flexible else struct.pack(">h", len(raw))
    return size + raw


def with_arrays(
    make: Callable[[Entity], bytes], entity: Entity, **arrays: Sequence[bytes]
) -> bytes:
    """Return the frame that ``make`` makes, with ``arrays`` of what is encoded already.

    They are empty in ``entity``. Where one stands shows if it has an element.
    """
    kind = type(entity)
    whole = make(entity)[4:]
    size = 1 if kind.__flexible__ else 4
    places = []
    for field, elements in arrays.items():
        other = make(replace(entity, **{field: (plain(element(kind, field)),)}))[4:]
        differs = next(at for at, byte in enumerate(whole) if byte != other[at])
        places.append((differs + 1 - size, array(elements, flexible=kind.__flexible__)))
    for at, raw in sorted(places, reverse=True):
        whole = whole[:at] + raw + whole[at + size :]
    return framed(whole)
