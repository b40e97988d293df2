import itertools
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import ClientSeen, HintMissed
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import client_table
from tests.core import samples
from tests.core.brokers import route_before
from tests.core.conversation import NODES, ONE, TWO, Exchanged, conversation, decide
from tests.core.links import Driven, route
from tests.core.samples import (
    BROKER_3_6,
    FENCED,
    NOT_LEADER,
    USES_HINTS,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)

_TALK = conversation()
_ASKED = b"".join(e.asked for e in _TALK)
_SENT = b"".join(e.sent for e in _TALK)
_ANSWERED = b"".join(e.answered for e in _TALK)
_GOT = b"".join(e.got for e in _TALK)


def _cuts(data: bytes) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, len(data) - 1), max_size=30)


def _talk(up: list[int], down: list[int], **options: object) -> Driven:
    driven = Driven(route(), decide=decide, **options)  # type: ignore[arg-type]
    driven.up(_ASKED, up)
    driven.down(_ANSWERED, down)
    return driven


def _check(driven: Driven) -> None:
    assert driven.to_broker == _SENT
    assert driven.to_client == _GOT
    assert not driven.link.state.exchanges.waiting
    assert not driven.not_understood
    driven.end()
    driven.link.close()
    assert driven.to_broker == _SENT
    assert driven.to_client == _GOT
    assert driven.budget.used == 0


# Bytes split and joined.


def test_every_request_pipelined_and_every_answer_in_one_piece() -> None:
    _check(_talk([], []))


def test_byte_by_byte() -> None:
    _check(_talk(list(range(1, len(_ASKED))), list(range(1, len(_ANSWERED)))))


def test_every_split_of_the_requests() -> None:
    for cut in range(1, len(_ASKED)):
        driven = _talk([cut], [])
        assert driven.to_broker == _SENT, cut
        assert driven.to_client == _GOT, cut


@pytest.mark.parametrize("release", ["2.4", "2.6", "3.6"])
def test_where_no_more_is_taken_a_request_that_has_begun_is_and_nothing_behind_it(
    release: str,
) -> None:
    """A producer that always had more to send began the next one with the rest of each."""
    ends = [0, *itertools.accumulate(len(exchanged.asked) for exchanged in _TALK)]
    for cut in range(len(_ASKED)):
        driven = Driven(route_before(release))
        driven.up(_ASKED[:cut])
        driven.link.take_no_more()
        left = driven.up_while_taken(_ASKED[cut:])
        assert len(_ASKED) - len(left) == min(end for end in ends if end >= cut), cut


def test_every_split_of_the_responses() -> None:
    for cut in range(1, len(_ANSWERED)):
        assert _talk([], [cut]).to_client == _GOT, cut


@given(_cuts(_ASKED), _cuts(_ANSWERED), st.integers(300, 700))
def test_any_chunks_and_buffers(up: list[int], down: list[int], size: int) -> None:
    _check(_talk(up, down, buffer_size=size))


@given(st.data())
def test_answers_that_come_between_the_requests(data: st.DataObject) -> None:
    driven = Driven(route(), decide=decide)
    owed: list[bytes] = []
    for exchanged in _TALK:
        driven.up(exchanged.asked, data.draw(_cuts(exchanged.asked)))
        owed.append(exchanged.answered)
        for _ in range(data.draw(st.integers(0, len(owed)))):
            answered = owed.pop(0)
            driven.down(answered, data.draw(_cuts(_ANSWERED)))
    driven.down(b"".join(owed))
    _check(driven)


@settings(max_examples=100)
@given(st.integers(0, len(_ASKED)), st.integers(0, len(_ANSWERED)), st.data())
def test_streams_that_end_anywhere_lose_no_byte(up: int, down: int, data: st.DataObject) -> None:
    asked = _ASKED[:up]
    whole = _count_whole([e.asked for e in _TALK], up)
    # Only what was asked can be answered.
    answered = b"".join(e.answered for e in _TALK[:whole])[:down]
    passed = _count_whole([e.answered for e in _TALK[:whole]], len(answered))
    driven = Driven(route(), decide=decide)
    driven.up(asked, data.draw(_cuts(_ASKED)))
    driven.down(answered, data.draw(_cuts(_ANSWERED)))
    driven.end()
    assert driven.to_broker[: _length(_TALK[:whole], "asked")] == b"".join(
        e.sent for e in _TALK[:whole]
    )
    # The version number in a frame that is cut short may stand as the client wrote it.
    rest = slice(_length(_TALK[:whole], "asked") + 8, None)
    assert driven.to_broker[rest] == asked[rest]
    assert len(driven.to_broker) == up
    cut_short = answered[_length(_TALK[:passed], "answered") :]
    assert driven.to_client == b"".join(e.got for e in _TALK[:passed]) + cut_short
    driven.link.close()
    assert driven.budget.used == 0


def _count_whole(frames: list[bytes], size: int) -> int:
    """Return how many of the frames are whole in the first ``size`` bytes."""
    ends = itertools.accumulate(map(len, frames))
    return sum(end <= size for end in ends)


def _length(talk: list[Exchanged], field: str) -> int:
    return sum(len(getattr(exchanged, field)) for exchanged in talk)


# Held responses.


def test_all_behind_a_held_response_waits_and_goes_on_in_order() -> None:
    driven = Driven(route())
    driven.up(b"".join(produce_request(10, n) for n in range(4)))
    answers = [produce_answer(9, n, {0: NOT_LEADER if n in (1, 2) else 0}) for n in range(4)]
    driven.down(b"".join(answers))
    assert driven.to_client == answers[0]
    assert driven.held is not None
    driven.release([None])
    assert driven.to_client == answers[0] + answers[1]
    assert driven.held is not None
    driven.release(decide(driven.held))
    hinted = produce_answer(10, 2, {0: NOT_LEADER}, leaders={0: (3, 9)}, nodes={3: NODES[3]})
    assert driven.to_client == answers[0] + answers[1] + hinted + answers[3]
    assert driven.held is None
    driven.link.close()
    assert driven.budget.used == 0


@given(st.integers(1, 200))
def test_what_came_behind_a_held_response_may_be_cut_anywhere(cut: int) -> None:
    driven = Driven(route())
    driven.up(b"".join(produce_request(10, n) for n in range(3)))
    answers = b"".join(produce_answer(9, n, {0: NOT_LEADER}) for n in range(3))
    driven.down(answers, [cut] if cut < len(answers) else [])
    for _ in range(3):
        driven.release([None])
    assert driven.to_client == answers


def test_a_held_response_is_not_disturbed_by_other_links() -> None:
    # The driver overwrites the shared buffer after each step, as another link's bytes would.
    driven = Driven(route())
    driven.up(fetch_request(16, 1, {(ONE, 0): 5}))
    failed = fetch_answer(15, 1, [(ONE, 0, FENCED, b"")])
    driven.down(failed)
    assert driven.held is not None
    assert bytes(driven.held.frame) == failed
    assert driven.held.epochs == [5]


# Whose errors are looked at.


def test_a_replicas_fetch_never_waits() -> None:
    driven = Driven(route())
    driven.up(fetch_request(16, 1, {(ONE, 0): 5}, replica_id=3))
    failed = fetch_answer(15, 1, [(ONE, 0, NOT_LEADER, b"")])
    driven.down(failed)
    assert driven.held is None
    assert driven.to_client == failed


@pytest.mark.parametrize(
    ("name", "version", "held"),
    [
        ("apache-kafka-java", "3.7.0", True),
        ("apache-kafka-java", "4.0.0-rc1", True),
        ("apache-kafka-java", "3.6.2", False),
        ("apache-kafka-java", "unknown", False),
        ("kafka-python", "3.0.1", True),
        ("kafka-python", "2.3.0", False),
        ("librdkafka", "2.14.0", False),
        ("", "", False),
    ],
)
def test_leader_without_endpoints_is_for_clients_that_use_it(
    name: str, version: str, held: bool
) -> None:
    driven = Driven(route(), decide=decide)
    driven.up(request(18, 3, 1, client_software_name=name, client_software_version=version))
    driven.down(versions_answer(3, 1, BROKER_3_6))
    before = len(driven.to_client)
    driven.up(fetch_request(13, 2, {(ONE, 1): 5}))
    driven.down(fetch_answer(13, 2, [(ONE, 1, FENCED, b"")]))
    expected = fetch_answer(13, 2, [(ONE, 1, FENCED, b"")], leaders={1: (2, 7)} if held else None)
    assert driven.to_client[before:] == expected


def test_a_client_that_never_said_who_it_is_gets_no_leader_without_endpoints() -> None:
    driven = Driven(route(), decide=decide)
    driven.up(fetch_request(13, 2, {(ONE, 1): 5}))
    failed = fetch_answer(13, 2, [(ONE, 1, FENCED, b"")])
    driven.down(failed)
    assert driven.to_client == failed


def test_a_client_that_asks_an_older_version_once_more_is_still_the_same() -> None:
    driven = Driven(route())
    driven.up(request(18, 3, 1, client_software_name="kafka-python", client_software_version="3.0"))
    driven.up(request(18, 0, 2) + fetch_request(13, 3, {(ONE, 1): 5}))
    driven.down(versions_answer(3, 1, BROKER_3_6) + versions_answer(0, 2, BROKER_3_6))
    driven.down(fetch_answer(13, 3, [(ONE, 1, FENCED, b"")]))
    assert driven.held is not None


def test_who_a_client_is_is_looked_for_in_other_versions_where_one_cannot_be_read() -> None:
    link = Driven(route())
    for correlation_id in (1, 2):
        link.up(struct.pack(">ihhihb", 11, 18, 4, correlation_id, -1, 0))
    assert link.link.state.traffic.raw["client software"] == 1
    link.up(request(18, 3, 3, **USES_HINTS))
    assert link.link.state.client.software == "librdkafka/2.5.0"


def test_the_clients_epochs_are_those_of_its_session() -> None:
    driven = Driven(route())
    driven.up(fetch_request(16, 1, {(ONE, 0): 5, (TWO, 0): 6}, session=(0, 0)))
    driven.down(fetch_answer(15, 1, [], session_id=9))
    # Another link of the route: Java keeps a session across an idle disconnect.
    other = Driven(driven.link.state.route)
    other.up(fetch_request(16, 2, {(ONE, 0): 8}, session=(9, 1)))
    other.down(fetch_answer(15, 2, [(ONE, 0, FENCED, b""), (TWO, 0, FENCED, b"")], session_id=9))
    assert other.held is not None
    assert other.held.epochs == [8, 6]


def _cpu_of_errors(partitions: int) -> float:
    """Return the CPU seconds that one response takes in which so many partitions failed."""
    asked: dict[tuple[str | bytes, int], int] = {(topic_id(1), n): 3 for n in range(partitions)}
    failed = [(topic, partition, NOT_LEADER, b"") for topic, partition in asked]
    answer = fetch_answer(15, 1, failed)
    driven = Driven(route(), buffer_size=1 << 18)
    driven.up(fetch_request(16, 1, asked))
    begun = time.process_time()
    driven.down(answer)
    taken = time.process_time() - begun
    assert driven.held is not None
    assert driven.held.epochs == [3] * partitions
    return taken


def test_the_time_of_a_response_does_not_grow_faster_than_its_errors() -> None:
    few, many = (min(_cpu_of_errors(count) for _ in range(3)) for count in (400, 3200))
    # Eight times as many, and not the square of that.
    assert many < 24 * few


def test_errors_of_a_fetch_whose_session_is_not_known_have_no_epoch() -> None:
    driven = Driven(route())
    driven.up(fetch_request(16, 2, {}, session=(9, 1)))
    driven.down(fetch_answer(15, 2, [(ONE, 0, FENCED, b"")], session_id=9))
    assert driven.held is not None
    assert driven.held.epochs == [-1]


@pytest.mark.parametrize("known", [False, True])
def test_a_malformed_fetch_request_does_not_cost_the_link(known: bool) -> None:
    asked = fetch_request(16, 1, {(ONE, 0): 5}, session=(9, 1))
    # The count of its partitions cannot be: the broker may still answer what it likes.
    at = asked.index(ONE) + 16
    malformed = asked[:at] + b"\x7f" + asked[at + 1 :]
    driven = Driven(route(), decide=decide)
    if known:
        driven.up(fetch_request(16, 0, {(ONE, 0): 5}, session=(0, 0)))
        driven.down(fetch_answer(15, 0, [], session_id=9))
        driven.to_client.clear()
    driven.up(malformed + fetch_request(16, 2, {(ONE, 0): 5}))
    failed = fetch_answer(15, 1, [(ONE, 0, FENCED, b"")])
    driven.down(failed + fetch_answer(15, 2, [(ONE, 0, 0, b"x")]))
    assert driven.to_client == failed + fetch_answer(15, 2, [(ONE, 0, 0, b"x")])
    assert driven.link.state.route.traffic.raw["not understood"] == 1
    assert [event.side for event in driven.not_understood] == ["client"]


def test_of_messages_that_cannot_be_read_each_is_counted_and_the_first_told() -> None:
    driven = Driven(route(), decide=decide)
    for number in (1, 2, 3):
        asked = fetch_request(16, number, {(ONE, 0): 5}, session=(9, 1))
        at = asked.index(ONE) + 16
        driven.up(asked[:at] + b"\x7f" + asked[at + 1 :])
        driven.down(fetch_answer(15, number, [(ONE, 0, FENCED, b"")]))
    state = driven.link.state
    assert state.traffic.raw["not understood"] == 3
    assert [type(event).__name__ for event in state.events] == ["NotUnderstood"]


# Versions.


def test_nothing_is_raised_until_the_versions_of_the_broker_are_known() -> None:
    unknown = route()
    unknown.broker.plan = None
    driven = Driven(unknown)
    driven.up(produce_request(10, 1))
    assert driven.to_broker == produce_request(10, 1)
    driven.up(request(18, 0, 2))
    driven.down(produce_answer(10, 1, {0: 0}) + versions_answer(0, 2, BROKER_3_6))
    driven.up(produce_request(10, 3))
    assert driven.to_broker.endswith(produce_request(9, 3))


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_maxima_are_raised_in_every_version(version: int) -> None:
    driven = Driven(route())
    # A broker that refuses a version is asked in an older one, which may name nobody.
    driven.up(request(18, 3, 1, **USES_HINTS))
    refused = versions_answer(0, 1, {}, error=35)
    driven.down(refused)
    driven.up(request(18, version, 2, **(USES_HINTS if version == 3 else {})))
    driven.down(versions_answer(version, 2, BROKER_3_6))
    raised = versions_answer(version, 2, {**BROKER_3_6, 0: 10, 1: 16})
    assert driven.to_client == refused + raised


@pytest.mark.parametrize("version", range(5))
def test_a_client_that_names_nothing_is_offered_the_brokers_versions(version: int) -> None:
    driven = Driven(route(), decide=decide)
    driven.up(request(18, version, 1))
    offered = versions_answer(version, 1, BROKER_3_6)
    driven.down(offered)
    assert driven.to_client == offered


def test_a_client_that_is_not_known_is_offered_the_brokers_versions() -> None:
    driven = Driven(route(), decide=decide)
    driven.up(_platformatic(1))
    offered = versions_answer(3, 1, BROKER_3_6)
    driven.down(offered)
    assert driven.to_client == offered


def test_a_raised_version_that_a_client_was_not_offered_is_lowered_and_gets_no_hint() -> None:
    """It was offered them by a proxy of before, or asks for them whatever it is offered."""
    driven = Driven(route(), decide=decide)
    driven.up(_platformatic(1) + fetch_request(16, 2, {(ONE, 1): 5}) + produce_request(10, 3))
    assert driven.to_broker.endswith(fetch_request(15, 2, {(ONE, 1): 5}) + produce_request(9, 3))
    failed = fetch_answer(15, 2, [(ONE, 1, FENCED, b"")]) + produce_answer(9, 3, {0: NOT_LEADER})
    driven.down(versions_answer(3, 1, BROKER_3_6) + failed)
    assert driven.to_client.endswith(failed)
    missed = [event for event in driven.link.state.events if isinstance(event, HintMissed)]
    assert [(event.answered.api, event.reason) for event in missed] == [
        ("Fetch", "not_usable_by_client"),
        ("Produce", "not_usable_by_client"),
    ]


def test_a_link_that_begins_without_api_versions_gets_hints_in_raised_versions() -> None:
    """Its client was offered them on another link."""
    driven = Driven(route(), decide=decide)
    driven.up(fetch_request(16, 1, {(ONE, 1): 5}))
    driven.down(fetch_answer(15, 1, [(ONE, 1, FENCED, b"")]))
    assert driven.to_client == fetch_answer(
        16, 1, [(ONE, 1, FENCED, b"")], leaders={1: (2, 7)}, nodes={2: NODES[2]}
    )


@pytest.mark.parametrize(
    ("hello", "reasons"),
    [
        (lambda: _platformatic(1), ["not_usable_by_client", "version_without_field"]),
        (lambda: request(18, 0, 1), ["not_usable_by_client", "version_without_field"]),
        (lambda: request(18, 3, 1, **USES_HINTS), []),
    ],
)
def test_of_clients_that_use_no_hints_none_is_counted_as_one_that_would_have_been_given(
    hello: Callable[[], bytes], reasons: list[str]
) -> None:
    driven = Driven(route(Mode.OBSERVE), decide=decide)
    driven.up(hello() + fetch_request(15, 2, {(ONE, 1): 5}) + produce_request(9, 3))
    version = 0 if hello()[7] == 0 else 3
    driven.down(versions_answer(version, 1, BROKER_3_6))
    driven.down(fetch_answer(15, 2, [(ONE, 1, FENCED, b"")]))
    driven.down(produce_answer(9, 3, {0: NOT_LEADER}))
    missed = [event for event in driven.link.state.events if isinstance(event, HintMissed)]
    assert [event.reason for event in missed] == reasons
    assert all(event.answered.observed for event in missed)


def test_a_client_that_the_configuration_knows_is_raised() -> None:
    at = route()
    at.config = replace(at.config, clients=client_table([("platformatic-kafka", (), ["produce"])]))
    driven = Driven(at)
    driven.up(_platformatic(1))
    driven.down(versions_answer(3, 1, BROKER_3_6))
    assert driven.to_client == versions_answer(3, 1, {**BROKER_3_6, 0: 10})
    driven.up(produce_request(9, 2))
    driven.down(produce_answer(9, 2, {0: 0}))
    (seen,) = driven.link.state.events
    assert isinstance(seen, ClientSeen)
    assert seen.uses == ("produce",)


def test_the_configuration_can_have_clients_raised_that_name_nothing() -> None:
    at = route()
    at.config = replace(at.config, clients=client_table([("*", (), ["fetch"])]))
    driven = Driven(at)
    driven.up(request(18, 0, 1))
    driven.down(versions_answer(0, 1, BROKER_3_6))
    assert driven.to_client == versions_answer(0, 1, {**BROKER_3_6, 1: 16})


def _platformatic(correlation_id: int) -> bytes:
    said = {
        "client_software_name": "platformatic-kafka",
        "client_software_version": "1.35.0",
    }
    return request(18, 3, correlation_id, **said)


@pytest.mark.parametrize(
    "maxima", [{0: 10, 1: 16, 3: 12}, {0: 9, 1: 15, 3: 8}, {0: 7, 1: 10, 3: 9}]
)
def test_a_broker_that_needs_nothing_keeps_its_maxima(maxima: dict[int, int]) -> None:
    driven = Driven(route())
    driven.up(request(18, 3, 1))
    driven.down(versions_answer(3, 1, maxima))
    assert driven.to_client == versions_answer(3, 1, maxima)
    driven.up(produce_request(10, 2) + fetch_request(16, 3, {}))
    assert driven.to_broker.endswith(produce_request(10, 2) + fetch_request(16, 3, {}))


@pytest.mark.parametrize("cut", [None, 9])
def test_an_answer_unsupported_version_stays_as_it_is(cut: int | None) -> None:
    # ApiVersions 4 (KIP-1022): the answer has the body of v0, and clients ask v3 then.
    driven = Driven(route())
    refused = versions_answer(0, 1, {ApiKey.API_VERSIONS: 3}, error=35)
    driven.up(request(18, 4, 1, **USES_HINTS))
    driven.down(refused, [cut] if cut else [])
    assert driven.to_client == refused
    assert not driven.not_understood
    driven.up(request(18, 3, 2, **USES_HINTS))
    driven.down(versions_answer(3, 2, BROKER_3_6))
    assert driven.to_client[len(refused) :] == versions_answer(3, 2, {**BROKER_3_6, 0: 10, 1: 16})


def test_an_answer_that_cannot_be_read_stays_as_it_is() -> None:
    driven = Driven(route())
    driven.up(request(18, 3, 1) + request(8, 8, 2))
    odd = b"\0\0\0\x0b\0\0\0\x01\0\0\x7f\x01\x02"
    driven.down(odd[:3] + b"\x09" + odd[4:] + samples.answer(8, 8, 2))
    assert driven.to_client == odd[:3] + b"\x09" + odd[4:] + samples.answer(8, 8, 2)
    assert [event.side for event in driven.not_understood] == ["broker"]


@pytest.mark.parametrize("version", [0, 1, 3])
@pytest.mark.parametrize("behind", [-1, 1])
def test_versions_that_end_early_or_late_stay_as_they_are(version: int, behind: int) -> None:
    driven = Driven(route())
    driven.up(request(18, version, 1))
    whole = versions_answer(version, 1, BROKER_3_6)
    payload = whole[4:behind] if behind < 0 else whole[4:] + bytes(behind)
    odd = struct.pack(">i", len(payload)) + payload
    driven.down(odd)
    assert driven.to_client == odd
    assert driven.link.state.traffic.raw["not understood"] == 1


# Streams that turn opaque.


def test_bare_tokens_pass_after_sasl_handshake_v0() -> None:
    driven = Driven(route())
    tokens = b"\0\0\0\x05token" + b"\xff\xff\xff\xff\0\0\0\x02"
    handshake = request(17, 0, 2, mechanism="GSSAPI")
    driven.up(produce_request(10, 1) + handshake + tokens, [4, 30])
    driven.up(tokens)
    assert driven.to_broker == produce_request(9, 1) + handshake + tokens + tokens
    answers = produce_answer(9, 1, {0: 0}) + samples.answer(17, 0, 2)
    driven.down(answers + b"\0\0\0\0", [7])
    driven.down(tokens, [1])
    assert driven.to_client == answers + b"\0\0\0\0" + tokens
    assert not driven.not_understood
    assert driven.link.requests.fault is None


@pytest.mark.parametrize(
    "odd",
    [
        b"\0\0\0\x06\0\0\0\x09ab",
        b"\0\0\0\x03\0\0\0\x01",
        b"\xff\xff\xff\xff\0\0\0\x01",
    ],
)
def test_a_response_that_answers_no_request_passes_with_all_behind_it(odd: bytes) -> None:
    driven = Driven(route())
    driven.up(b"".join(produce_request(10, n) for n in range(1, 4)))
    first, rest = produce_answer(9, 1, {0: 0}), odd + produce_answer(9, 2, {0: NOT_LEADER})
    driven.down(first + rest)
    driven.up(produce_request(10, 5))
    driven.down(b"anything")
    assert driven.to_client == first + rest + b"anything"
    assert len(driven.link.state.events) == 1
    assert not driven.link.crowded
    assert driven.to_broker.endswith(produce_request(9, 5))


def test_bytes_that_nobody_asked_for_are_not_kept_back() -> None:
    driven = Driven(route())
    driven.down(b"abc")
    assert driven.to_client == b"abc"


@pytest.mark.parametrize("cut", [(), (5,), (200, 201)])
def test_a_fetch_response_that_is_not_understood_passes(cut: tuple[int, ...]) -> None:
    driven = Driven(route())
    driven.up(fetch_request(16, 1, {(ONE, 0): 5}) + request(8, 8, 2))
    odd = bytearray(fetch_answer(15, 1, [(ONE, 0, NOT_LEADER, bytes(300))]))
    odd[-1] = 9
    driven.down(bytes(odd) + samples.answer(8, 8, 2), cut)
    assert driven.to_client == odd + samples.answer(8, 8, 2)
    assert driven.link.state.route.traffic.raw["not understood"] == 1


def test_a_produce_response_that_is_not_understood_passes() -> None:
    driven = Driven(route())
    driven.up(produce_request(10, 1) + request(8, 8, 2))
    odd = produce_answer(9, 1, {0: NOT_LEADER})[:-1] + b"\x05"
    driven.down(odd + samples.answer(8, 8, 2), [20])
    assert driven.to_client == odd + samples.answer(8, 8, 2)
    assert driven.link.state.route.traffic.raw["not understood"] == 1


@pytest.mark.parametrize(
    "lost",
    [
        # It ends before its acks; and the tags of its header are none.
        struct.pack(">ihhih", 10, 0, 9, 3, -1),
        struct.pack(">ihhih", 20, 0, 9, 3, -1) + b"\xff" * 10,
    ],
)
def test_a_produce_request_without_acks_turns_the_link_opaque(lost: bytes) -> None:
    # Whether it will be answered cannot be known: nothing behind it is matched.
    driven = Driven(route())
    driven.up(produce_request(10, 1) + lost + b"\xff" * 30)
    driven.down(produce_answer(9, 1, {0: 0}) + b"\xff" * 30)
    assert driven.to_broker == produce_request(9, 1) + lost + b"\xff" * 30
    assert driven.to_client == produce_answer(9, 1, {0: 0}) + b"\xff" * 30
    assert [event.side for event in driven.not_understood] == ["client"]


@pytest.mark.parametrize("client_id", [b"\x00\x04caf\xe9", b"\xff\xfe"])
def test_a_client_id_that_is_no_text_costs_no_hint(client_id: bytes) -> None:
    # Brokers take any bytes there, and any negative length as null.
    def named(frame: bytes) -> bytes:
        payload = frame[4:12] + client_id + frame[15:]
        return struct.pack(">i", len(payload)) + payload

    driven = Driven(route(), decide=decide)
    driven.up(named(produce_request(10, 1)) + named(fetch_request(16, 2, {(ONE, 1): 5})))
    assert driven.to_broker == named(produce_request(9, 1)) + named(
        fetch_request(15, 2, {(ONE, 1): 5})
    )
    driven.down(
        produce_answer(9, 1, {1: NOT_LEADER}) + fetch_answer(15, 2, [(ONE, 1, FENCED, b"")])
    )
    one = {1: (2, 7)}
    assert driven.to_client == produce_answer(
        10, 1, {1: NOT_LEADER}, leaders=one, nodes={2: NODES[2]}
    ) + fetch_answer(16, 2, [(ONE, 1, FENCED, b"")], leaders=one, nodes={2: NODES[2]})


# First bytes that cannot be Kafka.


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\x16\x03\x03\x00\xf0\x01\x00\x00", "TLS"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "TLS"),
        (b"GET / HTTP/1.1\r\n", "above the limit"),
        (b"\xff\xff\xff\xff\0\0\0\0", "negative"),
        (b"\0\0\0\x07\0\0\0\0", "too small"),
        (b"\0\0\0\0\0\0\0\0", "too small"),
        (struct.pack(">ihhi", (1 << 20) + 1, 0, 9, 1), "above the limit"),
    ],
)
@pytest.mark.parametrize("cuts", [(), (1, 2, 3), (4,)])
@pytest.mark.parametrize("before", [b"", produce_request(7, 1)])
def test_what_cannot_be_kafka_is_named(
    first: bytes, words: str, cuts: tuple[int, ...], before: bytes
) -> None:
    driven = Driven(route())
    driven.up(before + first, [len(before) + cut for cut in cuts])
    assert driven.to_broker == before
    assert driven.link.requests.fault is not None
    assert words in driven.link.requests.fault


def test_a_large_limit_does_not_hide_tls() -> None:
    driven = Driven(route(), largest_request=2**31 - 1)
    driven.up(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", [2])
    assert "TLS" in (driven.link.requests.fault or "")


def test_the_largest_request_passes() -> None:
    driven = Driven(route(), largest_request=100)
    asked = struct.pack(">ihhi", 100, 900, 0, 1) + bytes(92)
    driven.up(asked)
    assert driven.link.requests.fault is None
    assert driven.to_broker == asked


# Bounds.


def test_a_client_that_asks_too_much_at_once_is_crowded_until_it_is_answered() -> None:
    driven = Driven(route(), requests_in_flight=2)
    driven.up(request(8, 8, 1))
    assert not driven.link.crowded
    driven.up(request(8, 8, 2) + produce_request(10, 3, acks=0))
    assert driven.link.crowded
    driven.down(samples.answer(8, 8, 1))
    assert not driven.link.crowded


def test_much_is_received_at_once_only_where_requests_are_large() -> None:
    driven = Driven(route(), buffer_size=1 << 18, requests_in_flight=1 << 20)
    flow = driven.link.requests
    large, small = produce_request(10, 1, records=bytes(9000)), request(8, 8, 1)
    assert len(flow.buffer()) == 4096
    # Before the broker has shown that it serves the client nor there.
    driven.up(large, [4096])
    assert len(flow.buffer()) == 4096
    driven.down(produce_answer(9, 1, {0: 0}))
    driven.up(small * 100)
    assert len(flow.buffer()) == 4096
    driven.up(large, [4096])
    assert len(flow.buffer()) == 32_768
    # Of a request's rest nothing is read; what may follow it is again the beginning of requests.
    driven.up(large[:100])
    assert len(flow.buffer()) == len(large) - 100 + 32_768
    driven.up(large[100:])
    # No honest client sends so many at once: it gets no more to receive again.
    driven.up(small * 600)
    driven.up(large, [4096])
    assert len(flow.buffer()) == 4096


def test_much_is_received_at_once_where_responses_are_large() -> None:
    driven = Driven(route(), buffer_size=1 << 18)
    flow = driven.link.responses
    assert len(flow.buffer()) == 32_768
    driven.up(request(8, 8, 1) + request(8, 8, 2))
    driven.down(struct.pack(">ii", 4 + 40_000, 1) + bytes(40_000), [32_768])
    assert len(flow.buffer()) == 1 << 18


@pytest.mark.parametrize("cut", [9, 12, 40])
def test_without_budget_all_passes_without_hints_and_is_counted(cut: int) -> None:
    driven = Driven(route(), decide=decide, budget=Budget(10, 10))
    asked = [
        request(18, 3, 1, **USES_HINTS),
        fetch_request(16, 2, {(ONE, 0): 5}),
        produce_request(10, 3),
    ]
    driven.up(asked[0])
    for frame in asked[1:]:
        driven.up(frame, [cut])
    assert driven.to_broker == asked[0] + fetch_request(15, 2, {(ONE, 0): 5}) + produce_request(
        9, 3
    )
    answers = [
        versions_answer(3, 1, BROKER_3_6),
        fetch_answer(15, 2, [(ONE, 0, FENCED, b"")]),
        produce_answer(9, 3, {0: NOT_LEADER}),
    ]
    for frame in answers:
        driven.down(frame, [cut])
    assert driven.to_client == b"".join(answers)
    assert driven.link.state.route.traffic.raw["budget"] == 3
    assert driven.budget.used == 0


@settings(max_examples=100)
@given(st.integers(0, len(_ASKED)), st.integers(0, len(_ANSWERED)), st.data())
def test_the_budget_comes_back_in_whatever_state_a_link_ends(
    up: int, down: int, data: st.DataObject
) -> None:
    budget = Budget(data.draw(st.integers(0, 700)), 1500)
    driven = Driven(route(), budget=budget)
    driven.up(_ASKED[:up], data.draw(_cuts(_ASKED)))
    driven.down(_ANSWERED[:down], data.draw(_cuts(_ANSWERED)))
    while driven.held is not None and data.draw(st.booleans()):
        driven.release([None] * len(driven.held.scanned.failures))
    if data.draw(st.booleans()):
        driven.end()
    driven.link.close()
    assert budget.used == 0


def test_a_fetch_response_is_kept_only_until_its_last_partition_is_seen() -> None:
    driven = Driven(route(), buffer_size=700)
    driven.up(fetch_request(16, 1, {(ONE, 0): 5, (TWO, 0): 5}))
    large = fetch_answer(15, 1, [(ONE, 0, 0, bytes(5_000)), (TWO, 0, 0, bytes(50_000))])
    driven.down(large[:300])
    assert not driven.to_client
    assert driven.budget.used == len(large)
    driven.down(large[300:6_000])
    assert driven.to_client == large[:6_000]
    assert driven.budget.used == 0
    driven.down(large[6_000:])
    assert driven.to_client == large


# What else is seen.


@pytest.mark.parametrize("version", range(7, 14))
def test_metadata_that_goes_by_is_handed_on(version: int) -> None:
    driven = Driven(route())
    driven.up(request(3, min(version, 12), 1, topics=None) if version < 13 else _metadata_13(1))
    seen = samples.metadata_answer(min(version, 12), 1, {"t": {0: (1, 5)}})
    driven.down(seen)
    assert driven.to_client == seen
    snooped = [(version, seen[4:])] if 9 <= version <= 12 else []
    assert driven.link.state.snooped == snooped


def _metadata_13(correlation_id: int) -> bytes:
    return struct.pack(">ihhihB", 11, 3, 13, correlation_id, -1, 0)


def test_requests_are_counted_as_asked_and_as_sent() -> None:
    driven = _talk([], [])
    requests = driven.link.state.route.traffic.requests
    assert requests[0, 10, 9] == 3
    assert requests[0, 7, 7] == 1
    assert requests[1, 16, 15] == 2
    assert requests[1, 12, 12] == 1
    assert requests[10_000, 99, 99] == 1


def test_a_client_that_asks_what_nobody_does_fills_no_memory_with_counts() -> None:
    driven = Driven(route())
    for key in range(100, 200):
        driven.up(b"".join(struct.pack(">ihhi", 8, key, version, 1) for version in range(100)))
    driven.up(produce_request(10, 1))
    requests = driven.link.state.route.traffic.requests
    assert len(requests) < 5000
    assert sum(requests.values()) == 10_001


def test_what_nobody_asks_keeps_nothing_that_clients_ask_from_being_counted() -> None:
    driven = Driven(route())
    for key in range(32_000, 32_005):
        driven.up(b"".join(struct.pack(">ihhi", 8, key, v, 1) for v in range(-500, 500)))
    driven.up(produce_request(10, 1) + request(18, 3, 2))
    requests = driven.link.state.route.traffic.requests
    assert len(requests) < 100
    assert requests[0, 10, 9] == 1
    assert requests[18, 3, 3] == 1


@pytest.mark.parametrize("cut", [(), (3,), (13,)])
def test_the_client_id_is_the_first_one_said(cut: tuple[int, ...]) -> None:
    driven = Driven(route())
    driven.up(request(18, 3, 1, "first") + produce_request(10, 2, client_id="second"), cut)
    assert driven.link.state.client.id == "first"


# Modes.


def test_observe_looks_and_changes_nothing() -> None:
    driven = Driven(route(Mode.OBSERVE), decide=lambda held: [None] * len(held.scanned.failures))
    asked = [
        request(18, 3, 1),
        produce_request(9, 2),
        fetch_request(15, 3, {(ONE, 0): 5}),
        fetch_request(16, 4, {(ONE, 0): 5}),
    ]
    answers = [
        versions_answer(3, 1, BROKER_3_6),
        produce_answer(9, 2, {0: NOT_LEADER}),
        fetch_answer(15, 3, [(ONE, 0, FENCED, b"")]),
        fetch_answer(16, 4, [(ONE, 0, FENCED, b"")]),
    ]
    driven.up(b"".join(asked))
    driven.down(b"".join(answers))
    assert driven.to_broker == b"".join(asked)
    assert driven.to_client == b"".join(answers)


def test_observe_holds_what_would_have_been_hinted_up_for_judgement() -> None:
    driven = Driven(route(Mode.OBSERVE))
    driven.up(produce_request(9, 1))
    driven.down(produce_answer(9, 1, {0: NOT_LEADER}))
    assert driven.held is not None


def test_off_reads_nothing() -> None:
    driven = Driven(route(Mode.OFF))
    driven.up(_ASKED, [3, 17])
    driven.up(b"\xff\xff\xff\xff no Kafka at all")
    driven.down(_ANSWERED, [5])
    assert driven.to_broker == _ASKED + b"\xff\xff\xff\xff no Kafka at all"
    assert driven.to_client == _ANSWERED
    assert not driven.link.state.route.traffic.requests


# All other APIs.

_INT16 = st.integers(-(2**15), 2**15 - 1)
_OTHERS = st.tuples(
    _INT16.filter(lambda key: key not in {0, 1, 3, 17, 18}), _INT16, st.binary(max_size=300)
)


@given(st.lists(_OTHERS, min_size=1, max_size=8), st.data())
def test_all_other_apis_pass_byte_for_byte(
    others: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    asked, answered = b"", b""
    for number, (key, version, body) in enumerate(others):
        asked += struct.pack(">ihhi", 8 + len(body), key, version, number) + body
        reply = data.draw(st.binary(max_size=300))
        answered += struct.pack(">ii", 4 + len(reply), number) + reply
    driven = Driven(route(), buffer_size=400)
    driven.up(asked, data.draw(_cuts(asked)))
    driven.down(answered, data.draw(_cuts(answered)))
    assert driven.to_broker == asked
    assert driven.to_client == answered
    assert not driven.not_understood
    assert not driven.link.state.exchanges.waiting


@given(st.binary(max_size=400), st.binary(max_size=400), st.data())
def test_any_bytes_pass_or_are_a_fault(up: bytes, down: bytes, data: st.DataObject) -> None:
    driven = Driven(route(), decide=decide)
    driven.up(_ASKED)
    driven.up(up, data.draw(_cuts(_ASKED)))
    driven.down(_ANSWERED)
    driven.down(down, data.draw(_cuts(_ASKED)))
    driven.end()
    assert driven.to_client == _GOT + down
    sent = driven.to_broker[len(_SENT) :]
    if driven.link.requests.fault is None:
        assert len(sent) == len(up)
    else:
        assert len(sent) <= len(up)
    driven.link.close()
    assert driven.budget.used == 0


# Modes that change at run time.


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
def test_a_link_keeps_its_versions_when_hints_are_switched_off(mode: Mode) -> None:
    driven = Driven(route(), decide=lambda held: [None] * len(held.scanned.failures))
    state = driven.link.state
    driven.up(produce_request(10, 1))
    state.route.switch(mode)
    driven.up(produce_request(10, 2))
    driven.up(fetch_request(16, 3, {(ONE, 0): 5}))

    assert driven.to_broker == produce_request(9, 1) + produce_request(9, 2) + fetch_request(
        15, 3, {(ONE, 0): 5}
    )
    # Nothing is looked at where hints are off; where they are counted, all is.
    assert [e.policy.hintable for e in state.exchanges.waiting] == [
        True,
        *[mode is Mode.OBSERVE] * 2,
    ]
    failed = [produce_answer(9, number, {0: NOT_LEADER}) for number in (1, 2)]
    driven.down(b"".join(failed))
    assert driven.to_client == b"".join(failed)


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
def test_a_new_link_of_a_client_that_keeps_raised_versions_is_served(mode: Mode) -> None:
    at = route()
    at.switch(mode)
    driven = Driven(at)
    driven.up(produce_request(10, 1))
    assert driven.to_broker == produce_request(9, 1)

    asked = request(18, 3, 2, **USES_HINTS)
    driven.up(asked)
    driven.down(produce_answer(9, 1, {0: 0}) + versions_answer(3, 2, BROKER_3_6))
    # What is offered from now on is the broker's own.
    assert driven.to_client.endswith(versions_answer(3, 2, BROKER_3_6))
    driven.up(produce_request(10, 3))
    assert driven.to_broker.endswith(produce_request(9, 3))


def test_a_link_from_before_hints_came_on_gets_none_in_its_versions() -> None:
    at = route(Mode.OBSERVE)
    driven = Driven(at)
    at.switch(Mode.ON)
    driven.up(produce_request(9, 1))
    driven.down(produce_answer(9, 1, {0: NOT_LEADER}))
    assert driven.held is None
    assert driven.to_client == produce_answer(9, 1, {0: NOT_LEADER})


@given(st.lists(st.sampled_from(Mode), min_size=2 * len(_TALK), max_size=2 * len(_TALK)))
def test_whenever_hints_are_switched_each_side_gets_what_it_agreed_to(modes: list[Mode]) -> None:
    def decided(held: Held) -> Sequence[LeaderHint | None]:
        # As the hold queue does it.
        hints, hintable = decide(held), held.link.hintable(held.key, held.version)
        return hints if hintable and at.mode is Mode.ON else [None] * len(hints)

    at, switches = route(), iter(modes)
    driven = Driven(at, decide=decided)
    for position, exchanged in enumerate(_TALK):
        at.switch(asked := next(switches))
        driven.up(exchanged.asked)
        at.switch(answered := next(switches))
        before = len(driven.to_client)
        driven.down(exchanged.answered)

        # The first asks for the versions, which are raised while hints are on.
        looked_at = position == 0 or asked is not Mode.OFF
        hinted = answered is Mode.ON and looked_at
        expected = exchanged.got if hinted else exchanged.answered
        assert driven.to_client[before:] == expected
    assert driven.to_broker == _SENT
    assert not at.traffic.raw


def test_nothing_of_an_earlier_frame_is_seen_in_memory_that_is_used_again() -> None:
    """What is gathered of the second stands where the first one was, which was longer."""
    driven = Driven(route())
    expected = b""
    contents = [(b"\xff", 1_500_000), (b"r", 1_000_000), (b"s", 90_000)]
    for number, (fill, size) in enumerate(contents):
        parts = [(topic_id(1), partition, 0, fill * size) for partition in range(2)]
        driven.up(fetch_request(16, number, dict.fromkeys(((topic_id(1), n) for n in (0, 1)), 3)))
        answer = fetch_answer(15, number, parts)
        expected += answer
        driven.down(answer)
        assert driven.to_client == expected
    memory = driven.budget.memory.take(65_536, 1 << 22)
    assert memory[:1000] == answer[:1000]
