"""Everything together over TCP: listening, joining, signals, a broker that is down."""

import contextlib
import gc
import json
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leader_hints import app
from leader_hints.address import Address
from leader_hints.apis.keys import ApiKey
from leader_hints.app import admin_view, fixed_routes, joining, periodic, process
from leader_hints.app.parts import Parts
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.errors import BrokerError, ListenError
from leader_hints.net.admin.admin import Reply, Request
from leader_hints.net.admin.admin_pages import AdminPages
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.brokers.own_connections import OwnConnections
from leader_hints.net.clients.preamble import TlsSession
from leader_hints.net.pump.turns import Turns
from leader_hints.observe.status import RouteStatus, route_statuses
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
from tests.core import hold_queues
from tests.harness.lines import lines_of, most_lines
from tests.harness.resolver import ResolverTo
from tests.harness.waiting import until
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker
from tests.net.rig import LEGACY, descriptors_before, open_descriptors
from tests.net.serving import ANY as _ANY
from tests.net.serving import Log as _Log
from tests.net.serving import Rounds
from tests.net.serving import exchange as _exchange
from tests.net.serving import serving as _serving
from tests.net.serving import until_true as _until

_SECONDS = 10.0
_NOT_LEADER = 6
#: Far more than are reported in one turn of the event loop.
_MANY_ERRORS = 5000
_URGENT = Turns.urgent


def _settings(*routes: tuple[Address, Address], **values: Any) -> Settings:
    return Settings(
        routes=tuple(
            RouteSettings(listen=listen, upstream=upstream, name=f"r{number}")
            for number, (listen, upstream) in enumerate(routes)
        ),
        **values,
    )


async def _connect(address: Address) -> trio.SocketStream:
    return await trio.open_tcp_stream(address.host, address.port)


async def _expect_reset(client: trio.SocketStream) -> None:
    """Wait for a reset: after an end franz-go gives up, since it takes it for TLS."""
    with trio.fail_after(_SECONDS), pytest.raises(trio.BrokenResourceError):
        await client.receive_some()


def _bound() -> tuple[socket.socket, Address]:
    """A socket that has its port and does not listen yet."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock, Address(*sock.getsockname())


def _start(nursery: trio.Nursery, sock: socket.socket) -> FakeBroker:
    """Have a broker at ``sock`` that leads what there is."""
    broker = FakeBroker(1, [Broker(1, "one", 9092)], {"t": [(1, 5)]})
    sock.listen()
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    nursery.start_soon(trio.serve_listeners, broker.serve, [listener])
    return broker


def _tcp_broker(nursery: trio.Nursery) -> tuple[FakeBroker, Address]:
    """A broker that listens on TCP, and its address."""
    sock, address = _bound()
    return _start(nursery, sock), address


async def test_a_client_is_joined_to_the_broker_with_raised_versions(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        settings = _settings((_ANY, upstream), admin=_ANY)
        async with _serving(settings, log) as (address,):
            (listening,) = log.events("listening")
            assert (listening["route"], listening["upstream"]) == ("r0", str(upstream))
            assert address.port != 0
            await _until(lambda: log.events("route_plan"))

            client = await _connect(address)
            answer = messages.api_versions_response(7, 3, {**broker.maxima, 0: 10, 1: 16})
            asked = messages.api_versions_request(7)
            assert await _exchange(client, asked, len(answer)) == answer
            await client.aclose()
        nursery.cancel_scope.cancel()


async def test_few_objects_are_looked_through_for_garbage_at_once(log: _Log) -> None:
    """What 10,000 held responses consist of was looked through in one step of 54 ms."""
    looked: list[int] = []

    def look(phase: str, of: dict[str, int]) -> None:
        if phase == "start" and of["generation"] < 2:
            younger = range(of["generation"] + 1)
            looked.append(sum(len(gc.get_objects(generation)) for generation in younger))

    async with _serving(_settings((_ANY, Address("127.0.0.1", 1)), hints="off"), log):
        gc.callbacks.append(look)
        try:
            assert [[] for _ in range(300_000)]
        finally:
            gc.callbacks.remove(look)
    assert 0 < max(looked) < 100_000


@pytest.mark.parametrize("hints", ["off", "observe"])
async def test_without_hints_no_byte_changes(log: _Log, hints: str) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        async with _serving(_settings((_ANY, upstream), hints=hints), log) as (address,):
            client = await _connect(address)
            answer = messages.api_versions_response(7, 3, broker.maxima)
            asked = messages.api_versions_request(7)
            assert await _exchange(client, asked, len(answer)) == answer
            await client.aclose()
        nursery.cancel_scope.cancel()
        if hints == "off":
            assert len(broker.asked) == 1  # A plain relay asks nothing of its own.


async def test_ipv6_is_listened_on(log: _Log) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback address")
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        settings = _settings((Address("::1", 0), upstream), hints="off")
        async with _serving(settings, log) as (address,):
            assert log.events("listening")[0]["listen"] == f"[::1]:{address.port}"
            client = await _connect(address)
            assert len(await _exchange(client, messages.api_versions_request(7), 4)) >= 4
            await client.aclose()
        nursery.cancel_scope.cancel()


async def test_admin_answers_over_tcp(log: _Log) -> None:
    sock, admin = _bound()
    sock.close()
    settings = _settings((_ANY, Address("127.0.0.1", 9)), admin=admin, hints="off")
    async with _serving(settings, log):
        stream = await _connect(admin)
        raw = await _exchange(stream, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 1 << 20)
        assert raw.startswith(b"HTTP/1.1 200")
        assert raw.endswith(b"\r\n\r\nalive\n")
        await stream.aclose()


async def test_a_broker_that_is_down_is_reported_once_and_its_clients_are_closed(log: _Log) -> None:
    sock, upstream = _bound()
    async with _serving(_settings((_ANY, upstream), hints="off"), log) as (address,):
        for _ in range(5):
            client = await _connect(address)
            await _expect_reset(client)
            await client.aclose()
        (told,) = log.events("upstream_unreachable")
        assert told["route"] == "r0"
        assert told["upstream"] == str(upstream)
        assert told["error"] == "cannot connect: connection refused"

        async with trio.open_nursery() as nursery:
            _start(nursery, sock)
            client = await _connect(address)
            assert len(await _exchange(client, messages.api_versions_request(1), 4)) >= 4
            nursery.cancel_scope.cancel()
        with trio.fail_after(_SECONDS):
            while await client.receive_some():
                pass
        await client.aclose()
        # It was reached in between, so this is news again.
        client = await _connect(address)
        await _expect_reset(client)
        await client.aclose()
        assert len(log.events("upstream_unreachable")) == 2


async def test_all_descriptors_are_closed_at_the_end(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        before = descriptors_before()
        async with _serving(_settings((_ANY, upstream), (_ANY, upstream)), log) as addresses:
            clients = [await _connect(address) for address in addresses * 3]
            for client in clients:
                await _exchange(client, messages.api_versions_request(1), 4)
        for client in clients:
            await client.aclose()
        await _until(lambda: not broker.streams)
        await _until(lambda: open_descriptors() <= before)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("where", ["route", "admin"])
def test_an_address_in_use_is_a_listen_error(where: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
        listen, admin = (address, None) if where == "route" else (_ANY, address)
        with pytest.raises(ListenError) as caught:
            app.run(_settings((listen, Address("broker", 9092)), admin=admin))
    assert str(caught.value) == f"cannot listen on {address}: address already in use"


def test_a_host_that_is_not_this_machines_is_a_listen_error() -> None:
    with pytest.raises(ListenError, match=r"^cannot listen on 192\.0\.2\.1:9: cannot assign"):
        app.run(_settings((Address("192.0.2.1", 9), Address("broker", 9092))))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(log: _Log, number: signal.Signals) -> None:
    """With a client connected, and a broker that is asked."""
    clients: list[socket.socket] = []

    def interrupt() -> None:
        line = until(lambda: log.events("listening"), "it listens", _SECONDS)[0]
        host, _, port = line["listen"].rpartition(":")
        clients.append(socket.create_connection((host, int(port))))
        os.kill(os.getpid(), number)

    with socket.create_server(("127.0.0.1", 0)) as broker:
        thread = threading.Thread(target=interrupt)
        thread.start()
        assert app.run(_settings((_ANY, Address(*broker.getsockname())))) == 0
        thread.join()
    for client in clients:
        client.close()


def _journalled(folder: Path) -> list[str]:
    """The kinds of all events in the one file of a journal."""
    (file,) = folder.iterdir()
    return [json.loads(line)["event"] for line in file.read_text().splitlines()]


async def test_what_came_of_all_errors_is_in_the_journal_at_the_end(
    log: _Log, tmp_path: Path
) -> None:
    """Few of them are reported in each turn, so the last ones are when no link is open any more."""
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        answer = messages.produce_response(7, dict.fromkeys(range(_MANY_ERRORS), _NOT_LEADER))
        broker.answers[messages.PRODUCE] = lambda correlation, version: answer
        journal = {"kind": "files", "path": str(tmp_path)}
        async with trio.open_nursery() as serving:
            serving.start_soon(app.serve, _settings((_ANY, upstream), journal=journal))
            (line,) = await _until(lambda: log.events("listening"))
            await _until(lambda: log.events("route_plan"))
            client = await _connect(Address.parse(line["listen"]))
            await _exchange(client, messages.produce_request(10, 7), len(answer))
            os.kill(os.getpid(), signal.SIGTERM)
        await client.aclose()
        nursery.cancel_scope.cancel()
    written = _journalled(tmp_path)
    assert written.count("error") == _MANY_ERRORS
    assert written[-1] == "stop"


async def test_a_signal_ends_a_process_that_waits_for_the_one_before_it(
    log: _Log, tmp_path: Path
) -> None:
    """Its end waited for a journal that nobody wrote yet."""
    hangs = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    hangs.bind(str(tmp_path / "takeover"))
    hangs.listen()
    (tmp_path / "journal").mkdir()
    settings = _settings(
        (_ANY, Address("127.0.0.1", 1)),
        takeover=str(tmp_path / "takeover"),
        journal={"kind": "files", "path": str(tmp_path / "journal")},
    )
    with hangs:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(_SECONDS):
                nursery.start_soon(app.serve, settings)
                # Its predecessor takes the connection, and says nothing.
                connection, _ = await trio.to_thread.run_sync(hangs.accept)
                os.kill(os.getpid(), signal.SIGTERM)
                await _until(lambda: log.events("stopped"))
        connection.close()
    assert _journalled(tmp_path / "journal") == ["start", "stop"]


@pytest.mark.parametrize("patience", [0, 600_000])
async def test_with_synthetic_ids_nobody_is_let_in_before_brokers_were_asked(
    patience: int, log: _Log
) -> None:
    async with trio.open_nursery() as nursery:
        broker, address = _tcp_broker(nursery)
        broker.gate = trio.Event()
        settings = _settings((_ANY, address), topic_ids="synthesize", topic_ids_wait_ms=patience)
        nursery.start_soon(app.serve, settings)
        await _until(lambda: broker.probes)
        if patience:
            assert not log.events("listening")
            broker.gate.set()
        await _until(lambda: log.events("listening"))
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("broker_is", ["slow", "silent", "down"])
async def test_nobody_is_let_in_before_versions_are_known_but_for_a_moment(
    broker_is: str, log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that a former process has offered versions may not ask again."""
    monkeypatch.setattr(fixed_routes, "_FIRST_ANSWERS", _SECONDS if broker_is == "slow" else 0.05)
    async with trio.open_nursery() as nursery:
        sock, upstream = _bound()
        if broker_is != "down":
            # It takes connections and does not answer yet.
            sock.listen()
        nursery.start_soon(app.serve, _settings((_ANY, upstream), admin=_ANY))
        await _until(lambda: log.events("admin_listening"))
        if broker_is == "slow":
            broker = _start(nursery, sock)
            answer = messages.produce_response(7, {0: 0})
            broker.answers[messages.PRODUCE] = lambda correlation, version: answer
        (line,) = await _until(lambda: log.events("listening"))
        assert bool(log.events("route_plan")) is (broker_is == "slow")
        if broker_is == "slow":
            client = await _connect(Address.parse(line["listen"]))
            await _exchange(client, messages.produce_request(10, 7), len(answer))
            await client.aclose()
            (produced,) = [asked for asked in broker.asked if asked.key == messages.PRODUCE]
            assert produced.version == broker.maxima[messages.PRODUCE]
        nursery.cancel_scope.cancel()
    sock.close()


@pytest.mark.parametrize("hints", ["observe", "off"])
async def test_without_hints_nobody_waits_for_synthetic_ids(hints: str, log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, address = _tcp_broker(nursery)
        broker.gate = trio.Event()
        settings = _settings(
            (_ANY, address), topic_ids="synthesize", topic_ids_wait_ms=600_000, hints=hints
        )
        async with _serving(settings, log):
            nursery.cancel_scope.cancel()


async def _ask(admin: Address, path: str, *, put: str | None = None) -> tuple[int, bytes]:
    """Status and body of what the admin server answers."""
    stream = await _connect(admin)
    method, body = ("GET", "") if put is None else ("PUT", put)
    head = f"{method} {path} HTTP/1.1\r\nHost: {admin}\r\nContent-Length: {len(body)}\r\n\r\n"
    raw = await _exchange(stream, (head + body).encode(), 1 << 20)
    await stream.aclose()
    status, _, rest = raw.partition(b"\r\n")
    return int(status.split()[1]), rest.partition(b"\r\n\r\n")[2]


def _admin(log: _Log) -> Address:
    (line,) = log.events("admin_listening")
    return Address.parse(line["listen"])


async def test_the_admin_servers_port_is_reported_where_the_system_chose_it(log: _Log) -> None:
    settings = _settings((_ANY, Address("127.0.0.1", 9)), admin=_ANY, hints="off")
    async with _serving(settings, log):
        assert _admin(log).port != 0
        assert await _ask(_admin(log), "/livez") == (200, b"alive\n")
        assert log.events("admin_exposed") == []


async def test_no_client_waits_for_long_turns_until_it_is_known_whether_it_is_the_process_itself(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at an address that swallows connections made each client wait for 300 ms meanwhile."""
    urgent = _urgent(monkeypatch)
    arrived = []

    async def arrive(own: OwnConnections, route: str, stream: trio.SocketStream) -> None:
        arrived.append(len(urgent))

    monkeypatch.setattr(OwnConnections, "arrived", arrive)
    async with _serving(_settings((_ANY, Address("127.0.0.1", 9)), hints="off"), log) as (address,):
        await _expect_reset(await _connect(address))
    assert arrived == [1]


async def test_clients_of_a_broker_that_takes_no_connection_make_no_turn_short(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come again and again, and each message of all links cost half as much CPU again."""
    urgent = _urgent(monkeypatch)
    refused, tried = True, []

    async def connect(
        connector: Connector, *_: object
    ) -> tuple[trio.SocketStream, TlsSession | None]:
        tried.append(len(urgent))
        if refused:
            raise BrokerError("no connection within 10 s")
        return await _connect(upstream), None

    monkeypatch.setattr(Connector, "open_for_link", connect)
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        async with _serving(_settings((_ANY, upstream), hints="off"), log) as (address,):
            for _ in range(3):
                await _expect_reset(await _connect(address))
            refused = False
            for _ in range(2):
                client = await _connect(address)
                size = len(messages.api_versions_response(7, 3, LEGACY))
                await _exchange(client, messages.api_versions_request(7), size)
                await client.aclose()
        nursery.cancel_scope.cancel()
    assert tried == [1, 0, 0, 0, 1]


async def test_a_look_at_a_broker_that_is_down_makes_no_turn_short(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Probes ask every few seconds, and each look may take four."""
    urgent = _urgent(monkeypatch)
    answered, asked = trio.Event(), trio.Event()

    async def connect(connector: Connector, *_: object) -> None:
        asked.set()
        await answered.wait()
        raise BrokerError("no connection within 2 s")

    monkeypatch.setattr(Connector, "connect", connect)
    settings = _settings((_ANY, Address("127.0.0.1", 9)), admin=_ANY, hints="off")
    async with _serving(settings, log), trio.open_nursery() as nursery:
        nursery.start_soon(_ask, _admin(log), "/readyz")
        with trio.fail_after(_SECONDS):
            await asked.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert urgent == []
        answered.set()


def _urgent(monkeypatch: pytest.MonkeyPatch) -> list[Turns]:
    """Return a list with an element for each task that has turns short now."""
    urgent: list[Turns] = []

    @contextlib.contextmanager
    def noted(turns: Turns) -> Iterator[None]:
        urgent.append(turns)
        try:
            with _URGENT(turns):
                yield
        finally:
            urgent.remove(turns)

    monkeypatch.setattr(Turns, "urgent", noted)
    return urgent


async def test_a_silent_client_of_the_admin_server_makes_no_turn_short(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short turns cost CPU with each message of all links, and such a client stays ten seconds."""
    urgent = _urgent(monkeypatch)
    answered = []

    async def livez(pages: AdminPages, request: Request) -> Reply:
        answered.append(len(urgent))
        return Reply(200, b"alive\n")

    monkeypatch.setattr(AdminPages, "_livez", livez)
    settings = _settings((_ANY, Address("127.0.0.1", 9)), admin=_ANY, hints="off")
    async with _serving(settings, log):
        silent, slow = await _connect(_admin(log)), await _connect(_admin(log))
        await slow.send_all(b"GET /livez HTTP/1.1\r\n")
        # They come in order: both others are served when this one is.
        assert (await _ask(_admin(log), "/livez"))[0] == 200
        assert answered == [1]
        assert urgent == []
        await slow.send_all(b"Host: localhost\r\n\r\n")
        with trio.fail_after(_SECONDS):
            assert (await slow.receive_some()).startswith(b"HTTP/1.1 200")
        assert answered == [1, 1]
        await silent.aclose()
        await slow.aclose()


async def test_an_admin_server_that_others_can_reach_is_a_warning(log: _Log) -> None:
    settings = _settings((_ANY, Address("127.0.0.1", 9)), admin=Address("0.0.0.0", 0), hints="off")
    async with _serving(settings, log):
        (line,) = log.events("admin_exposed")
        assert line["level"] == "warning"
        assert line["listen"].startswith("0.0.0.0:")


async def test_links_are_served_while_a_status_of_many_routes_is_made(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, made_in = Rounds(), []

    def noted(*of: Any) -> Iterator[RouteStatus]:
        for status in route_statuses(*of):
            made_in.append(rounds.now)
            yield status

    monkeypatch.setattr(admin_view, "route_statuses", noted)

    routes = [(_ANY, Address("127.0.0.1", 9))] * 5
    async with _serving(_settings(*routes, admin=_ANY, hints="off"), log):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rounds.count)
            assert (await _ask(_admin(log), "/status"))[0] == 200
            nursery.cancel_scope.cancel()
        assert len(made_in) == len(routes)
        # The counter may have its turn before or after a step in the same round.
        assert max(Counter(made_in).values()) <= 2


async def test_a_route_is_ready_when_its_broker_answers(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        gone, down = _bound()
        settings = _settings((_ANY, upstream), (_ANY, down), admin=_ANY)
        async with _serving(settings, log):
            status, body = await _ask(_admin(log), "/readyz")
            assert status == 503
            reason = f"broker {down}: cannot connect: connection refused"
            assert json.loads(body) == {"ready": False, "not_ready": {"r1": reason}}
            _start(nursery, gone)
            assert await _ask(_admin(log), "/readyz") == (
                200,
                b'{"ready": true, "not_ready": {}}\n',
            )
        nursery.cancel_scope.cancel()


async def test_a_route_is_not_ready_while_only_old_connections_go_on(log: _Log) -> None:
    """A certificate has expired, say: the subscription does not notice, and each client does."""
    async with trio.open_nursery() as nursery:
        broker = FakeBroker(1, [Broker(1, "one", 9092)], {"t": [(1, 5)]})
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        upstream = Address(*listener.socket.getsockname())
        taken = trio.CancelScope()

        async def take() -> None:
            with taken:
                await trio.serve_listeners(broker.serve, [listener], handler_nursery=nursery)

        nursery.start_soon(take)
        async with _serving(_settings((_ANY, upstream), admin=_ANY), log) as (address,):
            await _until(lambda: log.events("route_plan"))
            taken.cancel()
            await _until(lambda: listener.socket.fileno() == -1)
            await _expect_reset(await _connect(address))
            status, body = await _ask(_admin(log), "/readyz")
            reason = f"broker {upstream}: cannot connect: connection refused"
            assert json.loads(body) == {"ready": False, "not_ready": {"r0": reason}}
            assert status == 503
            assert not log.events("subscription_lost")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("hints", ["on", "off"])
async def test_a_broker_that_takes_no_new_connection_is_down_until_it_takes_one(
    log: _Log, hints: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metric stayed 1, and its alert said nothing. Nor may it stay 0 until a client comes."""
    monkeypatch.setattr(admin_view, "_LOOK", 0.01)
    before = None if hints == "off" else True
    async with trio.open_nursery() as nursery:
        broker = FakeBroker(1, [Broker(1, "one", 9092)], {"t": [(1, 5)]})
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        upstream = Address(*listener.socket.getsockname())
        taken = trio.CancelScope()

        async def take() -> None:
            with taken:
                await trio.serve_listeners(broker.serve, [listener], handler_nursery=nursery)

        nursery.start_soon(take)
        settings = _settings((_ANY, upstream), admin=_ANY, hints=hints)
        async with _serving(settings, log) as (address,):
            if before:
                await _until(lambda: log.events("subscription_ready"))
            assert await _upstream(_admin(log)) == (before, "")
            taken.cancel()
            await _until(lambda: listener.socket.fileno() == -1)
            await _expect_reset(await _connect(address))
            reason = "cannot connect: connection refused"
            assert await _upstream(_admin(log)) == (False, reason)
            assert await _upstream_up(_admin(log)) == ["0.0"]
            with trio.socket.socket() as again:
                again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                await again.bind((upstream.host, upstream.port))
                again.listen()
                nursery.start_soon(trio.serve_listeners, broker.serve, [trio.SocketListener(again)])
                with trio.fail_after(_SECONDS):
                    while await _upstream(_admin(log)) != (before, ""):
                        await trio.lowlevel.checkpoint()
                assert await _upstream_up(_admin(log)) == (["1.0"] if before else [])
                nursery.cancel_scope.cancel()


async def _upstream(admin: Address) -> tuple[bool | None, str]:
    """What the status says of the broker of the only route."""
    (route,) = json.loads((await _ask(admin, "/status"))[1])["routes"]
    return route["upstream"]["answers"], route["upstream"]["error"]


async def _upstream_up(admin: Address) -> list[str]:
    """The values of the metric."""
    _, page = await _ask(admin, "/metrics")
    lines = [line for line in page.decode().splitlines() if "_upstream_up{" in line]
    return [line.split()[1] for line in lines]


async def test_however_many_ask_whether_routes_are_ready_a_broker_has_one_connection(
    log: _Log,
) -> None:
    """With brokers that do not answer each request once kept a connection to each of them."""
    open_now = most = 0

    async def say_nothing(stream: trio.SocketStream) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        async with stream:
            while await stream.receive_some():
                pass
        open_now -= 1

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, say_nothing, [listener])
        upstream = Address(*listener.socket.getsockname())
        async with _serving(_settings((_ANY, upstream), admin=_ANY), log):
            statuses = []

            async def ask() -> None:
                statuses.append((await _ask(_admin(log), "/readyz"))[0])

            async with trio.open_nursery() as asking:
                for _ in range(30):
                    asking.start_soon(ask)
            assert statuses == [503] * 30
        # One more may be the subscription's.
        assert most <= 2
        nursery.cancel_scope.cancel()


async def test_requests_for_readiness_without_a_pause_have_brokers_asked_seldom(
    log: _Log,
) -> None:
    """With hints off each request for it had a connection of its own to each broker."""
    made = 0

    async def say_nothing(stream: trio.SocketStream) -> None:
        nonlocal made
        made += 1
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, say_nothing, [listener])
        upstream = Address(*listener.socket.getsockname())
        async with _serving(_settings((_ANY, upstream), admin=_ANY, hints="off"), log):
            begun_at = trio.current_time()
            for _ in range(6):
                assert (await _ask(_admin(log), "/readyz"))[0] == 200
            assert made <= 1 + 4 * (trio.current_time() - begun_at)
        nursery.cancel_scope.cancel()


async def test_the_kill_switch_is_followed_by_new_links(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        raised = {**broker.maxima, 0: 10, 1: 16}
        async with _serving(_settings((_ANY, upstream), admin=_ANY), log) as (address,):
            await _until(lambda: log.events("route_plan"))

            async def offered() -> bytes:
                client = await _connect(address)
                size = len(messages.api_versions_response(7, 3, raised))
                answer = await _exchange(client, messages.api_versions_request(7), size)
                await client.aclose()
                return answer

            assert await offered() == messages.api_versions_response(7, 3, raised)
            for mode, maxima in (("off", broker.maxima), ("on", raised), ("on", raised)):
                status, _ = await _ask(_admin(log), "/routes/r0/hints", put=mode)
                assert status == 200
                assert await offered() == messages.api_versions_response(7, 3, maxima)
            _, body = await _ask(_admin(log), "/status")
            assert json.loads(body)["routes"][0]["hints"] == "on"
        nursery.cancel_scope.cancel()
        switched = [(line["before"], line["hints"]) for line in log.events("hints_switched")]
        assert switched == [("on", "off"), ("off", "on")]


@pytest.mark.parametrize("is_known", [True, False])
async def test_clients_that_do_not_ask_for_versions_again_are_served_after_a_broker_restarts(
    log: _Log, is_known: bool
) -> None:
    """They keep to what they were offered, and may come back before the subscription does."""
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        answer = messages.produce_response(7, {0: 0})
        broker.answers[messages.PRODUCE] = lambda correlation, version: answer
        pause = 10 if is_known else 60_000
        asking = {"reconnect_min_ms": pause, "reconnect_max_ms": 60_000}
        async with _serving(_settings((_ANY, upstream), subscription=asking), log) as (address,):
            # Of a broker that has answered nothing since, the same plan is not reported again.
            await _until(lambda: log.events("subscription_ready"))
            await broker.drop()
            await _until(lambda: log.events("subscription_lost"))
            if is_known:
                await _until(lambda: len(log.events("route_plan")) == 2)
            client = await _connect(address)
            await _exchange(client, messages.produce_request(10, 7), len(answer))
            await client.aclose()
        nursery.cancel_scope.cancel()
    (produced,) = [asked for asked in broker.asked if asked.key == messages.PRODUCE]
    assert produced.version == broker.maxima[messages.PRODUCE]


async def test_a_route_that_began_without_hints_gets_them(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        broker, upstream = _tcp_broker(nursery)
        settings = _settings((_ANY, upstream), admin=_ANY, hints="off")
        async with _serving(settings, log) as (address,):
            assert broker.asked == []
            await _ask(_admin(log), "/routes/r0/hints", put="on")
            await _until(lambda: log.events("route_plan"))
            raised = messages.api_versions_response(7, 3, {**broker.maxima, 0: 10, 1: 16})
            client = await _connect(address)
            asked = messages.api_versions_request(7)
            assert await _exchange(client, asked, len(raised)) == raised
            await client.aclose()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("routes", [1, 2, 3])
async def test_a_route_that_leads_to_itself_ends_after_one_round(log: _Log, routes: int) -> None:
    # Every name is this machine's, which no configuration shows.
    trio.socket.set_custom_hostname_resolver(ResolverTo(["127.0.0.1"]))
    held = [_bound() for _ in range(routes)]
    listens = [address for _, address in held]
    for sock, _ in held:
        sock.close()
    upstreams = [Address("broker", address.port) for address in (*listens[1:], listens[0])]
    pairs = [*zip(listens, upstreams, strict=True)]
    async with _serving(_settings(*pairs, admin=_ANY), log):
        for _ in range(20):
            client = await _connect(listens[0])
            with trio.fail_after(_SECONDS), contextlib.suppress(trio.BrokenResourceError):
                assert await client.receive_some() == b""
            await client.aclose()
        _, body = await _ask(_admin(log), "/status")
        # One for each client, and some for the proxy's own questions; not one after the other.
        assert sum(route["links"] for route in json.loads(body)["routes"]) < 100
        told = log.events("route_loops")
        names = [f"r{number}" for number in range(routes)]
        assert {line["route"] for line in told} <= {*names}
        assert {(line["route"], line["leads_to"]) for line in told} <= {
            *zip(names, (*names[1:], names[0]), strict=True)
        }
        assert told


async def test_a_route_that_relays_tls_unread_is_not_switched(log: _Log) -> None:
    async with trio.open_nursery() as nursery:
        listener, upstream = _bound()
        listener.listen()
        route = {"client_tls": {"mode": "pass"}, "listen": _ANY, "upstream": upstream, "name": "r0"}
        settings = Settings(routes=(RouteSettings.model_validate(route),), admin=_ANY)
        async with _serving(settings, log):
            for mode in ("on", "observe"):
                status, body = await _ask(_admin(log), "/routes/r0/hints", put=mode)
                assert status == 409
                assert "client_tls.mode is pass" in json.loads(body)["error"]
            # What it does already can be asked of it.
            status, _ = await _ask(_admin(log), "/routes/r0/hints", put="off")
            assert status == 200
            status, body = await _ask(_admin(log), "/readyz")
            assert (status, json.loads(body)) == (200, {"ready": True, "not_ready": {}})
            assert log.events("hints_switched") == log.events("subscription_lost") == []
        listener.close()
        nursery.cancel_scope.cancel()


def _switching(count: int, **values: Any) -> tuple[Parts, admin_view.AdminView]:
    """Return the parts of a process with so many routes, and what switches them."""
    listen = [Address("127.0.0.1", 20_000 + number) for number in range(count)]
    upstream = Address("127.0.0.1", 9092)
    settings = _settings(*((at, upstream) for at in listen), hints="on", **values)
    parts = Parts(settings, fixed_routes.FixedRoutes(settings.routes))
    return parts, admin_view.AdminView(parts)


def _hold_an_error_of_each(parts: Parts) -> list[Held]:
    """Have an error response of each route held; return those that go on."""
    gone_on: list[Held] = []
    parts.hold_timer.settle = lambda decided: gone_on.extend(held for held, _ in decided)
    for number, of in enumerate(parts.table.routes):
        of.broker = hold_queues.route().broker
        hold_queues.learn(of, {0: (1, 5)})
        held = hold_queues.failed(LinkState(of, number), {0: 5}, ApiKey.FETCH)
        assert parts.hold_timer.submit(held) is None
    return gone_on


async def test_to_switch_all_routes_costs_by_their_number(log: _Log) -> None:
    """Settings that are read again may: with 1,000 routes it took 64 ms of one step."""
    lines = []
    for count in (50, 200):
        _, view = _switching(count)
        lines.append(lines_of(lambda view=view: [*view.switching_all(Mode.OFF)]))  # type: ignore[misc]
        assert {*view.modes().values()} == {Mode.OFF}
    assert lines[1] < 5 * lines[0]


async def test_all_routes_are_switched_in_steps(log: _Log, mock_clock: MockClock) -> None:
    """Where each of 300 routes had a response that went on it took 37 ms of one step."""
    parts, view = _switching(300)
    gone_on = _hold_an_error_of_each(parts)
    assert most_lines(view.switching_all(Mode.OFF)) < 10_000
    assert {*view.modes().values()} == {Mode.OFF}
    assert len(gone_on) == 300


@pytest.mark.parametrize(
    ("switched", "settings"),
    # An operator who had a route on, and said so once more, had it off a moment later.
    [(Mode.OFF, Mode.OBSERVE), (Mode.ON, Mode.OFF)],
)
async def test_what_is_switched_while_all_routes_are_stays_so(
    switched: Mode, settings: Mode, log: _Log
) -> None:
    _, view = _switching(4)
    steps = view.switching_all(settings)
    next(steps)
    assert view.switch("r2", switched) is None
    assert [*steps] == [None] * 3
    assert [*view.modes().values()] == [settings, settings, switched, settings]


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_a_former_process_tells_counts_where_the_switch_is_kept(
    log: _Log, tmp_path: Path, *, keeps: bool
) -> None:
    values = {"switch_file": str(tmp_path / "switch.json")} if keeps else {}
    _, view = _switching(3, **values)
    # The last route is none of this process's, and the mode before it one of a newer version.
    await view.restore_again({"r0": "off", "r1": "loud", "gone": "off"})
    assert [*view.modes().values()] == [Mode.OFF if keeps else Mode.ON, Mode.ON, Mode.ON]


async def test_nothing_is_switched_any_more_once_another_process_has_taken_over(log: _Log) -> None:
    _, view = _switching(2)
    await view.close()
    refused = "another process has taken over; ask again"
    assert view.switch("r1", Mode.OFF) == view.switch("r0", Mode.ON) == refused
    assert {*view.modes().values()} == {Mode.ON}


async def test_of_settings_that_are_read_together_the_last_ones_count(log: _Log) -> None:
    _, view = _switching(4)
    first = view.switching_all(Mode.OFF)
    assert [next(first) for _ in range(2)] == [None] * 2
    last = view.switching_all(Mode.ON)
    next(last)
    assert [*first] == []
    assert [*last] == [None] * 3
    assert {*view.modes().values()} == {Mode.ON}


async def test_a_route_that_comes_later_does_what_the_settings_say_by_then(log: _Log) -> None:
    """`local` with hints off since SIGHUP: a broker that joined was given hints."""
    parts, view = _switching(1)
    assert [*view.switching_all(Mode.OFF)] == [None]
    joined = parts.settings.routes[0].model_copy(update={"name": "joined"})
    assert parts.table.add(joined).mode is Mode.OFF


def _succeeding(folder: Path, read: Callable[[], object]) -> process._Process:
    """A process of two routes that takes over; its settings say "observe" by now."""
    upstream = Address("127.0.0.1", 9092)
    routes = ((Address("127.0.0.1", 20_000 + number), upstream) for number in range(2))
    settings = _settings(*routes, switch_file=str(folder / "switch.json"))

    def again() -> Settings:
        read()
        return settings.model_copy(update={"hints": "observe"})

    return process._Process(settings, fixed_routes.FixedRoutes(settings.routes), "", again)


def _modes(succeeding: process._Process) -> list[Mode]:
    return [*succeeding._admin.modes().values()]


async def test_sighup_during_a_takeover_undoes_no_switch_of_the_process_before(
    log: _Log, tmp_path: Path
) -> None:
    """Two readings at a time: the first counted for nothing, and the second as a change."""
    gate = threading.Event()
    succeeding = _succeeding(tmp_path, gate.wait)
    async with trio.open_nursery() as nursery, trio.open_nursery() as catching_up:
        catching_up.start_soon(succeeding._catch_up, nursery, {"r0": "off"})
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(succeeding.read_settings_again)
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
    assert _modes(succeeding) == [Mode.OFF, Mode.OBSERVE]
    assert [one["keys"] for one in log.events("settings_reloaded")] == [["hints"], []]


async def test_settings_that_are_read_slowly_in_a_takeover_count_later(
    log: _Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_TO_READ_AGAIN", 0.0)
    gate = threading.Event()
    succeeding = _succeeding(tmp_path, gate.wait)
    async with trio.open_nursery() as nursery:
        await succeeding._catch_up(nursery, None)
        assert _modes(succeeding) == [Mode.ON, Mode.ON]
        gate.set()
    assert _modes(succeeding) == [Mode.OBSERVE, Mode.OBSERVE]


async def test_a_minute_is_summed_up_and_a_quiet_one_is_not(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periodic, "_SUMMARY", 0.05)
    async with trio.open_nursery() as nursery:
        _, upstream = _tcp_broker(nursery)
        async with _serving(_settings((_ANY, upstream), hints="off"), log) as (address,):
            client = await _connect(address)
            assert await _exchange(client, messages.api_versions_request(1), 4)
            (line,) = await _until(lambda: log.events("summary"))
            await client.aclose()
            assert line["links"] == 1
        nursery.cancel_scope.cancel()


async def test_the_system_takes_much_for_a_client_that_reads_slowly() -> None:
    """Trio has it take 16 KB: the pump was woken ten times for each megabyte."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream = await trio.open_tcp_stream(*listener.getsockname())
        client, _ = listener.accept()
        taken = 0
        with client, joining._detached(stream) as ours, contextlib.suppress(BlockingIOError):
            while taken < 1 << 24:
                taken += ours.send(bytes(65_536))
    assert 1 << 20 <= taken < 1 << 24
