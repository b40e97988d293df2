"""What one request costs the event loop and the memory is bounded, whatever it has in it."""

import struct
import tracemalloc
from dataclasses import replace
from time import process_time

import pytest

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.fetch_response import Topic
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.link import Link
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import ClientTable, HintForms
from leader_hints.wire.varint import write_uvarint
from tests.core.brokers import route_before
from tests.core.links import Driven, route
from tests.core.samples import (
    BROKER_3_6,
    NOT_LEADER,
    answer,
    fetch_answer,
    fetch_request,
    metadata_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)
from tests.core.stepped import Stepped

_BYTES = 15 << 20
#: Of CPU time. Each of these requests once took from 1.8 to 4.6 s.
_SECONDS = 1.0


def _frame(key: int, version: int, body: bytes, client_id: bytes = b"c") -> bytes:
    payload = struct.pack(">hhih", key, version, 1, len(client_id)) + client_id + b"\0" + body
    return struct.pack(">i", len(payload)) + payload


def _resized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame) - 4) + frame[4:]


def _fetch(version: int, topics: int, topic: bytes) -> bytes:
    fixed = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    replica = b"" if version >= 15 else struct.pack(">i", -1)
    return _frame(
        1, version, replica + fixed + write_uvarint(topics + 1) + topic * topics + b"\1\1\0"
    )


def _produce(partitions: bytes) -> bytes:
    acks_and_timeout = struct.pack(">hi", 1, 1000)
    return _frame(0, 10, b"\0" + acks_and_timeout + b"\2\2t" + partitions + b"\0\0")


_EMPTY = struct.pack(">i", 0) + b"\1\0"
_ONE_PARTITION = b"\2" + struct.pack(">iiqiqi", 0, 3, 0, -1, -1, 1 << 20) + b"\0"


@pytest.mark.parametrize(
    ("release", "asked"),
    [
        ("2.8", _fetch(16, _BYTES // 18, bytes(range(1, 17)) + b"\1\0")),
        ("3.4", _fetch(16, _BYTES // 18, bytes(range(1, 17)) + b"\1\0")),
        ("2.4", _fetch(12, _BYTES // 4, b"\2a\1\0")),
        ("2.6", _produce(write_uvarint(_BYTES // 6 + 1) + _EMPTY * (_BYTES // 6))),
        (
            "2.6",
            _produce(b"\2" + _EMPTY[:-1] + write_uvarint(_BYTES // 2) + b"\1\0" * (_BYTES // 2)),
        ),
        (
            "2.6",
            _produce(
                write_uvarint(8001) + (_EMPTY[:-1] + write_uvarint(900) + b"\1\0" * 900) * 8000
            ),
        ),
        ("2.8+", _frame(3, 12, write_uvarint(_BYTES // 18 + 1) + bytes(18) * (_BYTES // 18))),
    ],
    ids=[
        "topics",
        "topics, by id",
        "topics, by name",
        "partitions",
        "tags",
        "sections",
        "metadata",
    ],
)
def test_a_request_of_a_million_parts_stops_nobody(release: str, asked: bytes) -> None:
    """Nobody has authenticated the client, and the broker refuses the version."""
    budget = Budget(1 << 22, 1 << 26)
    driven = Driven(route_before(release), budget=budget, largest_request=1 << 30)
    cuts = range(0, len(asked), 1 << 16)
    begun = process_time()
    driven.up(asked, cuts)
    assert process_time() - begun < _SECONDS
    assert driven.to_broker == asked
    assert driven.not_understood
    driven.link.close()
    assert (budget.used, budget.unauthenticated) == (0, 0)


_LONG = write_uvarint(_BYTES + 1) + bytes(_BYTES)
_TAG = b"\1\0" + write_uvarint(_BYTES) + bytes(_BYTES)
_FIXED = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)


def _tagged(key: int, version: int, body: bytes) -> bytes:
    """Return a request with a long tag in its header."""
    return _resized(bytes(4) + struct.pack(">hhih", key, version, 1, 1) + b"c" + _TAG + body)


@pytest.mark.parametrize(
    ("release", "asked"),
    [
        ("2.8", _frame(1, 16, _FIXED + b"\1\1" + _LONG + b"\0")),
        ("2.8", _frame(1, 16, _FIXED + b"\1\1\1" + _TAG)),
        ("2.8", _tagged(1, 16, _FIXED + b"\1\1\1\0")),
        ("3.4", _tagged(1, 16, _FIXED + b"\1\1\1\0")),
        ("2.4", _frame(1, 12, bytes(4) + _FIXED + b"\2" + _LONG + b"\1\0\1\1\0")),
        ("2.8+", _frame(3, 12, b"\2" + bytes(16) + _LONG + b"\0\0\0\0")),
        ("2.8+", _tagged(3, 12, b"\1\0\0\0")),
    ],
    ids=[
        "rack",
        "cluster id",
        "header",
        "header, by id",
        "name",
        "metadata",
        "metadata's header",
    ],
)
def test_a_request_with_a_very_long_field_is_not_recoded(release: str, asked: bytes) -> None:
    """Nobody has authenticated the client, and the broker refuses what no client sends."""
    link = Stepped(route_before(release)).link
    flow, left = link.requests, memoryview(asked)
    peaks, sent = [], 0
    tracemalloc.start()
    try:
        while left or flow.unfinished:
            size = min(len(left), 1 << 16, len(flow.buffer()))
            if not flow.unfinished:
                flow.buffer()[:size], left = left[:size], left[size:]
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            pieces = flow.resume() if flow.unfinished else flow.received(size)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            sent += sum(map(len, pieces))
    finally:
        tracemalloc.stop()
    # The frame's own memory doubles up to 8 MiB.
    assert max(peaks[:-1]) < 9 << 20
    assert peaks[-1] < 1 << 20
    assert sent == len(asked)
    assert link.state.traffic.raw["not understood"] == 1


def _begun(budget: Budget, shared: memoryview, asked: bytes, number: int = 1) -> Link:
    """Return a link that has received a request, and begins to recode it."""
    on = route_before("2.6")
    most = 1 << 30
    link = Link(
        on, number, shared, budget, Recovery([on]), largest_request=most, requests_in_flight=100
    )
    flow, left = link.requests, asked
    while left:
        size = min(len(left), len(flow.buffer()))
        flow.buffer()[:size], left = left[:size], left[size:]
        flow.received(size)
    assert flow.unfinished
    return link


@pytest.mark.parametrize("gone", [0, 4])
def test_requests_that_are_recoded_at_the_same_time_take_little_memory(
    monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """Those of 200 KB took 5 MB each meanwhile, in no budget: 30 from one address took 190 MB.

    Nobody has authenticated their clients. Some of these are ``gone`` before the end. They are
    small, since requests take long while memory is traced.
    """
    monkeypatch.setattr("leader_hints.core.link.recoding_turns._AT_ONCE", 50_000)
    budget = Budget(1 << 22, 1 << 26)
    topics = write_uvarint(2001) + b"\3ab\1\0" * 2000
    asked = _frame(1, 12, struct.pack(">i", -1) + _FIXED + topics + topics + b"\1\0")
    shared = memoryview(bytearray(1 << 18))
    taken, sent = [], []
    tracemalloc.start()
    try:
        links = [_begun(budget, shared, asked, number) for number in range(10)]
        for link in links[:gone]:
            link.requests.resume()
            link.close()
        while unfinished := [link.requests for link in links if link.requests.unfinished]:
            for flow in unfinished:
                if pieces := flow.resume():
                    sent.append(b"".join(pieces)[4:8])
                    flow.flushed()
            taken.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(taken) < 3 << 20
    assert sent == [struct.pack(">hh", 1, 11)] * (10 - gone)
    for link in links[gone:]:
        link.close()
    assert (budget.turns.recoded, budget.used, budget.unauthenticated) == (0, 0, 0)


def test_a_link_without_a_turn_keeps_no_other_from_recoding() -> None:
    """Its broker may not have taken what came before, and may never do so."""
    budget = Budget(1 << 22, 1 << 26)
    topics = write_uvarint(19_001) + (b"\x33" + b"a" * 50 + b"\1\0") * 19_000
    asked = _frame(1, 12, struct.pack(">i", -1) + _FIXED + topics + b"\1\1\0")
    assert len(asked) > 1_000_000
    shared = memoryview(bytearray(1 << 20))
    stuck, other = (_begun(budget, shared, asked, number) for number in (1, 2))
    turns = 0
    while other.requests.unfinished and turns < 1_000:
        other.requests.resume()
        turns += 1
    assert not other.requests.unfinished
    assert stuck.requests.unfinished
    for link in (stuck, other):
        link.close()
    assert (budget.turns.recoded, budget.used) == (0, 0)


def test_a_request_for_as_many_topics_as_any_broker_leads_is_recoded() -> None:
    driven = Driven(route_before("2.4"), budget=Budget(1 << 22, 1 << 26))
    asked = _fetch(12, 10_000, b"\2a" + _ONE_PARTITION + b"\0")
    driven.up(asked)
    assert not driven.not_understood
    assert driven.to_broker[4:8] == struct.pack(">hh", 1, 10)


def test_a_session_of_two_hundred_thousand_topics_is_not_followed() -> None:
    driven = Driven(route(), budget=Budget(1 << 22, 1 << 26), largest_request=1 << 30)
    asked = _fetch(16, 200_000, bytes(range(1, 17)) + b"\1\0")
    driven.up(asked)
    driven.down(fetch_answer(15, 1, [], session_id=7))
    assert len(driven.link.state.route.sessions) == 0
    assert len(driven.to_broker) == len(asked)


def test_of_a_hundred_metadata_responses_at_once_few_are_read() -> None:
    driven = Driven(route(), buffer_size=1 << 16)
    asked = b"".join(request(3, 12, number, topics=()) for number in range(100))
    driven.up(asked)
    answers = [metadata_answer(12, number, {"t": {0: (1, 5)}}) for number in range(100)]
    driven.down(b"".join(answers))
    assert driven.to_client == b"".join(answers)
    assert 0 < len(driven.link.state.snooped) <= 8
    driven.link.state.snooped.clear()
    driven.up(request(3, 12, 100, topics=()))
    driven.down(metadata_answer(12, 100, {"t": {0: (1, 6)}}))
    assert len(driven.link.state.snooped) == 1


def _ids(count: int, behind: bytes) -> bytes:
    return b"".join(number.to_bytes(16, "big") + behind for number in range(1, count + 1))


_METADATA_BY_IDS = _frame(3, 12, write_uvarint(50_001) + _ids(50_000, b"\0\0") + b"\0\0\0")
_FETCH_BY_IDS = _frame(
    1,
    16,
    struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    + write_uvarint(20_001)
    + _ids(20_000, b"\1\0")
    + b"\1\1\0",
)
_BY_IDS = pytest.mark.parametrize(
    ("release", "asked"),
    [("2.6+", _METADATA_BY_IDS), ("2.8", _FETCH_BY_IDS)],
    ids=["metadata", "fetch"],
)


@_BY_IDS
def test_ids_that_have_no_names_are_counted_before_anybody_is_authenticated(
    release: str, asked: bytes
) -> None:
    """The broker is sent little in their place, so it takes all of it, and need not answer.

    The budget is small, since requests take long while memory is traced. Links that are about to
    be closed still have the request that was too much: memory is compared before that.
    """
    budget = Budget(1 << 22, 1 << 24)
    links = [Driven(route_before(release), budget=budget, largest_request=1 << 30) for _ in "ab"]
    kept = counted = 0
    tracemalloc.start()
    while not all(driven.link.requests.fault for driven in links):
        for driven in links:
            driven.up(asked)
            driven.to_broker.clear()
            # Memory that is free for the next frames is nobody's.
            for _ in range(2):
                budget.memory.sweep()
            if not any(other.link.requests.fault for other in links):
                kept, counted = tracemalloc.get_traced_memory()[0], budget.unauthenticated
    tracemalloc.stop()
    assert len(asked) < kept < 1.1 * counted
    assert budget.unauthenticated <= budget.total // 4
    for driven in links:
        driven.link.close()
    assert (budget.used, budget.unauthenticated, budget.copied) == (0, 0, 0)


def test_nothing_is_counted_of_a_request_that_cannot_be_recoded() -> None:
    driven = Driven(route_before("2.6+"), largest_request=1 << 30)
    rack = write_uvarint(40_001) + bytes(40_000)
    driven.up(_FETCH_BY_IDS)
    counted = driven.budget.used
    assert counted
    driven.up(_resized(_FETCH_BY_IDS[:-2] + rack + b"\0"))
    assert driven.not_understood
    assert driven.budget.used == counted
    driven.link.close()
    assert (driven.budget.used, driven.budget.unauthenticated) == (0, 0)


@_BY_IDS
def test_a_client_with_many_such_ids_is_read_on_when_they_are_answered(
    release: str, asked: bytes
) -> None:
    driven = Driven(route_before(release), largest_request=1 << 30)
    driven.up(request(12, 0, 1))
    driven.down(answer(12, 0, 1))
    sent = 0
    while not driven.link.crowded:
        driven.up(asked)
        sent += 1
    assert 0 < sent < 100
    assert driven.link.requests.fault is None
    exchanges = list(driven.link.state.exchanges.waiting)
    for exchange in exchanges:
        if exchange.by_id is not None:
            driven.down(metadata_answer(exchange.recoded, 1, {}))
        else:
            driven.down(fetch_answer(exchange.recoded, 1, []))
    assert not driven.link.crowded
    assert driven.budget.used == 0


def test_few_requests_are_noted_of_a_client_whom_nobody_has_authenticated() -> None:
    """One large request had 2,731 small ones read at once behind it: 384 KB, in no budget."""
    driven = Driven(route(), buffer_size=1 << 18, requests_in_flight=10_000)
    large, small = _frame(8, 8, bytes(4000)), struct.pack(">ihhi", 8, 18, 0, 1)
    driven.up(large + large)
    while not driven.link.crowded:
        driven.up(small * (len(driven.link.requests.buffer()) // len(small)))
    assert driven.link.requests.fault is None
    assert len(driven.link.state.exchanges.waiting) < 500


def test_answers_kept_for_clients_that_nobody_has_authenticated_have_room_in_their_share() -> None:
    """They asked for versions and read none: 32 KB were kept for each link, whatever was left."""
    budget, asked = Budget(1 << 22, 1 << 24), struct.pack(">ihhi", 8, 18, 0, 1)
    answered = versions_answer(0, 1, dict.fromkeys(range(61), 3) | BROKER_3_6) * 100
    links = [Driven(route(), budget=budget, buffer_size=1 << 18) for _ in range(300)]
    kept = 0
    for driven in links:
        driven.up(asked * 100)
        responses = driven.link.responses
        buffer = responses.buffer()
        size = min(len(buffer), len(answered))
        buffer[:size] = answered[:size]
        # None of it is sent, so the rest gets no turn.
        size -= sum(map(len, responses.received(size)))
        kept += size if responses.fault is None else 0
    assert kept == budget.used <= budget.total // 2
    faults = [driven.link.responses.fault for driven in links]
    assert faults[0] is None
    assert faults[-1] is not None
    assert "does not read" in faults[-1]
    assert links[-1].link.responses.unread
    for driven in links:
        driven.link.close()
    assert (budget.used, budget.unauthenticated) == (0, 0)


# What is kept of a link as long as it lasts.


def test_of_a_long_client_id_little_is_kept() -> None:
    """A letter of four bytes has Python take four for each of the others, too."""
    driven = Driven(route(), buffer_size=1 << 16)
    client_id = ("\N{GRINNING FACE}" + 32_000 * "a").encode()
    driven.up(_frame(18, 3, b"\2a\2b\0", client_id))
    known = driven.link.state.client.id
    assert known is not None
    assert client_id.decode().startswith(known)
    assert 255 < len(known) < 300


def test_of_a_long_version_little_is_read() -> None:
    """Megabytes of it once took 0.4 s, before authentication."""
    read: list[str] = []

    class Table(ClientTable):
        def known_forms(self, software: ClientSoftware | None) -> HintForms | None:
            assert software is not None
            read.extend(software)
            return super().known_forms(software)

    known = route_before("3.4")
    known.config = replace(known.config, clients=Table())
    driven = Driven(known, budget=Budget(1 << 22, 1 << 26), largest_request=1 << 30)
    text = write_uvarint(1_000_001) + b"1." * 500_000
    driven.up(_frame(18, 3, text + text + b"\0"))
    assert [len(text) for text in read] == [255, 255]


def test_few_kinds_of_requests_are_remembered() -> None:
    """A broker answers ApiVersions of any version, however often, before it authenticates."""
    driven = Driven(route())
    for version in range(5, 2000):
        driven.up(_frame(18, version, b"\xff"))
        driven.down(versions_answer(0, 1, {}, error=35))
        assert len(driven.link.state.policies.by_kind) <= 64
    assert driven.link.matched


# What a frame claims.


def test_who_claims_large_frames_takes_nothing_from_others() -> None:
    """Four connections of twelve bytes once had each new producer's link closed."""
    budget = Budget(1 << 22, 1 << 26)
    idle = [Driven(route_before("2.6"), budget=budget, largest_request=1 << 30) for _ in range(40)]
    for driven in idle:
        driven.up(struct.pack(">ihhi", (1 << 22) - 4, 18, 3, 1))
    producer = Driven(route_before("2.6"), budget=budget)
    asked, sent = (produce_request(v, 1, records=bytes(50_000), partitions=3) for v in (10, 8))
    producer.up(asked)
    assert producer.link.requests.fault is None
    assert producer.to_broker == sent
    for driven in (producer, *idle):
        driven.link.close()
    assert (budget.used, budget.unauthenticated) == (0, 0)


def test_a_request_that_outgrows_the_budget_goes_on_without_a_hint() -> None:
    driven = Driven(route(), budget=Budget(1 << 18, 1 << 18), largest_request=1 << 30)
    partitions: dict[tuple[Topic, int], int] = {(topic_id(1), n): 3 for n in range(6000)}
    asked, sent = (fetch_request(version, 1, partitions) for version in (16, 15))
    driven.budget.take(1 << 17)
    driven.up(asked)
    assert driven.to_broker == sent
    assert driven.link.state.exchanges.waiting[0].request is None
    driven.up(fetch_request(16, 2, {(topic_id(1), 0): 3}))
    assert driven.to_broker == sent + fetch_request(15, 2, {(topic_id(1), 0): 3})
    driven.link.close()
    assert driven.budget.used == 1 << 17


@pytest.mark.parametrize("mode", [Mode.ON, Mode.OBSERVE])
def test_a_response_that_outgrows_the_budget_goes_on_without_a_hint(mode: Mode) -> None:
    driven = Driven(route(mode), budget=Budget(1 << 18, 1 << 18))
    driven.up(request(18, 3, 0) + fetch_request(15 + (mode is Mode.ON), 1, {(topic_id(1), 0): 3}))
    driven.down(versions_answer(3, 0, {}))
    kept = driven.budget.used
    driven.budget.take((1 << 17) - kept)
    failed = (topic_id(1), 0, NOT_LEADER, b"")
    both = fetch_answer(15, 1, [failed, (topic_id(1), 1, 0, bytes(200_000)), failed])
    driven.down(both)
    assert driven.held is None
    assert driven.to_client.endswith(both)
    driven.up(fetch_request(15, 2, {(topic_id(1), 0): 3}))
    driven.down(fetch_answer(15, 2, []))
    assert driven.to_client.endswith(fetch_answer(15, 2, []))
    assert driven.link.matched
    driven.link.close()
    assert driven.budget.used == (1 << 17) - kept
