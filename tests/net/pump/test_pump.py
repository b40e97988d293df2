"""The pump's links all together, and its end."""

import gc
import random
import socket

import pytest
import trio

from leader_hints.core.events import (
    HintGiven,
    HintMissed,
)
from leader_hints.core.link.flow import Flow
from leader_hints.core.link.link_state import LinkState
from leader_hints.net.pump import pump
from tests.net import messages
from tests.net.messages import FENCED, NOT_LEADER
from tests.net.pump.holding import ask_both, learn, moving_route
from tests.net.rig import (
    Rig,
    descriptors_before,
    ended,
    hinting_route,
    open_descriptors,
    opened,
    received,
    reset,
)
from tests.net.serving import until_true


@pytest.mark.parametrize("first", ["client", "broker"])
async def test_links_that_have_gone_are_forgotten_without_the_garbage_collector(first: str) -> None:
    # It runs seldom and looks through all there is, so memory would rise between two of its runs.
    gc.collect()
    before = _links_in_memory()
    route = moving_route()
    learn(route, leader=2, epoch=4)
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
            rig.sweep(0)
            assert [type(event) for event in rig.events] == [HintGiven] * 20
            assert _links_in_memory() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("last_words", ["a hint", "what was kept back"])
async def test_links_whose_last_send_fails_are_forgotten_without_the_garbage_collector(
    last_words: str,
) -> None:
    # An error keeps the frames that it came through, and so the response that was to be sent.
    gc.collect()
    before = _links_in_memory()
    gc.disable()
    try:
        with opened(Rig()) as rig:
            for epoch in range(4, 24):
                route = moving_route()
                ends = rig.link(route, tcp=True)
                for asked in (1, 2):
                    rig.send(ends.client, messages.produce_request(10, asked))
                answer = messages.produce_response(1, {0: NOT_LEADER})
                if last_words == "a hint":
                    rig.send(ends.broker, answer)
                    assert rig.hold_queue.held == 1
                    reset(ends.client)
                    learn(route, leader=2, epoch=epoch)
                    rig.hold_timer.review()
                else:
                    rig.send(ends.broker, messages.produce_response(1, {0: 0}) + answer[:3])
                    ends.broker.shutdown(socket.SHUT_WR)
                    reset(ends.client)
                rig.spin()
                ends.close()
            rig.sweep(0)
            assert rig.complaints == []
            assert _links_in_memory() == before
    finally:
        gc.enable()


def _links_in_memory() -> int:
    parts = (LinkState, Flow)
    return sum(isinstance(known, parts) for known in gc.get_objects())


async def test_all_descriptors_are_closed_when_it_is_cancelled() -> None:
    gc.collect()  # Other tests' pumps may have left theirs.
    before = descriptors_before()
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
        route = moving_route()
        with opened(Rig(link_buffer=link_buffer)) as rig:
            ends = rig.link(route)
            ask_both(rig, ends)
            answers = messages.produce_response(1, {0: NOT_LEADER})
            answers += messages.fetch_response(2, FENCED, bytes(300))
            for at in range(0, source.randrange(1, len(answers)), 11):
                ends.broker.send(answers[at : at + 11])
                rig.spin()
            if source.random() < 0.5:
                ends.close()
                rig.spin()
            learn(route, leader=2, epoch=4)
            rig.hold_timer.review()


def test_memory_that_no_frame_needs_any_more_is_not_kept() -> None:
    with opened(Rig()) as rig:
        gathered = rig.budget.memory.take(100_000, 100_000)
        rig.sweep(0)
        assert rig.budget.memory.take(100_000, 100_000) is gathered
        rig.sweep(1)
        rig.sweep(2)
        assert rig.budget.memory.take(100_000, 100_000) is not gathered


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


def test_the_load_is_what_is_pending() -> None:
    with opened(Rig()) as rig:
        ends = rig.link(hinting_route())
        for number in range(3):
            rig.send(ends.client, messages.produce_request(10, number))
        assert _pending(rig) == [3]
        rig.send(ends.broker, messages.produce_response(0, {0: 0}))
        assert _pending(rig) == [2]


def test_the_load_of_many_links_is_counted_in_several_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """30,000, which is the default limit, took 13 ms of one step, at each request for metrics."""
    monkeypatch.setattr(pump, "_COUNTED_AT_ONCE", 2)
    with opened(Rig()) as rig:
        assert _pending(rig) == []
        links = [rig.link(hinting_route()) for _ in range(5)]
        for number, ends in enumerate(links):
            for request in range(number):
                rig.send(ends.client, messages.produce_request(10, request))
        assert _pending(rig) == [0 + 1, 2 + 3, 4]
        # Links may come and go meanwhile.
        counting = rig.pump.load().exchanges
        assert next(counting) == 1
        rig.link(hinting_route())
        assert [*counting] == [2 + 3, 4]


def _pending(rig: Rig) -> list[int]:
    load = rig.pump.load()
    assert load.queued_bytes == 0
    return [*load.exchanges]
