import contextlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from leader_hints.apis import fetch_older
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.fetch_older import Names, Raised, response_up
from leader_hints.apis.fetch_request import read_request, write_request
from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Truncated, WireError
from leader_hints.wire.steps import at_once
from tests.apis.messages import (
    Entity,
    as_version,
    element,
    entities,
    plain,
    read_request_frame,
    read_response_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.apis.steps import short_steps

_NO_TAGS = st.none()


def _fetch(version: int) -> type[Entity]:
    return request_type(ApiKey.FETCH, version)


def _answer(version: int) -> type[Entity]:
    return response_type(ApiKey.FETCH, version)


def _id(number: int) -> bytes:
    return bytes([number]) * 16


# Requests.


@given(
    st.sampled_from([15, 16]).flatmap(lambda version: entities(_fetch(version))),
    st.sampled_from([13, 14]),
    st.none() | st.text(max_size=200),
)
def test_a_request_by_ids_goes_down_to_13_and_14(
    entity: Entity, version: int, client_id: str | None
) -> None:
    frame = memoryview(request_frame(entity, 7, client_id))
    down = at_once(write_request(frame, read_request(frame), version))
    header, read = read_request_frame(_fetch(version), down)
    assert (header.request_api_version, header.correlation_id, header.client_id) == (
        version,
        7,
        client_id,
    )
    replica = entity.replica_state.replica_id
    assert read == as_version(entity, _fetch(version), replica_id=replica)


@given(entities(_fetch(12)), st.none() | st.text(max_size=200))
def test_a_request_by_names_goes_down_to_11(entity: Entity, client_id: str | None) -> None:
    frame = memoryview(request_frame(entity, 7, client_id))
    request = read_request(frame)
    if request.rack is None:
        return
    header, read = read_request_frame(_fetch(11), at_once(write_request(frame, request, 11)))
    assert (header.request_api_version, header.client_id) == (11, client_id)
    assert read == as_version(entity, _fetch(11))
    _, leaders_alone = read_request_frame(_fetch(10), at_once(write_request(frame, request, 10)))
    assert leaders_alone == as_version(entity, _fetch(10))


@given(st.sampled_from([10, 11, 12]), st.sampled_from([13, 14, 15, 16]), st.data())
def test_a_request_by_ids_goes_down_by_names(sent: int, asked: int, data: st.DataObject) -> None:
    entity = data.draw(entities(_fetch(asked)))
    frame = memoryview(request_frame(entity))
    request = read_request(frame)
    names = {topic: f"name-{n}" for n, (topic, _) in enumerate(request.topics)}
    names |= {
        topic: names.get(topic, f"gone-{n}") for n, (topic, _) in enumerate(request.forgotten)
    }
    named = request._replace(
        topics=tuple((names[topic], partitions) for topic, partitions in request.topics),
        forgotten=tuple((names[topic], numbers) for topic, numbers in request.forgotten),
    )
    _, read = read_request_frame(_fetch(sent), at_once(write_request(frame, named, sent)))
    assert [topic.topic for topic in read.topics] == [names[t] for t, _ in request.topics]
    assert [t.topic for t in read.forgotten_topics_data] == [names[t] for t, _ in request.forgotten]
    for above, below in zip(entity.topics, read.topics, strict=True):
        kind = element(element(_fetch(sent), "topics"), "partitions")
        assert below.partitions == tuple(as_version(p, kind) for p in above.partitions)
    for field in ("max_wait", "min_bytes", "max_bytes", "isolation_level", "session_id"):
        assert getattr(read, field) == getattr(entity, field)
    assert read.session_epoch == entity.session_epoch
    assert sent == 10 or read.rack_id == entity.rack_id
    assert sent < 12 or read.cluster_id == entity.cluster_id


# Responses.


def _up(frame: bytes, version: int, names: Names | None = None) -> tuple[bytes, Raised]:
    """Convert a whole response, and again in the shortest steps that there are."""
    raised = at_once(response_up(memoryview(frame), len(frame), version, names))
    with short_steps(fetch_older):
        in_steps = at_once(response_up(memoryview(frame), len(frame), version, names))
    assert b"".join(in_steps.pieces) == b"".join(raised.pieces)
    assert in_steps[1:] == raised[1:]
    return b"".join(raised.pieces), raised


@given(entities(_answer(10)))
def test_a_response_of_10_is_one_of_11_without_preferred_replicas(answer: Entity) -> None:
    newer = _answer(11)
    topic = element(newer, "responses")
    partition = element(topic, "partitions")
    same = as_version(
        answer,
        newer,
        responses=tuple(
            as_version(
                t,
                topic,
                partitions=tuple(
                    as_version(p, partition, preferred_read_replica=-1) for p in t.partitions
                ),
            )
            for t in answer.responses
        ),
    )
    assert _up(response_frame(answer, 5), 10) == _up(response_frame(same, 5), 11)


@given(entities(_answer(11)))
def test_a_response_of_11_is_one_of_12(answer: Entity) -> None:
    frame, raised = _up(response_frame(answer, 5), 11)
    assert frame == response_frame(as_version(answer, _answer(12)), 5)
    assert raised.failed == any(
        p.error_code.value in HINTABLE for t in answer.responses for p in t.partitions
    )
    assert (raised.error, raised.session_id) == (answer.error_code.value, answer.session_id)


@given(st.sampled_from([10, 11, 12]), st.sampled_from([13, 16]), st.data())
def test_a_response_by_names_is_one_by_ids(sent: int, asked: int, data: st.DataObject) -> None:
    answer = data.draw(entities(_answer(sent)))
    # Names of different lengths, each once, as brokers send them.
    answer = replace(
        answer,
        responses=tuple(
            replace(topic, topic="n" * (1 + 100 * n)) for n, topic in enumerate(answer.responses)
        ),
    )
    seed = data.draw(_NO_TAGS if sent < 12 else st.none() | st.integers(0, 99))
    ids = {topic.topic: _id(n + 1) for n, topic in enumerate(answer.responses)}
    frame, raised = _up(response_frame(answer, 5, seed), sent, Names(ids))
    kind = _answer(asked)
    topic_kind = element(kind, "responses")
    expected = as_version(
        answer,
        kind,
        responses=tuple(
            as_version(topic, topic_kind, topic_id=UUID(bytes=ids[topic.topic]))
            for topic in answer.responses
        ),
    )
    assert frame == response_frame(expected, 5, seed)
    assert seed is not None or read_response_frame(kind, frame) == expected
    assert raised.failed == any(
        p.error_code.value in HINTABLE for t in answer.responses for p in t.partitions
    )


@pytest.mark.parametrize("version", [10, 11, 12])
def test_topics_that_are_not_what_they_were_are_answered_without_their_records(
    version: int,
) -> None:
    kind = _answer(version)
    topic = element(kind, "responses")
    partition = element(topic, "partitions")
    parts = tuple(
        plain(partition, partition_index=n, records=b"secret", error_code=ErrorCode(6))
        for n in (3, 4)
    )
    good = plain(partition, partition_index=1, records=b"mine")
    answer = plain(
        kind,
        responses=(
            plain(topic, topic="old", partitions=parts),
            plain(topic, topic="t", partitions=(good,)),
        ),
    )
    names = Names({"old": _id(1), "t": _id(2)}, stale=["old"], unknown=[(_id(3), (0, 7))])
    frame, raised = _up(response_frame(answer), version, names)
    assert b"secret" not in frame
    assert not raised.failed
    read = read_response_frame(_answer(16), frame)
    got = {
        (t.topic_id.bytes, p.partition_index): (p.error_code.value, p.records)
        for t in read.responses
        for p in t.partitions
    }
    assert got == {
        (_id(1), 3): (100, b""),
        (_id(1), 4): (100, b""),
        (_id(2), 1): (0, b"mine"),
        (_id(3), 0): (100, b""),
        (_id(3), 7): (100, b""),
    }
    refused = read.responses[0].partitions[0]
    assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (
        -1,
        -1,
        -1,
    )
    assert refused.aborted_transactions is None
    assert refused.preferred_read_replica == -1


def test_a_topic_that_was_not_asked_for_is_an_error() -> None:
    kind = _answer(12)
    answer = plain(kind, responses=(plain(element(kind, "responses"), topic="t"),))
    with pytest.raises(KeyError):
        _up(response_frame(answer), 12, Names({}))


@given(st.sampled_from([10, 11, 12]), st.binary(max_size=150))
def test_any_bytes_give_a_response_or_an_error(version: int, raw: bytes) -> None:
    with contextlib.suppress(WireError, KeyError):
        at_once(response_up(memoryview(bytes(8) + raw), 8 + len(raw), version, Names({"": _id(0)})))
    with contextlib.suppress(WireError):
        at_once(response_up(memoryview(bytes(8) + raw), 8 + len(raw), version, None))


@pytest.mark.parametrize("version", [10, 11, 12])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("records", [b"r" * 100, b"r" * 5000, b"", None])
def test_a_response_that_ends_in_its_last_records_begins_before_these_are_there(
    version: int, named: bool, records: bytes | None
) -> None:
    if not named and version > 11:
        return
    kind = _answer(version)
    topic = element(kind, "responses")
    partition = element(topic, "partitions")
    first, second = (plain(partition, partition_index=n, records=b"x" * 30) for n in range(2))
    last = plain(partition, partition_index=2, records=records)
    topics = (
        plain(topic, topic="one", partitions=(first,)),
        plain(topic, topic="two", partitions=(second, last)),
    )
    frame = response_frame(plain(kind, responses=topics, session_id=7))
    names = Names({"one": _id(1), "two": _id(2)}, (), [(_id(3), [5])]) if named else None
    whole, _ = _up(frame, version, names)
    begun = 0
    for cut in range(4, len(frame)):
        try:
            raised = at_once(response_up(memoryview(frame)[:cut], len(frame), version, names))
        except Truncated:
            continue
        begun += 1
        assert (raised.session_id, raised.failed) == (7, False)
        assert raised.rest is not None
        dropped, put = raised.rest
        rest = frame[cut : len(frame) - dropped]
        assert b"".join(raised.pieces) + rest + put == whole
    assert begun == (len(records) if records else 0)


def test_a_response_with_a_topic_that_is_stale_does_not_begin_before_it_is_there() -> None:
    kind = _answer(12)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partitions"), records=b"r" * 5000)
    answer = plain(kind, responses=(plain(topic, topic="t", partitions=(partition,)),))
    frame = memoryview(response_frame(answer))
    with pytest.raises(Truncated):
        at_once(response_up(frame[:1000], len(frame), 12, Names({"t": _id(1)}, {"t"})))
