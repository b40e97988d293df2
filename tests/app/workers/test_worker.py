"""One worker, in a thread of its own, and what it says and hears."""

import errno
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import trio

from leader_hints.address import Address
from leader_hints.app.workers import worker
from leader_hints.core.workers.messages import (
    Begin,
    BrokerReached,
    BrokerWanted,
    ClientCame,
    LinkBegan,
    LoadReported,
    Message,
    ReportAsked,
    WorkerReady,
)
from leader_hints.errors import ConfigurationError
from leader_hints.net.clients.reset import RESETS
from leader_hints.net.pump import turns
from leader_hints.net.pump.pump import Pump
from leader_hints.net.workers import worker_pool
from leader_hints.net.workers.channel import Channel
from leader_hints.net.workers.worker_pool import FILES_REFUSED
from tests.app.test_process import _settings
from tests.net import messages
from tests.net.rig import socket_pair
from tests.net.serving import ANY

_SECONDS = 10.0


class _Parent:
    """The other end of a worker's channel."""

    def __init__(self, near: socket.socket) -> None:
        self.channel = Channel(near, 1 << 20)
        self._said: list[Message] = []
        self._came = trio.Event()

    def take(self, message: Message, _: socket.socket | None) -> None:
        self._said.append(message)
        self._came.set()

    async def hears(self, message: Message | type[Message]) -> None:
        """Wait until the worker says something."""

        def is_said(one: Message) -> bool:
            return isinstance(one, message) if isinstance(message, type) else one == message

        await self._hears(is_said)

    async def hears_report(self, number: int) -> None:
        """Wait until the worker has answered a question for its counts."""
        await self._hears(lambda one: isinstance(one, LoadReported) and one.number == number)

    async def _hears(self, is_said: Callable[[Message], bool]) -> None:
        with trio.fail_after(_SECONDS):
            while not any(map(is_said, self._said)):
                self._came = trio.Event()
                await self._came.wait()

    def give(self, message: Message) -> socket.socket:
        """Send a message with a socket beside it; return the other end of that."""
        ours, theirs = socket_pair(tcp=True)
        ours.settimeout(_SECONDS)
        if isinstance(message, ClientCame):
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        self.channel.send(message, theirs)
        return ours


class _Worker:
    """A worker of one route that runs in a thread; ``parent``: what it speaks with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("configure_logs", "tune_garbage"):
            monkeypatch.setattr(worker, name, lambda *_: None)
        self._settings = _settings((ANY, Address("127.0.0.1", 9)), workers=2, stuck_ms=0)
        self.route = self._settings.routes[0].name
        near, self._far = socket.socketpair()
        self.parent = _Parent(near)
        self._sockets: list[socket.socket] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[_Parent]:
        parent = self.parent
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, lambda: trio.run(worker.serve, self._far))
            nursery.start_soon(parent.channel.run, parent.take)
            parent.channel.send(Begin(1, 2, self._settings.model_dump_json()))
            await parent.hears(WorkerReady)
            yield parent
            parent.channel.end()
        parent.channel.close()
        for sock in self._sockets:
            sock.close()

    async def gets_client(self, link: int) -> socket.socket:
        """Have a client come, and be waited for until its broker is to be connected to."""
        self._sockets.append(client := self.parent.give(ClientCame(link, self.route)))
        await self.parent.hears(BrokerWanted(link, self.route))
        return client

    async def gets_broker(self, link: int) -> socket.socket:
        """Have it joined to a broker."""
        self._sockets.append(broker := self.parent.give(BrokerReached(link)))
        await self.parent.hears(LinkBegan(link))
        return broker


def test_a_worker_that_begins_while_a_tls_file_is_broken_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """That went to the log at each try, as of a defect. It is an operator's file."""

    async def serve(_: socket.socket) -> None:
        async with trio.open_nursery():
            raise ConfigurationError("route r: client_tls: certificate /c.pem: no such PEM in it")

    monkeypatch.setattr(worker, "serve", serve)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    near, far = socket.socketpair()
    with near, pytest.raises(SystemExit) as ended:
        worker.run(far.detach())
    assert ended.value.code == FILES_REFUSED
    assert worker_pool._reason(FILES_REFUSED) == "its TLS files cannot be used"
    assert capfd.readouterr().err == ""


async def test_a_turn_of_the_pump_ends_when_a_message_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients waited for up to 15 ms whenever there was any traffic."""
    for name in ("_TURN", "_MOMENT"):
        monkeypatch.setattr(turns, name, 2 * _SECONDS)
    one = _Worker(monkeypatch)
    async with one.running():
        client = await one.gets_client(2)
        broker = await one.gets_broker(2)
        client.sendall(messages.api_versions_request(7))
        # The pump waits for the next bytes now.
        await trio.to_thread.run_sync(broker.recv, 1)
        await one.gets_client(4)


async def test_messages_come_where_they_cannot_end_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(Pump, "wake_on_readable", no_room)
    one = _Worker(monkeypatch)
    async with one.running():
        await one.gets_client(2)


async def test_a_client_that_was_taken_over_is_not_reset_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = _Worker(monkeypatch)
    async with one.running():
        client = await one.gets_client(2)
        broker = await one.gets_broker(2)
        client.sendall(messages.api_versions_request(7))
        await trio.to_thread.run_sync(broker.recv, 1000)
        answer = messages.api_versions_response(7, 3, {0: 9, 1: 16})
        broker.sendall(answer)
        broker.close()
        got = b""
        while some := await trio.to_thread.run_sync(client.recv, 1000):
            got += some
        assert got == answer


async def test_what_was_counted_is_reported_in_slices_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []

    class Slices:
        async def take(self, steps: Iterator[None]) -> None:
            await trio.lowlevel.checkpoint()
            taken.append(sum(1 for _ in steps))

    monkeypatch.setattr(worker, "TimeSlices", Slices)
    one = _Worker(monkeypatch)
    async with one.running() as parent:
        await one.gets_client(2)
        await one.gets_broker(2)
        parent.channel.send(ReportAsked(7))
        parent.channel.send(ReportAsked(8))
        await parent.hears_report(8)
    # A step for each route, and for some links.
    assert 2 in taken
