"""Reads messages by kio's schemas into plain values, more tolerant than any client or broker.

What this cannot read nobody understands. kio itself refuses what brokers take: error codes that
it does not know, text that is no UTF-8, null where a schema has none.
"""

import dataclasses
import struct
from collections.abc import Callable
from typing import Any

from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    PrimitiveTupleField,
    classify_field,
    get_field_tag,
)

from tests.apis.messages import Entity

#: A structure: its fields by name, and under ``tags`` its tagged fields as they stand.
Values = dict[str, Any]
Read = Callable[["Position"], Any]

TAGS = "tags"
_SIZES = {
    "int8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "float64": 8,
    "uuid": 16,
}


_messages: dict[type[Entity], Read] = {}


class Unreadable(Exception):
    """The bytes are no message of the schema."""


class Position:
    """Where reading has come to."""

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw = raw
        self.at = at

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self.at + size
        if size < 0 or end > len(self.raw):
            raise Unreadable
        taken = self.raw[self.at : end]
        self.at = end
        return taken

    def number(self, size: int) -> int:
        """Return a signed number of that many bytes."""
        return int.from_bytes(self.take(size), signed=True)

    def varint(self) -> int:
        """Return an unsigned varint."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Unreadable

    def tags(self) -> list[tuple[int, bytes]]:
        """Return a tag section."""
        return [(self.varint(), self.take(self.varint())) for _ in range(self.varint())]


def read(kind: type[Entity], raw: bytes, at: int, *, more: bool = False) -> Values:
    """Return the message that begins at ``at`` and ends where ``raw`` does.

    ``more``: something may stand behind it.

    :raises Unreadable: there is no such message.
    """
    position = Position(raw, at)
    if kind not in _messages:
        _messages[kind] = _structure(kind)
    values: Values = _messages[kind](position)
    if position.at != len(raw) and not more:
        raise Unreadable
    return values


def _structure(kind: type[Entity]) -> Read:
    flexible = bool(kind.__flexible__)
    fields = [
        (field.name, _field(field, flexible))
        for field in dataclasses.fields(kind)
        if get_field_tag(field) is None
    ]

    def structure(position: Position) -> Values:
        values = {name: value(position) for name, value in fields}
        values[TAGS] = position.tags() if flexible else []
        return values

    return structure


def _field(field: dataclasses.Field[Any], flexible: bool) -> Read:
    match classify_field(field):
        case EntityTupleField(inner):
            return _array(_structure(inner), flexible)
        case EntityField(inner):
            return _structure(inner)
        case PrimitiveTupleField():
            return _array(_primitive(field.metadata["kafka_type"], flexible), flexible)
    return _primitive(field.metadata["kafka_type"], flexible)


def _array(element: Read, flexible: bool) -> Read:
    def array(position: Position) -> list[Any] | None:
        count = position.varint() - 1 if flexible else position.number(4)
        if count < 0:
            return None
        return [element(position) for _ in range(count)]

    return array


def _primitive(kafka_type: str, flexible: bool) -> Read:
    if kafka_type in _SIZES:
        size = _SIZES[kafka_type]
        return lambda position: position.take(size)
    prefix = 2 if kafka_type == "string" else 4

    def sized(position: Position) -> bytes | None:
        length = position.varint() - 1 if flexible else position.number(prefix)
        return None if length < 0 else position.take(length)

    return sized


class Head:
    """What precedes a message, and where that begins; ``tags``: the header's own."""

    __slots__ = ("body", "client_id", "correlation_id", "key", "tags", "version")

    def __init__(self, frame: bytes, flexible: bool) -> None:
        """Read a request's. ``frame`` begins with its size prefix.

        :raises Unreadable: the header goes on beyond it.
        """
        position = Position(frame, 4)
        self.key, self.version = position.number(2), position.number(2)
        self.correlation_id = position.take(4)
        size = position.number(2)
        self.client_id = None if size < 0 else position.take(size)
        self.tags = position.tags() if flexible else []
        self.body = position.at


def response_body(frame: bytes, flexible: bool) -> int:
    """Return where a response's message begins.

    :raises Unreadable: the header goes on beyond the frame.
    """
    position = Position(frame, 8)
    if flexible:
        position.tags()
    return position.at


def frame_at(stream: bytes, at: int) -> bytes | None:
    """Return the whole frame that begins at ``at``, ``None`` if there is none."""
    if len(stream) - at < 8:
        return None
    (size,) = struct.unpack_from(">i", stream, at)
    end = at + 4 + size
    return stream[at:end] if size >= 4 and end <= len(stream) else None
