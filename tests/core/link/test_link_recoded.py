"""Links before brokers whose versions need more than another number: 2.4, 2.8 and 3.4."""

import struct
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.link.budget import Budget
from leader_hints.core.route import Route
from tests.apis.messages import (
    element,
    plain,
    read_request_frame,
    read_response_frame,
    request_frame,
    request_type,
    response_type,
)
from tests.core.brokers import BROKERS, NAMES, route_before
from tests.core.conversation import NODES, ONE, TWO, Exchanged, decide, same
from tests.core.links import Driven
from tests.core.samples import (
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

P, F = ApiKey.PRODUCE, ApiKey.FETCH
UNKNOWN_TOPIC_ID, NO_SUCH_SESSION = 100, 70
_HIDDEN = 29


def _hello(release: str, offered: Mapping[int, int]) -> Exchanged:
    asked = request(
        18, 3, 1, client_software_name="apache-kafka-java", client_software_version="3.9.1"
    )
    maxima = BROKERS[release]
    return Exchanged(
        asked, asked, versions_answer(3, 1, maxima), versions_answer(3, 1, {**maxima, **offered})
    )


def _produce(sent: int) -> list[Exchanged]:
    """Exchanges of Produce 10 on a broker that takes ``sent``."""
    many = bytes(5000)
    hinted: dict[str, Mapping[int, object]] = {
        "leaders": {0: (3, 9), 1: (2, 7)},
        "nodes": {3: NODES[3], 2: NODES[2]},
    }
    errors = {0: NOT_LEADER, 1: NOT_LEADER, 2: 0}
    return [
        Exchanged(
            produce_request(10, 10, records=many, client_id=None),
            produce_request(sent, 10, records=many, client_id=None),
            produce_answer(sent, 10, {0: 0}),
            produce_answer(10, 10, {0: 0}),
        ),
        Exchanged(produce_request(10, 11, acks=0), produce_request(sent, 11, acks=0), b"", b""),
        Exchanged(
            produce_request(10, 12, transactional_id="tx"),
            produce_request(sent, 12, transactional_id="tx"),
            produce_answer(sent, 12, errors),
            produce_answer(10, 12, errors, **hinted),  # type: ignore[arg-type]
        ),
        same(produce_request(7, 13), produce_answer(7, 13, {0: NOT_LEADER})),
    ]


def _fetch_by_id(sent: int) -> list[Exchanged]:
    """Exchanges of Fetch 16 on a broker that takes 12 (names) or 13 (ids)."""
    first, second = (NAMES[ONE], NAMES[TWO]) if sent <= 12 else (ONE, TWO)
    records, many = bytes(900), bytes(7000)
    return [
        Exchanged(
            fetch_request(16, 20, {(ONE, 0): 5, (TWO, 1): 6}, session=(0, 0)),
            fetch_request(sent, 20, {(first, 0): 5, (second, 1): 6}, session=(0, 0)),
            fetch_answer(sent, 20, [(first, 0, 0, records), (second, 1, 0, b"")], session_id=4),
            fetch_answer(16, 20, [(ONE, 0, 0, records), (TWO, 1, 0, b"")], session_id=4),
        ),
        Exchanged(
            fetch_request(16, 21, {(ONE, 0): 5}, session=(4, 1), forgotten=[(ONE, 1)]),
            fetch_request(sent, 21, {(first, 0): 5}, session=(4, 1), forgotten=[(first, 1)]),
            fetch_answer(
                sent, 21, [(first, 0, 0, records), (second, 1, FENCED, b"")], session_id=4
            ),
            fetch_answer(
                16,
                21,
                [(ONE, 0, 0, records), (TWO, 1, FENCED, b"")],
                session_id=4,
                leaders={1: (2, 7)},
                nodes={2: NODES[2]},
            ),
        ),
        Exchanged(
            fetch_request(16, 22, {}, session=(4, 2)),
            fetch_request(sent, 22, {}, session=(4, 2)),
            fetch_answer(sent, 22, [], session_id=4),
            fetch_answer(16, 22, [], session_id=4),
        ),
        Exchanged(
            fetch_request(16, 23, {}, session=(4, 3)),
            fetch_request(sent, 23, {}, session=(4, 3)),
            fetch_answer(sent, 23, [(first, 0, 0, records), (second, 1, 0, many)], session_id=4),
            fetch_answer(16, 23, [(ONE, 0, 0, records), (TWO, 1, 0, many)], session_id=4),
        ),
    ]


def _fetch_by_name(sent: int) -> list[Exchanged]:
    """Exchanges of Fetch 12 on a broker that takes 11, and is asked in ``sent``."""
    asked: dict[tuple[str | bytes, int], int] = {("one", 0): 5, ("t", 1): 6}
    records, many = bytes(900), bytes(7000)
    return [
        Exchanged(
            fetch_request(12, 20, asked, session=(0, 0)),
            fetch_request(sent, 20, asked, session=(0, 0)),
            fetch_answer(sent, 20, [("one", 0, 0, records), ("t", 1, 0, b"")], session_id=4),
            fetch_answer(12, 20, [("one", 0, 0, records), ("t", 1, 0, b"")], session_id=4),
        ),
        Exchanged(
            fetch_request(12, 21, {}, session=(4, 1), forgotten=[("one", 1)]),
            fetch_request(sent, 21, {}, session=(4, 1), forgotten=[("one", 1)]),
            fetch_answer(sent, 21, [("t", 1, FENCED, b"")], session_id=4),
            # CurrentLeader alone: below 16 there are no NodeEndpoints.
            fetch_answer(12, 21, [("t", 1, FENCED, b"")], session_id=4, leaders={1: (2, 7)}),
        ),
        same(fetch_request(12, 22, {}), fetch_answer(12, 22, []))._replace(
            sent=fetch_request(sent, 22, {}), answered=fetch_answer(sent, 22, [])
        ),
        Exchanged(
            fetch_request(12, 23, {}, session=(4, 2)),
            fetch_request(sent, 23, {}, session=(4, 2)),
            fetch_answer(sent, 23, [("one", 0, 0, records), ("t", 1, 0, many)], session_id=4),
            fetch_answer(12, 23, [("one", 0, 0, records), ("t", 1, 0, many)], session_id=4),
        ),
    ]


_TALKS = {
    "2.4": [_hello("2.4", {P: 10, F: 12}), *_produce(8), *_fetch_by_name(10)],
    "2.6": [_hello("2.6", {P: 10, F: 12}), *_produce(8), *_fetch_by_name(11)],
    "2.8": [_hello("2.8", {P: 10, F: 16}), *_produce(9), *_fetch_by_id(12)],
    "3.4": [_hello("3.4", {P: 10, F: 16}), *_produce(9), *_fetch_by_id(13)],
}
#: How many of each talk are Fetch.
_FETCHES = 4
_EACH = pytest.mark.parametrize("release", _TALKS)


def _bytes(release: str, part: str) -> bytes:
    return b"".join(getattr(exchanged, part) for exchanged in _TALKS[release])


def _check(release: str, up: list[int], down: list[int], size: int = 4096) -> None:
    driven = Driven(
        route_before(release), decide=decide, budget=Budget(1 << 31, 1 << 40), buffer_size=size
    )
    hello, *rest = _TALKS[release]
    # The first answer says what the rest is about, and a fetch session has one request under
    # way; Produce requests are pipelined.
    steps = [[hello], rest[:-_FETCHES], *([fetch] for fetch in rest[-_FETCHES:])]
    for step in steps:
        driven.up(b"".join(e.asked for e in step), up)
        driven.down(b"".join(e.answered for e in step), down)
    assert driven.to_broker == _bytes(release, "sent")
    assert driven.to_client == _bytes(release, "got")
    assert not driven.link.state.exchanges.waiting
    assert not driven.not_understood
    driven.link.close()
    assert driven.budget.used == 0


@_EACH
def test_all_at_once(release: str) -> None:
    _check(release, [], [], 1 << 16)


@_EACH
def test_byte_by_byte(release: str) -> None:
    _check(release, list(range(1, 20_000)), list(range(1, 20_000)))


@_EACH
@settings(max_examples=60)
@given(st.data())
def test_any_chunks_and_buffers(release: str, data: st.DataObject) -> None:
    cuts = st.lists(st.integers(1, 9000), max_size=30)
    _check(release, data.draw(cuts), data.draw(cuts), data.draw(st.integers(300, 9000)))


# Topics that are not what the client takes them for.


def _at_2_8() -> Driven:
    driven = Driven(route_before("2.8"), decide=decide, budget=Budget(1 << 31, 1 << 40))
    hello = _TALKS["2.8"][0]
    driven.up(hello.asked)
    driven.down(hello.answered)
    driven.to_broker.clear()
    driven.to_client.clear()
    return driven


def test_an_id_that_is_not_known_is_answered_and_looked_for() -> None:
    driven = _at_2_8()
    three = topic_id(3)
    driven.up(fetch_request(16, 5, {(ONE, 0): 5, (three, 4): 1}, session=(0, 0)))
    assert driven.to_broker == fetch_request(12, 5, {("one", 0): 5}, session=(0, -1))
    # Not before the broker answers, which it does to those alone who have authenticated.
    assert driven.link.state.topic_ids.lacking == []
    driven.down(fetch_answer(12, 5, [("one", 0, 0, b"r")]))
    assert driven.link.state.topic_ids.lacking == [three]
    expected = fetch_answer(16, 5, [(ONE, 0, 0, b"r"), (three, 4, UNKNOWN_TOPIC_ID, b"")])
    # kio's answer leaves the offsets of the refused partition at 0, where brokers say -1.
    assert len(driven.to_client) == len(expected)
    assert b"r" in driven.to_client


def test_no_id_is_looked_for_upon_a_refusal_that_a_broker_gives_to_anybody() -> None:
    """As it does once to a client that is authenticating (SaslServerAuthenticator)."""
    driven = _at_2_8()
    driven.up(fetch_request(16, 5, {(topic_id(3), 4): 1}, session=(0, 0)))
    driven.down(fetch_answer(12, 5, [], error=ErrorCode.ILLEGAL_SASL_STATE))
    assert driven.link.state.topic_ids.lacking == []


def _offered(route: Route, client_id: str = "c") -> int:
    """Up to which version a client's new link is offered Fetch."""
    driven = Driven(route, decide=decide)
    software = {"client_software_name": "apache-kafka-java", "client_software_version": "3.9.1"}
    body = plain(request_type(18, 3), **software)
    driven.up(request_frame(body, 1, client_id))
    driven.down(versions_answer(3, 1, BROKERS["2.8"]))
    got = read_response_frame(response_type(18, 3), bytes(driven.to_client))
    return next(int(key.max_version) for key in got.api_keys if key.api_key == F)


def _looked_for(view: LeaderView, topic: bytes, *times: float) -> None:
    """Have brokers list all topics at these times, after a client used an id."""
    for now in times:
        view.unknown_ids.used([topic], now)
        view.unknown_ids.answered(view.topics.name, now, now)


def test_who_uses_an_id_that_brokers_do_not_list_is_to_go_by_name() -> None:
    driven = _at_2_8()
    route, view = driven.link.state.route, driven.link.state.route.broker.known
    three = topic_id(3)

    def fetch() -> bool:
        driven.up(fetch_request(16, 5, {(three, 0): 5}))
        driven.down(fetch_answer(12, 5, []))
        return driven.link.state.topic_ids.outdated

    assert not fetch()
    # A broker may lag.
    _looked_for(view, three, 1.0, 1.5)
    assert not fetch()
    _looked_for(view, three, 2.1)
    assert fetch()
    assert _offered(route) == 12
    assert _offered(route, "another") == 16
    # It was a topic's after all.
    view.learn(TopicMetadata(0, "three", three, (Led(0, 1, 0),)), 1)
    assert _offered(route) == 16


def test_a_link_that_did_not_agree_on_versions_itself_goes_on() -> None:
    """Its client, franz-go say, would ask by id on the next one as well."""
    driven = Driven(route_before("2.8"), decide=decide)
    three = topic_id(3)
    _looked_for(driven.link.state.route.broker.known, three, 1.0, 3.0)
    driven.up(fetch_request(16, 5, {(three, 0): 5}))
    driven.down(fetch_answer(12, 5, []))
    assert driven.link.state.topic_ids.lacking == [three]
    assert not driven.link.state.topic_ids.outdated


def test_where_brokers_hide_topics_ids_are_not_offered() -> None:
    route = route_before("2.8")
    assert _offered(route) == 16
    route.broker.known.hidden.take(TopicMetadata(_HIDDEN, "secret", ZERO_ID, ()), route.name)
    assert _offered(route) == 12
    route.broker.known.hidden.take(TopicMetadata(0, "secret", ZERO_ID, ()), route.name)
    assert _offered(route) == 16


def test_ids_are_not_offered_before_it_is_known_whether_brokers_hide_topics() -> None:
    route = route_before("2.8")
    route.broker.view = LeaderView("k")
    route.broker.view.learn(TopicMetadata(0, "one", ONE, (Led(0, 1, 5),)), 1)
    assert _offered(route) == 12
    route.broker.view.hidden.take(TopicMetadata(_HIDDEN, ANY_TOPIC, ZERO_ID, ()), route.name)
    assert _offered(route) == 12


def test_a_link_that_used_ids_ends_when_its_topic_is_hidden_and_forgotten() -> None:
    driven = _at_2_8()
    view = driven.link.state.route.broker.known
    view.hidden.take(TopicMetadata(_HIDDEN, "one", ZERO_ID, ()), "route")
    driven.up(fetch_request(16, 5, {(ONE, 0): 5}))
    driven.down(fetch_answer(12, 5, [("one", 0, 0, b"r")]))
    assert not driven.link.state.topic_ids.outdated
    for _ in range(2):
        list(view.topics.forget_absent(["two"]))
    _looked_for(view, ONE, 1.0)
    driven.up(fetch_request(16, 6, {(ONE, 0): 5}))
    driven.down(fetch_answer(12, 6, []))
    assert driven.link.state.topic_ids.outdated


def test_a_session_that_is_not_known_is_refused_by_the_broker() -> None:
    driven = _at_2_8()
    driven.up(fetch_request(16, 5, {(ONE, 0): 5}, session=(77, 3)))
    assert driven.to_broker == fetch_request(12, 5, {}, session=(-1, 3))
    driven.down(fetch_answer(12, 5, [], error=NO_SUCH_SESSION))
    assert driven.to_client == fetch_answer(16, 5, [], error=NO_SUCH_SESSION)


def test_records_of_a_recreated_topic_do_not_reach_a_client_that_asked_for_the_old_one() -> None:
    driven = _at_2_8()
    driven.up(fetch_request(16, 5, {(ONE, 0): 5}, session=(0, 0)))
    view = driven.link.state.route.broker.view
    assert view is not None
    view.learn(TopicMetadata(0, "one", topic_id(8), (Led(0, 1, 0),)), 1)
    driven.down(fetch_answer(12, 5, [("one", 0, 0, b"another topic's")], session_id=4))
    assert b"another topic's" not in driven.to_client
    driven.to_broker.clear()
    driven.up(fetch_request(16, 6, {}, session=(4, 1)))
    assert driven.to_broker == fetch_request(12, 6, {}, session=(-1, 1))


def test_a_topic_that_was_not_asked_for_ends_the_link() -> None:
    driven = _at_2_8()
    driven.up(fetch_request(16, 5, {(ONE, 0): 5}))
    driven.down(fetch_answer(12, 5, [("two", 0, 0, b"")]))
    assert driven.link.responses.fault is not None
    assert driven.link.responses.fault.startswith("Fetch v12 response")
    assert not driven.to_client


@pytest.mark.parametrize("release", ["2.6", "2.8"])
def test_a_response_that_cannot_be_converted_ends_the_link(release: str) -> None:
    driven = Driven(route_before(release), decide=decide)
    version = 12 if release == "2.6" else 16
    topic = "one" if release == "2.6" else ONE
    driven.up(fetch_request(version, 5, {(topic, 0): 5}))
    driven.down(b"\0\0\0\x0a\0\0\0\x05" + bytes([255] * 6))
    assert driven.link.responses.fault is not None
    assert not driven.to_client


@pytest.mark.parametrize("asks", ["before", "after"])
@pytest.mark.parametrize("release", ["2.6", "2.8"])
def test_a_response_that_answers_nothing_ends_a_link_whose_responses_are_converted(
    release: str, asks: str
) -> None:
    """What comes behind it cannot be matched, and would be of a version that was not asked."""
    driven = Driven(route_before(release), decide=decide)
    asked = produce_request(10, 5) if release == "2.6" else fetch_request(16, 5, {(ONE, 0): 5})
    driven.up(asked if asks == "before" else request(18, 3, 5, **USES_HINTS))
    driven.down(request(3, 9, 777))
    assert driven.link.responses.fault == "response that answers no request"
    assert not driven.to_client


def test_a_response_that_answers_nothing_passes_where_none_is_converted() -> None:
    driven = Driven(route_before("2.8"), decide=decide)
    driven.up(request(18, 3, 5, client_software_name="other", client_software_version="1"))
    driven.down(request(3, 9, 777))
    assert driven.link.responses.fault is None
    assert driven.to_client == request(3, 9, 777)


def test_before_2_4_a_client_with_a_rack_may_be_answered_by_a_follower() -> None:
    """KIP-392: the rack and the preferred replica are of v11."""
    driven = Driven(route_before("2.4"), decide=decide)
    kind = request_type(F, 12)
    driven.up(request_frame(plain(kind, rack_id="a", session_epoch=-1, **_partitions(0)), 5))
    header, down = read_request_frame(request_type(F, 11), bytes(driven.to_broker))
    assert (header.request_api_version, down.rack_id) == (11, "a")
    driven.down(fetch_answer(11, 5, [("one", 0, 0, b"r")]))
    assert driven.to_client == fetch_answer(12, 5, [("one", 0, 0, b"r")])
    assert driven.link.state.traffic.cells[F, 12, 11].requests == 1


def _most_asked(driven: Driven, **values: object) -> int:
    """Ask for a gigabyte; return how much the broker is asked for."""
    driven.to_broker.clear()
    request = plain(request_type(F, 12), max_bytes=1 << 30, **values)
    driven.up(request_frame(request, 5))
    _, down = read_request_frame(request_type(F, 11), bytes(driven.to_broker))
    return int(down.max_bytes)


def _partitions(*numbers: int) -> Mapping[str, object]:
    topic = element(request_type(F, 12), "topics")
    kind = element(topic, "partitions")
    return {
        "topics": (
            plain(topic, topic="one", partitions=[plain(kind, partition=n) for n in numbers]),
        )
    }


def test_a_broker_is_asked_for_no_more_than_the_link_keeps() -> None:
    driven = Driven(route_before("2.6"), decide=decide, budget=Budget(5000, 100_000))
    assert _most_asked(driven, session_epoch=-1, **_partitions(0, 1)) == 5000
    # Of a single partition nothing is kept: its records pass as they come.
    assert _most_asked(driven, session_epoch=-1, **_partitions(1)) == 1 << 30
    driven.down(fetch_answer(11, 5, [("one", 0, 0, b""), ("one", 1, 0, b"")]))
    driven.down(fetch_answer(11, 5, [("one", 1, 0, b"")]))


def test_a_session_of_one_partition_may_ask_for_all_that_it_wants() -> None:
    driven = Driven(route_before("2.6"), decide=decide, budget=Budget(5000, 100_000))
    java = {"client_software_name": "apache-kafka-java", "client_software_version": "3.9.1"}
    driven.up(request(18, 3, 1, **java))
    driven.down(versions_answer(3, 1, BROKERS["2.6"]))
    assert _most_asked(driven, session_id=8, session_epoch=3) == 5000
    driven.down(fetch_answer(11, 5, [], session_id=8))
    assert _most_asked(driven, session_epoch=0, **_partitions(1)) == 1 << 30
    driven.down(fetch_answer(11, 5, [("one", 1, 0, b"")], session_id=9))
    assert _most_asked(driven, session_id=9, session_epoch=1) == 1 << 30
    driven.down(fetch_answer(11, 5, [], session_id=9))
    assert _most_asked(driven, session_id=9, session_epoch=2, **_partitions(1)) == 1 << 30
    driven.down(fetch_answer(11, 5, [], session_id=9))
    assert _most_asked(driven, session_id=9, session_epoch=3, **_partitions(2)) == 5000
    driven.down(fetch_answer(11, 5, [], session_id=9))
    assert _most_asked(driven, session_id=9, session_epoch=4) == 5000


def test_a_session_of_one_partition_may_not_once_another_is_asked_for() -> None:
    """A client that sends the next request before the answer would have all of both kept."""
    route = route_before("2.6")
    java = {"client_software_name": "apache-kafka-java", "client_software_version": "3.9.1"}
    links = []
    for _ in range(2):
        driven = Driven(route, decide=decide, budget=Budget(5000, 100_000))
        driven.up(request(18, 3, 1, **java))
        driven.down(versions_answer(3, 1, BROKERS["2.6"]))
        links.append(driven)
    first, second = links
    assert _most_asked(first, session_epoch=0, **_partitions(1)) == 1 << 30
    first.down(fetch_answer(11, 5, [("one", 1, 0, b"")], session_id=9))
    assert _most_asked(first, session_id=9, session_epoch=1, **_partitions(2)) == 5000
    assert _most_asked(first, session_id=9, session_epoch=2) == 5000
    assert _most_asked(second, session_id=9, session_epoch=3) == 5000
    # Another session of that id is another's.
    first.down(fetch_answer(11, 5, [], session_id=9))
    first.down(fetch_answer(11, 5, [], session_id=9))
    second.down(fetch_answer(11, 5, [], error=70))
    assert _most_asked(second, session_epoch=0, **_partitions(1)) == 1 << 30
    second.down(fetch_answer(11, 5, [("one", 1, 0, b"")], session_id=9))
    assert _most_asked(second, session_id=9, session_epoch=1) == 1 << 30


@pytest.mark.parametrize("first", [1, 8, 20, 60, 70_000])
def test_a_response_whose_first_bytes_come_alone_is_not_kept_as_a_whole(first: int) -> None:
    driven = Driven(route_before("2.6"), decide=decide, budget=Budget(1 << 22, 1 << 24))
    driven.up(fetch_request(12, 5, {("one", 0): 5}))
    frame = fetch_answer(11, 5, [("one", 0, 0, bytes(300_000))])
    driven.down(frame[:first])
    most = 0
    for at in range(first, len(frame), 1000):
        driven.down(frame[at : at + 1000])
        most = max(most, driven.budget.used)
    assert most < 150_000
    assert driven.to_client == fetch_answer(12, 5, [("one", 0, 0, bytes(300_000))])
    assert driven.budget.used == 0


def test_a_frame_that_must_be_kept_is_kept_beyond_the_budget() -> None:
    driven = Driven(route_before("2.8"), decide=decide, budget=Budget(100, 100))
    driven.up(fetch_request(16, 5, {(ONE, 0): 5, (TWO, 1): 5}))
    # Until the records of the last partition begin, how long the frame becomes is not known.
    frame = fetch_answer(12, 5, [("one", 0, 0, bytes(3000)), (NAMES[TWO], 1, 0, b"")])
    driven.down(frame[:2000])
    assert driven.budget.used == len(frame)
    driven.down(frame[2000:])
    assert driven.to_client == fetch_answer(16, 5, [(ONE, 0, 0, bytes(3000)), (TWO, 1, 0, b"")])
    assert driven.budget.used == 0


# Who is offered what.


@pytest.mark.parametrize(
    ("release", "software", "offered"),
    [
        ("2.6", ("apache-kafka-java", "3.9.1"), {P: 10, F: 12}),
        ("2.6", ("apache-kafka-java", "3.6.2"), {}),
        ("2.6", ("librdkafka", "2.5.0"), {P: 10}),
        ("2.6", ("kafka-python", "3.0.0"), {F: 12}),
        ("2.8", ("librdkafka", "2.5.0"), {P: 10, F: 16}),
        ("2.8", ("librdkafka", "2.3.0"), {}),
        ("2.8", ("sarama", "1.43"), {}),
    ],
)
def test_maxima_are_raised_for_whom_it_helps(
    release: str, software: tuple[str, str], offered: Mapping[int, int]
) -> None:
    driven = Driven(route_before(release))
    name, version = software
    driven.up(request(18, 3, 1, client_software_name=name, client_software_version=version))
    maxima = BROKERS[release]
    driven.down(versions_answer(3, 1, maxima))
    assert driven.to_client == versions_answer(3, 1, {**maxima, **offered})


def test_fetch_stays_at_12_where_the_cluster_has_no_topic_ids() -> None:
    route = route_before("2.8")
    route.broker.view = LeaderView("k")
    for with_one_topic in (False, True):
        if with_one_topic:
            route.broker.view.learn(TopicMetadata(0, "t", bytes(16), (Led(0, 1, 0),)), 1)
        driven = Driven(route)
        driven.up(_TALKS["2.8"][0].asked)
        driven.down(versions_answer(3, 1, BROKERS["2.8"]))
        assert driven.to_client == versions_answer(3, 1, {**BROKERS["2.8"], P: 10})


@pytest.mark.parametrize("claimed", [100_000, 100_000_000])
def test_a_frame_that_claims_to_be_large_takes_what_came_of_it(claimed: int) -> None:
    budget = Budget(1 << 22, 1 << 26)
    driven = Driven(route_before("2.6"), budget=budget, largest_request=1 << 27)
    head = produce_request(10, 5)[4:40]
    driven.up(struct.pack(">i", claimed) + head)
    assert 0 < budget.used <= 65_536
    sent = 4 + len(head)
    while sent < 90_000:
        driven.up(bytes(1000))
        sent += 1000
        assert budget.used <= max(2 * sent, 65_536)
    driven.link.close()
    assert budget.used == 0


def test_a_large_frame_is_gathered_as_it_comes() -> None:
    records = bytes(range(256)) * 2000
    driven = Driven(route_before("2.6"))
    asked, sent = (produce_request(v, 5, records=records, partitions=2) for v in (10, 8))
    driven.up(asked, range(1, 1_500_000, 999))
    assert driven.to_broker == sent
    driven.link.close()
    assert driven.budget.used == 0


def test_the_last_records_go_on_as_they_come_and_are_not_kept() -> None:
    records = bytes(range(256)) * 2000
    driven = Driven(route_before("2.6"))
    asked, sent = (produce_request(version, 5, records=records, acks=0) for version in (10, 8))
    half = len(asked) // 2
    driven.up(asked[:half])
    assert driven.budget.used == 0
    assert driven.to_broker == sent[: half + len(sent) - len(asked) + 3]
    driven.up(asked[half:])
    assert driven.to_broker == sent
    answered, got = (
        fetch_answer(version, 6, [("one", 0, 0, records)], session_id=4) for version in (11, 12)
    )
    driven.up(fetch_request(12, 6, {("one", 0): 5}, session=(0, 0)))
    driven.down(answered[:half])
    assert driven.budget.used == 0
    assert driven.to_client == got[: half + len(got) - len(answered) - 3]
    driven.down(answered[half:])
    assert driven.to_client == got


def test_tags_where_none_can_be_end_the_link_before_the_request_is_whole() -> None:
    driven = Driven(route_before("2.6"))
    asked = produce_request(10, 5, records=bytes(9000))[:-1] + b"\1"
    driven.up(asked)
    assert driven.link.requests.fault is not None
    assert len(driven.to_broker) < len(produce_request(8, 5, records=bytes(9000)))


def test_a_fetch_by_a_name_too_long_for_older_versions_is_forwarded_unchanged() -> None:
    driven = Driven(route_before("2.6"), buffer_size=1 << 17)
    asked = fetch_request(12, 5, {("x" * 40_000, 0): 5})
    driven.up(request(18, 3, 1, client_software_name="kafka-python", client_software_version="3.0"))
    driven.to_broker.clear()
    driven.up(asked)
    assert driven.to_broker == asked
    assert driven.link.state.traffic.raw["not understood"] == 1
