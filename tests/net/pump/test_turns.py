"""For how long the pump serves sockets before other tasks get their turn."""

import math
import select
import struct
import time

import pytest
import trio

from leader_hints.core.link import recoding_turns
from leader_hints.net.pump import turns
from tests.core.brokers import route_before
from tests.core.samples import fetch_request
from tests.net.rig import (
    Rig,
    opaque_route,
    received,
    socket_pair,
)


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


async def test_tasks_that_end_after_the_pump_may_still_begin_to_wait() -> None:
    """At the end of the process a handshake may be between two receives when the pump ends."""
    rig = Rig()
    here, there = socket_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.pump.run)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    with rig.pump.wake_on_readable(here.fileno()):
        pass
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


@pytest.mark.parametrize("gone", [False, True])
def test_who_waits_until_requests_of_others_are_recoded_costs_no_turns(
    monkeypatch: pytest.MonkeyPatch, *, gone: bool
) -> None:
    """With 2,500 that waited, the next step of any came after 2,500 looks that led nowhere.

    ``gone``: the client that is served first has left.
    """
    monkeypatch.setattr(recoding_turns, "_AT_ONCE", 1)
    rig = Rig()
    clients = 20
    asked = fetch_request(12, 1, {("t", partition): 1 for partition in range(1000)})
    links = [rig.link(route_before("2.6")) for _ in range(clients)]
    for link in links:
        link.client.send(asked)
    rig.pump.step()
    if gone:
        links[0].client.close()
    served = []
    while ready := rig.pump.step():
        served.append(ready)
    # Were those that wait looked at, it would be 340 for each client.
    assert sum(served) < 60 * clients
    kinds = {received(link.broker)[4:8] for link in links[gone:]}
    assert kinds == {struct.pack(">hh", 1, 11)}
    rig.close()
