import itertools
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from leader_hints.apis import response_scan
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ZERO_ID
from leader_hints.apis.response_scan import SCANNED, Answered, AnswerScan, has_no_failure
from leader_hints.wire.errors import Malformed, WireError
from tests.apis.messages import (
    Entity,
    element,
    entities,
    framed,
    plain,
    response_frame,
    response_type,
)
from tests.harness.lines import lines_of

_CELLS = st.sampled_from([(key, version) for key, known in SCANNED.items() for version in known])


@st.composite
def _common(draw: st.DrawFn) -> Entity:
    """Topics with several partitions that are as nearly all are, and some that failed."""
    kind = response_type(*draw(_CELLS))
    topic = element(kind, "responses")
    fetch = kind.__api_key__ == ApiKey.FETCH
    partition = element(topic, "partitions" if fetch else "partition_responses")

    def one(index: int, error: int, records: bytes | None) -> Entity:
        number = "partition_index" if fetch else "index"
        brought = {"records": records} if fetch else {}
        return plain(partition, error_code=ErrorCode(error), **{number: index}, **brought)

    partitions = st.builds(
        one,
        st.integers(0, 9),
        st.sampled_from([0, 0, 0, 3, 6, 74]),
        st.none() | st.sampled_from([b"", b"abc", bytes(130)]),
    )
    topics = st.builds(
        lambda made: plain(
            topic, **{"partitions" if fetch else "partition_responses": tuple(made)}
        ),
        st.lists(partitions, max_size=5),
    )
    return plain(kind, responses=tuple(draw(st.lists(topics, max_size=2))))


_ANSWERS = _CELLS.flatmap(lambda cell: entities(response_type(*cell))) | _common()


def _expected(answer: Entity, *, successes: bool) -> list[Answered]:
    told = []
    for topic in answer.responses or ():
        fetch = hasattr(topic, "partitions")
        named = _named(topic, fetch=fetch)
        for one in (topic.partitions if fetch else topic.partition_responses) or ():
            number = one.partition_index if fetch else one.index
            error = int(one.error_code)
            if error in HINTABLE or (successes and not error):
                brings = fetch and bool(one.records)
                told.append(Answered(named, number, error, brings))
    return told


def _named(topic: Entity, *, fetch: bool) -> Topic:
    if hasattr(topic, "topic_id"):
        return topic.topic_id.bytes if topic.topic_id else ZERO_ID
    name: str = topic.topic if fetch else topic.name
    return name


def _scanned(kind: type[Entity], pieces: list[bytes], *, successes: bool) -> list[Answered]:
    scan = AnswerScan(kind.__api_key__, kind.__version__, successes=successes)
    found = []
    for piece in pieces:
        found += scan.advance(memoryview(piece))
        while scan.left:
            piece = piece[len(piece) - scan.left :]
            found += scan.advance(memoryview(piece))
    assert scan.done
    return found


def _cut(frame: bytes, cuts: list[int]) -> list[bytes]:
    ends = [0, *sorted(min(cut, len(frame)) for cut in cuts), len(frame)]
    return [frame[a:b] for a, b in itertools.pairwise(ends)]


@given(_ANSWERS, st.booleans(), st.none() | st.integers(0, 99), st.lists(st.integers(0, 600)))
def test_what_kio_wrote_is_found_however_it_is_cut(
    answer: Entity, successes: bool, tags: int | None, cuts: list[int]
) -> None:
    kind = type(answer)
    frame = response_frame(answer, unknown_tags=tags if kind.__flexible__ else None)
    found = _scanned(kind, _cut(frame, cuts), successes=successes)
    assert found == _expected(answer, successes=successes)


@given(_ANSWERS, st.lists(st.integers(0, 600)))
def test_what_is_of_no_interest_may_be_left_out(answer: Entity, cuts: list[int]) -> None:
    scan = AnswerScan(type(answer).__api_key__, type(answer).__version__, successes=True)
    found = []
    for piece in _cut(response_frame(answer), cuts):
        out = min(scan.passing, len(piece))
        scan.passed(out)
        rest = piece[out:]
        while rest:
            found += scan.advance(memoryview(rest))
            rest = rest[len(rest) - scan.left :] if scan.left else b""
    assert scan.done
    assert found == _expected(answer, successes=True)


@given(_ANSWERS, st.lists(st.integers(0, 600)))
def test_what_is_too_much_for_one_go_is_found_in_the_next(answer: Entity, cuts: list[int]) -> None:
    with patch.object(response_scan, "_FOUND_AT_ONCE", 1):
        found = _scanned(type(answer), _cut(response_frame(answer), cuts), successes=True)
    assert found == _expected(answer, successes=True)


@given(_ANSWERS, st.booleans(), st.lists(st.integers(0, 600)))
def test_what_is_looked_at_in_many_short_goes_is_found(
    answer: Entity, successes: bool, cuts: list[int]
) -> None:
    """In the last go nothing may be left to do: there are no bytes that could be given again."""
    with patch.object(response_scan, "_STEPS_AT_ONCE", 1):
        found = _scanned(type(answer), _cut(response_frame(answer), cuts), successes=successes)
    assert found == _expected(answer, successes=successes)


@pytest.mark.parametrize(("key", "version"), [(ApiKey.PRODUCE, 9), (ApiKey.FETCH, 11)])
@pytest.mark.parametrize("topics", [1, 5000])
def test_no_more_is_looked_at_in_one_go_than_others_may_wait_for(
    key: int, version: int, topics: int
) -> None:
    """5,000 partitions without errors took 13 to 25 ms of one step."""
    kind = response_type(key, version)
    topic = element(kind, "responses")
    field = "partitions" if key else "partition_responses"
    partitions = (plain(element(topic, field)),) * (5000 // topics)
    answer = plain(kind, responses=(plain(topic, **{field: partitions}),) * topics)
    frame = memoryview(response_frame(answer))
    scan = AnswerScan(key, version, successes=False)
    most = lines_of(lambda: scan.advance(frame))
    while not scan.done:
        most = max(most, lines_of(lambda: scan.advance(frame[len(frame) - scan.left :])))
    assert most < 12_000


def test_no_more_is_found_in_one_go_than_others_may_wait_for() -> None:
    kind = response_type(ApiKey.PRODUCE, 9)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partition_responses"))
    answer = plain(kind, responses=(plain(topic, partition_responses=(partition,) * 120),))
    frame = memoryview(response_frame(answer))
    scan = AnswerScan(ApiKey.PRODUCE, 9, successes=True)
    found = [len(scan.advance(frame))]
    while not scan.done:
        found.append(len(scan.advance(frame[len(frame) - scan.left :])))
    assert found == [50, 50, 20]


@given(_ANSWERS, st.booleans())
def test_byte_by_byte(answer: Entity, successes: bool) -> None:
    frame = response_frame(answer)
    pieces = [frame[at : at + 1] for at in range(len(frame))]
    found = _scanned(type(answer), pieces, successes=successes)
    assert found == _expected(answer, successes=successes)


@given(_ANSWERS, st.data())
def test_one_look_is_never_wrong(answer: Entity, data: st.DataObject) -> None:
    frame = response_frame(answer)
    end = data.draw(st.integers(8, len(frame)))
    if has_no_failure(memoryview(frame)[:end], type(answer).__api_key__, type(answer).__version__):
        assert not _expected(answer, successes=False)


@pytest.mark.parametrize(
    ("key", "version"), [(key, version) for key, known in SCANNED.items() for version in known]
)
@pytest.mark.parametrize("error", [0, 3, 6, 74])
@pytest.mark.parametrize("partitions", [0, 1])
def test_one_look_knows_what_most_responses_are(
    key: int, version: int, error: int, partitions: int
) -> None:
    kind = response_type(key, version)
    topic = element(kind, "responses")
    field = "partitions" if key == ApiKey.FETCH else "partition_responses"
    one = plain(element(topic, field), error_code=ErrorCode(error))
    topics = (plain(topic, **{field: (one,)}),) if partitions else ()
    frame = memoryview(response_frame(plain(kind, responses=topics)))
    failed = partitions and error in HINTABLE
    # Empty Produce responses are none that a broker gives.
    if partitions or key == ApiKey.FETCH or version < 9:
        assert has_no_failure(frame, key, version) is not bool(failed)


@given(_CELLS, st.binary(max_size=300), st.booleans())
def test_any_bytes_are_read_or_refused(cell: tuple[int, int], body: bytes, successes: bool) -> None:
    scan = AnswerScan(*cell, successes=successes)
    frame = framed(bytes(4) + body)
    has_no_failure(memoryview(frame), *cell)
    try:
        for at in range(0, len(frame), 7):
            scan.advance(memoryview(frame)[at : at + 7])
    except WireError as error:
        assert isinstance(error, Malformed)  # noqa: PT017


def test_the_records_of_the_last_partition_need_not_come() -> None:
    kind = response_type(ApiKey.FETCH, 11)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partitions"), partition_index=4, records=bytes(1000))
    answer = plain(kind, responses=(plain(topic, topic="t", partitions=(partition,)),))
    scan = AnswerScan(ApiKey.FETCH, 11, successes=True)
    assert scan.advance(memoryview(response_frame(answer))[:-1000]) == [Answered("t", 4, 0, True)]
    assert scan.done


def test_records_are_not_kept() -> None:
    kind = response_type(ApiKey.FETCH, 11)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partitions"), records=bytes(5000))
    failed = replace(partition, partition_index=1, error_code=ErrorCode(6), records=None)
    answer = plain(kind, responses=(plain(topic, topic="t", partitions=(partition, failed)),))
    frame = memoryview(response_frame(answer))
    scan = AnswerScan(ApiKey.FETCH, 11, successes=False)
    # What is in the records is of no matter: they are passed over.
    assert scan.advance(frame[:200]) == []
    assert scan.advance(memoryview(b"\xff" * 4800)) == []
    assert scan.advance(frame[5000:]) == [Answered("t", 1, 6, False)]


def test_a_field_without_end_is_refused() -> None:
    scan = AnswerScan(ApiKey.PRODUCE, 9, successes=False)
    # A topic's name of 2 GB.
    scan.advance(memoryview(framed(bytes(4) + b"\0\x02\xff\xff\xff\xff\x07")))
    assert scan.advance(memoryview(bytes(65_000))) == []
    with pytest.raises(Malformed):
        scan.advance(memoryview(bytes(1000)))
