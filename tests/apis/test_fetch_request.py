import contextlib
import itertools
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.fetch_request import (
    SMALL,
    Asker,
    ask_at_once,
    ask_for_all,
    read_asked,
    read_asker,
    read_changes,
    read_rack,
    read_request,
    read_session,
)
from leader_hints.apis.fetch_response import TOPIC_IDS_FROM, Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ZERO_ID
from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.steps import at_once
from leader_hints.wire.varint import write_uvarint
from tests.apis.many import with_arrays
from tests.apis.messages import (
    Entity,
    element,
    encode,
    entities,
    plain,
    prefixes,
    request_frame,
    request_type,
)
from tests.core.samples import fetch_request
from tests.harness.lines import lines_of

_REQUESTS = st.sampled_from(range(12, 18)).flatmap(
    lambda version: entities(request_type(ApiKey.FETCH, version))
)


def _topic(topic: Entity, version: int) -> Topic:
    if version < TOPIC_IDS_FROM:
        name: str = topic.topic
        return name
    known: UUID | None = topic.topic_id
    return known.bytes if known else ZERO_ID


@given(_REQUESTS, st.none() | st.text(max_size=200))
def test_reads_session_epochs_and_replica(entity: Entity, client_id: str | None) -> None:
    version = entity.__version__
    frame = memoryview(request_frame(entity, 5, client_id))
    request = read_request(frame)
    assert request.replica_id == (
        entity.replica_id if version < 15 else entity.replica_state.replica_id
    )
    assert (request.session_id, request.session_epoch) == (entity.session_id, entity.session_epoch)
    asked = at_once(request.asked())
    said = {t: epochs for t, epochs in asked.items() if epochs}
    assert {(t, p): epoch for t, epochs in said.items() for p, epoch in epochs.items()} == {
        (_topic(topic, version), p.partition): p.current_leader_epoch
        for topic in entity.topics
        for p in topic.partitions
    }
    assert list(request.forgotten) == [
        (_topic(topic, version), topic.partitions) for topic in entity.forgotten_topics_data
    ]
    assert read_changes(frame) == (asked, request.forgotten)
    empty = not entity.topics and not entity.forgotten_topics_data
    assert read_session(frame) == (entity.session_id, entity.session_epoch, empty)


@given(
    st.sampled_from(range(11, 18)).flatmap(lambda v: entities(request_type(ApiKey.FETCH, v))),
    st.none() | st.text(max_size=200),
)
def test_reads_session_and_epochs_of_consumers(entity: Entity, client_id: str | None) -> None:
    session_id, asked = read_asked(memoryview(request_frame(entity, 5, client_id)))
    assert session_id == entity.session_id
    assert {(t, p): epoch for t, epochs in asked.items() for p, epoch in epochs.items()} == {
        (_topic(topic, entity.__version__), p.partition): p.current_leader_epoch
        for topic in entity.topics
        for p in topic.partitions
    }


@given(
    st.sampled_from(range(11, 18)).flatmap(lambda v: entities(request_type(ApiKey.FETCH, v))),
    st.none() | st.text(max_size=200),
)
def test_reads_the_rack_of_consumers(entity: Entity, client_id: str | None) -> None:
    replica = entity.replica_id if entity.__version__ < 15 else entity.replica_state.replica_id
    # From v15 on a replica is known by its tag, which kio leaves out where nothing is in it.
    if entity.__version__ >= 15:
        replica = -1 if entity.replica_state == type(entity.replica_state)() else 0
    frame = memoryview(request_frame(entity, 5, client_id))
    assert read_rack(frame) == ("" if replica >= 0 else entity.rack_id)


@given(_REQUESTS, st.none() | st.text(max_size=200))
def test_what_is_to_be_answered_at_once_has_nothing_else_changed(
    entity: Entity, client_id: str | None
) -> None:
    changed = bytearray(request_frame(entity, 5, client_id))
    ask_at_once(memoryview(changed))
    assert changed == request_frame(replace(entity, max_wait=timedelta()), 5, client_id)


@given(_REQUESTS, st.none() | st.text(max_size=200))
def test_a_request_of_a_session_has_another_epoch_and_nothing_else_changed(
    entity: Entity, client_id: str | None
) -> None:
    changed = bytearray(request_frame(entity, 5, client_id))
    ask_for_all(memoryview(changed))
    epoch = read_session(memoryview(changed))[1]
    assert (epoch != entity.session_epoch) is (entity.session_epoch > 0)
    assert (epoch > 0) is (entity.session_epoch > 0)
    assert changed == request_frame(replace(entity, session_epoch=epoch), 5, client_id)


def test_a_rack_behind_very_many_topics_is_not_looked_for() -> None:
    asked: dict[tuple[Topic, int], int] = {(f"t{number}", 0): 1 for number in range(1001)}
    assert read_rack(memoryview(fetch_request(12, 1, dict([*asked.items()][1:]), rack="b"))) == "b"
    for version in (11, 12):
        with pytest.raises(Malformed):
            read_rack(memoryview(fetch_request(version, 1, asked, rack="b")))


def test_a_rack_behind_very_many_partitions_costs_little() -> None:
    """Anybody may send half a million, of which one has a tagged field: 0.13 s of one step."""

    def request(partitions: int, tags: bytes) -> memoryview:
        frame = fetch_request(12, 1, {("t", 0): 1}, rack="b")
        # The tags of the topic, no topics to forget, the rack, and no tags stand behind those of
        # the partition, and in front of that how many there are.
        before, one, behind = frame[:-39], frame[-38:-6], frame[-5:]
        all_of_them = (one + b"\0") * (partitions - 1) + one + tags
        return memoryview(before + write_uvarint(partitions + 1) + all_of_them + behind)

    assert read_rack(request(1000, b"\1\5\1x")) == "b"
    assert read_rack(request(50_000, b"\0")) == "b"
    many = request(50_000, b"\1\5\1x")

    def refused() -> None:
        with pytest.raises(Malformed):
            read_rack(many)

    assert lines_of(refused) < 1000


@settings(max_examples=25)
@given(_REQUESTS.filter(lambda entity: entity.__version__ >= 15))
def test_every_truncation_is_reported(entity: Entity) -> None:
    frame = request_frame(entity)
    seen = 0
    for begun in prefixes(frame):
        try:
            read_request(begun)
        except Truncated:
            continue
        seen += 1
    # What stands behind the replica's tag is not read.
    assert seen == 0 or entity.replica_state.replica_id != -1
    for begun in prefixes(frame[:20]):
        for read in (read_session, read_changes):
            with pytest.raises(Truncated):
                read(begun)


@given(st.integers(11, 17), st.binary(max_size=150))
def test_any_bytes_give_epochs_or_a_wire_error(version: int, raw: bytes) -> None:
    head = fetch_request(version, 1, {})[:12]
    with contextlib.suppress(WireError):
        read_asked(memoryview(head + raw))


@given(st.integers(12, 17), st.binary(max_size=150))
def test_any_bytes_give_a_request_or_a_wire_error(version: int, raw: bytes) -> None:
    frame = memoryview(bytes(4) + bytes([0, 1, 0, version]) + bytes(4) + b"\xff\xff" + raw)
    for read in (read_request, read_session, read_changes):
        with contextlib.suppress(WireError):
            read(frame)


@given(_REQUESTS, st.binary(min_size=1, max_size=3))
def test_bytes_behind_a_request_are_refused(entity: Entity, behind: bytes) -> None:
    with pytest.raises(Malformed):
        read_request(memoryview(request_frame(entity) + behind))


@pytest.mark.parametrize("version", range(4, 18))
@pytest.mark.parametrize("replica_id", [-1, 0, 3])
@pytest.mark.parametrize("session", [(0, -1), (0, 0), (7, 1), (7, -1)])
def test_the_asking_client_and_its_session(
    version: int, replica_id: int, session: tuple[int, int]
) -> None:
    topic = bytes(16) if version >= 13 else "t"
    frame = fetch_request(
        version, 1, {(topic, 0): 5}, session=session, replica_id=replica_id, client_id=None
    )
    full = version < 7 or session[1] <= 0
    assert read_asker(memoryview(frame)) == Asker(replica_id >= 0, full)
    beginning = memoryview(frame)[:45]
    if version < 15:
        # Partitions need not have arrived.
        assert read_asker(beginning) == Asker(replica_id >= 0, full)
    else:
        with pytest.raises(Truncated):
            read_asker(beginning)


@pytest.mark.parametrize("version", [15, 16, 17])
@pytest.mark.parametrize("replica_id", [-1, 0, 3])
@pytest.mark.parametrize("rack", ["", "europe-west1", "us-west-2a"])
@pytest.mark.parametrize("cluster", [None, "cluster"])
def test_the_asking_client_of_a_large_request_is_known_at_little_cost(
    version: int, replica_id: int, rack: str, cluster: str | None
) -> None:
    """All of it was read: 15 ms with 5,000 topics. A rack of 12 letters looks like a replica."""
    entity = plain(
        request_type(ApiKey.FETCH, version),
        session_id=7,
        session_epoch=1,
        rack_id=rack,
        cluster_id=cluster,
    )
    if replica_id >= 0:
        state = type(entity.replica_state)
        entity = replace(entity, replica_state=plain(state, replica_id=replica_id))
    kind = type(entity)
    topic = element(kind, "topics")
    asked = encode(plain(topic, partitions=(plain(element(topic, "partitions")),)))
    gone = encode(plain(element(kind, "forgotten_topics_data"), partitions=(1,)))
    for topics, forgotten in itertools.product([0, 1, 5000], repeat=2):
        arrays = {"topics": [asked] * topics, "forgotten_topics_data": [gone] * forgotten}
        frame = memoryview(with_arrays(request_frame, entity, **arrays))
        assert read_asker(frame) == Asker(replica_id >= 0, full=False)
        if len(frame) > SMALL:
            assert lines_of(lambda: read_asker(frame)) < 200  # noqa: B023
            with pytest.raises(Truncated):
                read_asker(frame[:-1])
