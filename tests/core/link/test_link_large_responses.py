"""Responses of thousands of partitions are read in several turns of their link."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from kio.schema.errors import ErrorCode

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.flow import Flow
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.apis.many import numbered, topic, with_arrays
from tests.apis.messages import (
    Entity,
    element,
    plain,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.core.brokers import CLUSTER, route_before
from tests.core.samples import NOT_LEADER, answer, fetch_answer, fetch_request, request, topic_id
from tests.core.stepped import SHARED, Stepped

#: Lines of a step at most: some two milliseconds, since these are short ones.
_MOST = 45_000
#: How many topics, and how many partitions each has.
_SHAPES = {"one topic": (1, 5000), "one of each topic": (5000, 1)}
_OTHERWISE = 3
_NO_REPLICA = {"preferred_read_replica": -1}
_FEW = 3


@cache
def _request(key: int, version: int, shape: tuple[int, int], session: tuple[int, int]) -> bytes:
    kind = request_type(key, version)
    if not key:
        part = element(element(kind, "topic_data"), "partition_data")
        asked = _topics(kind, shape, [numbered(plain(part, records=b"r"))])
        return with_arrays(_first, plain(kind, acks=1), topic_data=asked)
    part = element(element(kind, "topics"), "partitions")
    asked = _topics(kind, shape, [numbered(plain(part, current_leader_epoch=3))])
    values = {"rack_id": "r", "session_id": session[0], "session_epoch": session[1]}
    return with_arrays(_first, plain(kind, **values), topics=asked)


def _first(entity: Entity) -> bytes:
    return request_frame(entity, 1, "c")


@cache
def _response(key: int, version: int, shape: tuple[int, int], error: int) -> bytes:
    """Return a response of which all partitions succeeded, or failed but for each third."""
    kind = response_type(key, version)
    part = element(element(kind, "responses"), "partitions" if key else "partition_responses")
    records = {"records": b"" if error else b"abc"} if key else {}
    succeeded, failed = (
        numbered(plain(part, error_code=ErrorCode(code), **records)) for code in (0, error)
    )
    parts = [succeeded] + [failed] * (_OTHERWISE - 1)
    entity = plain(kind, **({"session_id": 7} if key else {}))
    responses = _topics(kind, shape, parts)
    return with_arrays(lambda made: response_frame(made, 1), entity, responses=responses)


def _topics(
    kind: type[Entity], shape: tuple[int, int], parts: Sequence[Callable[[int], bytes]]
) -> list[bytes]:
    """Return topics; what a partition is depends on its number and its topic's, in turn."""
    topics, each = shape
    by_id = kind.__api_key__ == ApiKey.FETCH and kind.__version__ >= 13
    return [
        topic(
            topic_id(number + 1) if by_id else f"t{number}",
            [parts[(number + n) % len(parts)](n) for n in range(each)],
            flexible=kind.__flexible__,
        )
        for number in range(topics)
    ]


def _failures(shape: tuple[int, int]) -> int:
    return sum(1 for n in range(shape[0] * shape[1]) if n % _OTHERWISE)


def _route(release: str, topics: int) -> Route:
    """Return a route whose view knows the topics that are asked for by id, and no others."""
    on = route_before(release)
    on.broker.view = view = LeaderView(CLUSTER)
    unknown = ErrorCode.unknown_topic_or_partition
    view.hidden.take(TopicMetadata(unknown, ANY_TOPIC, ZERO_ID, ()), on.name)
    for number in range(topics):
        known = ZERO_ID if release < "2.8" else topic_id(number + 1)
        view.learn(TopicMetadata(0, f"t{number}", known, (Led(0, 1, 5),)), 1)
    return on


def _asked(
    on: Route, key: int, version: int, shape: tuple[int, int], session: tuple[int, int] = (0, 0)
) -> Stepped:
    """Return a link on which a request was sent, whose buffer is that of large responses."""
    steps = Stepped(on)
    steps.pass_on(steps.link.requests, _request(key, version, shape, session))
    steps.link.responses._fit(SHARED, 1)
    steps.sent.clear()
    return steps


#: Release, API, versions as asked and as sent.
_KINDS = {
    "fetch by other encoding": ("2.4", ApiKey.FETCH, 12, 11),
    "fetch by name": ("2.8", ApiKey.FETCH, 16, 12),
    "fetch with hints": ("3.6", ApiKey.FETCH, 16, 15),
    "fetch by id without hints": ("3.6", ApiKey.FETCH, 15, 15),
    "fetch without hints": ("3.6", ApiKey.FETCH, 12, 12),
    "produce by other encoding": ("2.6", ApiKey.PRODUCE, 10, 8),
    "produce with hints": ("3.6", ApiKey.PRODUCE, 10, 9),
    "produce without hints": ("3.6", ApiKey.PRODUCE, 9, 9),
}


@pytest.mark.parametrize(("error", "awaited"), [(0, False), (0, True), (NOT_LEADER, False)])
@pytest.mark.parametrize("shape", _SHAPES.values(), ids=_SHAPES)
@pytest.mark.parametrize("kind", _KINDS)
def test_no_step_takes_long(kind: str, shape: tuple[int, int], error: int, awaited: bool) -> None:
    """These took 9 to 88 ms of one step."""
    release, key, asked, sent = _KINDS[kind]
    on = _route(release, shape[0])
    steps = _asked(on, key, asked, shape)
    on.awaited = awaited
    steps.take(steps.link.responses, _response(key, sent, shape, error))
    expected = _response(key, asked, shape, error)
    held = steps.link.responses.held
    if held is not None:
        assert error
        assert bytes(held.frame) == expected
        assert len(held.scanned.failures) == _failures(shape)
        steps.release([None] * _failures(shape))
        steps.take(steps.link.responses, b"")
    assert steps.sent == expected
    assert steps.most < _MOST
    assert steps.link.resting
    steps.link.close()
    assert steps.budget.used == 0


def _begun(steps: Stepped, flow: Flow, data: bytes) -> None:
    """Receive ``data`` up to a step after which the rest waits for the link's next turn."""
    for step in steps.steps(flow, data):
        step()
        steps.shared[:] = bytes(SHARED)
        if flow.unfinished:
            break


_TAKES_TURNS = [kind for kind in _KINDS if "without" not in kind]


@pytest.mark.parametrize("kind", _TAKES_TURNS)
def test_a_link_that_ends_meanwhile_gives_all_back(kind: str) -> None:
    release, key, asked, sent = _KINDS[kind]
    shape = (100, 45)
    steps = _asked(_route(release, 100), key, asked, shape)
    responses = steps.link.responses
    _begun(steps, responses, _response(key, sent, shape, 0))
    assert responses.unfinished
    assert not steps.link.resting
    assert steps.budget.used > 100_000
    assert steps.sent == b""
    steps.link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)
    assert not responses.unfinished


@pytest.mark.parametrize("kind", _TAKES_TURNS)
def test_what_comes_behind_stays_behind(kind: str) -> None:
    release, key, asked, sent = _KINDS[kind]
    shape = (100, 20)
    steps = _asked(_route(release, 100), key, asked, shape)
    link = steps.link
    steps.pass_on(link.requests, request(10, 0, 2) + request(10, 0, 3))
    steps.sent.clear()
    behind = answer(10, 0, 2) + answer(10, 0, 3)
    _begun(steps, link.responses, _response(key, sent, shape, 0) + behind)
    assert link.responses.unfinished
    steps.pass_on(link.responses, b"")
    assert steps.sent == _response(key, asked, shape, 0) + behind
    assert link.resting
    # All has gone on, so nothing is kept.
    link.responses.flushed()
    assert steps.budget.used == 0


@pytest.mark.parametrize("kind", [kind for kind in _TAKES_TURNS if _KINDS[kind][2] in (10, 16)])
def test_hints_that_are_switched_off_meanwhile_are_not_given(kind: str) -> None:
    release, key, asked, sent = _KINDS[kind]
    shape = (100, 45)
    on = _route(release, 100)
    steps = _asked(on, key, asked, shape)
    responses = steps.link.responses
    _begun(steps, responses, _response(key, sent, shape, NOT_LEADER))
    assert responses.held is None
    on.mode = Mode.OFF
    steps.pass_on(steps.link.requests, request(10, 0, 2))
    steps.pass_on(responses, b"")
    assert responses.held is not None
    assert responses.held.refusal is MissReason.HINTS_OFF
    steps.sent.clear()
    steps.release([None] * _failures(shape))
    steps.pass_on(responses, b"")
    assert steps.sent == _response(key, asked, shape, NOT_LEADER)


def test_a_converted_response_is_kept_though_the_budget_is_used_up() -> None:
    release, key, asked, sent = _KINDS["produce by other encoding"]
    shape = (100, 45)
    steps = _asked(_route(release, 0), key, asked, shape)
    steps.budget.used = before = steps.budget.total
    steps.take(steps.link.responses, _response(key, sent, shape, NOT_LEADER))
    assert steps.sent == _response(key, asked, shape, NOT_LEADER)
    assert _missed(steps) == [MissReason.BUDGET] * _failures(shape)
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used == before


@pytest.mark.parametrize("kind", ["produce with hints", "fetch with hints"])
def test_a_response_goes_on_where_the_budget_is_used_up(kind: str) -> None:
    release, key, asked, sent = _KINDS[kind]
    shape = (100, 45)
    steps = _asked(_route(release, 0), key, asked, shape)
    steps.budget.used = before = steps.budget.total
    steps.take(steps.link.responses, _response(key, sent, shape, NOT_LEADER))
    assert steps.sent == _response(key, asked, shape, NOT_LEADER)
    assert _missed(steps) == [MissReason.BUDGET] * _failures(shape)
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used <= before


def _missed(steps: Stepped) -> list[str]:
    events = steps.link.state.events
    return [event.reason for event in events if isinstance(event, HintMissed)]


# The request that a response answers may be large, however small that is.


@pytest.mark.parametrize("shape", _SHAPES.values(), ids=_SHAPES)
@pytest.mark.parametrize("error", [0, NOT_LEADER])
def test_a_large_request_is_followed_in_turns(shape: tuple[int, int], error: int) -> None:
    """It took 12 ms of the step in which its response came, and 28 ms if that had an error."""
    on = _route("3.6", 0)
    steps = _asked(on, ApiKey.FETCH, 16, shape)
    responses = steps.link.responses
    first = topic_id(1)
    answered = fetch_answer(15, 1, [(first, 0, error, b"")], session_id=7)
    steps.take(responses, answered)
    if error:
        assert responses.held is not None
        assert [*responses.held.epochs] == [3]
        steps.release([None])
    assert steps.sent == answered
    assert steps.most < _MOST

    # What it said is known in its session.
    last = topic_id(shape[0])
    steps.take(steps.link.requests, fetch_request(16, 2, {}, session=(7, 1)))
    failed = fetch_answer(15, 2, [(last, shape[1] - 1, NOT_LEADER, b"")], session_id=7)
    steps.take(responses, failed)
    assert responses.held is not None
    assert [*responses.held.epochs] == [3]
    steps.link.close()
    assert steps.budget.used == 0


def test_a_session_is_not_known_while_a_large_request_in_it_is_read() -> None:
    """What was known of it may be older than what the client knows."""
    on = _route("3.6", 0)
    steps = Stepped(on)
    link = steps.link
    steps.pass_on(link.requests, fetch_request(16, 1, {(topic_id(1), 0): 2}, session=(0, 0)))
    steps.pass_on(link.responses, fetch_answer(15, 1, [], session_id=7))
    assert len(on.sessions) == 1
    steps.pass_on(link.requests, _request(ApiKey.FETCH, 16, (5000, 1), (7, 1)))
    _begun(steps, link.responses, fetch_answer(15, 1, [], session_id=7))
    assert link.responses.unfinished
    assert len(on.sessions) == 0
    link.close()
    assert len(on.sessions) == 0
    assert steps.budget.used == 0


def test_a_session_by_name_is_known_when_a_large_request_in_it_was_read() -> None:
    """Its response is converted, which is begun again where that takes long."""
    on = _route("2.8", 5000)
    steps = Stepped(on)
    link = steps.link
    steps.take(link.requests, fetch_request(16, 1, {(topic_id(1), 0): 2}, session=(0, 0)))
    steps.take(link.responses, fetch_answer(12, 1, [], session_id=7))
    steps.take(link.requests, _request(ApiKey.FETCH, 16, (5000, 1), (7, 1)))
    steps.sent.clear()
    steps.take(link.responses, fetch_answer(12, 1, [("t7", 0, 0, b"r")], session_id=7))
    assert steps.sent == fetch_answer(16, 1, [(topic_id(8), 0, 0, b"r")], session_id=7)
    assert (len(on.sessions), on.sessions.weight) == (1, 10_000)
    assert steps.most < _MOST
    link.close()
    assert steps.budget.used == 0


@pytest.mark.parametrize("kind", ["fetch by other encoding", "fetch by name"])
def test_the_beginning_of_a_large_response_is_not_read_in_turns(kind: str) -> None:
    """All of it would be read again when the rest has come."""
    release, key, asked, sent = _KINDS[kind]
    shape = (100, 45)
    steps = _asked(_route(release, 100), key, asked, shape)
    answered = _response(key, sent, shape, 0)
    _begun(steps, steps.link.responses, answered[:-1])
    assert not steps.link.responses.unfinished
    steps.pass_on(steps.link.responses, answered[-1:])
    assert steps.sent == _response(key, asked, shape, 0)


@pytest.mark.parametrize("whole", [False, True])
def test_records_behind_pass_when_a_large_request_was_followed(whole: bool) -> None:
    on = _route("3.6", 0)
    steps = _asked(on, ApiKey.FETCH, 16, (5000, 1))
    answered = fetch_answer(15, 1, [(topic_id(1), 0, 0, bytes(1_000_000))], session_id=7)
    kept = len(answered) if whole else 100
    steps.take(steps.link.responses, answered[:kept])
    steps.take(steps.link.responses, answered[kept:])
    assert steps.sent == answered
    assert steps.most < _MOST
    assert len(on.sessions) == 1
    steps.link.close()
    assert steps.budget.used == 0


@pytest.mark.parametrize("shape", _SHAPES.values(), ids=_SHAPES)
@pytest.mark.parametrize("budget", [1 << 22, 0])
def test_errors_wait_until_they_are_settled_when_a_large_request_was_followed(
    shape: tuple[int, int], budget: int
) -> None:
    on = _route("3.6", 0)
    on.config = replace(on.config, settle=True)
    steps = _asked(on, ApiKey.FETCH, 15, shape)
    responses = steps.link.responses
    steps.budget.per_link = budget
    failed = _response(ApiKey.FETCH, 15, shape, NOT_LEADER)
    steps.take(responses, failed)
    assert responses.held is not None
    assert len(responses.held.scanned.failures) == _failures(shape)
    steps.release([None] * _failures(shape))
    steps.take(responses, b"")
    assert steps.sent == failed
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used == 0


@pytest.mark.parametrize(
    ("release", "asked", "sent"), [("3.6", 16, 15), ("2.8", 16, 12), ("2.6", 12, 11)]
)
def test_very_many_aborted_transactions_are_passed_over_at_once(
    release: str, asked: int, sent: int
) -> None:
    """Of a consumer that reads committed records alone, and much of a partition at once."""
    steps = _asked(_route(release, 1), ApiKey.FETCH, asked, (1, 2))
    steps.take(steps.link.responses, _aborted(sent, 50_000))
    assert steps.sent == _aborted(asked, 50_000)
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used == 0


def _aborted(version: int, count: int) -> bytes:
    """Return a response with so many in the first of two partitions."""
    kind = response_type(ApiKey.FETCH, version)
    part = element(element(kind, "responses"), "partitions")
    aborted = element(part, "aborted_transactions")
    parts = [
        plain(part, records=b"r", aborted_transactions=made, **_NO_REPLICA if version > 10 else {})
        for made in ([plain(aborted, producer_id=7, first_offset=1 << 40)] * count, [])
    ]
    responses = _topics(kind, (1, 2), [numbered(one) for one in parts])
    return with_arrays(lambda made: response_frame(made, 1), plain(kind), responses=responses)


@pytest.mark.parametrize(("release", "sent"), [("3.6", 9), ("2.6", 8)])
@pytest.mark.parametrize("error", [ErrorCode.invalid_record, ErrorCode.not_leader_or_follower])
def test_very_many_record_errors_are_passed_over_in_turns(
    release: str, sent: int, error: ErrorCode
) -> None:
    """KIP-467: a broker lists each record of a batch that it refuses, such as those without a key.

    The partition behind is the one that fails where hints are looked for.
    """
    steps = _asked(_route(release, 1), ApiKey.PRODUCE, 10, (1, 2))
    responses = steps.link.responses
    steps.take(responses, _record_errors(sent, 30_000, error))
    if error == NOT_LEADER:
        assert responses.held is not None
        assert [one.partition for one in responses.held.scanned.failures] == [1]
        steps.release([None])
    assert steps.sent == _record_errors(10, 30_000, error)
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used == 0


def _record_errors(version: int, count: int, error: ErrorCode) -> bytes:
    """Return a response with so many in the first of two partitions, and an error in the other."""
    kind = response_type(ApiKey.PRODUCE, version)
    part = element(element(kind, "responses"), "partition_responses")
    refused = plain(element(part, "record_errors"), batch_index=3, batch_index_error_message="no")
    parts = [
        plain(part, error_code=ErrorCode.invalid_record, record_errors=[refused] * count),
        plain(part, error_code=error),
    ]
    responses = _topics(kind, (1, 2), [numbered(one) for one in parts])
    return with_arrays(lambda made: response_frame(made, 1), plain(kind), responses=responses)


def test_many_ids_without_a_name_are_answered_in_turns() -> None:
    on = _route("2.8", 2)
    steps = _asked(on, ApiKey.FETCH, 16, (5000, _FEW))
    steps.take(steps.link.responses, fetch_answer(12, 1, []))
    kind = response_type(ApiKey.FETCH, 16)
    refused = plain(
        element(element(kind, "responses"), "partitions"),
        error_code=ErrorCode.unknown_topic_id,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )
    # The view knows the first two.
    responses = _topics(kind, (5000, _FEW), [numbered(refused)])[2:]
    expected = with_arrays(lambda made: response_frame(made, 1), plain(kind), responses=responses)
    assert steps.sent == expected
    assert len(steps.link.state.topic_ids.lacking) == 4998
    assert steps.most < _MOST
    steps.link.close()
    assert steps.budget.used == 0


def test_ids_without_a_name_and_without_partitions_are_noted_once() -> None:
    steps = _asked(_route("2.8", 2), ApiKey.FETCH, 16, (300, 0))
    steps.pass_on(steps.link.responses, fetch_answer(12, 1, []))
    assert steps.link.state.topic_ids.lacking == [topic_id(n + 1) for n in range(2, 300)]
