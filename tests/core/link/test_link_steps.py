"""One step of a link does a bounded work, whatever is in what it received: lines of Python."""

import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from leader_hints.apis.api_versions import SOFTWARE_FROM
from leader_hints.apis.fetch_response import FetchScan
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.flow import AT_ONCE
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.racks import Racks
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.wire.steps import ENTRIES_AT_ONCE, at_once
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string
from tests.apis.many import numbered, topic, with_arrays
from tests.apis.messages import (
    element,
    plain,
    read_response_frame,
    response_frame,
    response_type,
)
from tests.core.brokers import BROKERS, CLUSTER, route_before
from tests.core.conversation import ONE
from tests.core.links import Driven, route
from tests.core.samples import (
    BROKER_3_6,
    NOT_LEADER,
    NUMBERED,
    USES_HINTS,
    answer,
    fetch_answer,
    fetch_request,
    metadata_answer,
    produce_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)
from tests.core.stepped import MOST, SHARED, Stepped
from tests.harness.lines import lines_of


def _frame(key: int, version: int, body: bytes) -> bytes:
    payload = struct.pack(">hhih", key, version, 1, 1) + b"c\0" + body
    return struct.pack(">i", len(payload)) + payload


def _fetch(version: int, topics: bytes) -> bytes:
    replica = b"" if version >= 15 else struct.pack(">i", -1)
    fixed = replica + struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    return _frame(1, version, fixed + topics + b"\1\1\0")


def _fetch_that_forgets(version: int, topics: bytes) -> bytes:
    replica = b"" if version >= 15 else struct.pack(">i", -1)
    fixed = replica + struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, 0)
    return _frame(1, version, fixed + b"\1" + topics + b"\1\0")


def _topics(count: int, named: Callable[[int], bytes], behind: bytes) -> bytes:
    return write_uvarint(count + 1) + b"".join(named(n) + behind for n in range(1, count + 1))


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


#: A client that uses hints in Fetch 12.
_JAVA = {"client_software_name": "apache-kafka-java", "client_software_version": "3.9.0"}
#: A topic of Metadata that is asked for by name.
_NAMED = bytes(16) + compact_string("a-topic-with-a-name")
_PARTITION = struct.pack(">iiqiqi", 0, 3, 0, -1, -1, 1 << 20) + b"\0"
_RECORDLESS = struct.pack(">i", 0) + b"\1\0"
_REQUESTS = {
    "2.8": _fetch(16, _topics(20_000, _id, b"\1\0")),
    "2.6+": _frame(3, 12, _topics(50_000, _id, b"\0\0") + b"\0\0\0"),
    "2.4": _fetch(12, b"\2\2t" + write_uvarint(50_001) + _PARTITION * 50_000 + b"\0"),
    "2.6": _frame(
        0,
        10,
        b"\0"
        + struct.pack(">hi", 1, 1000)
        + b"\2\2t"
        + write_uvarint(40_001)
        + _RECORDLESS * 40_000
        + b"\0\0",
    ),
}


def _metadata(topics: int, partitions: int, brokers: int = 1) -> bytes:
    """An answer of v9 of so many topics, each with so many partitions."""
    nodes = b"\4" + struct.pack(">iii", 1, 2, 3)
    led = b"".join(
        struct.pack(">hiii", 0, p, 1, 3) + nodes + nodes + b"\1\0" for p in range(partitions)
    )
    broker = struct.pack(">i", 1) + compact_string("one") + struct.pack(">i", 9092) + b"\0\0"
    head = struct.pack(">i", 1) + b"\0" + bytes(4) + write_uvarint(brokers + 1) + broker * brokers
    behind = b"\0" + write_uvarint(partitions + 1) + led + bytes(4) + b"\0"
    named = (bytes(2) + compact_string(f"t{n}") + behind for n in range(topics))
    body = head + compact_string(CLUSTER) + struct.pack(">i", 1)
    body += write_uvarint(topics + 1) + b"".join(named) + bytes(4) + b"\0"
    return struct.pack(">i", len(body)) + body


#: As many tagged fields as a section may have, all empty, and one partition of a topic to forget.
_TAGS = b"\x0a" + b"\0\0" * 10
_FORGOTTEN = b"\2" + bytes(4) + b"\0"
_ODD_REQUESTS = {
    "topics-and-partitions": (
        "2.4",
        _fetch(
            12,
            _topics(
                255,
                lambda n: compact_string(f"t{n}") + write_uvarint(391) + _PARTITION * 390,
                b"\0",
            ),
        ),
    ),
    "records-of-topics": (
        "2.6",
        _frame(
            0,
            10,
            b"\0"
            + struct.pack(">hi", 1, 1000)
            + _topics(
                195,
                lambda n: compact_string(f"t{n}") + write_uvarint(256) + _RECORDLESS * 255,
                b"\0",
            )
            + b"\0",
        ),
    ),
    "partitions-of-an-id": (
        "2.8",
        _fetch(16, b"\2" + _id(1) + write_uvarint(40_001) + _PARTITION * 40_000 + b"\0"),
    ),
    "partitions-of-ids": (
        "2.6+",
        _fetch(16, _topics(127, _id, write_uvarint(301) + _PARTITION * 300 + b"\0")),
    ),
    "forgotten-ids": ("2.8", _fetch_that_forgets(16, _topics(20_000, _id, _FORGOTTEN))),
    "forgotten-names": (
        "2.4",
        _fetch_that_forgets(12, _topics(20_000, lambda n: compact_string(f"t{n}"), _FORGOTTEN)),
    ),
    "tags-of-few": (
        "2.8",
        _fetch(16, _topics(2000, _id, b"\5" + (_PARTITION[:-1] + _TAGS) * 4 + b"\0")),
    ),
    "tags-of-many": (
        "2.4",
        _fetch(12, b"\2\2t" + write_uvarint(9001) + (_PARTITION[:-1] + _TAGS) * 9000 + b"\0"),
    ),
    "tags-of-records": (
        "2.6",
        _frame(
            0,
            10,
            b"\0"
            + struct.pack(">hi", 1, 1000)
            + b"\2\2t"
            + write_uvarint(9001)
            + (_RECORDLESS[:-1] + _TAGS) * 9000
            + b"\0\0",
        ),
    ),
    "tags-of-topics": (
        "2.6+",
        _frame(3, 12, _topics(9000, lambda _: _NAMED, _TAGS) + b"\0\0\0"),
    ),
}


@pytest.mark.parametrize("release", _REQUESTS)
def test_a_large_request_is_recoded_in_short_steps(release: str) -> None:
    """Nobody has authenticated the client. These took 60 to 115 ms of one step."""
    asked = _REQUESTS[release]
    steps = Stepped(route_before(release))
    steps.take(steps.link.requests, asked)

    whole = Driven(route_before(release), largest_request=1 << 30, budget=Budget(1 << 22, 1 << 26))
    whole.up(asked)
    assert steps.sent == whole.to_broker
    assert asked not in steps.sent
    assert steps.link.requests.fault is None
    assert len(steps.link.state.exchanges.waiting) == 1
    assert steps.most < MOST
    steps.link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)


def test_what_was_read_and_written_of_a_large_request_is_freed_in_several_steps() -> None:
    """That takes long, though no line of Python is executed."""
    count, freed = 20_000, []
    topics = b"\2\2t" + write_uvarint(count + 1) + _PARTITION * count + b"\0"
    steps = Stepped(route_before("2.4"))
    for step in steps.steps(steps.link.requests, _fetch(12, topics)):
        before = sys.getallocatedblocks()
        step()
        freed.append(before - sys.getallocatedblocks())
    assert len(steps.sent) > 28 * count
    # Each partition as it was read; its pieces as they were written were joined before.
    assert count / 2 < max(freed) < 1.5 * count


@pytest.mark.parametrize("name", _ODD_REQUESTS)
def test_what_no_client_sends_is_recoded_in_short_steps(name: str) -> None:
    """Anybody can send it. Topics to forget took 65 ms of one step, tagged fields 60 ms,
    partitions of an id without a name 17 ms."""
    release, asked = _ODD_REQUESTS[name]
    steps = Stepped(route_before(release))
    steps.take(steps.link.requests, asked)

    whole = Driven(route_before(release), largest_request=1 << 30, budget=Budget(1 << 22, 1 << 26))
    whole.up(asked)
    assert steps.sent == whole.to_broker
    assert asked not in steps.sent
    assert steps.most < MOST


def test_long_names_in_metadata_are_not_joined_in_one_step() -> None:
    """Anybody can send them. 15 MB of names took 26 to 30 ms of the last step, in which all of them
    were copied four times."""
    names, longest = 300, compact_string("n" * 32_000)
    asked = _frame(3, 12, _topics(names, lambda _: bytes(16) + longest, b"\0") + b"\0\0\0")
    steps = Stepped(route_before("2.6+"))
    sent: list[memoryview | bytes] = []
    steps.send = lambda flow, pieces: sent.extend(pieces)  # type: ignore[method-assign]
    copied = 0
    tracemalloc.start()
    try:
        for step in steps.steps(steps.link.requests, asked):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            step()
            if len(steps.link.state.exchanges.waiting) == 1:
                copied = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # What is left of a whole step, as it was written and once more joined.
    assert copied < 2.1 * ENTRIES_AT_ONCE * len(longest)
    assert b"".join(sent).count(longest) == names
    assert steps.link.requests.fault is None


def test_many_ids_without_names_in_metadata_are_answered_in_a_short_step() -> None:
    """50,000 took 13 ms, however small the broker's response was."""
    steps = Stepped(route_before("2.6+"))
    steps.pass_on(steps.link.requests, _REQUESTS["2.6+"])
    steps.sent.clear()
    steps.take(steps.link.responses, metadata_answer(9, 1, {"one": {0: (1, 5)}}))
    read = read_response_frame(response_type(3, 12), bytes(steps.sent))
    named, *unknown = read.topics
    assert (named.name, named.error_code) == ("one", ErrorCode.none)
    assert [topic.topic_id.bytes for topic in unknown] == [_id(n) for n in range(1, 50_001)]
    assert {(topic.name, topic.error_code) for topic in unknown} == {
        (None, ErrorCode.unknown_topic_id)
    }
    assert steps.most < MOST


@pytest.mark.parametrize(("topics", "partitions"), [(2000, 3), (1, 30_000)])
def test_a_metadata_response_is_recoded_in_short_steps(topics: int, partitions: int) -> None:
    """A client may ask for all topics: 10,000 took 40 ms of one step, 100,000 partitions 25 ms."""
    steps = Stepped(route_before("2.6+"))
    steps.pass_on(steps.link.requests, request(3, 12, 1, topics=None))
    steps.sent.clear()
    answered = _metadata(topics, partitions)
    behind = metadata_answer(9, 2, {"one": {0: (1, 5)}})
    steps.pass_on(steps.link.requests, request(3, 12, 2, topics=None))
    steps.sent.clear()
    steps.take(steps.link.responses, answered + behind)

    whole = Driven(route_before("2.6+"), budget=Budget(1 << 24, 1 << 26), buffer_size=1 << 22)
    for number in (1, 2):
        whole.up(request(3, 12, number, topics=None))
    whole.down(answered)
    read = read_response_frame(response_type(3, 12), bytes(whole.to_client))
    assert [t.name for t in read.topics] == [f"t{n}" for n in range(topics)]
    assert all(len(t.partitions) == partitions for t in read.topics)
    assert {t.topic_id.bytes for t in read.topics} == {
        synthetic_id(CLUSTER, f"t{n}") for n in range(topics)
    }
    whole.down(behind)
    assert steps.sent == whole.to_client
    assert steps.most < MOST


def test_a_metadata_response_of_very_many_brokers_is_recoded_in_short_steps() -> None:
    """A hostile broker's: 100,000 brokers took 0.11 s of one step, 10,000 took 11 ms."""
    brokers = 5000
    steps = Stepped(route_before("2.6+"))
    steps.pass_on(steps.link.requests, request(3, 12, 1, topics=None))
    steps.sent.clear()
    steps.take(steps.link.responses, _metadata(1, 1, brokers))
    read = read_response_frame(response_type(3, 12), bytes(steps.sent))
    assert len(read.brokers) == brokers
    assert [topic.name for topic in read.topics] == ["t0"]
    assert steps.most < MOST


@pytest.mark.parametrize("release", ["2.4", "2.6"])
def test_of_a_large_request_that_went_on_no_byte_is_kept(release: str) -> None:
    """Its memory was kept, uncounted, until the next large request of the link came."""
    steps = Stepped(route_before(release))
    asked = memoryview(_REQUESTS[release])
    tracemalloc.start()
    try:
        steps.pass_on(steps.link.requests, asked)
        steps.sent = bytearray()
        for _ in range(2):
            steps.budget.memory.sweep()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1.1 * steps.budget.used + 100_000


@pytest.mark.parametrize("release", _REQUESTS)
def test_what_comes_behind_a_large_request_stays_behind_it(release: str) -> None:
    steps = Stepped(route_before(release))
    behind = struct.pack(">ihhih", 10 + 1, 10, 0, 2, 1) + b"c"
    steps.pass_on(steps.link.requests, _REQUESTS[release] + behind * 3)
    assert steps.sent.endswith(behind * 3)
    assert len(steps.link.state.exchanges.waiting) == 4
    assert not steps.link.requests.unfinished


@pytest.mark.parametrize("release", ["2.8+", "3.6+"])
def test_a_version_is_lowered_in_a_request_that_waited_behind_others(release: str) -> None:
    """What waited could not be written, and an exception ended the link."""
    steps = Stepped(route_before(release))
    for _ in range(2):
        # From then on as much is received at once as such requests have.
        steps.pass_on(steps.link.requests, produce_request(10, 1, records=bytes(40_000)))
    asked = _frame(3, 12, _topics(300, lambda _: _NAMED, b"\0") + b"\0\0\0")
    steps.pass_on(steps.link.requests, asked + produce_request(10, 2))
    assert steps.sent.endswith(produce_request(9, 2))

    few = _frame(3, 12, _topics(1, lambda _: _NAMED, b"\0") + b"\0\0\0")
    steps.pass_on(steps.link.requests, few * AT_ONCE + produce_request(10, 3))
    assert steps.sent.endswith(produce_request(9, 3))
    assert len(steps.link.state.exchanges.waiting) == 5 + AT_ONCE


def test_versions_are_raised_in_a_response_that_waited_behind_others() -> None:
    steps = Stepped(route())
    link = steps.link
    asked = b"".join(produce_request(9, number) for number in range(1, AT_ONCE + 1))
    steps.pass_on(link.requests, asked + request(18, 3, 99, **USES_HINTS))
    steps.pass_on(link.responses, _errors(AT_ONCE) + versions_answer(3, 99, BROKER_3_6))
    assert steps.sent.endswith(versions_answer(3, 99, {**BROKER_3_6, 0: 10, 1: 16}))


def test_versions_are_raised_in_a_response_that_waited_behind_a_held_one() -> None:
    steps = Stepped(route())
    link = steps.link
    steps.pass_on(link.requests, produce_request(10, 1) + request(18, 3, 99, **USES_HINTS))
    steps.pass_on(link.responses, _errors(1) + versions_answer(3, 99, BROKER_3_6))
    assert link.responses.held is not None
    steps.release([None])
    assert steps.sent.endswith(versions_answer(3, 99, {**BROKER_3_6, 0: 10, 1: 16}))


def test_a_link_that_ends_meanwhile_gives_all_back() -> None:
    steps = Stepped(route_before("2.8"))
    requests = steps.link.requests
    for step in steps.steps(requests, _REQUESTS["2.8"]):
        step()
        if requests.unfinished:
            break
    assert requests.begun
    assert steps.budget.used
    steps.link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)
    assert not requests.unfinished


def test_many_small_requests_that_are_recoded_have_several_turns() -> None:
    steps = Stepped(route_before("2.6"))
    requests = b"".join(produce_request(10, n, records=b"") for n in range(1, 900))
    steps.take(steps.link.requests, requests)
    assert len(steps.link.state.exchanges.waiting) == 899
    assert steps.most < MOST


def test_sessions_of_many_responses_in_one_receive_are_followed_in_several_turns() -> None:
    """None of them is large, but each has a request read that names 150 topics."""
    steps = Stepped(route())
    ids = [topic_id(number) for number in range(150)]
    for number in range(100):
        session = (7, number + 1)
        asked = fetch_request(16, number, {(one, 0): 5 for one in ids}, session=session)
        steps.pass_on(steps.link.requests, asked)
    steps.sent.clear()
    answers = b"".join(fetch_answer(15, number, [], session_id=7) for number in range(100))
    steps.take(steps.link.responses, answers)
    assert steps.most < 2 * MOST
    assert steps.sent == answers


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ON])
@pytest.mark.parametrize("budget", [1 << 26, 400])
def test_responses_that_are_looked_at_for_another_replica_have_several_turns(
    mode: Mode, budget: int
) -> None:
    """So have those in which nothing is looked for, of many topics each, also where no copies of
    requests are kept.
    """
    nodes, many, asked = (1, 2, 3), range(60), 100
    on = route()
    on.config = replace(on.config, closest_replica=mode, racks=Racks())
    on.broker.endpoints = {
        node: Endpoint("n", node, rack) for node, rack in zip(nodes, "abc", strict=True)
    }
    on.broker.view, on.broker.node = LeaderView(CLUSTER), 1
    led = tuple(Led(partition, 1, 6) for partition in many)
    in_sync = struct.pack(">3i", *nodes)
    on.broker.view.learn(TopicMetadata(0, "t", ONE, led, (in_sync,) * len(many)), 1)
    steps = Stepped(on, budget=budget)
    steps.pass_on(steps.link.requests, request(18, 3, 0, **USES_HINTS))
    steps.pass_on(steps.link.responses, versions_answer(3, 0, BROKER_3_6))
    for number in range(1, asked):
        session = (7, number - 1)
        wanted: dict[tuple[str | bytes, int], int] = {}
        if number == 1:
            wanted = {(ONE, partition): 6 for partition in many}
        steps.pass_on(
            steps.link.requests, fetch_request(16, number, wanted, session=session, rack="b")
        )
    steps.sent.clear()
    records = [(ONE, partition, 0, b"records!") for partition in many]
    answers = [fetch_answer(15, number, records, session_id=7) for number in range(1, asked)]
    steps.take(steps.link.responses, b"".join(answers))
    assert sum(on.rack_traffic.outcomes.values()) >= 4 * len(many)
    assert len(steps.sent) == sum(map(len, answers))
    assert steps.most < 10 * MOST


def test_produce_responses_with_errors_of_records_have_several_turns() -> None:
    """They get no hint, and each has some to be passed over."""
    steps = Stepped(route())
    kind = response_type(ApiKey.PRODUCE, 9)
    topic_kind = element(kind, "responses")
    partition_kind = element(topic_kind, "partition_responses")
    failed = plain(element(partition_kind, "record_errors"), batch_index=1)
    partition = plain(partition_kind, error_code=ErrorCode(87), record_errors=(failed,) * 6)
    topics = tuple(plain(topic_kind, name=name, partition_responses=(partition,)) for name in "abc")
    many = range(1, 900)
    steps.pass_on(steps.link.requests, request(18, 3, 0, **USES_HINTS))
    steps.pass_on(steps.link.responses, versions_answer(3, 0, BROKER_3_6))
    for number in many:
        steps.pass_on(steps.link.requests, produce_request(10, number, records=b""))
    steps.sent.clear()
    answers = b"".join(answer(ApiKey.PRODUCE, 9, number, responses=topics) for number in many)
    steps.take(steps.link.responses, answers)
    assert steps.sent == answers
    assert steps.most < 2 * MOST


def test_topics_without_partitions_cost_nothing_in_the_requests_of_their_session() -> None:
    steps = Stepped(route_before("2.4"))
    steps.pass_on(steps.link.requests, request(18, 3, 1, **_JAVA))
    steps.pass_on(steps.link.responses, versions_answer(3, 1, BROKERS["2.4"]))
    behind = b"\4one\2" + _PARTITION + b"\0"
    topics = write_uvarint(20_001) + b"".join(b"\6%05x\1\0" % n for n in range(19_999)) + behind
    steps.pass_on(steps.link.requests, _fetch(12, topics))
    opened = fetch_answer(10, 1, [("one", 0, 0, b"")], session_id=7)
    steps.pass_on(steps.link.responses, opened)
    assert len(steps.link.state.route.sessions) == 1
    steps.take(
        steps.link.requests,
        b"".join(fetch_request(12, n, {}, session=(7, n)) for n in range(1, 50)),
    )
    assert len(steps.link.state.exchanges.waiting) == 49
    assert steps.most < MOST


def test_a_session_of_many_topics_is_looked_through_in_turns_after_one_was_deleted() -> None:
    """The request that has it looked through is small."""
    on = route_before("2.8")
    steps, view = Stepped(on), on.broker.view
    assert view is not None
    ids = [_id(number) for number in range(1, 20_001)]
    for one in ids:
        view.learn(TopicMetadata(0, one.hex(), one, ()), 1)
    steps.pass_on(steps.link.requests, _fetch(16, _topics(20_000, _id, b"\1\0")))
    steps.pass_on(steps.link.responses, fetch_answer(12, 1, [], session_id=7))
    assert view.learn(TopicMetadata(0, ids[0].hex(), _id(30_000), ()), 1) == []
    steps.sent.clear()
    asked = fetch_request(16, 2, {(ids[5], 0): 5}, session=(7, 1))
    behind = fetch_request(16, 3, {}, session=(7, 2))
    steps.take(steps.link.requests, asked + behind)
    assert steps.most < MOST
    # Of the session one topic is another by now.
    lost = fetch_request(12, 2, {}, session=(-1, 1)) + fetch_request(12, 3, {}, session=(-1, 2))
    assert steps.sent == lost


def _error(number: int) -> bytes:
    return produce_answer(9, number, {0: NOT_LEADER})


def _errors(count: int) -> bytes:
    return b"".join(map(_error, range(1, count + 1)))


def test_many_errors_in_one_receive_are_released_in_several_turns() -> None:
    """630 pipelined Produce errors took 35 ms of one step."""
    steps = Stepped(route())
    link = steps.link
    steps.take(link.requests, b"".join(produce_request(10, number) for number in range(1, 631)))
    steps.sent.clear()
    steps.take(link.responses, _errors(630))
    released, most = 0, 0
    while link.responses.held is not None or link.responses.unfinished:

        def turn() -> None:
            nonlocal released
            while link.responses.held is not None:
                released += 1
                steps.release([None])

        def resume() -> None:
            steps.send(link.responses, link.responses.resume())

        most = max(most, lines_of(resume if link.responses.held is None else turn))
    assert released == 630
    assert steps.sent == _errors(630)
    assert max(most, steps.most) < MOST
    link.close()
    assert steps.budget.used == 0


def test_a_turn_releases_as_many_failed_partitions_as_errors_of_one_each() -> None:
    """Five responses, as many as Java has under way, of 120 partitions took 26 ms of one step."""
    steps = Stepped(route())
    failed = dict.fromkeys(range(120), NOT_LEADER)
    answers = b"".join(produce_answer(9, number, failed) for number in range(5))
    for number in range(5):
        steps.pass_on(steps.link.requests, produce_request(10, number, partitions=120))
    steps.sent.clear()
    steps.pass_on(steps.link.responses, answers)
    for left in reversed(range(5)):
        steps.release([None] * 120)
        assert steps.link.responses.held is None
        assert steps.link.responses.unfinished == bool(left)
        steps.send(steps.link.responses, steps.link.responses.resume())
    assert steps.sent == answers


def test_many_errors_that_get_no_hint_are_read_in_several_turns() -> None:
    steps = Stepped(route())
    link = steps.link
    asked = b"".join(produce_request(9, number) for number in range(1, 631))
    steps.take(link.requests, asked)
    steps.sent.clear()
    steps.take(link.responses, _errors(630))
    assert steps.sent == _errors(630)
    assert len(link.state.events) == 630
    assert steps.most < MOST
    link.close()
    assert steps.budget.used == 0


#: What Kafka's own brokers list: some sixty APIs.
_SIXTY_APIS = dict.fromkeys(range(61), 3) | BROKER_3_6


def _asking_versions(steps: Stepped, version: int, count: int) -> bytes:
    """Have as much received at once as ``count`` requests have; return those."""
    for number in (1, 2):
        steps.pass_on(steps.link.requests, request(36, 2, number, auth_bytes=bytes(40_000)))
    steps.pass_on(steps.link.responses, b"".join(answer(36, 2, n, auth_bytes=b"") for n in (1, 2)))
    steps.sent.clear()
    says = USES_HINTS if version >= SOFTWARE_FROM else {}
    return b"".join(request(18, version, number, **says) for number in range(count))


@pytest.mark.parametrize("version", [0, 3])
def test_many_requests_for_versions_have_several_turns(version: int) -> None:
    """Nobody has authenticated the client. 500 took 7 ms of one step."""
    steps = Stepped(route_before("3.6"))
    asked = _asking_versions(steps, version, 500)
    steps.take(steps.link.requests, asked)
    assert steps.sent == asked
    assert [*range(500)] == [each.correlation_id for each in steps.link.state.exchanges.waiting]
    assert steps.most < MOST
    assert steps.link.requests.fault is None
    steps.link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)


@pytest.mark.parametrize("version", [0, 3])
def test_many_answers_about_versions_have_several_turns(version: int) -> None:
    """The same client's: 500 took 40 ms of one step."""
    steps = Stepped(route_before("3.6"))
    link = steps.link
    steps.pass_on(link.requests, _asking_versions(steps, version, 500))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    answers = [versions_answer(version, number, _SIXTY_APIS) for number in range(500)]
    steps.take(link.responses, b"".join(answers))
    raised = _SIXTY_APIS | ({0: 10, 1: 16} if version >= SOFTWARE_FROM else {})
    offered = [versions_answer(version, number, raised) for number in range(500)]
    assert steps.sent == b"".join(offered)
    assert steps.most < MOST
    assert link.matched
    assert link.resting
    link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)


def test_many_answers_about_versions_of_a_virtual_cluster_have_several_turns() -> None:
    rewriting = AddressRewriting("here", BrokerPorts(19092, {}), lambda node, host, port: None)
    on = route_before("3.6")
    on.config = replace(on.config, address_rewriting=rewriting)
    steps = Stepped(on)
    link = steps.link
    steps.pass_on(link.requests, _asking_versions(steps, 3, 500))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    answers = [versions_answer(3, number, _SIXTY_APIS) for number in range(500)]
    steps.take(link.responses, b"".join(answers))
    alone = Driven(on, buffer_size=1 << 16)
    alone.up(request(18, 3, 499, **USES_HINTS))
    alone.down(answers[-1])
    assert steps.sent.endswith(alone.to_client)
    assert len(steps.sent) == 500 * len(alone.to_client)
    assert steps.most < MOST
    assert link.resting


_BROKER = {"host": "secret.example", "port": 9092}


def _telling_addresses(key: int, version: int, count: int) -> bytes:
    """Return a response that tells where so many brokers are."""
    name, node = ("coordinators", "node_id") if key == ApiKey.FIND_COORDINATOR else ("brokers", "")
    kind = response_type(key, version)
    node = node or ("broker_id" if key == ApiKey.DESCRIBE_CLUSTER else "node_id")
    numbers = {"key": "group"} if key == ApiKey.FIND_COORDINATOR else {}
    return answer(
        key,
        version,
        1,
        **{name: (plain(element(kind, name), **{node: 2}, **numbers, **_BROKER),) * count},
    )


@pytest.mark.parametrize(
    ("key", "version"),
    [(ApiKey.FIND_COORDINATOR, 4), (ApiKey.METADATA, 12), (ApiKey.DESCRIBE_CLUSTER, 1)],
)
@pytest.mark.parametrize("count", [2, 5000])
def test_many_addresses_are_replaced_in_several_turns(
    key: ApiKey, version: int, count: int
) -> None:
    """A client may ask for the coordinators of any number of groups: 10,000 took 28 ms."""
    rewriting = AddressRewriting("here", BrokerPorts(19092, {}), lambda node, host, port: None)
    on = route_before("3.6")
    on.config = replace(on.config, address_rewriting=rewriting)
    steps = Stepped(on)
    asked = request(key, version, 1)
    steps.pass_on(steps.link.requests, asked + asked)
    steps.link.responses._fit(SHARED, 1)
    steps.sent.clear()
    told = _telling_addresses(key, version, count)
    steps.take(steps.link.responses, told + told)
    there = compact_string("secret.example") + struct.pack(">i", 9092)
    here = told[4:].replace(there, compact_string("here") + struct.pack(">i", 19095))
    assert len(here) < len(told) - 4
    assert steps.sent == 2 * (struct.pack(">i", len(here)) + here)
    assert steps.most < MOST
    assert steps.link.resting
    steps.link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)


def test_answers_about_versions_that_cannot_be_read_have_several_turns() -> None:
    steps = Stepped(route_before("3.6"))
    link = steps.link
    steps.pass_on(link.requests, _asking_versions(steps, 0, 500))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    odd = b"".join(
        struct.pack(">i", len(whole) - 3) + whole[4:] + b"\0"
        for whole in (versions_answer(0, number, _SIXTY_APIS) for number in range(500))
    )
    steps.take(link.responses, odd)
    assert steps.sent == odd
    assert steps.most < MOST
    assert link.resting


#: The same for errors of a large response, whose client waits: some four milliseconds.
_MOST_OF_ERRORS = 64_000


def _failing(topics: Mapping[bytes, int], each: int) -> bytes:
    """Return a Fetch 15 response: of each topic ``each`` partitions fail as given, or bring."""
    body = b"\0" + bytes(10) + write_uvarint(len(topics) + 1)
    for named, error in topics.items():
        body += named + write_uvarint(each + 1)
        records = b"\1" if error else b"\4abc"
        for number in range(each):
            body += struct.pack(">ihqqqBi", number, error, -1, -1, -1, 1, -1) + records + b"\0"
        body += b"\0"
    payload = struct.pack(">i", 1) + body + b"\0"
    return struct.pack(">i", len(payload)) + payload


def _asking(topics: Iterable[bytes], each: int, version: int = 16) -> bytes:
    partitions = b"".join(
        struct.pack(">iiqiqi", number, 3, 0, -1, -1, 1 << 20) + b"\0" for number in range(each)
    )
    named = [topic + write_uvarint(each + 1) + partitions + b"\0" for topic in topics]
    fixed = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, -1)
    body = fixed + write_uvarint(len(named) + 1) + b"".join(named) + b"\1\1\0"
    return struct.pack(">ihhih", len(body) + 12, 1, version, 1, 1) + b"c\0" + body


_LARGE_ERRORS = {
    "one topic": ({_id(1): NOT_LEADER}, 5000),
    "one of each topic": (dict.fromkeys(map(_id, range(1, 5001)), NOT_LEADER), 1),
    "some among successes": ({_id(1): 0, _id(2): NOT_LEADER}, 1000),
}


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("name", _LARGE_ERRORS)
def test_an_error_response_of_thousands_of_partitions_is_held_in_turns(
    name: str, awaited: bool
) -> None:
    """It took 5 to 25 ms of one step, and 15 to 50 ms while a client was known to be waiting."""
    on = route_before("3.6")
    steps = Stepped(on)
    link = steps.link
    topics, each = _LARGE_ERRORS[name]
    steps.pass_on(link.requests, _asking(topics, each) + produce_request(10, 2))
    # As much is received at once as large responses have.
    link.responses._fit(SHARED, 1)
    on.awaited = awaited
    steps.sent.clear()
    answered = _failing(topics, each)
    steps.take(link.responses, answered)
    held = link.responses.held
    assert held is not None
    assert bytes(held.frame) == answered
    failures = sum(each for error in topics.values() if error)
    assert [*held.epochs] == [3] * failures
    assert steps.sent == b""

    hint = LeaderHint(2, 7, Endpoint("b-2", 9092, None))
    hints = [hint if number % 2 else None for number in range(failures)]
    expected = b"".join(at_once(held.answer(hints)))
    # CurrentLeader in each other one, and NodeEndpoints.
    assert len(expected) == len(answered) + failures // 2 * 11 + 17
    scan = FetchScan(16)
    while scan.scanned is None:
        scan.advance(memoryview(expected), len(expected), len(expected))
    sizes = [failure.tags_end - failure.tags for failure in scan.scanned.failures]
    assert sizes == [12 if number % 2 else 1 for number in range(failures)]
    released = lambda: steps.release(hints)  # noqa: E731
    steps.most = max(steps.most, lines_of(released))
    steps.take(link.responses, _error(2))
    assert steps.sent.startswith(expected)
    assert link.responses.held is not None
    assert steps.most < _MOST_OF_ERRORS
    link.close()
    assert steps.budget.used == 0


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("name", _LARGE_ERRORS)
def test_a_response_of_thousands_of_errors_to_be_settled_is_held_in_turns(
    name: str, awaited: bool
) -> None:
    """Its request, which names thousands of partitions too, was read in one step."""
    on = route_before("3.6")
    on.config = replace(on.config, settle=True)
    steps = Stepped(on)
    link = steps.link
    topics, each = _LARGE_ERRORS[name]
    steps.pass_on(
        link.requests, _asking(topics, each, 15) + produce_request(9, 2, records=NUMBERED)
    )
    link.responses._fit(SHARED, 1)
    on.awaited = awaited
    steps.sent.clear()
    answered = _failing(topics, each)
    steps.take(link.responses, answered + produce_answer(9, 2, {0: NOT_LEADER}))
    held = link.responses.held
    assert held is not None
    failures = sum(each for error in topics.values() if error)
    assert [*held.epochs] == [3] * failures
    assert len(steps.sent) < len(answered)
    released = lambda: steps.release([None] * failures)  # noqa: E731
    steps.most = max(steps.most, lines_of(released))
    steps.take(link.responses, b"")
    assert steps.sent == answered
    assert link.responses.held is not None
    assert steps.most < _MOST_OF_ERRORS
    link.close()
    assert steps.budget.used == 0


def test_errors_of_a_large_response_that_ends_too_early_are_counted_in_turns() -> None:
    """They were to be settled; those of 5,000 partitions were counted in one step."""
    on = route_before("3.6")
    on.config = replace(on.config, settle=True)
    steps = Stepped(on)
    link = steps.link
    topics, each = _LARGE_ERRORS["one topic"]
    steps.pass_on(link.requests, _asking(topics, each, 15) + request(10, 0, 2))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    failed = bytearray(_failing(topics, each))
    # One more partition than there is.
    at = failed.index(write_uvarint(each + 1))
    failed[at : at + 2] = write_uvarint(each + 2)
    steps.take(link.responses, bytes(failed) + answer(10, 0, 2))
    assert link.responses.held is None
    assert steps.sent == failed + answer(10, 0, 2)
    missed = [event for event in link.state.events if isinstance(event, HintMissed)]
    assert [event.settling for event in missed] == [""] * each
    assert steps.most < _MOST_OF_ERRORS
    link.close()
    assert steps.budget.used == 0


def test_what_comes_behind_a_large_error_response_stays_behind_it() -> None:
    steps = Stepped(route_before("3.6"))
    link = steps.link
    topics, each = _LARGE_ERRORS["one topic"]
    steps.pass_on(link.requests, _asking(topics, each) + request(10, 0, 2) + request(10, 0, 3))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    behind = answer(10, 0, 2) + answer(10, 0, 3)
    steps.pass_on(link.responses, _failing(topics, each) + behind)
    failures = [None] * each
    steps.release(failures)
    steps.pass_on(link.responses, b"")
    assert steps.sent == _failing(topics, each) + behind
    assert link.resting
    link.close()
    assert steps.budget.used == 0


def test_a_large_error_response_goes_on_where_the_budget_is_used_up() -> None:
    steps = Stepped(route_before("3.6"))
    link = steps.link
    topics, each = _LARGE_ERRORS["some among successes"]
    steps.pass_on(link.requests, _asking(topics, each))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    steps.budget.used = steps.budget.total
    steps.pass_on(link.responses, _failing(topics, each))
    assert steps.sent == _failing(topics, each)
    assert [event.reason for event in link.state.events if isinstance(event, HintMissed)] == [
        MissReason.BUDGET
    ] * each


@pytest.mark.parametrize("name", _LARGE_ERRORS)
def test_errors_for_which_there_is_no_room_are_counted_in_turns(name: str) -> None:
    """There is room for the bytes of their response."""
    steps = Stepped(route_before("3.6"))
    link = steps.link
    topics, each = _LARGE_ERRORS[name]
    steps.pass_on(link.requests, _asking(topics, each))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    steps.budget.used = steps.budget.total - 500_000
    steps.take(link.responses, _failing(topics, each))
    assert steps.sent == _failing(topics, each)
    failures = sum(each for error in topics.values() if error)
    missed = [event for event in link.state.events if isinstance(event, HintMissed)]
    assert [(event.reason, event.answered.client_epoch) for event in missed] == [
        (MissReason.BUDGET, 3)
    ] * failures
    assert steps.most < _MOST_OF_ERRORS


@pytest.mark.parametrize("reserved", [0, 1 << 20], ids=["its bytes", "what failed, too"])
def test_a_link_that_ends_while_an_error_response_is_judged_gives_all_back(reserved: int) -> None:
    steps = Stepped(route_before("3.6"))
    link = steps.link
    topics, each = _LARGE_ERRORS["one topic"]
    steps.pass_on(link.requests, _asking(topics, each))
    link.responses._fit(SHARED, 1)
    for number, step in enumerate(steps.steps(link.responses, _failing(topics, each))):
        step()
        if number >= 4 and steps.budget.used > reserved:
            break
    assert link.responses.unfinished
    assert link.responses.held is None
    assert not link.resting
    assert steps.budget.used
    link.close()
    assert (steps.budget.used, steps.budget.unauthenticated) == (0, 0)


def _fetched(version: int, partitions: int, error: int) -> bytes:
    """Return a Fetch response with records, or an error, for each of many partitions."""
    kind = response_type(1, version)
    brought = {"error_code": ErrorCode(error), "records": b"" if error else bytes(10)}
    each = numbered(plain(element(element(kind, "responses"), "partitions"), **brought))
    name = ONE if version >= 13 else "one"
    parts = [each(number) for number in range(partitions)]
    responses = [topic(name, parts, flexible=kind.__flexible__)]
    return with_arrays(lambda made: response_frame(made, 1), plain(kind), responses=responses)


@pytest.mark.parametrize(
    ("version", "error", "awaited"),
    [(11, NOT_LEADER, False), (15, NOT_LEADER, False), (11, 0, True), (15, 0, True)],
)
def test_many_partitions_of_a_response_that_passes_are_noted_in_several_turns(
    version: int, error: int, awaited: bool
) -> None:
    """5,000 errors of a client without hints took 30 to 70 ms of one step."""
    on = route_before("3.6")
    steps = Stepped(on)
    link = steps.link
    topic = ONE if version >= 13 else "one"
    steps.take(link.requests, fetch_request(version, 1, {(topic, 0): 5}))
    # As much is received at once as large responses have.
    steps.take(link.requests, fetch_request(10, 2, {("one", 0): 5}))
    steps.take(link.requests, produce_request(9, 3))
    link.responses._fit(SHARED, 1)
    on.awaited = awaited
    steps.sent.clear()
    passed = _fetched(version, 5000, error)
    behind = fetch_answer(10, 2, [("one", 0, 0, bytes(90))]) + _error(3)
    steps.take(link.responses, passed + behind)
    assert steps.sent == passed + behind
    # The error behind, and that the client is served again after errors.
    assert len(link.state.events) == (5002 if error else 1)
    assert steps.most < MOST
    assert link.responses.held is None
    link.close()
    assert steps.budget.used == 0


@pytest.mark.parametrize("version", [11, 12, 15])
@pytest.mark.parametrize("budget", [1 << 22, 0])
def test_many_errors_that_are_to_be_settled_are_kept_in_several_turns(
    version: int, budget: int
) -> None:
    """To find the epochs of 5,000 errors took a step of 31,000 lines."""
    on = route_before("3.6")
    on.config = replace(on.config, settle=True)
    steps = Stepped(on)
    link, topic = steps.link, ONE if version >= 13 else "one"
    steps.take(link.requests, fetch_request(version, 1, {(topic, 0): 5}))
    link.responses._fit(SHARED, 1)
    steps.sent.clear()
    steps.budget.per_link = budget
    failed = _fetched(version, 5000, NOT_LEADER)
    steps.take(link.responses, failed)
    assert link.responses.held is not None
    assert len(link.responses.held.scanned.failures) == 5000
    assert link.state.events == []
    steps.release([None] * 5000)
    assert steps.sent == failed
    assert steps.most < MOST
    link.close()
    assert steps.budget.used == 0


def test_errors_of_one_response_cost_the_same_however_many_routes_there_are() -> None:
    """5,000 errors without hints took 30 ms of one step with 100 routes, 20 ms with one."""
    steps = Stepped(route(), *(Route(f"r{number}", Mode.ON) for number in range(100)))
    partitions = 100
    steps.take(steps.link.requests, produce_request(9, 1, partitions=partitions))
    failed = produce_answer(9, 1, dict.fromkeys(range(partitions), NOT_LEADER))
    steps.take(steps.link.responses, failed)
    assert len(steps.link.state.events) == partitions
    assert steps.most < MOST
