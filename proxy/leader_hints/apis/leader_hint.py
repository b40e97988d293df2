"""CurrentLeader and NodeEndpoints: the tagged fields of KIP-951.

Produce response v10+: partition tag 0 CurrentLeader, top-level tag 0 NodeEndpoints.
Fetch response: partition tag 1 CurrentLeader (v12+), top-level tag 0 NodeEndpoints (v16+). A
client below v16 that gets NodeEndpoints crashes (librdkafka), so they go with v16 only.
Neither is ever written with a leader or an epoch of -1: librdkafka reads uninitialised memory.
Endpoints are unique by node id: the Java client throws on a duplicate.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leader_hints.apis.keys import ApiKey
from leader_hints.wire.steps import Steps
from leader_hints.wire.tags import with_field
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string

_CURRENT_LEADER = struct.Struct(">iib")
_INT32 = struct.Struct(">i")

#: Failures that get their hints in one step. What comes of them is copied then: thousands of pieces
#: would cost more to be sent than one.
_AT_ONCE = 1000

#: Tag of CurrentLeader in a partition of the response, by API.
CURRENT_LEADER_TAG = {ApiKey.PRODUCE: 0, ApiKey.FETCH: 1}
#: Tag of NodeEndpoints at the end of the response, for both APIs.
NODE_ENDPOINTS_TAG = 0
#: First version of the response that carries each field, by API.
CURRENT_LEADER_FROM = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 12}
NODE_ENDPOINTS_FROM = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}


class Endpoint(NamedTuple):
    """Where a broker is reached on one listener; the rack is compared by clients too."""

    host: str
    port: int
    rack: str | None


class LeaderHint(NamedTuple):
    """A partition's leader, its leader epoch, and the address of that broker."""

    leader: int
    epoch: int
    endpoint: Endpoint


class Failure(NamedTuple):
    """A partition whose error a hint can answer.

    ``topic`` is the name (text) or the topic id (16 bytes), as the response says it.
    The partition's tag section stands from ``tags`` to ``tags_end`` of the frame.
    """

    topic: str | bytes
    partition: int
    error: int
    tags: int
    tags_end: int


class Scanned(NamedTuple):
    """What a response holds for the hint rules.

    ``carries``: other partitions brought records or acknowledgements, so that a hold keeps
    something back. The top-level tag section stands from ``tags`` to ``tags_end``.
    """

    failures: tuple[Failure, ...]
    carries: bool
    tags: int
    tags_end: int


def current_leader(hint: LeaderHint) -> bytes:
    """Return the CurrentLeader structure."""
    return _CURRENT_LEADER.pack(hint.leader, hint.epoch, 0)


def node_endpoints(hints: Iterable[LeaderHint]) -> bytes:
    """Return the NodeEndpoints array with one element for each leader."""
    nodes = {hint.leader: hint.endpoint for hint in hints}
    out = write_uvarint(len(nodes) + 1)
    for node, (host, port, rack) in nodes.items():
        out += _INT32.pack(node) + compact_string(host) + _INT32.pack(port)
        out += compact_string(rack) + b"\0"
    return out


def with_hints(
    frame: memoryview,
    key: ApiKey,
    version: int,
    scanned: Scanned,
    hints: Sequence[LeaderHint | None],
) -> Steps[list[memoryview | bytes]]:
    """Return the response ``frame`` with ``hints``, one or ``None`` for each failure, in steps.

    ``version`` is the version that the client asked. A CurrentLeader that stands there already
    gives way: brokers of the versions that are raised write none of their own (librdkafka's
    mock does, without the endpoint that goes with it).

    :raises WireError: a tag section is not well formed.
    """
    if not any(hints):
        return [frame]
    tag = CURRENT_LEADER_TAG[key]
    given: dict[int, LeaderHint] = {}
    pieces: list[memoryview | bytes] = []
    some: list[memoryview | bytes] = []
    at = _INT32.size
    for number, (failure, hint) in enumerate(zip(scanned.failures, hints, strict=True), 1):
        if hint is not None:
            section = with_field(frame, failure.tags, failure.tags_end, tag, current_leader(hint))
            some += (frame[at : failure.tags], section)
            at = failure.tags_end
            given[hint.leader] = hint
        if not number % _AT_ONCE:
            pieces.append(b"".join(some))
            some = []
            yield
    if version >= NODE_ENDPOINTS_FROM[key]:
        endpoints = node_endpoints(given.values())
        section = with_field(frame, scanned.tags, scanned.tags_end, NODE_ENDPOINTS_TAG, endpoints)
        some += (frame[at : scanned.tags], section)
        at = scanned.tags_end
    pieces += some
    if at < len(frame):
        pieces.append(frame[at:])
    return [_INT32.pack(sum(map(len, pieces))), *pieces]
