"""The pump between real socket pairs: bytes, back-pressure, ends, held responses, defects."""

import contextlib
import errno
import gc
import math
import os
import random
import select
import socket
import stat
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import trio
from kio.schema.fetch.v16.response import FetchResponse
from kio.schema.produce.v10.response import ProduceResponse
from kio.serial import entity_reader

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import ANY_TOPIC, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import (
    BadBrokerBytes,
    BadClientBytes,
    HintGiven,
    HintMissed,
    LinkFailed,
)
from leader_hints.core.link.flow import Flow
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.plan import plan_for
from leader_hints.net.pump import turns
from leader_hints.net.pump.endings import Endings
from tests.harness.waiting import until
from tests.net import messages
from tests.net.messages import FENCED, NOT_LEADER, TOPIC_ID
from tests.net.rig import (
    LEGACY,
    LIMITS,
    Ends,
    Rig,
    ended,
    hinting_route,
    opaque_route,
    open_descriptors,
    opened,
    received,
    socket_pair,
    until_end,
)
from tests.net.serving import until_true

_SMALL = 16_384
#: Bounds a broken test.
_SECONDS = 10.0
#: What two kernel buffers of _SMALL (doubled by Linux) on either side of the pump and one buffer
#: of the pump may hold, generously.
_KEPT_AT_MOST = 1 << 20


# Bytes pass.


def _conversation() -> tuple[bytes, bytes, bytes, bytes]:
    """What a client sends, what the broker gets; what the broker answers, what the client gets."""
    up = [
        messages.api_versions_request(1),
        messages.produce_request(10, 2),
        messages.produce_request(10, 3, acks=0),
        messages.fetch_request(16, 4, epoch=3),
        messages.request(999, 7, 5, b"whatever this is"),
        messages.metadata_request(12, 6),
    ]
    sent_up = [
        up[0],
        messages.produce_request(9, 2),
        messages.produce_request(9, 3, acks=0),
        messages.fetch_request(15, 4, epoch=3),
        *up[4:],
    ]
    answers = [
        messages.produce_response(2, {0: 0}),
        messages.fetch_response(4, records=b"records"),
        messages.response(999, 7, 5, b"the like"),
        messages.metadata_response(6, 12, [], {}),
    ]
    offered = {**LEGACY, 0: 10, 1: 16}
    down = [messages.api_versions_response(1, 3, LEGACY), *answers]
    sent_down = [messages.api_versions_response(1, 3, offered), *answers]
    return b"".join(up), b"".join(sent_up), b"".join(down), b"".join(sent_down)


def _check_conversation(rig: Rig, chunks: Callable[[bytes], list[bytes]]) -> None:
    up, sent_up, down, sent_down = _conversation()
    ends = rig.link(hinting_route())
    for chunk in chunks(up):
        rig.send(ends.client, chunk)
    assert received(ends.broker) == sent_up
    for chunk in chunks(down):
        rig.send(ends.broker, chunk)
    assert received(ends.client) == sent_down
    ends.close()
    rig.spin()


def test_a_conversation_cut_in_two_at_every_byte_arrives_whole() -> None:
    longest = max(map(len, _conversation()))
    with opened(Rig()) as rig:
        for cut in range(1, longest):
            _check_conversation(rig, partial(_cut_in_two, cut))
        assert rig.complaints == []


def _cut_in_two(cut: int, data: bytes) -> list[bytes]:
    return [data[:cut], data[cut:]]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 13, 64, 100_000])
def test_a_conversation_in_chunks_of_any_size_arrives_whole(size: int) -> None:
    def chunks(data: bytes) -> list[bytes]:
        return [data[at : at + size] for at in range(0, len(data), size)]

    with opened(Rig()) as rig:
        _check_conversation(rig, chunks)
        assert rig.complaints == []


def test_counts_follow_what_passed() -> None:
    up, _, down, _ = _conversation()
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, up)
        rig.send(ends.broker, down)
        assert (route.traffic.links, route.traffic.links_open) == (1, 1)
        assert (route.traffic.up, route.traffic.down) == (len(up), len(down))
        assert route.traffic.requests[0, 10, 9] == 2
    assert (route.traffic.links, route.traffic.links_open) == (1, 0)


@pytest.mark.parametrize("seed", range(3))
def test_an_opaque_link_relays_anything(seed: int) -> None:
    source = random.Random(seed)
    tls_hello = b"\x16\x03\x01\x02\x00\x01\x00"
    up, down = tls_hello + source.randbytes(700_000), b"\xff" * 9 + source.randbytes(700_000)
    with opened(Rig()) as rig:
        ends = rig.link(opaque_route())
        got_up, got_down = b"", b""
        for at in range(0, len(up), 50_000):
            rig.send(ends.client, up[at : at + 50_000])
            rig.send(ends.broker, down[at : at + 50_000])
            got_up += received(ends.broker)
            got_down += received(ends.client)
        assert got_up == up
        assert got_down == down
        assert rig.complaints == []


async def test_many_links_at_once_as_a_task() -> None:
    """The pump as it runs: all links talk at once, each in its own chunks."""
    rig = Rig()
    up, sent_up, down, sent_down = _conversation()

    async def talk(seed: int) -> None:
        source = random.Random(seed)
        ends = rig.link(hinting_route(f"r{seed}"))
        client, broker = (
            trio.SocketStream(trio.socket.from_stdlib_socket(sock))
            for sock in (ends.client, ends.broker)
        )
        for sender, said, hearer, heard in (
            (client, up, broker, sent_up),
            (broker, down, client, sent_down),
        ):
            async with trio.open_nursery() as both:
                both.start_soon(_send_in_chunks, sender, said, source)
                got = b""
                while len(got) < len(heard):
                    got += await hearer.receive_some()
                assert got == heard
        await client.aclose()
        assert await broker.receive_some() == b""
        await broker.aclose()

    with trio.fail_after(20):
        async with trio.open_nursery() as pump:
            pump.start_soon(rig.pump.run)
            async with trio.open_nursery() as links:
                for seed in range(20):
                    links.start_soon(talk, seed)
            pump.cancel_scope.cancel()
    assert rig.complaints == []
    assert rig.budget.used == 0


async def _send_in_chunks(stream: trio.SocketStream, data: bytes, source: random.Random) -> None:
    while data:
        size = source.randrange(1, 60)
        await stream.send_all(data[:size])
        data = data[size:]


# Turns.


def _busy_for_ever(rig: Rig) -> None:
    """Make a ring of two links with bytes that go round and round: there is always work."""
    (first, last), (back, forth) = socket_pair(), socket_pair()
    last.send(b"round and round")
    rig.pump.adopt(opaque_route(), first, back, "a ring")
    rig.pump.adopt(opaque_route(), forth, last, "a ring")


async def test_a_turn_ends_when_something_can_be_read_that_other_tasks_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_TURN", math.inf)
    rig = Rig()
    here, there = socket_pair()
    _busy_for_ever(rig)
    there.send(b"x")
    async with trio.open_nursery() as nursery:
        with rig.pump.wake_on_readable(here.fileno()):
            nursery.start_soon(rig.pump.run)
            # Else the turn never ends, and this line is never reached again.
            await trio.lowlevel.wait_readable(here)
        nursery.cancel_scope.cancel()
    here.close()
    there.close()


async def test_turns_are_short_while_something_urgent_is_done_or_a_response_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "_TURN", math.inf)
    rig = Rig()
    _busy_for_ever(rig)
    async with trio.open_nursery() as nursery:
        with rig.pump.urgent():
            nursery.start_soon(rig.pump.run)
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            rig.hold_timer.waiting.set()
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_a_busy_pump_gives_others_their_turn_by_itself() -> None:
    rig = Rig()
    _busy_for_ever(rig)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_who_was_ready_when_a_turn_was_over_is_served_first_in_the_next() -> None:
    rig = Rig()
    ends = []
    for number in range(5):
        (client, near), (far, broker) = socket_pair(), socket_pair()
        rig.pump.adopt(opaque_route(), near, far, f"client {number}")
        client.send(b"x")
        ends.append((client, broker))

    def served() -> int:
        return sum(bool(select.select([broker], [], [], 0)[0]) for _, broker in ends)

    for number in range(5):
        assert served() == number
        # What was served has more, and would be the first again.
        for client, broker in ends:
            if select.select([broker], [], [], 0)[0]:
                client.send(b"x")
        rig.pump.step(begun=-math.inf)
    assert served() == 5


async def test_a_turn_is_short_from_the_moment_a_response_is_held_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands may come at once, and their hints come through other tasks."""
    monkeypatch.setattr(turns, "_TURN", math.inf)
    monkeypatch.setattr(turns, "_SHORT_TURN", 0.0)
    rig = Rig()
    ends = [socket_pair() for _ in range(3)]
    for number, (client, near) in enumerate(ends):
        far, broker = socket_pair()
        rig.pump.adopt(opaque_route(), near, far, f"client {number}")
        client.send(b"x")
        ends[number] = (client, broker)
    rig.hold_timer.waiting.set()
    rig.pump.step(begun=time.monotonic())
    assert sum(bool(select.select([broker], [], [], 0)[0]) for _, broker in ends) == 1


async def test_what_was_left_does_not_reach_the_present_owner_of_the_descriptor() -> None:
    rig = Rig()
    (first, near), (far, broker) = socket_pair(), socket_pair()
    (second, also), (beyond, other) = socket_pair(), socket_pair()
    rig.pump.adopt(opaque_route(), near, far, "the first")
    rig.pump.adopt(opaque_route(), also, beyond, "the second")
    first.close()
    second.close()
    rig.pump.step(begun=-math.inf)
    rig.pump.step()
    rig.pump.step()
    assert [broker.recv(1), other.recv(1)] == [b"", b""]


# Back-pressure.


def _frames(size: int, count: int, *, up: bool) -> bytes:
    records = random.Random(size).randbytes(size)
    if up:
        return b"".join(messages.produce_request(9, n, records=records) for n in range(count))
    return b"".join(messages.fetch_response(n, records=records) for n in range(count))


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "opaque"])
def test_who_does_not_read_is_not_read_for(up: bool, reading: bool) -> None:
    count = 60
    data = _frames(100_000, count, up=up)
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route() if reading else opaque_route(), buffers=_SMALL)
        if reading and not up:
            asked = b"".join(messages.fetch_request(16, n, epoch=3) for n in range(count))
            rig.send(ends.client, asked)
            received(ends.broker)
        sender, hearer = (ends.client, ends.broker) if up else (ends.broker, ends.client)

        sent = rig.send_what_fits(sender, data)
        assert sent < _KEPT_AT_MOST

        got = bytearray()
        for _ in range(10_000):
            got += received(hearer)
            rig.spin()
            sent += rig.send_what_fits(sender, data[sent:])
            if len(got) == len(data):
                break
        assert got == data


class _Spliced:
    """Counts the bytes that the system took from a socket at our word; ``fault``: it refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fault: int = 0) -> None:
        self.bytes = 0
        self._fault = fault
        self._splice = os.splice
        monkeypatch.setattr(os, "splice", self._count)

    def _count(self, source: int, target: int, most: int, **flags: int) -> int:
        if self._fault:
            raise OSError(self._fault, "as told")
        size = self._splice(source, target, most, **flags)
        if stat.S_ISSOCK(os.fstat(source).st_mode):
            self.bytes += size
        return size


@pytest.mark.parametrize("up", [True, False], ids=["requests", "responses"])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "opaque"])
@pytest.mark.parametrize(
    "fault",
    [0, errno.EINVAL, errno.EPERM],
    ids=["moved", "cannot be moved", "may not be moved"],
)
def test_large_records_arrive_whole_however_they_are_taken(
    up: bool, reading: bool, fault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spliced = _Spliced(monkeypatch, fault)
    size, count, links = 900_000, 4, 3
    data = _frames(size, count, up=up)
    with opened(Rig()) as rig:
        route = hinting_route() if reading else opaque_route()
        ends = [rig.link(route, tcp=True) for _ in range(links)]
        pairs = [(e.client, e.broker) if up else (e.broker, e.client) for e in ends]
        for one in ends if reading and not up else ():
            rig.send(
                one.client, b"".join(messages.fetch_request(16, n, epoch=3) for n in range(count))
            )
            assert received(one.broker)
        sent, got = [0] * links, [bytearray() for _ in ends]

        def goes_on() -> bool:
            for number, (sender, hearer) in enumerate(pairs):
                with contextlib.suppress(BlockingIOError):
                    sent[number] += sender.send(memoryview(data)[sent[number] :])
                rig.spin()
                # Each takes another amount at a time, the first one little.
                with contextlib.suppress(BlockingIOError):
                    got[number] += hearer.recv(200_000 << 2 * number)
            return all(len(one) >= len(data) for one in got)

        until(goes_on, "all has arrived")
        assert got == [data] * links
        assert rig.complaints == []
        traffic = route.traffic
        assert (traffic.up if up else traffic.down) == links * len(data)
        assert rig.pump.load().queued_bytes == 0
    assert spliced.bytes > (0 if fault else links * len(data) // 2) or (fault and not spliced.bytes)


def test_a_client_that_takes_nothing_any_more_loses_what_was_on_its_way_and_no_other_does() -> None:
    data = _frames(900_000, 3, up=True)
    with opened(Rig()) as rig:
        before = open_descriptors()
        for _ in range(40):
            # More than there are pipes: each goes with one that is full.
            lost = rig.link(hinting_route(), tcp=True)
            rig.send_what_fits(lost.client, data)
            lost.broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            lost.close()

            def is_gone() -> bool:
                rig.spin()
                return not rig.pump.load().queued_bytes

            until(is_gone, "it is peer_closed")
        kept = rig.link(hinting_route(), tcp=True)
        got, sent = bytearray(), 0

        def goes_on() -> bool:
            nonlocal sent
            with contextlib.suppress(BlockingIOError):
                sent += kept.client.send(memoryview(data)[sent:])
            rig.spin()
            got.extend(received(kept.broker))
            return len(got) >= len(data)

        until(goes_on, "all has arrived")
        assert got == data
        kept.close()
        rig.spin()
        assert open_descriptors() <= before + 2


def test_one_direction_that_stands_still_does_not_stop_the_other() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(opaque_route(), buffers=_SMALL)
        rig.send_what_fits(ends.broker, bytes(1 << 21))
        rig.send(ends.client, b"still heard")
        assert received(ends.broker) == b"still heard"


def test_a_crowded_link_reads_no_request_until_a_response_has_come() -> None:
    asked = [messages.request(999, 0, n, b"x") for n in range(5)]
    with opened(Rig(limits=replace(LIMITS, requests_in_flight=2))) as rig:
        ends = rig.link(hinting_route())
        for one in asked:
            ends.client.send(one)
            rig.spin()
        # The first read took what was there: one request; so did the second.
        assert received(ends.broker) == asked[0] + asked[1]

        rig.send(ends.broker, messages.response(999, 0, 0, b""))
        assert received(ends.broker) == b"".join(asked[2:])


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


@pytest.mark.parametrize("who", ["client", "broker"])
def test_a_reset_of_either_side_closes_both(who: str) -> None:
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, tcp=True)
        rig.send(ends.client, messages.metadata_request(12, 1))
        here, there = (ends.client, ends.broker) if who == "client" else (ends.broker, ends.client)
        _reset(here)
        until_end(rig, there)
        assert route.traffic.links_open == 0
        assert rig.complaints == []


@pytest.mark.parametrize("route", [hinting_route, opaque_route])
@pytest.mark.parametrize("is_answered", [False, True])
def test_a_reset_before_any_answer_is_one_for_the_client_too(
    route: Callable[[], Route], is_answered: bool
) -> None:
    """As where a broker goes down with connections that it has not taken yet. After an end there
    franz-go gives up, after a reset it tries again."""
    with opened(Rig()) as rig:
        ends = rig.link(route(), tcp=True)
        rig.send(ends.client, messages.api_versions_request(1))
        until(lambda: _comes(rig, ends.broker), "the request", _SECONDS)
        if is_answered:
            answer = messages.api_versions_response(1, 3, LEGACY)
            rig.send(ends.broker, answer)
            until(lambda: _comes(rig, ends.client), "the answer", _SECONDS)
        _reset(ends.broker)
        assert _how_it_ends(rig, ends.client) == ("end" if is_answered else "reset")


def test_a_client_that_has_just_come_is_reset_at_the_processes_end() -> None:
    with opened(Rig()) as rig:
        first, served = rig.link(hinting_route(), tcp=True), rig.link(hinting_route(), tcp=True)
        rig.send(served.client, messages.api_versions_request(1))
        until(lambda: _comes(rig, served.broker), "the request", _SECONDS)
        answer = messages.api_versions_response(1, 3, LEGACY)
        rig.send(served.broker, answer)
        until(lambda: _comes(rig, served.client), "the answer", _SECONDS)
        rig.pump.drain(lambda link: False)
        assert _how_it_ends(rig, first.client) == "reset"
        assert _how_it_ends(rig, served.client) == "end"


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
        _reset(ends.broker)
        assert until_end(rig, ends.client) == answer


def _reset(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


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
        broker=BrokerState(
            plan=plan, view=LeaderView("k", trio.current_time), node=1, reachable=True
        ),
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


def test_an_id_that_is_not_known_is_asked_for_once_the_broker_has_answered() -> None:
    """It answers nobody who has not authenticated."""
    route = _before_2_8()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
        assert received(ends.broker)
        assert rig.lacks == []
        rig.send(ends.broker, messages.fetch_response_by_name(2))
        assert received(ends.client)
        assert rig.lacks == [("r", [messages.TOPIC_ID])]
        rig.send(ends.client, messages.metadata_request(12, 3))
        rig.send(ends.broker, messages.metadata_response(3, 12, [], {}))
        assert len(rig.lacks) == 1


def test_a_link_whose_client_is_better_served_by_name_ends_when_nothing_is_under_way() -> None:
    route = _before_2_8()
    view = route.broker.view
    assert view is not None
    view.learn(TopicMetadata(0, "one", bytes([1] * 16), (Led(0, 1, 0),)), 1)
    view.hidden.take(TopicMetadata(3, ANY_TOPIC, bytes(16), ()))
    with opened(Rig()) as rig:
        ends = rig.link(route)
        _hello(rig, ends, offered=16)
        for now in (0.0, 2.0):
            view.unknown_ids.used([messages.TOPIC_ID], now)
            view.unknown_ids.answered(view.topics.name, now, now)
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=3))
        rig.send(ends.client, messages.metadata_request(11, 3))
        rig.send(ends.broker, messages.fetch_response_by_name(2))
        assert received(ends.client)
        assert not ended(ends.client)
        rig.send(ends.broker, messages.metadata_response(3, 11, [], {}))
        assert ended(ends.client)
        assert ended(ends.broker)
        _hello(rig, rig.link(route), offered=12)


def test_a_client_that_lacks_a_synthetic_id_is_closed_and_reported() -> None:
    route = _before_2_8()
    route.config, route.broker.ids_everywhere = RouteConfig(synthesize=True), True
    route.broker.synthetic_plan = plan_for({0: 9, 1: 12, 3: 11, 18: 3}, synthetic=True)
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


# Held responses.


def _moving_route() -> Route:
    """A route before node 1, which led partition 0 of t at epoch 3 as far as is known."""
    route = hinting_route()
    route.broker.view = LeaderView("k", trio.current_time)
    route.broker.endpoints = {1: Endpoint("one", 9091, None), 2: Endpoint("two", 9092, "rack")}
    _learn(route, leader=1, epoch=3)
    return route


def _learn(route: Route, *, leader: int, epoch: int) -> None:
    assert route.broker.view is not None
    for topic, topic_id in (("t", bytes(16)), ("by id", TOPIC_ID)):
        answer = TopicMetadata(0, topic, topic_id, (Led(0, leader, epoch),))
        route.broker.view.learn(answer, leader)


def _hint_of(frame: bytes) -> tuple[int, int, str, int, str | None]:
    """Leader, epoch, host, port and rack of the one hint in the answer to _ask_both's requests."""
    (correlation,) = struct.unpack_from(">i", frame, 4)
    kind: Any = ProduceResponse if correlation == _PRODUCED else FetchResponse
    read, size = entity_reader(kind)(frame[9:], 0)
    assert size == len(frame) - 9
    (topic,) = read.responses
    (partition,) = topic.partition_responses if correlation == _PRODUCED else topic.partitions
    (node,) = read.node_endpoints
    leader = partition.current_leader
    assert node.node_id == leader.leader_id
    return leader.leader_id, leader.leader_epoch, node.host, node.port, node.rack


_PRODUCED, _FETCHED, _LISTED = 1, 2, 3


def _ask_both(rig: Rig, ends: Ends) -> None:
    """Have a Produce, a Fetch and a Metadata request under way."""
    rig.send(ends.client, messages.produce_request(10, _PRODUCED))
    rig.send(ends.client, messages.fetch_request(16, _FETCHED, epoch=3))
    rig.send(ends.client, messages.metadata_request(12, _LISTED))


async def test_a_held_response_goes_on_with_its_hint_and_all_behind_it_in_order() -> None:
    route = _moving_route()
    behind = messages.metadata_response(3, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(route)
        _ask_both(rig, ends)
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        rig.send(ends.broker, messages.fetch_response(2, FENCED) + behind[:7])
        ends.broker.send(behind[7:])
        rig.spin()
        assert received(ends.client) == b""
        assert rig.hold_timer.waiting.is_set()

        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        produced, fetched, rest = _split(received(ends.client))
        assert _hint_of(produced) == (2, 4, "two", 9092, "rack")
        assert _hint_of(fetched) == (2, 4, "two", 9092, "rack")
        assert rest == behind
        assert not rig.hold_timer.waiting.is_set()
    assert [type(event) for event in rig.events] == [HintGiven, HintGiven]


def _split(stream: bytes) -> list[bytes]:
    frames = []
    while stream:
        (length,) = struct.unpack_from(">i", stream)
        frames.append(stream[: 4 + length])
        stream = stream[4 + length :]
    return frames


async def test_the_answer_behind_a_held_one_is_held_for_its_own_hint() -> None:
    """Two errors in one chunk: the second is submitted once the first is released."""
    route = _moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        _ask_both(rig, ends)
        produced = messages.produce_response(1, {0: NOT_LEADER})
        fetched = messages.fetch_response(2, FENCED)
        rig.send(ends.broker, produced + fetched)
        assert received(ends.client) == b""
        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert (
            list(map(_hint_of, _split(received(ends.client)))) == [(2, 4, "two", 9092, "rack")] * 2
        )


async def test_a_response_is_held_at_every_cut_of_its_bytes() -> None:
    stream = messages.fetch_response(_FETCHED, FENCED, b"records") + messages.metadata_response(
        _LISTED, 12, [], {}
    )
    with opened(Rig()) as rig:
        for cut in range(1, len(stream)):
            route = _moving_route()
            ends = rig.link(route)
            rig.send(ends.client, messages.fetch_request(16, _FETCHED, epoch=3))
            rig.send(ends.client, messages.metadata_request(12, _LISTED))
            rig.send(ends.broker, stream[:cut])
            ends.broker.send(stream[cut:])
            rig.spin()
            assert received(ends.client) == b""
            _learn(route, leader=2, epoch=4)
            rig.hold_timer.review()
            rig.spin()
            fetched, rest = _split(received(ends.client))
            assert _hint_of(fetched)[:2] == (2, 4)
            assert rest == messages.metadata_response(_LISTED, 12, [], {})
            ends.close()
            rig.spin()


async def test_nothing_is_read_from_a_broker_behind_a_held_response() -> None:
    route = _moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, buffers=_SMALL)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.client, messages.metadata_request(12, 2))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        behind = messages.response(messages.METADATA, 12, 2, bytes(1 << 21))
        sent = rig.send_what_fits(ends.broker, behind)
        assert sent < _KEPT_AT_MOST

        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        got = bytearray()
        for _ in range(10_000):
            sent += rig.send_what_fits(ends.broker, behind[sent:])
            rig.spin()
            got += received(ends.client)
            if got.endswith(behind):
                break
        assert len(_split(bytes(got))) == 2


async def test_a_broker_that_closes_while_its_response_is_held_has_it_delivered() -> None:
    route = _moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        ends.broker.close()
        rig.spin()
        ends.client.send(messages.metadata_request(12, 2))
        rig.spin()
        assert not ended(ends.client)

        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert _hint_of(until_end(rig, ends.client))[:2] == (2, 4)
        assert route.traffic.links_open == 0


async def test_a_client_that_has_no_more_to_say_gets_its_held_answer() -> None:
    route = _moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        ends.client.shutdown(socket.SHUT_WR)
        rig.spin()
        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert _hint_of(received(ends.client))[:2] == (2, 4)


async def test_a_client_that_vanishes_while_its_response_is_held_is_forgotten() -> None:
    route = _moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, tcp=True)
        rig.send(ends.client, messages.produce_request(10, 1))
        ends.broker.send(messages.produce_response(1, {0: NOT_LEADER}))

        def held() -> bool:
            rig.spin()
            return rig.hold_timer.waiting.is_set()

        until(held, "a response is held", 10)
        _reset(ends.client)
        until_end(rig, ends.broker)

        assert rig.hold_queue.next_deadline() is None
        # Nobody is to be asked for it again and again.
        assert not rig.hold_timer.waiting.is_set()
        _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert rig.complaints == []


# Defects.


async def test_a_defect_in_what_lets_responses_go_ends_the_links_that_are_held() -> None:
    """Else their clients would wait for as long as they wait for any response."""
    route = _moving_route()
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
            rig.pump.sweep(now)
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


async def test_a_defect_in_a_release_ends_that_link_alone() -> None:
    routes = [_moving_route(), _moving_route()]
    with opened(Rig()) as rig:
        links = [rig.link(route) for route in routes]
        for ends in links:
            rig.send(ends.client, messages.produce_request(10, 1))
            rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        routes[0].broker.endpoints = {2: Endpoint("two", "no number", None)}  # type: ignore[arg-type]
        for route in routes:
            _learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert ended(links[0].broker)
        assert _hint_of(received(links[1].client))[:2] == (2, 4)
    assert [type(event) for event in rig.events] == [HintGiven, HintGiven, LinkFailed]


# The end of it all.


@pytest.mark.parametrize("first", ["client", "broker"])
async def test_links_that_have_gone_are_forgotten_without_the_garbage_collector(first: str) -> None:
    # It runs seldom and looks through all there is, so memory would rise between two of its runs.
    gc.collect()
    before = _links_in_memory()
    route = _moving_route()
    _learn(route, leader=2, epoch=4)
    gc.disable()
    try:
        with opened(Rig()) as rig:
            for _ in range(20):
                ends = rig.link(route)
                rig.send(ends.client, messages.produce_request(10, 1))
                rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
                getattr(ends, first).close()
                rig.spin()
                ends.close()
                rig.spin()
            rig.pump.sweep(0)
            assert [type(event) for event in rig.events] == [HintGiven] * 20
            assert _links_in_memory() == before
    finally:
        gc.enable()


def _links_in_memory() -> int:
    parts = (LinkState, Flow)
    return sum(isinstance(known, parts) for known in gc.get_objects())


async def test_all_descriptors_are_closed_when_it_is_cancelled() -> None:
    gc.collect()  # Other tests' pumps may have left theirs.
    before = open_descriptors()
    rig = Rig()
    route = hinting_route()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        links = [rig.link(route) for _ in range(5)]
        for ends in links:
            ends.client.send(messages.fetch_request(16, 1, epoch=3)[:-3])
        with trio.fail_after(10):
            while route.traffic.up == 0:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    for ends in links:
        assert ended(ends.client)
        assert ended(ends.broker)
        ends.close()
    assert route.traffic.links_open == 0
    assert rig.budget.used == 0
    await until_true(lambda: open_descriptors() <= before)


async def test_a_link_that_comes_too_late_is_closed() -> None:
    """A connection to a broker may come about in the very moment of the end."""
    rig = Rig()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        nursery.cancel_scope.cancel()
    ends = rig.link(hinting_route())
    assert ended(ends.client)
    assert ended(ends.broker)
    ends.close()


@pytest.mark.parametrize("link_buffer", [1 << 22, 40])
async def test_the_budget_returns_to_nothing(link_buffer: int) -> None:
    """Whatever is gathered, held, sent, kept or dropped; and with too little of it too."""
    source = random.Random(1)
    for _ in range(30):
        route = _moving_route()
        with opened(Rig(link_buffer=link_buffer)) as rig:
            ends = rig.link(route)
            _ask_both(rig, ends)
            answers = messages.produce_response(1, {0: NOT_LEADER})
            answers += messages.fetch_response(2, FENCED, bytes(300))
            for at in range(0, source.randrange(1, len(answers)), 11):
                ends.broker.send(answers[at : at + 11])
                rig.spin()
            if source.random() < 0.5:
                ends.close()
                rig.spin()
            _learn(route, leader=2, epoch=4)
            rig.hold_timer.review()


async def test_hints_that_do_not_come_are_reported_and_the_response_is_unchanged() -> None:
    route = hinting_route()
    route.broker.reachable = False
    answer = messages.produce_response(1, {0: NOT_LEADER})
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, answer)
        assert received(ends.client) == answer
    (missed,) = rig.events
    assert isinstance(missed, HintMissed)
    assert missed.reason == "no_fresher_view"


# Hints that are switched at run time.


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
async def test_what_is_held_goes_on_at_once_when_hints_are_switched_off(mode: Mode) -> None:
    route = _moving_route()
    produced = messages.produce_response(1, {0: NOT_LEADER})
    fetched = messages.fetch_response(2, FENCED)
    behind = messages.metadata_response(3, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(route)
        _ask_both(rig, ends)
        rig.send(ends.broker, produced + fetched + behind)
        assert received(ends.client) == b""

        rig.hold_timer.switch(route, mode)
        rig.spin()
        assert received(ends.client) == produced + fetched + behind
        # What hints would have done is still found out where that is wanted.
        assert rig.hold_timer.waiting.is_set() is (mode is Mode.OBSERVE)
        # The link goes on in the versions that were agreed.
        received(ends.broker)
        rig.send(ends.client, messages.produce_request(10, 4))
        assert received(ends.broker) == messages.produce_request(9, 4)
        rig.send(ends.broker, messages.produce_response(4, {0: NOT_LEADER}))
        assert received(ends.client) == messages.produce_response(4, {0: NOT_LEADER})
        assert not any(isinstance(event, HintGiven) for event in rig.events)

        # And gives hints again when that is wanted.
        rig.hold_timer.switch(route, Mode.ON)
        _learn(route, leader=2, epoch=4)
        rig.send(ends.client, messages.produce_request(10, _PRODUCED))
        rig.send(ends.broker, messages.produce_response(_PRODUCED, {0: NOT_LEADER}))
        assert _hint_of(received(ends.client)) == (2, 4, "two", 9092, "rack")


async def test_a_new_link_follows_the_switch_at_once() -> None:
    route = hinting_route()
    with opened(Rig()) as rig:
        for mode in (Mode.OFF, Mode.ON, Mode.OBSERVE):
            rig.hold_timer.switch(route, mode)
            ends = rig.link(route)
            rig.send(ends.client, messages.api_versions_request(1))
            rig.send(ends.broker, messages.api_versions_response(1, 3, LEGACY))
            offered = {**LEGACY, 0: 10, 1: 16} if mode is Mode.ON else LEGACY
            assert received(ends.client) == messages.api_versions_response(1, 3, offered)


async def test_other_routes_keep_what_they_hold() -> None:
    route, other = _moving_route(), _moving_route()
    other.name = "other"
    with opened(Rig()) as rig:
        ends = rig.link(other)
        rig.send(ends.client, messages.produce_request(10, _PRODUCED))
        rig.send(ends.broker, messages.produce_response(_PRODUCED, {0: NOT_LEADER}))
        rig.hold_timer.switch(route, Mode.OFF)
        assert received(ends.client) == b""
        _learn(other, leader=2, epoch=4)
        rig.hold_timer.review()
        assert _hint_of(received(ends.client)) == (2, 4, "two", 9092, "rack")


def test_responses_are_counted_by_the_version_asked() -> None:
    route = hinting_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.client, messages.produce_request(10, 2, acks=0))
        rig.send(ends.client, messages.metadata_request(12, 3))
        assert not route.traffic.responses
        rig.send(ends.broker, messages.produce_response(1, {0: 0}))
        rig.send(ends.broker, messages.metadata_response(3, 12, [], {}))
        assert route.traffic.responses == {(0, 10): 1, (3, 12): 1}
