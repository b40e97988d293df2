"""Messages of the protocol, made and read by kio, which shares no code with the proxy."""

import dataclasses
import random
import struct
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    PrimitiveTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)
from kio.serial._serialize import get_field_writer
from kio.serial.writers import write_compact_array_length, write_unsigned_varint

# kio's entities are frozen dataclasses made from Kafka's message definitions; which one a test
# deals with is known at run time only.
Entity = Any

#: Fields whose size is left to chance are small: what matters is where one ends.
_SMALL = 3
_RAW: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "string": st.text(max_size=_SMALL),
    "bytes": st.binary(max_size=_SMALL),
    "records": st.binary(max_size=9) | st.sampled_from([bytes(126), bytes(127), bytes(200)]),
    "uuid": st.uuids(),
    "bool": st.booleans(),
    "error_code": st.sampled_from(
        [ErrorCode.none, ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch]
    )
    | st.sampled_from(ErrorCode),
    "timedelta_i32": st.integers(-(2**31), 2**31 - 1).map(lambda ms: timedelta(milliseconds=ms)),
    "timedelta_i64": st.integers(-(2**40), 2**40).map(lambda ms: timedelta(milliseconds=ms)),
    "datetime_i64": st.nothing(),
}


_strategies: dict[type[Entity], st.SearchStrategy[Entity]] = {}
#: What the fields have that need a value, by class.
_nothings: dict[type[Entity], dict[str, Any]] = {}


def request_type(key: int, version: int) -> type[Entity]:
    """Return kio's class of a request."""
    return load_request_schema(key, version)


def response_type(key: int, version: int) -> type[Entity]:
    """Return kio's class of a response."""
    return load_response_schema(key, version)


def entities(kind: type[Entity]) -> st.SearchStrategy[Entity]:
    """Return a strategy for entities of a kio class, nulls and tagged fields included."""
    if kind not in _strategies:
        values = {field.name: _values(field) for field in dataclasses.fields(kind)}
        _strategies[kind] = st.builds(kind, **values)
    return _strategies[kind]


def plain(kind: type[Entity], **values: Any) -> Entity:
    """Return an entity with ``values``, and nothing in its other fields."""
    if kind not in _nothings:
        _nothings[kind] = {
            field.name: _nothing(field)
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING
        }
    return kind(**{**_nothings[kind], **values})


def element(kind: type[Entity], name: str) -> type[Entity]:
    """Return the class of the elements of an array field."""
    (field,) = (field for field in dataclasses.fields(kind) if field.name == name)
    match classify_field(field):
        case EntityTupleField(inner):
            return inner
    raise TypeError(f"{name} of {kind} is no array of structures")


def _nothing(field: dataclasses.Field[Any]) -> Any:
    match classify_field(field):
        case EntityTupleField() | PrimitiveTupleField():
            return ()
        case EntityField(inner):
            return plain(inner)
    if _nullable(field):
        return None
    kafka_type = field.metadata["kafka_type"]
    nothing: dict[str, Any] = {"error_code": ErrorCode.none, "string": "", "bool": False}
    return timedelta() if "timedelta" in kafka_type else nothing.get(kafka_type, 0)


def _values(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    match classify_field(field):
        case EntityTupleField(inner):
            values: st.SearchStrategy[Any] = st.lists(entities(inner), max_size=_SMALL).map(tuple)
            null = is_optional(field) or _nullable(field)
        case EntityField(inner):
            values, null = entities(inner), False
        case PrimitiveTupleField():
            values = st.lists(_RAW[field.metadata["kafka_type"]], max_size=_SMALL).map(tuple)
            null = _nullable(field)
        case _:
            values = _RAW[field.metadata["kafka_type"]]
            null = is_optional(field) and get_field_tag(field) is None
            if field.metadata["kafka_type"] == "datetime_i64":
                return st.none()
    return st.none() | values if null else values


def _nullable(field: dataclasses.Field[Any]) -> bool:
    return "None" in str(field.type)


def encode(entity: Entity) -> bytes:
    """Return the entity's bytes as kio writes them."""
    out = BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def encode_with_unknown_tags(entity: Entity, seed: int) -> bytes:
    """Return the entity's bytes with tagged fields in it that no schema knows.

    The same ``seed`` puts the same ones into every entity of the same shape: so two entities
    that differ in a field differ in the bytes of that field alone.
    """
    out = BytesIO()
    _encode(out, entity, random.Random(seed))
    return out.getvalue()


def _encode(out: BytesIO, entity: Entity, chance: random.Random) -> None:
    kind = type(entity)
    tagged: dict[int, bytes] = {}
    for field in dataclasses.fields(kind):
        tag = get_field_tag(field)
        value = getattr(entity, field.name)
        if tag is not None:
            if value != field.default:
                payload = BytesIO()
                writer = get_field_writer(field, kind.__flexible__, False, is_tag=True)
                writer(payload, value)
                tagged[int(tag)] = payload.getvalue()
        elif isinstance(classify_field(field), EntityTupleField):
            write_compact_array_length(out, None if value is None else len(value))
            for item in value or ():
                _encode(out, item, chance)
        else:
            get_field_writer(field, kind.__flexible__, False, is_tag=False)(out, value)
    for _ in range(chance.choice([0, 0, 1, 2])):
        tagged[chance.choice([7, 127, 128, 20_000])] = chance.randbytes(chance.choice([0, 3, 130]))
    write_unsigned_varint(out, len(tagged))  # type: ignore[arg-type]
    for number, raw in sorted(tagged.items()):
        write_unsigned_varint(out, number)  # type: ignore[arg-type]
        write_unsigned_varint(out, len(raw))  # type: ignore[arg-type]
        out.write(raw)


def decode(kind: type[Entity], raw: bytes) -> Entity:
    """Return the entity that kio reads; nothing may be left over."""
    entity, size = entity_reader(kind)(raw, 0)
    assert size == len(raw)
    return entity


def framed(payload: bytes) -> bytes:
    """Put the size before a message."""
    return struct.pack(">i", len(payload)) + payload


def request_frame(
    entity: Entity,
    correlation_id: int = 0,
    client_id: str | None = "client",
    unknown_tags: int | None = None,
) -> bytes:
    """Return a whole request, size prefix and header included; see :func:`response_frame`."""
    kind = type(entity)
    header = kind.__header_schema__(
        request_api_key=kind.__api_key__,
        request_api_version=kind.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    body = (
        encode(entity) if unknown_tags is None else encode_with_unknown_tags(entity, unknown_tags)
    )
    return framed(encode(header) + body)


def response_frame(
    entity: Entity, correlation_id: int = 0, unknown_tags: int | None = None
) -> bytes:
    """Return a whole response; ``unknown_tags``: seed of tagged fields that no schema knows."""
    header = type(entity).__header_schema__(correlation_id=correlation_id)
    if unknown_tags is None:
        return framed(encode(header) + encode(entity))
    return framed(encode(header) + encode_with_unknown_tags(entity, unknown_tags))


def read_response_frame(kind: type[Entity], frame: bytes) -> Entity:
    """Return the entity in a whole response, read by kio."""
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    _, size = entity_reader(kind.__header_schema__)(frame[4:], 0)
    return decode(kind, frame[4 + size :])


def read_request_frame(kind: type[Entity], frame: bytes) -> tuple[Entity, Entity]:
    """Return header and entity of a whole request, read by kio."""
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    header, size = entity_reader(kind.__header_schema__)(frame[4:], 0)
    return header, decode(kind, frame[4 + size :])


def as_version(entity: Entity, kind: type[Entity], **changes: Any) -> Entity:
    """Return an entity's values in the class of another version that has the same fields."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in changes:
            values[field.name] = changes[field.name]
        elif not hasattr(entity, field.name):
            assert get_field_tag(field) is not None or field.default is not dataclasses.MISSING
        else:
            values[field.name] = _as_version(getattr(entity, field.name), field)
    return kind(**values)


def _as_version(value: Any, field: dataclasses.Field[Any]) -> Any:
    match classify_field(field):
        case EntityTupleField(inner) if value is not None:
            return tuple(as_version(item, inner) for item in value)
        case EntityField(inner):
            return as_version(value, inner)
    return value


def prefixes(frame: bytes) -> Iterator[memoryview]:
    """Iterate over every beginning of a frame, the whole one left out."""
    for end in range(len(frame)):
        yield memoryview(frame)[:end]
