"""Racks of brokers by their node ids, for ``closest_replica``."""

import re
from typing import Annotated, Any, Final

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from leader_hints.settings.fields import refuse_twice

#: A client names none that is longer than 255 characters here.
_ENTRY: Final = re.compile(r"([0-9]{1,10})=([^\x00-\x1f\x7f]{1,255})", re.ASCII)
_LARGEST: Final = 2**31 - 1


def _read_racks(value: Any) -> tuple[str, ...]:
    """Read a list of NODE=RACK; in one text they are separated by commas."""
    if isinstance(value, str):
        value = [entry.strip() for entry in value.split(",")]
    if not isinstance(value, list | tuple) or not all(map(_is_entry, value)):
        raise ValueError("allowed: a list of NODE=RACK, such as 1=eu-1a")
    refuse_twice("node", [str(node) for node, _ in map(_split, value)])
    return tuple(value)


def _is_entry(value: Any) -> bool:
    entry = _ENTRY.fullmatch(value) if isinstance(value, str) else None
    return entry is not None and int(entry[1]) <= _LARGEST


def _split(entry: str) -> tuple[int, str]:
    node, _, rack = entry.partition("=")
    return int(node), rack


def by_node(racks: tuple[str, ...]) -> dict[int, str]:
    """Return the rack of each node."""
    return dict(map(_split, racks))


Racks = Annotated[
    tuple[str, ...],
    PlainValidator(_read_racks),
    PlainSerializer(list),
    WithJsonSchema(
        {"type": "array", "items": {"type": "string", "pattern": "^[0-9]{1,10}=.{1,255}$"}}
    ),
]
