from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis import produce
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.fetch_response import FetchScan
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import (
    CURRENT_LEADER_FROM,
    CURRENT_LEADER_TAG,
    NODE_ENDPOINTS_FROM,
    NODE_ENDPOINTS_TAG,
    Endpoint,
    LeaderHint,
    Scanned,
    with_hints,
)
from leader_hints.wire.steps import at_once
from tests.apis.messages import (
    Entity,
    as_version,
    element,
    entities,
    read_response_frame,
    response_frame,
    response_type,
)

#: API, version that the broker answers, version that the client asked.
_CASES = [
    (ApiKey.PRODUCE, 9, 10),
    (ApiKey.FETCH, 12, 12),
    (ApiKey.FETCH, 13, 13),
    (ApiKey.FETCH, 14, 14),
    (ApiKey.FETCH, 15, 15),
    (ApiKey.FETCH, 15, 16),
]


@st.composite
def _hints(draw: st.DrawFn, count: int) -> list[LeaderHint | None]:
    """Hints as one view gives them: each node has one endpoint."""
    nodes = draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=3, unique=True))
    endpoints = {
        node: Endpoint(
            draw(st.text(max_size=50)),
            draw(st.integers(0, 65_535)),
            draw(st.none() | st.text(max_size=3)),
        )
        for node in nodes
    }
    hints = st.builds(
        lambda node, epoch: LeaderHint(node, epoch, endpoints[node]),
        st.sampled_from(nodes),
        st.integers(0, 2**31 - 1),
    )
    return draw(st.lists(st.none() | hints, min_size=count, max_size=count))


def _scan(key: ApiKey, version: int, frame: bytes) -> Scanned:
    if key is ApiKey.PRODUCE:
        return produce.scan_response(memoryview(frame))
    scan = FetchScan(version)
    scan.advance(memoryview(frame), len(frame), len(frame))
    return scan.scanned or Scanned((), False, 0, 0)


def _hinted(answer: Entity, hints: list[LeaderHint | None]) -> Entity:
    """Return what a native broker would answer: the same, the leader, and its address."""
    left = iter(hints)
    inner = _inner(answer)
    topics = tuple(
        replace(topic, **{inner: tuple(_hint(p, left) for p in getattr(topic, inner))})
        for topic in answer.responses
    )
    nodes = {hint.leader: hint.endpoint for hint in hints if hint is not None}
    if nodes and hasattr(answer, "node_endpoints"):
        kind = element(type(answer), "node_endpoints")
        listed = tuple(kind(node_id=node, **at._asdict()) for node, at in nodes.items())
        answer = replace(answer, node_endpoints=listed)
    return replace(answer, responses=topics)


def _inner(answer: Entity) -> str:
    return "partition_responses" if answer.__api_key__ == ApiKey.PRODUCE else "partitions"


def _hint(partition: Entity, left: Iterator[LeaderHint | None]) -> Entity:
    hint = next(left) if partition.error_code.value in HINTABLE else None
    if hint is None:
        return partition
    leader = type(partition.current_leader)(leader_id=hint.leader, leader_epoch=hint.epoch)
    return replace(partition, current_leader=leader)


@pytest.mark.parametrize(("key", "answered", "asked"), _CASES)
def test_a_hint_adds_leader_and_endpoints_and_changes_nothing_else(
    key: ApiKey, answered: int, asked: int
) -> None:
    @settings(max_examples=60)
    @given(st.data(), entities(response_type(key, answered)), st.none() | st.integers(0, 99))
    def check(data: st.DataObject, answer: Entity, unknown_tags: int | None) -> None:
        frame = response_frame(answer, 77, unknown_tags)
        scanned = _scan(key, asked, frame)
        hints = data.draw(_hints(len(scanned.failures)))
        result = b"".join(at_once(with_hints(memoryview(frame), key, asked, scanned, hints)))
        if not any(hints):
            assert result == frame
            return
        expected = _hinted(as_version(answer, response_type(key, asked)), hints)
        assert result == response_frame(expected, 77, unknown_tags)
        if unknown_tags is None:
            assert read_response_frame(type(expected), result) == expected

    check()


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH])
def test_the_fields_and_their_versions_are_those_of_the_schemas(key: ApiKey) -> None:
    for version in range(9 if key is ApiKey.PRODUCE else 12, 18 if key is ApiKey.FETCH else 12):
        answer = response_type(key, version)
        tags = {f.name: f.metadata.get("tag") for f in fields(answer)}
        assert ("node_endpoints" in tags) == (version >= NODE_ENDPOINTS_FROM[key])
        assert tags.get("node_endpoints") in (None, NODE_ENDPOINTS_TAG)
        topic = element(answer, "responses")
        partition = element(topic, _inner(answer))
        tags = {f.name: f.metadata.get("tag") for f in fields(partition)}
        assert ("current_leader" in tags) == (version >= CURRENT_LEADER_FROM[key])
        assert tags.get("current_leader") in (None, CURRENT_LEADER_TAG[key])
