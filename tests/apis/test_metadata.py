import contextlib
import dataclasses
import struct
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis import metadata
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import NEWEST, OLDEST, ZERO_ID, ClusterMetadata, TopicMetadata
from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.reader import Reader
from leader_hints.wire.varint import write_uvarint
from tests.apis.messages import (
    Entity,
    decode,
    encode,
    encode_with_unknown_tags,
    entities,
    prefixes,
    request_type,
    response_type,
)

_VERSIONS = st.sampled_from(range(OLDEST, NEWEST + 1))
_ANSWERS = _VERSIONS.flatmap(lambda version: entities(response_type(ApiKey.METADATA, version)))


def _read(raw: bytes | memoryview, version: int) -> tuple[ClusterMetadata, list[TopicMetadata]]:
    cluster = metadata.read_response(Reader(raw), version)
    return cluster, list(cluster.topics)


def _id(topic: Entity) -> bytes:
    known: uuid.UUID | None = getattr(topic, "topic_id", None)
    return known.bytes if known else ZERO_ID


@given(_ANSWERS, st.integers(0, 99) | st.none())
def test_reads_brokers_topics_and_leaders(answer: Entity, seed: int | None) -> None:
    raw = encode(answer) if seed is None else encode_with_unknown_tags(answer, seed)
    cluster, topics = _read(raw, answer.__version__)
    assert cluster.endpoints == {b.node_id: (b.host, b.port, b.rack) for b in answer.brokers}
    assert cluster.tells is bool(answer.brokers)
    assert cluster.cluster_id == (answer.cluster_id or "")
    read = metadata.read_response(Reader(raw), answer.__version__, in_sync=True)
    with_nodes = list(read.topics)
    assert [topic._replace(in_sync=()) for topic in with_nodes] == topics
    assert [topic.in_sync for topic in with_nodes] == [
        tuple(struct.pack(f">{len(p.isr_nodes)}i", *p.isr_nodes) for p in topic.partitions)
        for topic in answer.topics
    ]
    assert topics == [
        (
            topic.error_code.value,
            topic.name or "",
            _id(topic),
            tuple((p.partition_index, p.leader_id, p.leader_epoch) for p in topic.partitions),
            (),
        )
        for topic in answer.topics
    ]


@given(_ANSWERS, _ANSWERS, st.booleans())
def test_brokers_that_are_as_before_are_not_read_again(
    former: Entity, answer: Entity, same: bool
) -> None:
    before, _ = _read(encode(former), former.__version__)
    if same:
        answer = dataclasses.replace(answer, brokers=former.brokers)
    raw = encode(answer)
    read = metadata.read_response(Reader(raw), answer.__version__, before.brokers)
    alone, topics = _read(raw, answer.__version__)
    assert (read.endpoints, read.cluster_id) == (alone.endpoints, alone.cluster_id)
    assert read.brokers.raw == alone.brokers.raw
    assert [*read.topics] == topics
    if same:
        assert read.endpoints is before.endpoints


def test_reads_lists_of_nodes_of_any_length() -> None:
    """None, few, and so many that their length takes two bytes."""
    lengths = (b"\0", b"\1", b"\4", b"\x7f", b"\x80\1", b"\x84\0")
    counts = (0, 0, 3, 126, 127, 3)
    raw, led = b"", []
    for number, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        nodes = length + bytes(4 * count)
        raw += struct.pack(">hiii", 0, number, number + 1, 9) + nodes * 3 + b"\0"
        led.append((number, number + 1, 9))
    topic = b"\0\0\2t\0" + bytes([len(led) + 1]) + raw + bytes(5)
    _, (read,) = _read(bytes(4) + b"\1\0" + bytes(4) + b"\2" + topic, 9)
    assert read == (0, "t", ZERO_ID, tuple(led), ())


def test_a_large_topic_is_read_in_steps() -> None:
    led = [(number, number % 3, 7) for number in range(2500)]
    raw = b"".join(struct.pack(">hiii", 0, *one) + b"\1\1\1\0" for one in led)
    topic = b"\0\0\2t\0" + b"\xc5\x13" + raw + bytes(5)
    body = bytes(4) + b"\1\0" + bytes(4) + b"\3" + topic * 2
    steps = [*metadata.read_response(Reader(body), 9).steps]
    assert steps == [None, None, (0, "t", ZERO_ID, tuple(led), ())] * 2
    assert [*metadata.read_response(Reader(body), 9).topics] == [steps[2], steps[5]]


@settings(max_examples=25)
@given(_ANSWERS)
def test_every_truncation_is_reported(answer: Entity) -> None:
    raw = encode(answer)
    reader = Reader(raw)
    list(metadata.read_response(reader, answer.__version__).topics)
    for begun in prefixes(raw[: reader.at]):
        with pytest.raises(Truncated):
            _read(begun, answer.__version__)


@given(_VERSIONS, st.binary(max_size=120))
def test_any_bytes_give_metadata_or_a_wire_error(version: int, raw: bytes) -> None:
    with contextlib.suppress(WireError):
        _read(raw, version)


@given(_ANSWERS, st.data())
def test_any_changed_byte_gives_metadata_or_a_wire_error(
    answer: Entity, data: st.DataObject
) -> None:
    raw = bytearray(encode(answer))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        _read(bytes(raw), answer.__version__)


@given(_VERSIONS, st.none() | st.lists(st.text(max_size=200), max_size=200))
def test_asks_by_name_or_for_all_and_creates_nothing(version: int, names: list[str] | None) -> None:
    entity = decode(
        request_type(ApiKey.METADATA, version), metadata.write_request_body(version, names)
    )
    if names is None:
        assert entity.topics is None
    else:
        assert [topic.name for topic in entity.topics] == names
        assert {getattr(topic, "topic_id", None) for topic in entity.topics} <= {None}
    assert not entity.allow_auto_topic_creation
    assert not entity.include_topic_authorized_operations
    assert not getattr(entity, "include_cluster_authorized_operations", False)


_PLAIN = struct.pack(">hiii", 0, 0, 1, 1) + b"\1\1\1\0"


def test_a_topic_that_needs_too_much_memory_is_refused_before_it_is_read() -> None:
    """Of an answer of 128 MB one topic took a gigabyte."""
    most = 1342177
    for count in (most, most + 1):
        topic = b"\0\0\2t" + bytes(16) + b"\0" + write_uvarint(count + 1) + _PLAIN * count
        raw = bytes(4) + b"\1\2k" + bytes(4) + b"\2" + topic + bytes(6)
        if count == most:
            # It is read in steps: the first thousand partitions are.
            assert next(metadata.read_response(Reader(raw), 12).steps) is None
        else:
            with pytest.raises(Malformed, match="1342178 partitions of 't' needs too much memory"):
                next(metadata.read_response(Reader(raw), 12).steps)


def test_topics_that_need_too_much_memory_are_refused_before_they_are_read() -> None:
    most = 1 << 18
    for count in (most, most + 1):
        topics = (b"\0\0\2t" + bytes(16) + b"\0\1" + bytes(5)) * count
        raw = bytes(4) + b"\1\2k" + bytes(4) + write_uvarint(count + 1) + topics + bytes(1)
        if count == most:
            assert next(metadata.read_response(Reader(raw), 12).topics).name == "t"
        else:
            with pytest.raises(Malformed, match="262145 topics needs too much memory"):
                next(metadata.read_response(Reader(raw), 12).topics)


def test_brokers_with_very_long_hosts_are_refused() -> None:
    """To read 10,000 of 114 MB took 0.18 s of one step, and 0.2 s at each answer after that."""
    host = write_uvarint(5001) + 5000 * b"h"
    broker = bytes(4) + host + bytes(4) + b"\0\0"
    for count, refused in ((800, False), (900, True)):
        raw = bytes(4) + write_uvarint(count + 1) + count * broker + b"\2k" + bytes(4) + b"\1\0"
        with pytest.raises(Malformed) if refused else contextlib.nullcontext():
            _read(raw, 12)


@pytest.mark.parametrize("count", [10_000, 10_001])
def test_no_cluster_has_more_than_ten_thousand_brokers(count: int) -> None:
    """They are read at once: a million took six seconds."""
    brokers = b"".join(struct.pack(">i", n) + b"\2a" + bytes(6) for n in range(count))
    raw = bytes(4) + write_uvarint(count + 1) + brokers + b"\2k" + bytes(4) + b"\1\0"
    if count <= 10_000:
        assert len(_read(raw, 12)[0].endpoints) == count
    else:
        with pytest.raises(Malformed, match="10001 brokers"):
            _read(raw, 12)
