"""Both pollers against real sockets: they must tell the same."""

import socket
import time
from collections.abc import Iterator

import pytest
import trio

from leader_hints.net.pump.poller import (
    READ,
    WRITE,
    EpollPoller,
    Poller,
    SelectorPoller,
    make_poller,
)
from tests.net.rig import Rig, opaque_route, opened, received, socket_pair


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made: Poller = request.param()
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket_pair()
    with near, far:
        yield near, far


def test_what_is_watched_is_reported_and_nothing_else(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    here = near.fileno()
    poller.watch(here, 0, READ)
    assert poller.poll(0) == []
    far.send(b"x")
    assert poller.poll(0) == [(here, READ)]
    poller.watch(here, READ, WRITE)
    assert poller.poll(0) == [(here, WRITE)]
    poller.watch(here, WRITE, READ | WRITE)
    assert poller.poll(0) == [(here, READ | WRITE)]
    poller.watch(here, READ | WRITE, 0)
    assert poller.poll(0) == []


def test_an_end_is_told_to_the_reading_side(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    poller.watch(near.fileno(), 0, READ)
    far.close()
    ((descriptor, events),) = poller.poll(0)
    assert descriptor == near.fileno()
    assert events & READ


def test_it_waits_no_longer_than_it_may(poller: Poller) -> None:
    begun = time.monotonic()
    assert poller.poll(0.02) == []
    assert time.monotonic() - begun >= 0.02


async def test_its_descriptor_is_readable_when_a_socket_is_ready(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    near, far = ends
    poller.watch(near.fileno(), 0, READ)
    with trio.move_on_after(0) as waiting:
        await trio.lowlevel.wait_readable(poller.fileno())
    assert waiting.cancelled_caught
    far.send(b"x")
    with trio.fail_after(10):
        await trio.lowlevel.wait_readable(poller.fileno())


def test_a_pump_relays_with_either(poller: Poller) -> None:
    with opened(Rig(poller=poller)) as rig:
        ends = rig.link(opaque_route(), buffers=4096)
        rig.send(ends.client, b"up" * 5000)
        rig.send(ends.broker, b"down")
        assert received(ends.client) == b"down"
        data = b""
        while len(data) < 10_000:
            data += received(ends.broker)
            rig.spin()
        assert data == b"up" * 5000


def test_linux_has_epoll() -> None:
    made = make_poller()
    assert isinstance(made, EpollPoller)
    made.close()
