"""The bytes of messages: JSON, made and read by the types of their fields.

A message is its name and its fields in their order. What JSON lacks is made of what it has: bytes
are base64, a topic's id is that in a list so that no name is taken for one, and what has fields of
its own is a list of them.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from leader_hints.core.workers.messages import Message

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


class NotAMessageError(Exception):
    """Bytes are no message. Both processes run the same program, so that is a defect."""


class _Form(NamedTuple):
    """How values of a type become JSON, and are made of it again.

    ``read`` raises ValueError, TypeError or LookupError for what is none.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def encode(message: Message) -> bytes:
    """Return the bytes of a message."""
    kind: Any = type(message)
    return _ENCODER.encode([kind.__name__, *_form(kind).write(message)]).encode()


def bytes_of(message: Message | bytes) -> bytes:
    """Return the bytes of a message, or what was made of one that many processes get."""
    return message if isinstance(message, bytes) else encode(message)


def decode(data: bytes) -> Message:
    """Return the message of some bytes.

    :raises NotAMessageError: they are none.
    """
    try:
        name, *values = json.loads(data)
        message: Message = _form(MESSAGES[name]).read(values)
        return message
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise NotAMessageError(f"{type(error).__name__}: {data[:100]!r}") from None


MESSAGES: Final[Mapping[str, type]] = {kind.__name__: kind for kind in get_args(Message)}


@cache
def _form(kind: Any) -> _Form:
    """Return how values of a type are written; each type of each message and event has one."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in (bool, int, str):
        return _plain(kind)
    if kind is float:
        return _Form(float, _number)
    if kind is bytes:
        return _Form(_text, _bytes)
    if origin in (Union, UnionType):
        return _union(parts)
    if origin is tuple:
        return _tuple(parts)
    if origin is list:
        write, read = _form(parts[0])
        return _Form(
            lambda value: [write(one) for one in value],
            lambda value: [read(one) for one in _list(value)],
        )
    if origin is dict:
        return _dict(*map(_form, parts))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Form(lambda value: value.value, kind)
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, tuple)):
        return _record(kind)
    raise TypeError(f"no form for {kind}")


def _plain(kind: type) -> _Form:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"no {kind.__name__}")
        return value

    return _Form(lambda value: value, read)


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError("no number")
    return float(value)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("no bytes")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _union(kinds: tuple[Any, ...]) -> _Form:
    rest = tuple(kind for kind in kinds if kind is not NoneType)
    if rest == (str, bytes):
        return _Form(_write_topic, _read_topic)
    if len(rest) == 1:
        write, read = _form(rest[0])
        return _Form(
            lambda value: None if value is None else write(value),
            lambda value: None if value is None else read(value),
        )
    return _one_of({kind.__name__: kind for kind in rest})


def _write_topic(value: str | bytes) -> Any:
    return value if isinstance(value, str) else [_text(value)]


def _read_topic(value: Any) -> str | bytes:
    if isinstance(value, str):
        return value
    (text,) = value
    return _bytes(text)


def _one_of(kinds: Mapping[str, Any]) -> _Form:
    def write(value: Any) -> Any:
        kind: Any = type(value)
        return [kind.__name__, *_form(kind).write(value)]

    def read(value: Any) -> Any:
        name, *values = value
        return _form(kinds[name]).read(values)

    return _Form(write, read)


def _tuple(parts: tuple[Any, ...]) -> _Form:
    if len(parts) == 2 and parts[1] is Ellipsis:
        write, read = _form(parts[0])
        return _Form(
            lambda value: [write(one) for one in value],
            lambda value: tuple(read(one) for one in _list(value)),
        )
    forms = [_form(part) for part in parts]
    return _Form(
        lambda value: [form.write(one) for form, one in zip(forms, value, strict=True)],
        lambda value: tuple(form.read(one) for form, one in zip(forms, _list(value), strict=True)),
    )


def _dict(key: _Form, entry: _Form) -> _Form:
    return _Form(
        lambda value: [[key.write(k), entry.write(v)] for k, v in value.items()],
        lambda value: {key.read(k): entry.read(v) for k, v in _list(value)},
    )


def _record(kind: Any) -> _Form:
    """Of a dataclass or a named tuple."""
    hints, make = get_type_hints(kind), kind
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else [*kind._fields]
    forms = [(name, _form(hints[name])) for name in names]
    reads = [form.read for _, form in forms]

    def write(value: Any) -> Any:
        return [form.write(getattr(value, name)) for name, form in forms]

    def read(value: Any) -> Any:
        values = (one(part) for one, part in zip(reads, _list(value), strict=True))
        return make(**dict(zip(names, values, strict=True)))

    return _Form(write, read)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value
