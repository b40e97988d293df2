"""Bytes that go through links between real socket pairs, and responses that are held."""

import random
import socket
import struct
from collections.abc import Callable
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from leader_hints.core.events import (
    HintGiven,
)
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.harness.lines import lines_of
from tests.harness.waiting import until
from tests.net import messages
from tests.net.messages import FENCED, NOT_LEADER
from tests.net.pump.holding import FETCHED, LISTED, PRODUCED, ask_both, hint_of, learn, moving_route
from tests.net.rig import (
    LEGACY,
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
from tests.net.serving import until_true

_SMALL = 16_384
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


async def test_a_conversation_cut_in_two_at_every_byte_arrives_whole() -> None:
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


def test_what_is_there_of_a_large_response_goes_on_in_few_steps() -> None:
    """To ask the poller costs more than to look whether more has come."""
    size = 1 << 21
    with opened(Rig()) as rig:
        route = opaque_route()
        ends = [rig.link(route, tcp=True) for _ in range(2)]
        for each in ends:
            each.broker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * size)
            assert each.broker.send(bytes(size)) == size
        steps, came = 0, [0, 0]
        while min(came) < size:
            # Where the system takes its time, there is nothing to do in a step.
            steps += bool(rig.pump.step())
            came = [n + len(received(each.client)) for n, each in zip(came, ends, strict=True)]
            # Each has its turn, however much the other one has.
            assert min(came)
        assert steps <= 3


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


# Held responses.


async def test_a_held_response_goes_on_with_its_hint_and_all_behind_it_in_order() -> None:
    route = moving_route()
    behind = messages.metadata_response(3, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(route)
        ask_both(rig, ends)
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        rig.send(ends.broker, messages.fetch_response(2, FENCED) + behind[:7])
        ends.broker.send(behind[7:])
        rig.spin()
        assert received(ends.client) == b""
        assert rig.hold_timer.waiting.is_set()

        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        produced, fetched, rest = _split(received(ends.client))
        assert hint_of(produced) == (2, 4, "two", 9092, "rack")
        assert hint_of(fetched) == (2, 4, "two", 9092, "rack")
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
    route = moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        ask_both(rig, ends)
        produced = messages.produce_response(1, {0: NOT_LEADER})
        fetched = messages.fetch_response(2, FENCED)
        rig.send(ends.broker, produced + fetched)
        assert received(ends.client) == b""
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert (
            list(map(hint_of, _split(received(ends.client)))) == [(2, 4, "two", 9092, "rack")] * 2
        )


async def test_a_response_is_held_at_every_cut_of_its_bytes() -> None:
    stream = messages.fetch_response(FETCHED, FENCED, b"records") + messages.metadata_response(
        LISTED, 12, [], {}
    )
    with opened(Rig()) as rig:
        for cut in range(1, len(stream)):
            route = moving_route()
            ends = rig.link(route)
            rig.send(ends.client, messages.fetch_request(16, FETCHED, epoch=3))
            rig.send(ends.client, messages.metadata_request(12, LISTED))
            rig.send(ends.broker, stream[:cut])
            ends.broker.send(stream[cut:])
            rig.spin()
            assert received(ends.client) == b""
            learn(route, leader=2, epoch=4)
            rig.hold_timer.review()
            rig.spin()
            fetched, rest = _split(received(ends.client))
            assert hint_of(fetched)[:2] == (2, 4)
            assert rest == messages.metadata_response(LISTED, 12, [], {})
            ends.close()
            rig.spin()


async def test_nothing_is_read_from_a_broker_behind_a_held_response() -> None:
    route = moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, buffers=_SMALL)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.client, messages.metadata_request(12, 2))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        behind = messages.response(messages.METADATA, 12, 2, bytes(1 << 21))
        sent = rig.send_what_fits(ends.broker, behind)
        assert sent < _KEPT_AT_MOST

        learn(route, leader=2, epoch=4)
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
    route = moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        ends.broker.close()
        rig.spin()
        ends.client.send(messages.metadata_request(12, 2))
        rig.spin()
        assert not ended(ends.client)

        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert hint_of(until_end(rig, ends.client))[:2] == (2, 4)
        assert route.traffic.links_open == 0


async def test_a_client_that_has_no_more_to_say_gets_its_held_answer() -> None:
    route = moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route)
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, messages.produce_response(1, {0: NOT_LEADER}))
        ends.client.shutdown(socket.SHUT_WR)
        rig.spin()
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        rig.spin()
        assert hint_of(received(ends.client))[:2] == (2, 4)


async def test_a_client_that_vanishes_while_its_response_is_held_is_forgotten() -> None:
    route = moving_route()
    with opened(Rig()) as rig:
        ends = rig.link(route, tcp=True)
        rig.send(ends.client, messages.produce_request(10, 1))
        ends.broker.send(messages.produce_response(1, {0: NOT_LEADER}))

        def held() -> bool:
            rig.spin()
            return rig.hold_timer.waiting.is_set()

        until(held, "a response is held", 10)
        reset(ends.client)
        until_end(rig, ends.broker)

        assert rig.hold_queue.next_deadline() is None
        # Nobody is to be asked for it again and again.
        assert not rig.hold_timer.waiting.is_set()
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert rig.complaints == []


# Hints that are switched at run time.


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.OBSERVE])
async def test_what_is_held_goes_on_at_once_when_hints_are_switched_off(mode: Mode) -> None:
    route = moving_route()
    produced = messages.produce_response(1, {0: NOT_LEADER})
    fetched = messages.fetch_response(2, FENCED)
    behind = messages.metadata_response(3, 12, [], {})
    with opened(Rig()) as rig:
        ends = rig.link(route)
        ask_both(rig, ends)
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
        learn(route, leader=2, epoch=4)
        rig.send(ends.client, messages.produce_request(10, PRODUCED))
        rig.send(ends.broker, messages.produce_response(PRODUCED, {0: NOT_LEADER}))
        assert hint_of(received(ends.client)) == (2, 4, "two", 9092, "rack")


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
    route, other = moving_route(), moving_route()
    other.name = "other"
    with opened(Rig()) as rig:
        ends = rig.link(other)
        rig.send(ends.client, messages.produce_request(10, PRODUCED))
        rig.send(ends.broker, messages.produce_response(PRODUCED, {0: NOT_LEADER}))
        rig.hold_timer.switch(route, Mode.OFF)
        assert received(ends.client) == b""
        learn(other, leader=2, epoch=4)
        rig.hold_timer.review()
        assert hint_of(received(ends.client)) == (2, 4, "two", 9092, "rack")


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


# Much work has several turns.


def _pipelined(rig: Rig, route: Route, count: int) -> tuple[Ends, bytes]:
    """Make a link that awaits answers to so many Produce requests; return it and errors for all."""
    ends = rig.link(route)
    for number in range(count):
        rig.send(ends.client, messages.produce_request(10, number))
    errors = (messages.produce_response(number, {0: NOT_LEADER}) for number in range(count))
    return ends, b"".join(errors)


async def test_many_errors_in_one_receive_leave_others_their_turn(mock_clock: MockClock) -> None:
    """630 took 35 ms of one step, in which no other link was served."""
    # By a clock that stands: on a busy machine the move would be long ago when the last is judged.
    assert mock_clock.rate == 0
    route = moving_route()
    learn(route, leader=2, epoch=4)
    with opened(Rig()) as rig:
        ends, errors = _pipelined(rig, route, 300)
        ends.broker.send(errors)
        steps, answers = [], b""
        while answers.count(b"two") < 300:
            steps.append(lines_of(rig.pump.step))
            answers += received(ends.client)
            assert len(steps) < 1000
        assert max(steps) < 30_000 < sum(steps)


async def test_what_is_behind_the_held_errors_of_many_links_has_its_own_turns() -> None:
    """With four errors behind each, as Java has, 200 links' took 108 ms of one step."""
    route = moving_route()
    with opened(Rig()) as rig:
        links = [_pipelined(rig, route, 5) for _ in range(20)]
        for ends, errors in links:
            rig.send(ends.broker, errors)
        assert rig.hold_queue.held == 20
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        assert [received(ends.client).count(b"two") for ends, _ in links] == [1] * 20
        rig.spin()
        assert [received(ends.client).count(b"two") for ends, _ in links] == [4] * 20


def test_many_requests_for_versions_in_one_receive_leave_others_their_turn() -> None:
    """Nobody has authenticated the client: it and its broker may send them as fast as they can."""
    asked = b"".join(messages.api_versions_request(number) for number in range(90))
    answers, offered = (
        b"".join(messages.api_versions_response(number, 3, maxima) for number in range(90))
        for maxima in (LEGACY, {**LEGACY, 0: 10, 1: 16})
    )
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        for sender, said, hearer, heard in (
            (ends.client, asked, ends.broker, asked),
            (ends.broker, answers, ends.client, offered),
        ):
            sender.send(said)
            steps, came = [], b""
            while len(came) < len(heard):
                steps.append(lines_of(rig.pump.step))
                came += received(hearer)
                assert len(steps) < 1000
            assert came == heard
            assert max(steps) < 8000 < sum(steps)
        assert rig.complaints == []


async def test_what_is_left_when_a_hold_ends_wakes_the_pump() -> None:
    route, rig = moving_route(), Rig()
    ends, errors = _pipelined(rig, route, 100)
    answers = bytearray()

    def arrived() -> bool:
        answers.extend(received(ends.client))
        return answers.count(b"two") == 100

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        ends.broker.send(errors)
        await until_true(lambda: rig.hold_queue.held)
        learn(route, leader=2, epoch=4)
        rig.hold_timer.review()
        await until_true(arrived)
        nursery.cancel_scope.cancel()
    ends.close()
