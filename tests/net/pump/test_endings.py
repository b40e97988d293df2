"""How links end between real socket pairs, and what is still delivered."""

import contextlib
import itertools
import random
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trio

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import ANY_TOPIC, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import (
    BadBrokerBytes,
    BadClientBytes,
    HintGiven,
    LinkFailed,
)
from leader_hints.core.hints.held_index import _OfRoute
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hold_deadlines import _Timetable
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.link import Link
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.plan import plan_for
from leader_hints.net.pump.endings import Endings
from leader_hints.net.pump.send_queues import SendQueues
from leader_hints.net.pump.watched_sides import WatchedSides
from tests.harness.lines import most_lines
from tests.harness.waiting import until
from tests.net import messages
from tests.net.messages import NOT_LEADER
from tests.net.pump.holding import hint_of, learn, moving_route
from tests.net.rig import (
    LEGACY,
    LIMITS,
    Ends,
    Rig,
    ended,
    hinting_route,
    opaque_route,
    opened,
    received,
    reset,
    until_end,
)

_SMALL = 16_384
#: Bounds a broken test.
_SECONDS = 10.0
#: A TCP socket whose other end has ended, and has not reset it (tcp(7): TCP_INFO).
_CLOSE_WAIT = 8
#: What two kernel buffers of _SMALL (doubled by Linux) on either side of the pump and one buffer
#: of the pump may hold, generously.
_KEPT_AT_MOST = 1 << 20


def _nobody(link: LinkState) -> bool:
    return False


# Ends.


def test_a_client_that_has_no_more_to_say_still_gets_its_answers() -> None:
    request, answer = messages.metadata_request(12, 1), messages.metadata_response(1, 12, [], {})
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, request)
        ends.client.shutdown(socket.SHUT_WR)
        assert until_end(rig, ends.broker) == request

        rig.send(ends.broker, answer)
        assert received(ends.client) == answer
        assert route.traffic.links_open == 1

        ends.broker.close()
        assert until_end(rig, ends.client) == b""
        assert route.traffic.links_open == 0


def test_the_end_of_a_client_is_reported_behind_all_that_it_said() -> None:
    data = random.Random(0).randbytes(_KEPT_AT_MOST)
    with opened(Rig()) as rig:
        ends = rig.link(opaque_route(), buffers=_SMALL)
        sent = rig.send_what_fits(ends.client, data)
        ends.client.shutdown(socket.SHUT_WR)
        rig.spin()
        assert until_end(rig, ends.broker) == data[:sent]


def test_a_broker_that_closes_has_its_last_words_delivered() -> None:
    """The client does not read, and goes on asking; nothing that the broker said is lost."""
    data = random.Random(0).randbytes(_KEPT_AT_MOST)
    route = opaque_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, buffers=_SMALL)
        sent = rig.send_what_fits(ends.broker, data)
        ends.broker.close()
        rig.spin()
        for _ in range(5):
            ends.client.send(b"another request")
            rig.spin()
        ends.client.shutdown(socket.SHUT_WR)
        rig.spin()

        assert until_end(rig, ends.client) == data[:sent]
        assert route.traffic.links_open == 0


def _answered_more_than_is_taken(rig: Rig) -> tuple[Ends, bytes]:
    """Return a link over TCP whose client reads slowly, and an answer that is too much for it."""
    answer = messages.fetch_response(1, records=random.Random(0).randbytes(700_000))
    ends = rig.link(hinting_route(), tcp=True)
    ends.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    rig.send(ends.client, messages.fetch_request(16, 1, epoch=3))
    rig.send(ends.broker, answer)
    return ends, answer


@pytest.mark.parametrize("closes", [True, False], ids=["closes", "half-closes"])
def test_a_client_that_asks_on_gets_all_that_a_broker_said_before_its_end(closes: bool) -> None:
    """What Linux has taken and cannot send yet is dropped where its socket is closed, and anything
    comes that is not read.
    """
    with opened(Rig()) as rig:
        ends, answer = _answered_more_than_is_taken(rig)
        received(ends.broker)
        ends.client.send(messages.fetch_request(16, 2, epoch=3))
        if closes:
            ends.broker.close()
        else:
            ends.broker.shutdown(socket.SHUT_WR)
        got = bytearray()

        def over() -> bool:
            rig.spin()
            data, gone = b"", False
            with contextlib.suppress(BlockingIOError):
                data = ends.client.recv(_SMALL)
                gone = not data
            got.extend(data)
            if not gone:
                ends.client.send(messages.fetch_request(16, 3, epoch=3))
            return gone

        until(over, "the client has met the end", _SECONDS)
        assert got == answer
        ends.client.close()
        rig.spin()
        assert not rig.pump.has(1)


def test_a_client_that_asks_on_is_not_reset_once_all_is_sent_to_it() -> None:
    with opened(Rig()) as rig:
        ends, _ = _answered_more_than_is_taken(rig)
        ends.broker.close()
        rig.spin()
        ends.client.send(messages.fetch_request(16, 2, epoch=3))
        now = itertools.count(1)

        def closed() -> bool:
            rig.sweep(next(now))
            received(ends.client)
            return not rig.pump.has(1)

        until(closed, "the link is closed", _SECONDS)
        (state,) = ends.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        assert state == _CLOSE_WAIT


@pytest.mark.parametrize("goes", [reset, socket.socket.close])
def test_a_client_that_goes_with_much_under_way_has_no_link_once_its_broker_has_gone(
    goes: Callable[[socket.socket], None],
) -> None:
    """No more of its requests may be taken, but they go nowhere any more."""
    with opened(Rig(limits=replace(LIMITS, requests_in_flight=2))) as rig:
        ends, _ = _answered_more_than_is_taken(rig)
        asked = [messages.fetch_request(16, number, epoch=3) for number in range(2, 5)]
        rig.send(ends.client, b"".join(asked))
        received(ends.broker)
        ends.broker.close()
        rig.spin()
        assert rig.pump.has(1)
        goes(ends.client)
        rig.spin()
        assert not rig.pump.has(1)


def test_a_client_that_stays_once_it_has_met_the_end_keeps_its_link_for_a_moment_only() -> None:
    with opened(Rig()) as rig:
        ends, answer = _answered_more_than_is_taken(rig)
        ends.broker.close()
        rig.spin()
        rig.sweep(1)
        assert rig.pump.has(1)
        assert until_end(rig, ends.client) == answer

        def closed() -> bool:
            rig.sweep(2)
            return not rig.pump.has(1)

        until(closed, "the link is closed", _SECONDS)


def test_an_answer_that_came_before_the_close_outlives_a_request_that_came_behind_it() -> None:
    """The request meets a broken pipe; the answer stands in the socket still."""
    answer = messages.metadata_response(1, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, messages.metadata_request(12, 1))
        ends.client.send(messages.metadata_request(12, 2))  # Ready first, so it is served first.
        ends.broker.send(answer)
        ends.broker.close()
        assert until_end(rig, ends.client) == answer


def test_requests_that_wait_for_a_broker_do_not_cost_its_answer() -> None:
    answer = messages.response(999, 0, 0, b"the answer")
    big = messages.request(999, 0, 1, bytes(_KEPT_AT_MOST))
    with opened(Rig(limits=replace(LIMITS, request_bytes=1 << 21))) as rig:
        ends = rig.link(hinting_route(), buffers=_SMALL)
        rig.send(ends.client, messages.request(999, 0, 0, b""))
        assert rig.send_what_fits(ends.client, big) < len(big)
        ends.broker.send(answer)
        ends.broker.close()
        assert until_end(rig, ends.client) == answer


def test_nothing_is_kept_of_requests_that_come_once_the_broker_has_closed() -> None:
    """A broker that authenticates a client answers one other request, with an error, and closes
    (SaslServerAuthenticator): so much anybody can have it answer. A client that takes no answers
    keeps the link open.
    """
    takes = {**dict.fromkeys(range(90), 0), 0: 8, 1: 11, 3: 9, 18: 3}
    route = Route("r", Mode.ON, broker=BrokerState(plan=plan_for(takes)))
    limits = replace(LIMITS, request_bytes=1 << 30)
    with opened(Rig(limits=limits, link_buffer=1 << 20)) as rig:
        ends = rig.link(route, buffers=2048)
        for end in (ends.client, ends.broker):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        asked = [messages.request(messages.API_VERSIONS, 0, number, b"") for number in range(40)]
        asked.append(messages.request(messages.SASL_HANDSHAKE, 1, 40, b"\0\5PLAIN"))
        asked.append(messages.produce_request(10, 41))
        rig.send(ends.client, b"".join(asked))
        answers = [messages.api_versions_response(number, 0, takes) for number in range(40)]
        answers.append(messages.response(messages.SASL_HANDSHAKE, 1, 40, bytes(6)))
        answers.append(messages.response(messages.PRODUCE, 8, 41, bytes(8)))
        ends.broker.send(b"".join(answers))
        ends.broker.close()
        rig.spin()
        assert route.traffic.links_open == 1
        # What the client has not taken of the answers.
        kept = rig.budget.used
        assert kept < sum(map(len, answers))
        # Before this release it must be kept until its last partition begins: the second one.
        first = struct.pack(">i", 0) + messages.varint(1 << 29)
        begun = messages.text(None) + struct.pack(">hi", 1, 1000)
        begun += b"\2" + messages.text("t") + b"\3"
        asked_last = messages.request(messages.PRODUCE, 10, 42, begun + first)
        rig.send(ends.client, struct.pack(">i", 1 << 29) + asked_last[4:])
        for _ in range(100):
            rig.send(ends.client, bytes(1 << 16))
            assert rig.budget.used == kept


@pytest.mark.parametrize("who", ["client", "broker"])
def test_a_reset_of_either_side_closes_both(who: str) -> None:
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, tcp=True)
        rig.send(ends.client, messages.metadata_request(12, 1))
        here, there = (ends.client, ends.broker) if who == "client" else (ends.broker, ends.client)
        reset(here)
        until_end(rig, there)
        assert route.traffic.links_open == 0
        assert rig.complaints == []


@pytest.mark.parametrize("end", [reset, socket.socket.close])
@pytest.mark.parametrize("route", [hinting_route, opaque_route])
@pytest.mark.parametrize("is_answered", [False, True])
def test_an_end_before_any_answer_is_a_reset_for_the_client(
    end: Callable[[socket.socket], None], route: Callable[[], Route], is_answered: bool
) -> None:
    """As where a broker goes down with connections that it has not read yet. After an end there
    franz-go gives up, after a reset it tries again."""
    with opened(Rig()) as rig:
        ends = rig.link(route(), tcp=True)
        rig.send(ends.client, messages.api_versions_request(1))
        until(lambda: _comes(rig, ends.broker), "the request", _SECONDS)
        if is_answered:
            answer = messages.api_versions_response(1, 3, LEGACY)
            rig.send(ends.broker, answer)
            until(lambda: _comes(rig, ends.client), "the answer", _SECONDS)
        end(ends.broker)
        assert _how_it_ends(rig, ends.client) == ("end" if is_answered else "reset")


def test_a_client_that_ends_without_a_word_is_not_reset() -> None:
    """As one that only looks whether somebody listens."""
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        ends.client.shutdown(socket.SHUT_WR)
        assert until_end(rig, ends.broker) == b""
        ends.broker.close()
        assert _how_it_ends(rig, ends.client) == "end"


def test_a_client_that_ends_without_a_word_keeps_no_port_of_the_proxys() -> None:
    """Who ends a connection first has its port kept for a minute (TIME_WAIT)."""
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        ends.client.close()
        rig.spin()
        with pytest.raises(ConnectionResetError):
            ends.broker.recv(1)


def test_a_client_that_has_just_come_is_reset_at_the_processes_end() -> None:
    with opened(Rig()) as rig:
        first, served = rig.link(hinting_route(), tcp=True), rig.link(hinting_route(), tcp=True)
        rig.send(served.client, messages.api_versions_request(1))
        until(lambda: _comes(rig, served.broker), "the request", _SECONDS)
        answer = messages.api_versions_response(1, 3, LEGACY)
        rig.send(served.broker, answer)
        until(lambda: _comes(rig, served.client), "the answer", _SECONDS)
        rig.drain(lambda link: False)
        assert _how_it_ends(rig, first.client) == "reset"
        assert _how_it_ends(rig, served.client) == "end"


@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_client_whose_broker_is_silent_is_reset_where_the_process_does_not_wait(
    is_answered: bool,
) -> None:
    """Its time to end links is over, or a second signal came."""
    rig = Rig()
    ends = rig.link(hinting_route(), tcp=True)
    rig.send(ends.client, messages.api_versions_request(1))
    until(lambda: _comes(rig, ends.broker), "the request", _SECONDS)
    if is_answered:
        rig.send(ends.broker, messages.api_versions_response(1, 3, LEGACY))
        until(lambda: _comes(rig, ends.client), "the answer", _SECONDS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        nursery.cancel_scope.cancel()
    rig.spin = lambda: None  # type: ignore[method-assign] # its pump is over
    assert _how_it_ends(rig, ends.client) == ("end" if is_answered else "reset")
    ends.close()


def test_a_client_whose_broker_is_silent_is_reset_when_the_time_of_its_link_is_over() -> None:
    with opened(Rig(limits=replace(LIMITS, idle=10.0))) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        rig.send(ends.client, messages.api_versions_request(1))
        until(lambda: _comes(rig, ends.broker), "the request", _SECONDS)
        for now in (0.0, 20.0):
            rig.sweep(now)
        assert _how_it_ends(rig, ends.client) == "reset"


def _comes(rig: Rig, end: socket.socket) -> bytes:
    rig.spin()
    return received(end)


def _how_it_ends(rig: Rig, end: socket.socket) -> str:
    found = ""

    def over() -> bool:
        nonlocal found
        rig.spin()
        with contextlib.suppress(BlockingIOError):
            try:
                assert end.recv(1) == b""
                found = "end"
            except ConnectionResetError:
                found = "reset"
        return bool(found)

    until(over, "the connection ends", _SECONDS)
    return found


def test_what_a_broker_said_before_its_reset_is_delivered() -> None:
    answer = messages.metadata_response(1, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        rig.send(ends.client, messages.metadata_request(12, 1))
        ends.broker.send(answer)
        reset(ends.broker)
        assert until_end(rig, ends.client) == answer


def test_what_a_broker_said_before_its_reset_reaches_a_client_that_has_no_more_to_say() -> None:
    answer = messages.metadata_response(1, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        rig.send(ends.client, messages.metadata_request(12, 1))
        until(lambda: _comes(rig, ends.broker), "the request", _SECONDS)
        # Both are there when the pump looks, and the client's end is served first.
        ends.client.shutdown(socket.SHUT_WR)
        ends.broker.send(answer)
        reset(ends.broker)
        assert until_end(rig, ends.client) == answer


@pytest.mark.parametrize(
    "whole",
    [
        messages.fetch_request(16, 1, epoch=3),
        messages.api_versions_request(1),
        messages.produce_request(10, 1),
        messages.metadata_request(12, 1),
    ],
    ids=["fetch", "api-versions", "produce", "metadata"],
)
def test_a_request_that_breaks_off_is_passed_on_at_every_length(whole: bytes) -> None:
    """Nothing is kept back at the end; where the version was rewritten already, it stays so."""
    with opened(Rig()) as rig:
        for length in range(1, len(whole)):
            ends = rig.link(hinting_route())
            rig.send(ends.client, whole[:length])
            ends.client.shutdown(socket.SHUT_WR)
            got = until_end(rig, ends.broker)
            assert len(got) == length
            assert (got[:6], got[8:]) == (whole[:6][:length], whole[8:length])
            ends.close()
            rig.spin()


def test_a_response_that_breaks_off_is_passed_on_at_every_length() -> None:
    whole = messages.produce_response(1, {0: NOT_LEADER})
    with opened(Rig()) as rig:
        for length in range(1, len(whole)):
            ends = rig.link(hinting_route())
            rig.send(ends.client, messages.produce_request(10, 1))
            rig.send(ends.broker, whole[:length])
            ends.broker.close()
            assert until_end(rig, ends.client) == whole[:length]


def test_a_link_at_rest_keeps_nobody_busy() -> None:
    """Every pair of states of the two sides that waits for something waits asleep."""
    with opened(Rig()) as rig:
        states: list[Callable[[Ends], object]] = [
            lambda ends: None,
            lambda ends: ends.client.shutdown(socket.SHUT_WR),
            lambda ends: ends.broker.shutdown(socket.SHUT_RD),
            lambda ends: rig.send_what_fits(ends.broker, bytes(1 << 21)),
            lambda ends: rig.send_what_fits(ends.client, bytes(1 << 21)),
            lambda ends: ends.client.close(),
            lambda ends: ends.broker.close(),
        ]
        for tcp in (False, True):
            for first in states:
                for second in states:
                    ends = rig.link(opaque_route(), tcp=tcp, buffers=_SMALL)
                    with contextlib.suppress(OSError):
                        first(ends)
                        rig.spin()
                        second(ends)
                    rig.spin()  # Fails where it does not come to rest.
                    ends.close()
                    rig.spin()


# Bytes that are no Kafka requests.


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "above the limit"),
        (struct.pack(">ihhi", -5, 0, 0, 0), "negative"),
        (struct.pack(">ihhi", 3, 0, 0, 0), "too small"),
        (struct.pack(">ihhi", (1 << 20) + 1, 0, 0, 0), "above the limit"),
    ],
    ids=["tls", "http", "negative", "small", "oversize"],
)
@pytest.mark.parametrize("cut", [True, False], ids=["byte-by-byte", "at-once"])
def test_what_cannot_be_kafka_is_reported_once_and_closed(
    data: bytes, words: str, cut: bool
) -> None:
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        for chunk in [data[n : n + 1] for n in range(len(data))] if cut else [data]:
            with contextlib.suppress(BrokenPipeError):
                ends.client.send(chunk)
            rig.spin()
        assert until_end(rig, ends.broker) == b""
        assert ended(ends.client)
        assert route.traffic.links_open == 0
    (told,) = rig.events
    assert isinstance(told, BadClientBytes)
    assert (told.route, told.client) == ("r", "a client")
    assert words in told.reason


def _before_2_8() -> Route:
    """A route in front of a broker whose Fetch goes by names; no topic is known."""
    plan = plan_for({**LEGACY, messages.FETCH: 12})
    return Route(
        "r",
        Mode.ON,
        broker=BrokerState(plan=plan, view=LeaderView("k"), node=1, reachable=True),
    )


def _hello(rig: Rig, ends: Ends, *, offered: int) -> None:
    """Have the client agree on versions, and check up to which it is offered Fetch."""
    maxima = {0: 9, 1: 12, 3: 11, 18: 3}
    rig.send(ends.client, messages.api_versions_request(1))
    rig.send(ends.broker, messages.api_versions_response(1, 3, maxima))
    raised = {**maxima, 0: 10, 1: offered}
    assert received(ends.client) == messages.api_versions_response(1, 3, raised)


def test_an_answer_that_cannot_be_converted_is_reported_and_the_link_closed() -> None:
    route = _before_2_8()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.metadata_request(12, 1))
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
        good = messages.metadata_response(1, 12, [], {})
        rig.send(ends.broker, good + messages.framed(struct.pack(">i", 2) + b"\xff" * 9))
        assert until_end(rig, ends.client) == good
        assert ended(ends.broker)
        assert route.traffic.links_open == 0
    (told,) = rig.events
    assert isinstance(told, BadBrokerBytes)
    assert (told.route, told.link) == ("r", 1)
    assert told.reason.startswith("Fetch v12 response: ")


def test_a_client_is_at_fault_whose_answers_have_no_room_before_it_is_served() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        # What others have of the same share.
        rig.budget.note_unauthenticated("", rig.budget.total)
        rig.send(ends.client, b"".join(messages.api_versions_request(n) for n in range(10)))
        answers = [messages.api_versions_response(n, 3, {0: 9}) for n in range(10)]
        rig.send(ends.broker, b"".join(answers))
        assert ended(ends.broker)
        rig.budget.note_unauthenticated("", -rig.budget.total)
    (told,) = rig.complaints
    assert isinstance(told, BadClientBytes)
    assert "does not read" in told.reason


def test_an_id_that_is_not_known_is_asked_for_once_the_broker_has_answered() -> None:
    """It answers nobody who has not authenticated."""
    route = _before_2_8()
    with opened(Rig()) as rig:
        ends = rig.link(route, address="10.1.2.3:4")
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
        assert received(ends.broker)
        assert rig.lacks == []
        rig.send(ends.broker, messages.fetch_response_by_name(2))
        assert received(ends.client)
        assert rig.lacks == [("r", [messages.TOPIC_ID], "10.1.2.3")]
        rig.send(ends.client, messages.metadata_request(12, 3))
        rig.send(ends.broker, messages.metadata_response(3, 12, [], {}))
        assert len(rig.lacks) == 1


def _better_served_by_name() -> Route:
    """A route whose clients use an id that has no name, once they were offered ids."""
    route = _before_2_8()
    view = route.broker.view
    assert view is not None
    view.learn(TopicMetadata(0, "one", bytes([1] * 16), (Led(0, 1, 0),)), 1)
    view.hidden.take(TopicMetadata(3, ANY_TOPIC, bytes(16), ()), route.name)
    return route


def _link_by_ids(rig: Rig, route: Route, *, tcp: bool = False) -> Ends:
    """Return a link that is to end once its Fetch request is answered."""
    view = route.broker.view
    assert view is not None
    ends = rig.link(route, tcp=tcp)
    _hello(rig, ends, offered=16)
    for now in (0.0, 2.0):
        view.unknown_ids.used([messages.TOPIC_ID], now)
        view.unknown_ids.answered(view.topics.name, now, now)
    rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
    return ends


def test_a_link_whose_client_is_better_served_by_name_ends_when_nothing_is_under_way() -> None:
    route = _better_served_by_name()
    with opened(Rig()) as rig:
        ends = _link_by_ids(rig, route)
        rig.send(ends.client, messages.metadata_request(11, 3))
        rig.send(ends.broker, messages.fetch_response_by_name(2))
        assert received(ends.client)
        assert not ended(ends.client)
        rig.send(ends.broker, messages.metadata_response(3, 11, [], {}))
        assert ended(ends.client)
        assert ended(ends.broker)
        _hello(rig, rig.link(route), offered=12)


def test_a_client_that_is_better_served_by_name_meets_an_end_though_it_asks_on() -> None:
    """A reset would cost it its last answer, if that is lost on its way."""
    with opened(Rig()) as rig:
        ends = _link_by_ids(rig, _better_served_by_name(), tcp=True)
        ends.broker.send(messages.fetch_response_by_name(2))
        # Ready later, so it is served later.
        ends.client.send(messages.metadata_request(11, 3))
        rig.spin()
        ends.client.settimeout(_SECONDS)
        assert ends.client.recv(1000)
        # An error is raised where it is reset.
        assert ends.client.recv(1000) == b""


def _synthesizing() -> Route:
    route = _before_2_8()
    route.config, route.broker.ids_everywhere = RouteConfig(synthesize=True), True
    route.broker.synthetic_plan = plan_for({0: 9, 1: 12, 3: 11, 18: 3}, synthetic=True)
    return route


def test_a_link_that_is_not_read_any_more_does_not_end_when_ids_are_offered() -> None:
    """Nobody knows whether something is under way."""
    route = _synthesizing()
    route.broker.ids_everywhere = False
    with opened(Rig()) as rig:
        ends = rig.link(route)
        mechanism = messages.old_text("PLAIN")
        rig.send(ends.client, messages.request(messages.SASL_HANDSHAKE, 0, 1, mechanism))
        assert received(ends.broker)
        route.broker.ids_everywhere = True
        answer = messages.response(messages.SASL_HANDSHAKE, 0, 1, bytes(6)) + b"a token"
        rig.send(ends.broker, answer)
        assert received(ends.client) == answer
        assert not ended(ends.client)


def test_a_client_that_lacks_a_synthetic_id_is_closed_and_reported() -> None:
    route = _synthesizing()
    asked = bytearray(messages.fetch_request(16, 2, epoch=3))
    at = asked.index(messages.TOPIC_ID)
    asked[at : at + 16] = bytes(16)
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, bytes(asked))
        assert until_end(rig, ends.client) == until_end(rig, ends.broker) == b""
        assert rig.doubts == ["r"]
    (told,) = rig.events
    assert told == BadClientBytes(
        route="r", client="a client", reason="Fetch v16 for a topic without an id"
    )


def test_good_requests_before_bad_bytes_pass() -> None:
    good = messages.metadata_request(12, 1)
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, good + struct.pack(">i", -1))
        assert until_end(rig, ends.broker) == good


# Defects.


async def test_a_defect_in_what_lets_responses_go_ends_the_links_that_are_held() -> None:
    """Else their clients would wait for as long as they wait for any response."""
    route = moving_route()
    with opened(Rig()) as rig:
        held, free = rig.link(route), rig.link(route)
        rig.send(held.client, messages.produce_request(10, 1))
        rig.send(held.broker, messages.produce_response(1, {0: NOT_LEADER}))
        assert rig.hold_timer.waiting.is_set()
        rig.pump.end_held(KeyError("a defect"))
        rig.spin()
        assert ended(held.client)
        assert not ended(free.client)
        assert not rig.hold_timer.waiting.is_set()
        assert rig.hold_queue.held == 0
        assert [type(event) for event in rig.complaints] == [LinkFailed]


def test_a_defect_at_the_look_for_links_whose_time_is_over_ends_one_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = replace(LIMITS, idle=10.0)
    with opened(Rig(limits=limits)) as rig:
        unlucky, idle = rig.link(hinting_route("unlucky")), rig.link(hinting_route("idle"))
        expire = Endings._expire

        def broken(of: Endings, pair: Any, limit: str) -> None:
            if pair.link.state.route.name == "unlucky":
                raise KeyError(limit)
            expire(of, pair, limit)

        monkeypatch.setattr(Endings, "_expire", broken)
        for now in (0.0, 20.0):
            rig.sweep(now)
        assert ended(unlucky.client)
        assert ended(idle.client)
        assert [event.route for event in rig.complaints if isinstance(event, LinkFailed)] == [
            "unlucky"
        ]


def test_a_defect_ends_the_one_link_that_met_it() -> None:
    def snoop(route: Route, version: int, payload: bytes) -> None:
        if route.name == "unlucky":
            raise KeyError(payload)

    unlucky, lucky = hinting_route("unlucky"), hinting_route("lucky")
    answer = messages.metadata_response(1, 12, [], {})
    with opened(Rig(snoop=snoop)) as rig:
        links = [rig.link(route) for route in (unlucky, lucky)]
        for ends in links:
            rig.send(ends.client, messages.metadata_request(12, 1))
        for ends in links:
            rig.send(ends.broker, answer)
        assert ended(links[0].broker)
        assert received(links[1].client) == answer
        assert not ended(links[1].broker)
        assert (unlucky.traffic.links_open, lucky.traffic.links_open) == (0, 1)
    (failed,) = rig.events
    assert isinstance(failed, LinkFailed)
    assert failed.route == "unlucky"
    assert failed.traceback.endswith("KeyError")
    assert "snoop" in failed.traceback
    assert "b'" not in failed.traceback


@pytest.mark.parametrize(
    ("of", "work"),
    [(HoldQueue, "forget"), (Link, "close"), (SendQueues, "drop"), (WatchedSides, "forget")],
)
@pytest.mark.parametrize("first", [True, False], ids=["alone", "behind another"])
async def test_a_defect_at_the_end_of_a_link_ends_no_other(
    of: type, work: str, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has ended a link may have left in disorder what is done at its end."""
    unlucky, lucky = moving_route(), moving_route()
    rig = Rig()
    links = [rig.link(route, tcp=True) for route in (unlucky, lucky)]
    for ends in links:
        rig.send(ends.client, messages.produce_request(10, 1))

    def broken(*_: object) -> None:
        raise KeyError(work)

    with monkeypatch.context() as defect:
        defect.setattr(of, work, broken)
        if first:
            reset(links[0].client)
        else:
            rig.send(links[0].broker, messages.produce_response(1, {0: NOT_LEADER}))
            rig.pump.end_held(KeyError("a defect"))
        rig.spin()  # Fails where it does not come to rest.
    assert ended(links[0].broker)
    assert (unlucky.traffic.links_open, lucky.traffic.links_open) == (0, 1)
    answer = messages.produce_response(1, {0: 0})
    rig.send(links[1].broker, answer)
    assert received(links[1].client) == answer
    assert {type(event) for event in rig.complaints} == {LinkFailed}
    for ends in links:
        ends.close()


@pytest.mark.parametrize(
    ("of", "work"), [(_Timetable, "put"), (_OfRoute, "__init__"), (HeldResponse, "__init__")]
)
async def test_a_defect_as_a_response_begins_to_be_held_ends_its_link_alone(
    of: type, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the process ended, or brokers were asked for ever about what nobody waits for."""
    route = moving_route()
    with opened(Rig()) as rig:
        unlucky, lucky = rig.link(route), rig.link(route)
        for ends in (unlucky, lucky):
            rig.send(ends.client, messages.produce_request(10, 1))

        def broken(*_: object, **__: object) -> None:
            raise KeyError(work)

        with monkeypatch.context() as defect:
            defect.setattr(of, work, broken)
            rig.send(unlucky.broker, messages.produce_response(1, {0: NOT_LEADER}))
        assert ended(unlucky.client)
        assert rig.hold_queue.held == 0
        assert not rig.hold_timer.waiting.is_set()
        rig.send(lucky.broker, messages.produce_response(1, {0: NOT_LEADER}))
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert hint_of(received(lucky.client))[:2] == (2, 4)
        assert {type(event) for event in rig.complaints} == {LinkFailed}


async def test_a_defect_in_a_release_ends_that_link_alone() -> None:
    routes = [moving_route(), moving_route()]
    with opened(Rig()) as rig:
        links = [rig.link(route) for route in routes]
        for ends in links:
            rig.send(ends.client, messages.produce_request(10, 1))
            rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        routes[0].broker.endpoints = {2: Endpoint("two", "no number", None)}  # type: ignore[arg-type]
        for route in routes:
            learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert ended(links[0].broker)
        assert hint_of(received(links[1].client))[:2] == (2, 4)
    assert [type(event) for event in rig.events] == [LinkFailed, HintGiven, HintGiven]


# The end of the process.


def test_what_rests_is_closed_at_once_and_the_others_when_they_have_their_answers() -> None:
    with opened(Rig()) as rig:
        resting, asking = rig.link(hinting_route()), rig.link(hinting_route())
        answer = messages.produce_response(1, {0: 0})
        rig.send(asking.client, messages.produce_request(10, 1))
        rig.drain(_nobody)
        assert ended(resting.client)
        assert not ended(asking.client)
        rig.send(asking.broker, answer[:10])
        rig.sweep(1)
        rig.sweep(2)
        assert not ended(asking.client)
        rig.send(asking.broker, answer[10:])
        assert received(asking.client) == answer
        assert ended(asking.client)
        assert ended(asking.broker)


def test_a_client_that_never_rests_is_asked_for_no_more_and_gets_all_its_answers() -> None:
    """A busy producer always has several requests under way: some were cut off at the end."""
    asked = [messages.produce_request(10, number) for number in range(5)]
    answers = [messages.produce_response(number, {0: 0}) for number in range(5)]
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, asked[0])
        rig.drain(_nobody)
        for number in (1, 2):
            rig.send(ends.client, asked[number])
            rig.send(ends.broker, answers[number - 1])
        # A part of a request is taken: the rest of it must be, too.
        rig.send(ends.client, asked[3][:9])
        for _ in rig.pump.take_no_more():
            pass
        rig.send(ends.client, asked[3][9:])
        rig.send_what_fits(ends.client, asked[4])
        taken = b"".join(messages.produce_request(9, number) for number in range(4))
        assert received(ends.broker) == taken
        rig.send(ends.broker, answers[2])
        assert not ended(ends.broker)
        rig.send(ends.broker, answers[3])
        assert received(ends.client) == b"".join(answers[:4])
        assert ended(ends.client)
        assert received(ends.broker) == b""


def test_a_client_that_always_has_more_to_send_is_asked_for_no_more_either() -> None:
    """As librdkafka has, which may have a million requests under way."""
    asked = [messages.produce_request(10, number) for number in range(90)]
    answers = [messages.produce_response(number, {0: 0}) for number in range(2)]
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, asked[0] + asked[1][:9])
        rig.drain(_nobody)
        for _ in rig.pump.take_no_more():
            pass
        ends.client.sendall(asked[1][9:] + b"".join(asked[2:]))
        rig.spin()
        taken = b"".join(messages.produce_request(9, number) for number in range(2))
        assert received(ends.broker) == taken
        rig.send(ends.broker, b"".join(answers))
        assert received(ends.client) == b"".join(answers)
        assert ended(ends.client)


def test_a_client_that_asks_on_gets_all_of_its_last_answer_however_slowly_it_reads() -> None:
    """A socket that is closed drops what it has not sent where something comes that is not read."""
    answer = messages.fetch_response(1, records=random.Random(0).randbytes(700_000))
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        ends.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
        rig.send(ends.client, messages.fetch_request(16, 1, epoch=3))
        rig.drain(_nobody)
        for _ in rig.pump.take_no_more():
            pass
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
        # Linux takes all of it at once.
        rig.send(ends.broker, answer)
        got, now = bytearray(), itertools.count(1)

        def over() -> bool:
            rig.sweep(next(now))
            rig.spin()
            data, gone = b"", False
            with contextlib.suppress(BlockingIOError):
                data = ends.client.recv(_SMALL)
                gone = not data
            got.extend(data)
            return gone or len(got) == len(answer)

        until(over, "the answer has come", _SECONDS)
        assert got == answer
        rig.sweep(next(now))
        rig.sweep(next(now))
        assert ended(ends.client)


@pytest.mark.parametrize("stops", ["the process", "the broker"])
def test_a_client_that_asks_on_meets_an_end_behind_its_last_answer(stops: str) -> None:
    """A reset has the system forget what was lost on its way, and is not sent again itself."""
    answer, limits = messages.produce_response(1, {0: 0}), replace(LIMITS, requests_in_flight=1)
    with opened(Rig(limits=limits)) as rig:
        ends = rig.link(hinting_route(), tcp=True)
        rig.send(ends.client, messages.produce_request(10, 1))
        if stops == "the process":
            rig.drain(_nobody)
            for _ in rig.pump.take_no_more():
                pass
        rig.send(ends.client, messages.produce_request(10, 2))
        assert received(ends.broker) == messages.produce_request(9, 1)
        ends.broker.send(answer)
        if stops == "the broker":
            ends.broker.close()
        rig.spin()
        ends.client.settimeout(_SECONDS)
        assert ends.client.recv(1000) == answer
        # An error is raised where it is reset.
        assert ends.client.recv(1000) == b""


def test_many_links_take_no_more_one_in_each_step() -> None:
    counts = []
    for links in (10, 200):
        with opened(Rig()) as rig:
            for _ in range(links):
                rig.send(rig.link(hinting_route()).client, messages.produce_request(10, 1))
            rig.drain(_nobody)
            counts.append(most_lines(rig.pump.take_no_more()))
    assert max(counts) < 100


def test_a_request_that_has_begun_is_awaited() -> None:
    asked = messages.produce_request(10, 1, acks=0, records=bytes(1000))
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, asked[:500])
        rig.drain(_nobody)
        rig.sweep(1)
        rig.sweep(2)
        assert not ended(ends.client)
        rig.send(ends.client, asked[500:])
        rig.sweep(3)
        rig.sweep(4)
        assert received(ends.broker) == messages.produce_request(9, 1, acks=0, records=bytes(1000))
        assert ended(ends.client)


def test_a_link_that_is_not_read_is_closed_when_it_is_quiet() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(opaque_route())
        rig.send(ends.client, b"something")
        rig.drain(_nobody)
        rig.sweep(1)
        assert not ended(ends.client)
        rig.send(ends.broker, b"an answer")
        rig.sweep(2)
        assert not ended(ends.client)
        rig.sweep(3)
        assert ended(ends.client)


def test_a_link_that_begins_while_the_process_ends_has_a_second_to_say_something() -> None:
    with opened(Rig()) as rig:
        rig.drain(_nobody)
        ends = rig.link(hinting_route())
        rig.sweep(1)
        assert not ended(ends.client)
        rig.sweep(2)
        assert ended(ends.client)


def test_exempt_links_stay() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.drain(lambda link: link.client.id == "c")
        rig.send(ends.broker, messages.produce_response(1, {0: 0}))
        rig.sweep(1)
        rig.sweep(2)
        received(ends.client)
        assert not ended(ends.client)
        assert rig.pump.drained


def _rested(rig: Rig, links: int) -> None:
    """Make links on which one request was answered."""
    for _ in range(links):
        ends = rig.link(hinting_route())
        rig.send(ends.client, messages.metadata_request(12, 1))
        rig.send(ends.broker, messages.metadata_response(1, 12, [], {}))


def test_many_links_are_closed_one_in_each_step() -> None:
    """4,000 links took 90 ms of one step at the end of a process."""
    counts = []
    for links in (10, 200):
        with opened(Rig()) as rig:
            _rested(rig, links)
            counts.append(most_lines(rig.pump.drain(_nobody)))
            assert rig.pump.drained
            counts.append(most_lines(rig.pump.sweep(1)))
    assert max(counts) < 200


def test_many_links_expire_one_in_each_step() -> None:
    with opened(Rig(limits=replace(LIMITS, first_bytes=30, idle=60))) as rig:
        route = hinting_route()
        for _ in range(200):
            rig.link(route)
        rig.sweep(0)
        assert most_lines(rig.pump.sweep(31)) < 200
        _rested(rig, 200)
        assert most_lines(rig.pump.sweep(40)) < 200
        assert most_lines(rig.pump.sweep(101)) < 200
        assert route.traffic.links_open == 0
        assert most_lines(rig.pump.sweep(102)) < 200
