import contextlib
import uuid
from hashlib import md5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis import metadata_older
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata_older import AskedById
from leader_hints.wire.errors import Malformed, WireError
from leader_hints.wire.steps import at_once
from tests.apis.messages import (
    Entity,
    as_version,
    element,
    entities,
    plain,
    prefixes,
    read_request_frame,
    read_response_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

_ASKED = st.sampled_from([10, 11, 12])
_CELLS = st.sampled_from([(a, sent) for a in (10, 11, 12) for sent in range(9, a + 1)])
_KNOWN, _NAME = uuid.UUID(int=7, version=4), "known"
_NOTHING = AskedById({}, ())


def _name(topic_id: bytes) -> str | None:
    return _NAME if topic_id == _KNOWN.bytes else None


def _make_id(cluster_id: str, name: str) -> bytes:
    return md5(f"{cluster_id}/{name}".encode(), usedforsecurity=False).digest()


def _down(frame: bytes, asked: int, sent: int) -> tuple[bytes, AskedById]:
    pieces, by_id = at_once(metadata_older.request_down(memoryview(frame), asked, sent, _name))
    return b"".join(pieces), by_id


def _up(frame: bytes, sent: int, asked: int, by_id: AskedById = _NOTHING) -> bytes:
    up = metadata_older.response_up(memoryview(frame), sent, asked, by_id, _make_id)
    return b"".join(at_once(up))


@given(_CELLS, st.data(), st.none() | st.text(max_size=200), st.none() | st.integers(0, 99))
def test_a_request_says_the_same_as_kio_reads_it(
    cell: tuple[int, int], data: st.DataObject, client_id: str | None, unknown_tags: int | None
) -> None:
    asked, sent = cell
    kind, older = request_type(ApiKey.METADATA, asked), request_type(ApiKey.METADATA, sent)
    entity = data.draw(entities(kind))
    if asked < 12 and entity.topics is not None:
        topics = tuple(t for t in entity.topics if t.name is not None)
        entity = as_version(entity, kind, topics=topics)
    frame = request_frame(entity, 77, client_id, unknown_tags)
    raw, by_id = _down(frame, asked, sent)
    header, down = read_request_frame(older, raw)
    assert (header.request_api_version, header.correlation_id) == (sent, 77)
    assert header.client_id == client_id
    changes: dict[str, object] = {}
    if entity.topics is None:
        changes["topics"] = None
    else:
        ids = {"topic_id": None} if sent >= 10 else {}
        changes["topics"] = tuple(
            plain(element(older, "topics"), name=t.name, **ids)
            for t in entity.topics
            if not _goes_by_id(t, asked)
        )
        unknown = [t.topic_id for t in entity.topics if _goes_by_id(t, asked)]
        assert list(by_id.unknown) == [i.bytes if i else bytes(16) for i in unknown]
        if unknown:
            changes["allow_auto_topic_creation"] = False
    if asked > 10 >= sent:
        changes["include_cluster_authorized_operations"] = False
    assert down == as_version(entity, older, **changes)


def _goes_by_id(topic: Entity, asked: int) -> bool:
    return topic.name is None or (asked == 12 and topic.topic_id is not None)


@pytest.mark.parametrize("sent", [9, 10, 11, 12])
def test_what_is_asked_by_id_is_named(sent: int) -> None:
    kind = request_type(ApiKey.METADATA, 12)
    topic, other = element(kind, "topics"), uuid.UUID(int=8, version=4)
    topics = tuple(plain(topic, topic_id=one, name=None) for one in (_KNOWN, other))
    raw, by_id = _down(request_frame(plain(kind, topics=topics)), 12, sent)
    _, down = read_request_frame(request_type(ApiKey.METADATA, sent), raw)
    assert [t.name for t in down.topics] == [_NAME]
    assert by_id == AskedById({_NAME: _KNOWN.bytes}, (other.bytes,))

    older = response_type(ApiKey.METADATA, sent)
    answer = plain(older, topics=(plain(element(older, "topics"), name=_NAME),))
    newer = response_type(ApiKey.METADATA, 12)
    got = read_response_frame(newer, _up(response_frame(answer, 5), sent, 12, by_id))
    assert [(t.error_code.value, t.name, t.topic_id) for t in got.topics] == [
        (0, _NAME, _KNOWN),
        (100, None, other),
    ]


def test_all_topics_as_librdkafka_asks_for_them() -> None:
    """It writes the number of topics, none, in four bytes, of which one is the compact null."""
    asked = request_frame(plain(request_type(ApiKey.METADATA, 12), topics=None))
    size = len(asked) - 4 + 3
    raw, _ = _down(size.to_bytes(4) + asked[4:-3] + b"\0\0\0\1\0\0", 12, 9)
    _, down = read_request_frame(request_type(ApiKey.METADATA, 9), raw)
    assert down.topics is None


def test_a_null_name_below_12_is_refused_as_brokers_do() -> None:
    topic = element(request_type(ApiKey.METADATA, 12), "topics")
    asked = plain(request_type(ApiKey.METADATA, 12), topics=(plain(topic, topic_id=_KNOWN),))
    frame = bytearray(request_frame(asked))
    frame[7] = 11
    with pytest.raises(Malformed, match="without a name in v11"):
        _down(bytes(frame), 11, 9)


@given(_CELLS, st.data(), st.none() | st.integers(0, 99))
def test_a_response_says_the_same_as_kio_reads_it(
    cell: tuple[int, int], data: st.DataObject, unknown_tags: int | None
) -> None:
    asked, sent = cell
    kind, older = response_type(ApiKey.METADATA, asked), response_type(ApiKey.METADATA, sent)
    answer = data.draw(entities(older))
    if asked < 12 <= sent:
        return
    frame = response_frame(answer, 5, unknown_tags)
    assert metadata_older.is_refusal(memoryview(frame)) is not bool(answer.brokers)
    raised = _up(frame, sent, asked)
    expected = _with_ids(answer, kind)
    # Not one byte differs from what a broker would have sent.
    assert raised == response_frame(expected, 5, unknown_tags)
    if unknown_tags is None:
        assert read_response_frame(kind, raised) == expected


def _with_ids(answer: Entity, kind: type[Entity]) -> Entity:
    topic = element(kind, "topics")
    cluster = answer.cluster_id or ""
    topics = []
    for given_topic in answer.topics:
        topic_id = getattr(given_topic, "topic_id", None)
        if not given_topic.error_code.value and given_topic.name is not None:
            topic_id = uuid.UUID(bytes=_make_id(cluster, given_topic.name))
        topics.append(as_version(given_topic, topic, topic_id=topic_id))
    changes: dict[str, object] = {"topics": tuple(topics)}
    return as_version(answer, kind, **changes)


@pytest.mark.parametrize("replicas", [0, 1, 126, 127, 128, 300])
def test_partitions_of_any_size_are_passed_over(replicas: int) -> None:
    older = response_type(ApiKey.METADATA, 9)
    topic = element(older, "topics")
    partition = plain(
        element(topic, "partitions"), replica_nodes=tuple(range(replicas)), isr_nodes=(1, 2)
    )
    topics = (plain(topic, name="t", partitions=(partition,) * 3),) * 2
    answer = plain(older, topics=topics)
    kind = response_type(ApiKey.METADATA, 12)
    assert read_response_frame(kind, _up(response_frame(answer), 9, 12)) == _with_ids(answer, kind)


@settings(max_examples=25)
@given(_CELLS, st.data())
def test_every_truncation_is_reported(cell: tuple[int, int], data: st.DataObject) -> None:
    asked, sent = cell
    frame = response_frame(data.draw(entities(response_type(ApiKey.METADATA, sent))), 5)
    for begun in prefixes(frame):
        if len(begun) >= 8:
            with pytest.raises(WireError):
                _up(bytes(begun), sent, asked)


@given(_CELLS, st.binary(max_size=150))
def test_any_bytes_give_a_message_or_a_wire_error(cell: tuple[int, int], raw: bytes) -> None:
    asked, sent = cell
    frame = bytes(4) + bytes([0, 3, 0, asked]) + bytes(4) + b"\xff\xff\0" + raw
    with contextlib.suppress(WireError):
        _down(frame, asked, sent)
    with contextlib.suppress(WireError):
        _up(bytes(8) + raw, sent, asked)


@given(_CELLS, st.data())
def test_any_changed_byte_gives_a_message_or_a_wire_error(
    cell: tuple[int, int], data: st.DataObject
) -> None:
    asked, sent = cell
    frame = bytearray(response_frame(data.draw(entities(response_type(3, sent))), 5))
    frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        _up(bytes(frame), sent, asked)
