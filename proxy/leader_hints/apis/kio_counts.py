"""Whether a message can have as many elements as its arrays claim, before kio reads it.

kio takes memory for a whole array at once. Where there is not so much, the process ends: a count of
five bytes claims 32 GB, and there is no exception. And it reads null for any array, also for those
of which Kafka's message definitions say that they cannot be null.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_origin

from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader

#: Bytes of the types of fixed width.
_WIDTHS: Final[Mapping[str, int]] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "float64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}

#: Passes over a field.
_Pass = Callable[[Reader], None]


class _Form(NamedTuple):
    """``smallest``: bytes that it takes at least."""

    smallest: int
    passes: _Pass


def check_counts(kind: Any, body: memoryview) -> None:
    """Check a message of one of kio's classes, without its header; more may stand behind it.

    :raises WireError: it is not well formed, an array claims more than there is room for, or one
        is null that must not be: brokers and clients refuse that.
    """
    _entity(kind).passes(Reader(body))


@cache
def _entity(kind: Any) -> _Form:
    flexible: bool = kind.__flexible__
    forms: list[_Form] = []
    tagged: dict[int, _Form] = {}
    for field in fields(kind):
        form = _form(field.type, field.metadata.get("kafka_type", ""), flexible)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = form
        else:
            forms.append(form)
    if flexible:
        forms.append(_Form(1, lambda reader: _pass_tags(reader, tagged)))
    passes = [form.passes for form in forms]

    def pass_all(reader: Reader) -> None:
        for one in passes:
            one(reader)

    return _Form(sum(form.smallest for form in forms), pass_all)


def _form(kind: Any, kafka_type: str, flexible: bool) -> _Form:
    parts: Sequence[Any] = get_args(kind)
    if get_origin(kind) is tuple:
        return _array(_form(parts[0], kafka_type, flexible), flexible, nullable=False)
    if NoneType in parts:
        (inner,) = (part for part in parts if part is not NoneType)
        if get_origin(inner) is tuple:
            return _array(_form(get_args(inner)[0], kafka_type, flexible), flexible, nullable=True)
        form = _form(inner, kafka_type, flexible)
        return _nullable(form) if is_dataclass(inner) else form
    if isinstance(kind, type) and is_dataclass(kind):
        return _entity(kind)
    width = _WIDTHS.get(kafka_type)
    if width is not None:
        return _Form(width, lambda reader: reader.skip(width))
    if flexible:
        return _Form(1, Reader.skip_compact)
    if kafka_type == "string":
        return _Form(2, lambda reader: reader.skip(max(reader.int16(), 0)))
    return _Form(4, lambda reader: reader.skip(max(reader.int32(), 0)))


def _array(of: _Form, flexible: bool, *, nullable: bool) -> _Form:
    length = Reader.nullable_compact_array if flexible else Reader.nullable_array

    def passes(reader: Reader) -> None:
        count = length(reader, of.smallest)
        if count < 0 and not nullable:
            raise Malformed("an array is null that must not be")
        for _ in range(count):
            of.passes(reader)

    return _Form(1 if flexible else 4, passes)


def _nullable(structure: _Form) -> _Form:
    def passes(reader: Reader) -> None:
        if reader.int8() >= 0:
            structure.passes(reader)

    return _Form(1, passes)


def _pass_tags(reader: Reader, known: Mapping[int, _Form]) -> None:
    for _ in range(reader.tag_count()):
        form, size = known.get(reader.uvarint()), reader.uvarint()
        begin = reader.at
        reader.skip(size)
        if form is not None:
            form.passes(Reader(reader.buffer, begin, reader.at))
