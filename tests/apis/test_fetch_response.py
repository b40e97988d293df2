import contextlib
import copy
import struct
from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.fetch_response import TOPIC_IDS_FROM, FetchScan, Topic, glance
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure
from leader_hints.apis.metadata import ZERO_ID
from leader_hints.wire.errors import WireError
from tests.apis.messages import Entity, element, entities, plain, response_frame, response_type
from tests.harness.lines import lines_of

_VERSIONS = st.sampled_from(range(12, 17))


def _names(kind: type[Entity]) -> set[str]:
    return {field.name for field in fields(kind)}


@st.composite
def _common(draw: st.DrawFn) -> Entity:
    """Topics with several partitions that are as nearly all are, and some that failed."""
    kind = response_type(ApiKey.FETCH, draw(_VERSIONS))
    topic = element(kind, "responses")
    partitions = st.builds(
        lambda index, error, records: plain(
            element(topic, "partitions"),
            partition_index=index,
            error_code=ErrorCode(error),
            records=records,
        ),
        st.integers(0, 9),
        st.sampled_from([0, 0, 0, 3, 6, 74]),
        st.none() | st.sampled_from([b"", b"abc", bytes(130)]),
    )
    name = {"topic": "t" * draw(st.sampled_from([1, 200]))} if "topic" in _names(topic) else {}
    topics = st.builds(
        lambda partitions: plain(topic, partitions=tuple(partitions), **name),
        st.lists(partitions, max_size=5),
    )
    return plain(kind, responses=tuple(draw(st.lists(topics, max_size=2))))


_ANSWERS = (
    _VERSIONS.flatmap(lambda version: entities(response_type(ApiKey.FETCH, version))) | _common()
)


def _partitions(answer: Entity) -> list[tuple[Topic, Entity]]:
    return [(_topic(topic), p) for topic in answer.responses for p in topic.partitions]


def _topic(topic: Entity) -> Topic:
    if topic.__version__ < TOPIC_IDS_FROM:
        name: str = topic.topic
        return name
    return topic.topic_id.bytes if topic.topic_id else ZERO_ID


def _failures(answer: Entity) -> list[tuple[Topic, int, int]]:
    return [
        (topic, p.partition_index, p.error_code.value)
        for topic, p in _partitions(answer)
        if p.error_code.value in HINTABLE
    ]


def _with_errors(answer: Entity, errors: list[ErrorCode]) -> Entity:
    """Return the answer with its partitions' errors in order, as far as they go."""
    left = iter(errors)
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(p, error_code=next(left, p.error_code)) for p in topic.partitions
            ),
        )
        for topic in answer.responses
    )
    return replace(answer, responses=topics)


def _healthy(answer: Entity) -> Entity:
    return _with_errors(answer, [ErrorCode.none] * len(_partitions(answer)))


def _scan(answer: Entity, frame: bytes, ends: list[int]) -> FetchScan:
    scan = FetchScan(answer.__version__)
    for end in ends:
        scan.advance(memoryview(frame), end, len(frame))
    return scan


def _state(scan: FetchScan) -> tuple[object, ...]:
    return tuple(copy.copy(getattr(scan, slot)) for slot in FetchScan.__slots__)


def _copied(scan: FetchScan) -> FetchScan:
    """Return another scan in the same state: what :func:`copy.deepcopy` does, which takes long."""
    other = FetchScan(0)
    for slot, value in zip(FetchScan.__slots__, _state(scan), strict=True):
        setattr(other, slot, value)
    return other


def _check_result(answer: Entity, frame: bytes, scan: FetchScan) -> None:
    assert (scan.error, scan.session_id) == (answer.error_code.value, answer.session_id)
    failures = _failures(answer)
    if failures:
        assert not scan.clean
        assert scan.scanned is not None
        assert [failure[:3] for failure in scan.scanned.failures] == failures
        assert scan.scanned.carries == any(p.records for _, p in _partitions(answer))
        assert scan.scanned.tags_end == len(frame)
    else:
        assert scan.clean
        assert scan.scanned is None


@given(_ANSWERS, st.integers(0, 99), st.data())
def test_finds_the_failures_that_kio_wrote_in_any_chunks(
    answer: Entity, seed: int, data: st.DataObject
) -> None:
    frame = response_frame(answer, 9, seed)
    cuts = data.draw(st.lists(st.integers(8, len(frame)), max_size=12))
    _check_result(answer, frame, _scan(answer, frame, [*sorted(cuts), len(frame)]))


@given(_ANSWERS, st.integers(0, 99), st.data())
def test_says_the_same_where_it_looks_at_heads_alone(
    answer: Entity, seed: int, data: st.DataObject
) -> None:
    frame = response_frame(answer, 9, seed)
    scan = _looked(answer, memoryview(frame), data)
    if not scan.clean:
        scan.advance(memoryview(frame), len(frame), len(frame))
    _check_result(answer, frame, scan)


def _looked(answer: Entity, frame: memoryview, data: st.DataObject) -> FetchScan:
    """Return a scan that has seen the beginning, and then windows for as long as it could."""
    scan = FetchScan(answer.__version__)
    scan.advance(frame, data.draw(st.integers(8, len(frame))), len(frame))
    while not (scan.clean or scan.whole or scan.failed or scan.scanned):
        width = data.draw(st.integers(1, 200))
        scan.look(frame[scan.at : scan.at + width], len(frame))
        assert not scan.failed
        assert scan.scanned is None
    return scan


@given(_ANSWERS, st.integers(0, 99), st.data())
def test_refuses_the_same_where_it_looks_at_heads_alone(
    answer: Entity, seed: int, data: st.DataObject
) -> None:
    frame = bytearray(response_frame(answer, 9, seed))
    frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    view, looked, seen = memoryview(frame), None, None
    with contextlib.suppress(WireError):
        scan = _looked(answer, view, data)
        scan.advance(view, len(frame), len(frame))
        looked = _found(scan)
    with contextlib.suppress(WireError):
        seen = _found(_scan(answer, bytes(frame), [len(frame)]))
    assert looked == seen


def test_a_window_with_a_failure_counts_as_not_seen() -> None:
    kind = response_type(ApiKey.FETCH, 16)
    topic = element(kind, "responses")
    part = plain(element(topic, "partitions"), error_code=ErrorCode(6))
    answer = plain(kind, responses=(plain(topic, partitions=(part,)),), session_id=7)
    frame = memoryview(response_frame(answer, 9))
    for begin in range(8, 75):
        scan = _scan(answer, bytes(frame), [begin])
        scan.look(frame[scan.at :], len(frame))
        assert scan.whole
        scan.advance(frame, len(frame), len(frame))
        _check_result(answer, bytes(frame), scan)


def _found(scan: FetchScan) -> tuple[object, ...]:
    return scan.clean, scan.scanned, scan.error, scan.session_id


def test_heads_alone_are_enough_where_nothing_failed() -> None:
    kind = response_type(ApiKey.FETCH, 16)
    topic = element(kind, "responses")
    part = plain(element(topic, "partitions"), records=bytes(1000))
    answer = plain(kind, responses=(plain(topic, partitions=(part,) * 3),) * 3)
    frame = memoryview(response_frame(answer, 9))
    scan, heads = FetchScan(16), 0
    scan.advance(frame, 100, len(frame))
    while not scan.clean:
        scan.look(frame[scan.at : scan.at + 64], len(frame))
        heads += 1
        assert not scan.whole
    # Where a topic ends the first window of the next one does not reach its partition's records.
    assert 8 <= heads <= 10


@given(_ANSWERS, st.none() | st.integers(0, 99))
def test_the_short_look_never_misses_a_failure(answer: Entity, seed: int | None) -> None:
    frame = response_frame(answer, 3, seed)
    for end in range(8, len(frame) + 1):
        glanced = glance(memoryview(frame)[:end], answer.__version__)
        if glanced is not None:
            assert glanced == (answer.session_id, answer.error_code.value)
            assert not _failures(answer)


@pytest.mark.parametrize("version", range(12, 17))
@pytest.mark.parametrize(("error", "none"), [(0, True), (6, False), (74, False), (75, True)])
def test_one_look_is_enough_for_the_common_shape(version: int, error: int, none: bool) -> None:
    kind = response_type(ApiKey.FETCH, version)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partitions"), error_code=ErrorCode(error), records=b"abc")
    named = {} if version >= TOPIC_IDS_FROM else {"topic": "t"}
    answer = plain(kind, session_id=5, responses=(plain(topic, partitions=(partition,), **named),))
    glanced = glance(memoryview(response_frame(answer))[:-4], version)
    assert glanced == ((5, 0) if none else None)


@pytest.mark.parametrize(("topics", "partitions"), [(2, 1), (1, 2)])
def test_one_look_is_not_enough_where_there_is_more(topics: int, partitions: int) -> None:
    kind = response_type(ApiKey.FETCH, 16)
    topic = element(kind, "responses")
    partition = plain(element(topic, "partitions"))
    answer = plain(kind, responses=(plain(topic, partitions=(partition,) * partitions),) * topics)
    last = [ErrorCode.none] * (topics * partitions - 1) + [ErrorCode.fenced_leader_epoch]
    assert glance(memoryview(response_frame(_with_errors(answer, last))), 16) is None


@settings(max_examples=20)
@given(_ANSWERS, st.integers(0, 99))
def test_every_chunking_gives_the_same(answer: Entity, seed: int) -> None:
    """By induction: a beginning and then one chunk more is the same as both at once."""
    frame = response_frame(answer, 9, seed)
    assume(len(frame) <= 180)
    at_once = [_scan(answer, frame, [end]) for end in range(8, len(frame) + 1)]
    expected = [_state(scan) for scan in at_once]
    for first, begun in enumerate(at_once):
        for end in range(first, len(at_once)):
            scan = _copied(begun)
            scan.advance(memoryview(frame), 8 + end, len(frame))
            if not begun.clean:
                assert _state(scan) == expected[end]
            else:
                assert scan.clean
    _check_result(answer, frame, at_once[-1])


@settings(max_examples=30)
@given(_ANSWERS, st.integers(0, 99))
def test_is_clean_from_the_last_partitions_header_on_and_never_before(
    answer: Entity, seed: int
) -> None:
    answer = _healthy(answer)
    partitions = _partitions(answer)
    assume(partitions and answer.responses[-1].partitions)
    frame = response_frame(answer, 9, seed)
    errors = [ErrorCode.none] * (len(partitions) - 1) + [ErrorCode.not_leader_or_follower]
    failed = response_frame(_with_errors(answer, errors), 9, seed)
    error_at = next(
        at for at, both in enumerate(zip(frame, failed, strict=True)) if len({*both}) > 1
    )
    clean_from = next(end for end in range(8, len(frame) + 1) if _scan(answer, frame, [end]).clean)
    assert error_at < clean_from
    # Its records need not be there: the least that can follow them is left to come.
    records = partitions[-1][1].records or b""
    assert clean_from <= len(frame) - len(records)


@given(_VERSIONS, st.data())
def test_large_records_are_passed_over(version: int, data: st.DataObject) -> None:
    answer = data.draw(entities(response_type(ApiKey.FETCH, version)).filter(_partitions))
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(p, records=bytes(data.draw(st.integers(0, 40_000))))
                for p in topic.partitions
            ),
        )
        for topic in answer.responses
    )
    answer = replace(answer, responses=topics)
    frame = response_frame(answer, 9)
    step = data.draw(st.integers(500, 9_000))
    _check_result(answer, frame, _scan(answer, frame, [*range(8, len(frame), step), len(frame)]))


@settings(max_examples=40)
@given(_ANSWERS.filter(_failures), st.integers(0, 99), st.data())
def test_a_frame_that_lies_about_its_size_is_refused(
    answer: Entity, seed: int, data: st.DataObject
) -> None:
    frame = response_frame(answer, 9, seed)
    short = data.draw(st.integers(8, len(frame) - 1))
    with pytest.raises(WireError):
        FetchScan(answer.__version__).advance(memoryview(frame)[:short], short, short)
    longer = frame + b"\0"
    with pytest.raises(WireError):
        FetchScan(answer.__version__).advance(memoryview(longer), len(longer), len(longer))


def test_records_that_go_on_beyond_the_frame_are_reported_before_it_is_whole() -> None:
    kind = response_type(ApiKey.FETCH, 12)
    topic = element(kind, "responses")
    failed = plain(
        element(topic, "partitions"),
        error_code=ErrorCode.not_leader_or_follower,
        records=bytes(100),
    )
    frame = response_frame(plain(kind, responses=(plain(topic, partitions=(failed,)),)))
    with pytest.raises(WireError):
        FetchScan(12).advance(memoryview(frame), len(frame) - 100, len(frame) - 50)


@given(_VERSIONS, st.binary(max_size=200), st.lists(st.integers(0, 220), max_size=5))
def test_any_bytes_give_a_scan_or_a_wire_error(version: int, raw: bytes, ends: list[int]) -> None:
    frame = bytes(8) + raw
    scan = FetchScan(version)
    with contextlib.suppress(WireError):
        for end in sorted({min(8 + end, len(frame)) for end in ends} | {len(frame)}):
            scan.advance(memoryview(frame), end, len(frame))
        assert scan.clean or scan.scanned is not None


@given(_ANSWERS, st.data())
def test_any_changed_byte_gives_a_scan_or_a_wire_error(answer: Entity, data: st.DataObject) -> None:
    frame = bytearray(response_frame(answer))
    frame[data.draw(st.integers(8, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        _scan(answer, bytes(frame), [len(frame) // 2, len(frame)])


def test_aborted_transactions_are_passed_over_once_however_they_arrive() -> None:
    """They were passed over from the first one on at each piece: 3.4 s of CPU for 100,000."""
    kind = response_type(ApiKey.FETCH, 16)
    topic = element(kind, "responses")
    aborted = plain(element(element(topic, "partitions"), "aborted_transactions"))
    partitions = tuple(
        plain(
            element(topic, "partitions"), partition_index=n, aborted_transactions=(aborted,) * 999
        )
        for n in range(2)
    )
    frame = memoryview(
        response_frame(plain(kind, responses=(plain(topic, partitions=partitions),)))
    )
    scan = FetchScan(16)

    def arrive() -> None:
        for have in range(100, len(frame) + 100, 100):
            scan.advance(frame, min(have, len(frame)), len(frame))

    lines = lines_of(arrive)
    assert scan.clean
    assert lines < 2 * 999 * 50


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x07"])
@pytest.mark.parametrize("before", [b"", b"\x02\x02t\x02" + bytes(30)])
def test_huge_counts_wait_for_bytes_or_are_refused(count: bytes, before: bytes) -> None:
    # Topics and aborted transactions: as long as more may come it waits, at the end it refuses.
    frame = memoryview(bytes(8) + b"\0" + bytes(10) + before + count)
    scan = FetchScan(12)
    scan.advance(frame, len(frame), len(frame) + 10)
    assert not scan.clean
    assert scan.scanned is None
    with pytest.raises(WireError):
        FetchScan(12).advance(frame, len(frame), len(frame))


_AS_BROKERS_WRITE = st.tuples(
    st.sampled_from([0, 3, 6, 6, 6, 74]),
    st.sampled_from([b"\0", b"\1", b"\1", b"\4abc"]),
    st.sampled_from([b"\0", b"\0", b"\0", b"\1\2\1x"]),
    st.sampled_from([b"\0", b"\1", b"\2" + bytes(17)]),
)


@given(st.lists(_AS_BROKERS_WRITE, min_size=1, max_size=6), st.integers(1, 2), st.data())
def test_failures_are_found_where_no_tags_are_written(
    partitions: list[tuple[int, bytes, bytes, bytes]], topics: int, data: st.DataObject
) -> None:
    """Brokers write no tag of a default value, and nothing but the error for a failed partition."""
    frame = bytearray(struct.pack(">iixihib", 0, 1, 0, 0, 0, topics + 1))
    failures, carries = [], False
    for number in range(topics):
        topic = bytes([number]) * 16
        frame += topic + bytes([len(partitions) + 1])
        for index, (error, records, tags, aborted) in enumerate(partitions):
            frame += struct.pack(">ihqqq", index, error, -1, -1, -1)
            frame += aborted + struct.pack(">i", -1) + records
            at = len(frame)
            frame += tags
            carries |= len(records) > 1
            if error in HINTABLE:
                failures.append(Failure(topic, index, error, at, len(frame)))
        frame += b"\0"
    frame += b"\0"
    scan, size = FetchScan(16), len(frame)
    for have in sorted(data.draw(st.lists(st.integers(0, size), max_size=4))):
        scan.advance(memoryview(frame), have, size)
    scan.advance(memoryview(frame), size, size)
    if failures:
        assert scan.scanned is not None
        assert list(scan.scanned.failures) == failures
        assert scan.scanned.carries == carries
    else:
        assert scan.clean
