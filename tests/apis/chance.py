"""Messages of the protocol made by chance from a seed: fast, and of every API."""

import dataclasses
import random
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    PrimitiveTupleField,
    classify_field,
    get_field_tag,
)

from tests.apis.messages import Entity

_TEXTS = ("", "t", "one", "topic-é", "x" * 130)
_ERRORS = (ErrorCode.none, ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
_MAKERS: dict[str, Callable[[random.Random], Any]] = {
    "int8": lambda chance: chance.choice((-1, 0, 1, 127)),
    "int16": lambda chance: chance.choice((-1, 0, 1, 2**15 - 1)),
    "int32": lambda chance: chance.choice((-1, 0, 1, 2**31 - 1, -(2**31))),
    "int64": lambda chance: chance.choice((-1, 0, 1, 2**63 - 1)),
    "uint16": lambda chance: chance.choice((0, 9092, 2**16 - 1)),
    "float64": lambda chance: chance.choice((0.0, 1.5)),
    "string": lambda chance: chance.choice(_TEXTS),
    "bytes": lambda chance: chance.randbytes(chance.choice((0, 3, 130))),
    "records": lambda chance: chance.randbytes(chance.choice((0, 9, 126, 127, 300))),
    "uuid": lambda chance: uuid.UUID(bytes=chance.randbytes(16)),
    "bool": lambda chance: chance.choice((False, True)),
    "error_code": lambda chance: chance.choice(_ERRORS),
    "timedelta_i32": lambda chance: timedelta(milliseconds=chance.choice((-1, 0, 500))),
    "datetime_i64": lambda chance: datetime.fromtimestamp(chance.randrange(2**31), UTC),
    "timedelta_i64": lambda chance: timedelta(milliseconds=chance.choice((-1, 0, 500))),
}


def every_version() -> Iterator[tuple[int, int]]:
    """Iterate over key and version of every API that kio knows."""
    for key, name in api_key_map.items():
        for version in schema_name_map[name]:
            yield key, version


def flexible(key: int, version: int) -> bool:
    """Whether a request of an API has the encoding of KIP-482."""
    return bool(load_request_schema(key, version).__flexible__)


def entity(kind: type[Entity], chance: random.Random) -> Entity:
    """Return an entity of a kio class with values by chance."""
    values = {}
    for field in dataclasses.fields(kind):
        optional = get_field_tag(field) is not None and field.default is not dataclasses.MISSING
        if not optional or chance.random() < 0.5:
            values[field.name] = _value(field, chance)
    return kind(**values)


def _value(field: dataclasses.Field[Any], chance: random.Random) -> Any:
    nullable = "None" in str(field.type)
    match classify_field(field):
        case EntityTupleField(inner):
            if nullable and chance.random() < 0.2:
                return None
            return tuple(entity(inner, chance) for _ in range(chance.choice((0, 1, 1, 2))))
        case EntityField(inner):
            return None if nullable and chance.random() < 0.5 else entity(inner, chance)
    kafka_type = field.metadata["kafka_type"]
    if nullable and chance.random() < 0.2:
        return None
    make = _MAKERS[kafka_type]
    if isinstance(classify_field(field), PrimitiveTupleField):
        return tuple(make(chance) for _ in range(chance.choice((0, 1, 3))))
    return make(chance)
