"""What every rewriter of addresses must do, held against kio in all versions."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from leader_hints.apis.address import Readdress
from leader_hints.wire.splice import Splice, spliced
from leader_hints.wire.steps import Steps, at_once
from tests.apis.messages import Entity, read_response_frame, response_frame

Splices = Callable[[memoryview, int, Readdress], Steps[list[Splice]]]

HOST, BASE = "here.example", 19_093


def readdress(node: int, host: str, port: int) -> tuple[str, int]:
    """Put every node to one host, at a port of its own."""
    return HOST, (BASE + node) % 65_536


def check(splices: Splices, answer: Entity, seed: int) -> None:
    """Rewrite a response, whose tags no schema knows, and compare with what kio would write."""
    flexible: bool = type(answer).__flexible__
    frame = response_frame(answer, 7, seed if flexible else None)
    found = at_once(splices(memoryview(frame), answer.__version__, readdress))
    written = b"".join(spliced(memoryview(frame), found))
    expected = response_frame(readdressed(answer), 7, seed if flexible else None)
    assert written == expected


def check_kio_reads(splices: Splices, answer: Entity) -> None:
    """Rewrite a response and have kio read it."""
    frame = response_frame(answer, 7)
    found = at_once(splices(memoryview(frame), answer.__version__, readdress))
    written = b"".join(spliced(memoryview(frame), found))
    assert read_response_frame(type(answer), written) == readdressed(answer)


def readdressed(entity: Entity) -> Entity:
    """Return the entity with every broker's address changed, wherever it stands."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            changes[field.name] = tuple(map(readdressed, value))
    node = _node(entity)
    if node >= 0 and getattr(entity, "host", None):
        host, port = readdress(node, entity.host, entity.port)
        changes |= {"host": host, "port": type(entity.port)(port)}
    return dataclasses.replace(entity, **changes)


def addresses(entity: Entity) -> Iterator[tuple[int, str, int]]:
    """Iterate over all nodes with an address in an entity."""
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            for item in value:
                yield from addresses(item)
    if _node(entity) >= 0 and getattr(entity, "host", None):
        yield _node(entity), entity.host, entity.port


def _node(entity: Entity) -> int:
    """Return an entity's node id, under either name that Kafka has for it; -1: it has none."""
    node: int = getattr(entity, "node_id", getattr(entity, "broker_id", -1))
    return node
