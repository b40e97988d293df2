"""No defect of one piece of work, and nothing that the system refuses, ends the others."""

import contextlib
import errno
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio

from leader_hints import app
from leader_hints.address import Address
from leader_hints.app import certificate_watch, observers, periodic
from leader_hints.check.route_watch import RouteWatch
from leader_hints.core.events import AcceptFailed, Event, TaskFailed
from leader_hints.net.clients.listening import Beginnings, accept, open_listeners
from leader_hints.net.journal.journal_writer import _in_thread as in_thread
from leader_hints.net.metadata.broker_answers import BrokerAnswers
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.pump.poller import EpollPoller
from leader_hints.net.pump.pump import Pump
from leader_hints.net.tls.route_security import Security
from leader_hints.observe.history import History
from leader_hints.settings.settings import Settings
from tests.harness.waiting import until
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker
from tests.net.rig import Rig
from tests.net.serving import ANY, Log, exchange, serving, until_true

_SECONDS = 10.0
_ASKED = messages.api_versions_request(7)


def _defect(*_: object) -> Any:
    raise KeyError("a defect")


class _Once:
    """In place of a method: fails the first time and does its work from then on.

    ``worked``: how often it did.
    """

    def __init__(self, work: Callable[..., Any], error: Exception | None = None) -> None:
        self._work = work
        self._error: Exception | None = error or KeyError("a defect")
        self.worked = 0

    def __get__(self, owner: object, kind: type) -> Callable[..., Any]:
        def method(*arguments: Any, **named: Any) -> Any:
            error, self._error = self._error, None
            if error is not None:
                raise error
            self.worked += 1
            return self._work(owner, *arguments, **named)

        return method


def _settings(upstream: Address, **values: Any) -> Settings:
    routes = [{"listen": str(ANY), "upstream": str(upstream), "name": "r"}]
    return Settings.model_validate({"routes": routes, "admin": "127.0.0.1:0", **values})


async def _broker(nursery: trio.Nursery) -> Address:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    broker = FakeBroker(1, [Broker(1, "localhost", 9092)], {"t": [(1, 5)]})
    nursery.start_soon(trio.serve_listeners, broker.serve, listeners)
    return Address(*listeners[0].socket.getsockname())


async def _is_served(address: Address) -> None:
    client = await trio.open_tcp_stream(address.host, address.port)
    assert len(await exchange(client, _ASKED, 4)) >= 4
    await client.aclose()


# What the system refuses.


@pytest.mark.parametrize(
    "number",
    [errno.EMFILE, errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EPROTO, errno.ENETDOWN],
    ids=errno.errorcode.get,
)
@pytest.mark.parametrize("where", ["accept", "watch"])
async def test_connections_wait_while_the_system_refuses(
    number: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC: fs.epoll.max_user_watches; EPERM: a firewall; the others: accept(2)."""
    error = OSError(number, os.strerror(number))
    at: Any = trio.SocketListener if where == "accept" else Pump
    name = "accept" if where == "accept" else "wake_on_readable"
    monkeypatch.setattr(at, name, _Once(getattr(at, name), error))
    events: list[Event] = []
    served = trio.Event()

    async def handler(stream: trio.SocketStream) -> None:
        served.set()

    (listener,), bound = await open_listeners(ANY)
    address = Address.parse(bound)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            accept, listener, handler, nursery, Rig().pump, events.append, Beginnings()
        )
        client = await trio.open_tcp_stream(address.host, address.port)
        with trio.fail_after(_SECONDS):
            await served.wait()
        await client.aclose()
        nursery.cancel_scope.cancel()
    assert events == [AcceptFailed(listen=bound, error=os.strerror(number).lower())]


async def test_a_listener_goes_on_after_a_defect_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pump, "wake_on_readable", _Once(Pump.wake_on_readable))
    events: list[Event] = []
    served = trio.Event()

    async def handler(stream: trio.SocketStream) -> None:
        served.set()
        _defect()

    (listener,), bound = await open_listeners(ANY)
    address = Address.parse(bound)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            accept, listener, handler, nursery, Rig().pump, events.append, Beginnings()
        )
        client = await trio.open_tcp_stream(address.host, address.port)
        with trio.fail_after(_SECONDS):
            await served.wait()
            # The connection ends, so that its client tries again; the others' nursery does not.
            with pytest.raises(trio.BrokenResourceError):
                await client.receive_some()
        await client.aclose()
        nursery.cancel_scope.cancel()
    assert [event.task for event in events if isinstance(event, TaskFailed)] == [
        "listener",
        "connection",
    ]


@pytest.mark.parametrize("which", [1, 2], ids=["client", "broker"])
async def test_a_link_for_which_epoll_has_no_room_ends_alone(
    log: Log, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    full = False
    watched = 0
    watch = EpollPoller.watch

    def refuse(poller: EpollPoller, descriptor: int, before: int, events: int) -> None:
        nonlocal watched
        watched += full and not before
        if full and not before and watched >= which:
            raise OSError(errno.ENOSPC, "No space left on device")
        watch(poller, descriptor, before, events)

    monkeypatch.setattr(EpollPoller, "watch", refuse)
    async with trio.open_nursery() as nursery:
        upstream = await _broker(nursery)
        async with serving(_settings(upstream, hints="off"), log) as (address,):
            await _is_served(address)
            full = True
            client = await trio.open_tcp_stream(address.host, address.port)
            with trio.fail_after(_SECONDS), contextlib.suppress(trio.BrokenResourceError):
                assert await client.receive_some() == b""
            await client.aclose()
            full = False
            (line,) = await until_true(lambda: log.events("accept_failed"))
            assert line["error"] == "no space left on device"
            await _is_served(address)
        nursery.cancel_scope.cancel()
    assert log.events("task_failed") == []


async def test_without_threads_links_to_a_host_by_name_are_refused_and_nothing_ends(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where RLIMIT_NPROC or a control group's pids.max is met."""

    async def refused(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    async with trio.open_nursery() as nursery:
        upstream = await _broker(nursery)
        by_name = Address("localhost", upstream.port)
        settings = _settings(by_name, subscription={"reconnect_min_ms": 10})
        with monkeypatch.context() as short:
            async with serving(settings, log) as (address,):
                await until_true(lambda: log.events("route_plan"))
                await _is_served(address)
                short.setattr(trio.to_thread, "run_sync", refused)
                short.setattr(trio._socket.trio.to_thread, "run_sync", refused)  # type: ignore[attr-defined]
                client = await trio.open_tcp_stream(address.host, address.port)
                with pytest.raises(trio.BrokenResourceError):
                    await client.receive_some()
                await client.aclose()
                (line,) = await until_true(lambda: log.events("upstream_unreachable"))
                assert line["error"] == "cannot connect: can't start new thread"
                os.kill(os.getpid(), signal.SIGHUP)
                (failed,) = await until_true(lambda: log.events("task_failed"))
                assert failed["task"] == "certificates"
                short.undo()
                await _is_served(address)
        nursery.cancel_scope.cancel()


async def test_look_ups_that_hang_keep_neither_journal_nor_certificates_from_a_thread() -> None:
    """Each client of a broker by name asks for one, and all of Trio's may hang."""
    limiter = trio.to_thread.current_default_thread_limiter()
    borrowers = [object() for _ in range(int(limiter.total_tokens))]
    for borrower in borrowers:
        await limiter.acquire_on_behalf_of(borrower)
    done: list[str] = []
    with trio.fail_after(_SECONDS):
        await in_thread(lambda: done.append("journal"))
        assert await Security([], 1.0).reload() == []
    assert done == ["journal"]


# Defects.


async def test_a_defect_in_what_is_learnt_of_a_broker_costs_one_connection_to_it(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokerAnswers, "learn", _Once(BrokerAnswers.learn))
    async with trio.open_nursery() as nursery:
        upstream = await _broker(nursery)
        settings = _settings(upstream, subscription={"reconnect_min_ms": 10})
        async with serving(settings, log) as (address,):
            (failed,) = await until_true(lambda: log.events("task_failed"))
            assert failed["task"] == "subscription"
            assert failed["level"] == "error"
            # Where it was, and no value.
            assert "_ask" in failed["traceback"]
            assert "a defect" not in failed["traceback"]
            assert failed["traceback"].endswith("KeyError")
            (lost,) = await until_true(lambda: log.events("subscription_lost"))
            assert lost["error"] == "a defect of leader-hints; see its log"
            await until_true(lambda: len(log.events("subscription_ready")) == 2)
            await _is_served(address)
        nursery.cancel_scope.cancel()


async def test_a_defect_of_who_only_watches_costs_no_link(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(History, "take", _defect)
    async with trio.open_nursery() as nursery:
        upstream = await _broker(nursery)
        async with serving(_settings(upstream), log) as (address,):
            await until_true(lambda: log.events("route_plan"))
            await _is_served(address)
            assert {line["task"] for line in log.events("task_failed")} == {"events"}
        nursery.cancel_scope.cancel()
    assert log.events("link_failed") == []


@pytest.mark.parametrize(
    ("of", "name", "task"),
    [
        (Pump, "sweep", "tick"),
        (HoldTimer, "review", "holds"),
        (Security, "reload", "certificates"),
        (RouteWatch, "_due", "routes"),
    ],
)
async def test_work_that_a_defect_ended_begins_again(
    log: Log, monkeypatch: pytest.MonkeyPatch, of: Any, name: str, task: str
) -> None:
    once = _Once(getattr(of, name))
    monkeypatch.setattr(of, name, once)
    monkeypatch.setattr(observers, "_AGAIN", 0.01)
    monkeypatch.setattr(periodic, "_TICK", 0.01)
    monkeypatch.setattr(certificate_watch, "LOOK_SECONDS", 0.01)
    async with trio.open_nursery() as nursery:
        upstream = await _broker(nursery)
        async with serving(_settings(upstream), log) as (address,):
            (failed,) = await until_true(lambda: log.events("task_failed"))
            assert failed["task"] == task
            await until_true(lambda: once.worked)
            await _is_served(address)
            assert len(log.events("task_failed")) == 1
        nursery.cancel_scope.cancel()


# The end, while the process still begins.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_that_still_waits_for_topic_ids(
    log: Log, number: signal.Signals
) -> None:
    def interrupt() -> None:
        until(lambda: log.events("admin_listening"), "it waits", _SECONDS)
        # What is asked for meanwhile is done.
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), number)

    # It takes connections and never answers.
    with socket.create_server(("127.0.0.1", 0)) as broker:
        thread = threading.Thread(target=interrupt)
        thread.start()
        settings = _settings(
            Address(*broker.getsockname()),
            topic_ids="synthesize",
            topic_ids_wait_ms=600_000,
            subscription={"answer_timeout_ms": 60_000},
        )
        assert app.run(settings) == 0
        thread.join()
    assert log.events("listening") == []
    assert [line["links"] for line in log.events("stopped")] == [0]
