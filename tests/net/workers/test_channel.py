import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from leader_hints.core.workers.messages import (
    BrokerMissed,
    BrokerReached,
    ClientCame,
    LinkEnded,
    Message,
    MetadataPassed,
)
from leader_hints.net.workers import channel as channel_module
from leader_hints.net.workers.channel import Channel
from tests.net.rig import descriptors_before, open_descriptors

_MOST = 1 << 24
_SECONDS = 10.0


class _Taken:
    """What has come out of a channel."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.sockets: list[socket.socket | None] = []
        self._came = trio.Event()

    def take(self, message: Message, sock: socket.socket | None) -> None:
        self.messages.append(message)
        if isinstance(message, ClientCame | BrokerReached):
            self.sockets.append(sock)
        self._came.set()

    async def wait_for(self, count: int) -> None:
        with trio.fail_after(_SECONDS):
            while len(self.messages) < count:
                self._came = trio.Event()
                await self._came.wait()

    def close(self) -> None:
        for sock in self.sockets:
            if sock is not None:
                sock.close()


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    near, far = socket.socketpair()
    channels = Channel(near, _MOST), Channel(far, _MOST)
    yield channels
    for channel in channels:
        channel.close()


@asynccontextmanager
async def _running(near: Channel, far: Channel) -> AsyncIterator[_Taken]:
    taken = _Taken()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.run, _Taken().take)
        nursery.start_soon(far.run, taken.take)
        yield taken
        nursery.cancel_scope.cancel()
    taken.close()


async def test_messages_come_in_order_however_large_they_are(ends: tuple[Channel, Channel]) -> None:
    sent: list[Message] = [
        MetadataPassed("r", 9, bytes([number % 256]) * (number * 37 % 70_000))
        for number in range(300)
    ]
    async with _running(*ends) as taken:
        for message in sent:
            ends[0].send(message)
        await taken.wait_for(len(sent))
    assert taken.messages == sent


async def test_others_have_their_turn_while_messages_take_long(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(channel_module, "monotonic", lambda: now)
    taken, most = 0, 0.0

    def take(message: Message, sock: socket.socket | None) -> None:
        nonlocal now, taken
        now += 0.001
        taken += 1

    async def others() -> None:
        nonlocal most
        while taken < 100:
            before = now
            await trio.lowlevel.checkpoint()
            most = max(most, now - before)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            ends[0].send(LinkEnded(number))
        nursery.start_soon(ends[1].run, take)
        with trio.fail_after(_SECONDS):
            await others()
        nursery.cancel_scope.cancel()
    # One slice before its turn, and one behind it.
    assert most <= 0.01


async def test_each_socket_comes_with_its_message(ends: tuple[Channel, Channel]) -> None:
    pairs = [socket.socketpair() for _ in range(40)]
    async with _running(*ends) as taken:
        for number, (theirs, _) in enumerate(pairs):
            # Some of them wait, others go at once.
            ends[0].send(MetadataPassed("r", 9, bytes(20_000)))
            ends[0].send(ClientCame(number, "r"), theirs)
        await taken.wait_for(2 * len(pairs))
        for number, (sock, (_, ours)) in enumerate(zip(taken.sockets, pairs, strict=True)):
            assert sock is not None
            sock.send(bytes([number]))
            assert ours.recv(1) == bytes([number])
            ours.close()


class _Short:
    """A socket that the system refuses something, a few times."""

    def __init__(self, sock: socket.socket, number: int, times: int) -> None:
        self._sock = sock
        self._number = number
        self.times = times

    def sendmsg(self, *arguments: Any) -> int:
        if self.times:
            self.times -= 1
            raise OSError(self._number, "short")
        return self._sock.sendmsg(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


@pytest.mark.parametrize("number", [errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM])
async def test_what_the_system_is_short_of_for_a_moment_ends_nothing(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """With 64 descriptors, 65 sockets that workers had not received yet ended a worker."""
    short: Any = _Short(ends[0]._sock, number, 3)
    monkeypatch.setattr(ends[0], "_sock", short)
    theirs, ours = socket.socketpair()
    async with _running(*ends) as taken:
        ends[0].send(ClientCame(1, "r"), theirs)
        ends[0].send(LinkEnded(2))
        await taken.wait_for(2)
    assert [*map(type, taken.messages)] == [ClientCame, LinkEnded]
    assert taken.sockets[0] is not None
    assert not short.times
    ours.close()


async def test_a_socket_that_was_sent_is_open_at_the_other_end_alone(
    ends: tuple[Channel, Channel],
) -> None:
    theirs, ours = socket.socketpair()
    async with _running(*ends) as taken:
        ends[0].send(ClientCame(1, "r"), theirs)
        await taken.wait_for(1)
        (sock,) = taken.sockets
        assert sock is not None
        sock.close()
        assert ours.recv(1) == b""
    ours.close()


async def test_a_process_that_does_not_read_holds_nobody_up() -> None:
    before = descriptors_before()
    near, far = socket.socketpair()
    channel, other = Channel(near, 1 << 20), socket.socketpair()
    channel.send(ClientCame(1, "r"), other[0])
    for _ in range(100):
        channel.send(MetadataPassed("r", 9, bytes(50_000)))
    assert channel.over
    assert channel.hangs
    assert channel.queued == 0
    late, _ = pair = socket.socketpair()
    channel.send(ClientCame(2, "r"), late)
    assert late.fileno() < 0
    for sock in (far, other[1], pair[1]):
        sock.close()
    channel.close()
    assert open_descriptors() == before


async def test_the_end_of_one_process_ends_the_channel_of_the_other(
    ends: tuple[Channel, Channel],
) -> None:
    taken = _Taken()
    ends[0].send(LinkEnded(1))
    ends[0].end()
    with trio.fail_after(_SECONDS):
        await ends[1].run(taken.take)
    assert taken.messages == [LinkEnded(1)]
    assert ends[1].over
    assert not ends[1].hangs
    # Nobody reads that; it is no error.
    ends[1].send(BrokerMissed(1, "late"))


async def test_a_message_says_so_where_no_descriptor_is_left(ends: tuple[Channel, Channel]) -> None:
    resource = pytest.importorskip("resource")
    theirs, ours = socket.socketpair()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with _running(*ends) as taken:
        await trio.testing.wait_all_tasks_blocked()
        ends[0].send(ClientCame(1, "r"), theirs)
        highest = os.dup(0)
        os.close(highest)
        with contextlib.ExitStack() as stack:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            await taken.wait_for(1)
        assert taken.sockets == [None]
        theirs, still = socket.socketpair()
        ends[0].send(ClientCame(2, "r"), theirs)
        await taken.wait_for(2)
        assert taken.sockets[1] is not None
        still.close()
    ours.close()
