"""Whole worker processes, below a process that a test is."""

import contextlib
import math
import os
import signal
from typing import Any

import pytest
import trio

from leader_hints.address import Address
from leader_hints.app.workers import front
from leader_hints.net.workers import worker_pool
from leader_hints.settings.settings import Settings
from tests.app.test_process import _connect, _settings, _tcp_broker
from tests.net import messages
from tests.net.serving import ANY, Log, exchange, serving, until_true

_LINKS = 6
#: Each worker imports the whole program, which takes a while on a loaded machine.
_SECONDS = 60.0


async def _ask(client: trio.SocketStream) -> bytes:
    return await exchange(client, messages.api_versions_request(7), 1)


async def _ended_first(clients: list[trio.SocketStream]) -> tuple[trio.SocketStream, bool]:
    """Return which of some clients that say nothing ends first, and whether it is reset."""
    ended: list[tuple[trio.SocketStream, bool]] = []
    async with trio.open_nursery() as nursery:

        async def wait(client: trio.SocketStream) -> None:
            try:
                assert not await client.receive_some()
                ended.append((client, False))
            except trio.BrokenResourceError:
                ended.append((client, True))
            nursery.cancel_scope.cancel()

        for client in clients:
            nursery.start_soon(wait, client)
    return ended[0]


def _settings_with_workers(upstream: Address, **values: Any) -> Settings:
    return _settings((ANY, upstream), workers=2, **values)


async def test_clients_are_served_by_both_workers_with_raised_versions(log: Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        async with serving(_settings_with_workers(upstream), log, _SECONDS) as (address,):
            began = log.events("worker_began")
            assert sorted(line["worker"] for line in began) == [1, 2]
            await until_true(lambda: log.events("route_plan"))
            answer = messages.api_versions_response(7, 3, {**broker.maxima, 0: 10, 1: 16})
            clients = [await _connect(address) for _ in range(_LINKS)]
            for client in clients:
                asked = messages.api_versions_request(7)
                assert await exchange(client, asked, len(answer)) == answer
            for client in clients:
                await client.aclose()
        nursery.cancel_scope.cancel()


async def test_a_worker_that_ends_is_started_again_and_its_clients_notice(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine must not have it passed over before it is stopped.
    monkeypatch.setattr(front, "_SILENT", _SECONDS)
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        async with serving(_settings_with_workers(upstream), log, _SECONDS) as (address,):
            clients = [await _connect(address) for _ in range(_LINKS)]
            for client in clients:
                await _ask(client)
            process = log.events("worker_began")[0]["process"]
            # What is handed over from now on it never gets; the next one comes to the other worker.
            os.kill(process, signal.SIGSTOP)
            silent = [await _connect(address) for _ in range(2)]
            os.kill(process, signal.SIGKILL)
            (ended,) = await until_true(lambda: log.events("worker_ended"))
            assert (ended["links"], ended["reason"]) == (_LINKS // 2 + 1, "signal 9")
            lost, is_reset = await _ended_first(silent)
            # franz-go gives up at an end before the first answer.
            assert is_reset
            silent.remove(lost)
            assert await _ask(silent[0])
            gone = 0
            for client in clients:
                try:
                    gone += not await _ask(client)
                except trio.BrokenResourceError:
                    gone += 1
            assert gone == _LINKS // 2
            await until_true(lambda: len(log.events("worker_began")) == 3, _SECONDS)
            assert log.events("worker_began")[-1]["worker"] == ended["worker"]
            client = await _connect(address)
            assert await _ask(client)
        nursery.cancel_scope.cancel()


def _reasons(log: Log) -> list[str]:
    return [line["reason"] for line in log.events("worker_ended")]


@pytest.mark.parametrize(
    ("kind", "looks", "reason"),
    [("_NOT_BEGUN", 1, "it did not begin"), ("_SILENT", 500, "it did not read")],
)
async def test_a_worker_that_hangs_is_started_again(
    log: Log, monkeypatch: pytest.MonkeyPatch, kind: str, looks: int, reason: str
) -> None:
    """Its clients waited for as long as they liked, and so did a process that began as a TLS file
    hung, though the next one could read it.
    """
    monkeypatch.setattr(worker_pool, "_LOOK", 0.01)
    monkeypatch.setattr(worker_pool, "_SILENT", math.inf)
    monkeypatch.setattr(worker_pool, "_NOT_BEGUN", math.inf)
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        async with serving(_settings_with_workers(upstream), log, _SECONDS) as (address,):
            client = await _connect(address)
            assert await _ask(client)
            process = log.events("worker_began")[0]["process"]
            with monkeypatch.context() as patched:
                patched.setattr(worker_pool, kind, looks)
                # One that is killed has another one begin.
                os.kill(process, signal.SIGSTOP if kind == "_SILENT" else signal.SIGKILL)
                await until_true(lambda: reason in _reasons(log), _SECONDS)
            await until_true(lambda: len(log.events("worker_began")) > 2, _SECONDS)
            client = await _connect(address)
            assert await _ask(client)
        nursery.cancel_scope.cancel()


async def test_a_broker_that_refuses_is_reported_once_for_all(log: Log) -> None:
    with trio.socket.socket() as closed:
        await closed.bind(("127.0.0.1", 0))
        upstream = closed.getsockname()
        settings = _settings_with_workers(Address(*upstream[:2]), hints="off")
        async with serving(settings, log, _SECONDS) as (address,):
            for _ in range(_LINKS):
                client = await _connect(address)
                with contextlib.suppress(trio.BrokenResourceError):
                    assert await client.receive_some() == b""
            assert len(log.events("upstream_unreachable")) == 1
            assert "refused" in log.events("upstream_unreachable")[0]["error"]
