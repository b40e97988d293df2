"""The listeners of a virtual cluster as brokers come, move and go."""

import contextlib
import errno
import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme

from leader_hints import app
from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import Event
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.errors import BrokerError, ListenError
from leader_hints.faults.fault import Action, Fault
from leader_hints.faults.injector import FaultInjector
from leader_hints.local.discovery import Discovered
from leader_hints.local.host import Found, Seek
from leader_hints.local.virtual_cluster import VirtualCluster
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
from leader_hints.settings.subscription import SubscriptionSettings
from leader_hints.settings.tls import BrokerTlsSettings
from tests.harness.lines import lines_of
from tests.harness.ports import free_ports, free_range
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker, metadata_request
from tests.net.serving import ANY, Log, exchange, until_true

_SECONDS = 5.0
#: Ports that a virtual cluster takes here.
_SPAN = 9
#: Metadata 9 for all topics, as correlation 1 of a client with an empty id.
_METADATA = bytes.fromhex("0000001000030009000000010000000000000000")


class _Real:
    """Real listeners on ``host`` whose brokers say what ``brokers`` has; each may be stopped.

    ``tls``: what they speak, if any. ``cluster``: the id of their cluster. ``leaders``: of topic t;
    without them each says that it is one itself.
    """

    def __init__(self, nursery: trio.Nursery, cluster: str = "k") -> None:
        self._nursery = nursery
        self.cluster = cluster
        self.leaders: list[tuple[int, int]] = []
        self.host = "127.0.0.1"
        self.tls: ssl.SSLContext | None = None
        self.brokers: list[Broker] = []
        self._scopes: dict[int, trio.CancelScope] = {}
        self._fakes: list[FakeBroker] = []

    def start(self, node: int, port: int = 0) -> None:
        """Start a broker, or start it again, at another address unless ``port`` is given."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.create_server((self.host, port), family=family)
        self.brokers[:] = [known for known in self.brokers if known.node != node]
        self.brokers.append(Broker(node, self.host, sock.getsockname()[1]))
        broker = FakeBroker(node, self.brokers, {"t": self.leaders or [(node, 5)]})
        broker.cluster = self.cluster
        self._fakes.append(broker)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        scope = self._scopes[node] = trio.CancelScope()

        async def talk(stream: trio.SocketStream) -> None:
            if self.tls is None:
                await broker.serve(stream)
            else:
                await broker.serve(
                    trio.SSLStream(stream, self.tls, server_side=True, https_compatible=True)
                )

        async def serve() -> None:
            with scope:
                await trio.serve_listeners(talk, [listener])

        self._nursery.start_soon(serve)

    def stop(self, node: int) -> None:
        """End a broker and its connections."""
        self._scopes.pop(node).cancel()

    def forget(self, node: int) -> None:
        """Have the others say that it is gone."""
        self.brokers[:] = [known for known in self.brokers if known.node != node]

    def gate(self) -> None:
        """Have none of those that run answer about topics, until :meth:`open_gate`."""
        for broker in self._fakes:
            broker.gate = trio.Event()

    def open_gate(self) -> None:
        """Have them answer."""
        for broker in self._fakes:
            broker.gate.set()

    @property
    def addresses(self) -> dict[int, Address]:
        """Where they are."""
        return {known.node: Address(known.host, known.port) for known in self.brokers}


@pytest.fixture
def real(nursery: trio.Nursery) -> _Real:
    """Brokers of a real cluster, none of which runs yet; they end with the test."""
    return _Real(nursery)


class _Host:
    """A process without any tasks, whose brokers are in these ``states``."""

    def __init__(self, states: Mapping[int, BrokerState]) -> None:
        self._states = states
        self.made = 0

    def add(self, settings: RouteSettings, rewriting: AddressRewriting) -> Route:
        node = int(settings.name.removeprefix("broker-"))
        self.made += 1
        return Route(settings.name, Mode.ON, broker=self._states.get(node, BrokerState()))

    def listens(self, route: Route, listen: str | None) -> None:
        """Do nothing, nor for what is reported."""

    def emit(self, event: Event) -> None:
        """Do nothing."""


def _alone(states: Mapping[int, BrokerState], monkeypatch: pytest.MonkeyPatch) -> VirtualCluster:
    """A virtual cluster of brokers of which this is known, that opens no listener."""

    def refuse(address: Address) -> trio.SocketListener:
        raise ListenError("no listener here")

    monkeypatch.setattr("leader_hints.local.virtual_cluster._listener", refuse)
    settings = LocalSettings(listen=Address("127.0.0.1", 1000), bootstrap=(Address("b", 1),))
    host: Any = _Host(states)
    cluster = VirtualCluster(Found(settings, {}, cluster="k"), host)
    cluster.prepare({node: Address("b", node) for node in states})
    nursery: Any = object()
    monkeypatch.setattr(cluster, "_nursery", nursery)
    return cluster


def test_a_review_costs_no_look_at_each_broker_by_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each news of one of 300 brokers took 32 ms of one step."""
    lines = []
    for count in (20, 60):
        endpoints = {node: Endpoint("b", node, None) for node in range(1, count + 1)}
        view = LeaderView("k")
        states = {
            node: BrokerState(endpoints=endpoints, reachable=True, view=view) for node in endpoints
        }
        lines.append(lines_of(_alone(states, monkeypatch).review))
    few, many = lines
    assert many < 4 * few


class _Looked(dict[int, Endpoint]):
    """Endpoints; ``looks``: how often all of them were walked through."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        self.looks += 1
        return super().__iter__()

    def items(self) -> Any:
        """Count, too."""
        self.looks += 1
        return super().items()


def test_a_review_walks_once_through_a_list_that_brokers_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of 1,000 lists of 1,000 brokers was looked through, in one step of 13 ms."""
    endpoints = _Looked({node: Endpoint("b", node, None) for node in range(1, 21)})
    view = LeaderView("k")
    states = {n: BrokerState(endpoints=endpoints, reachable=True, view=view) for n in range(1, 21)}
    cluster = _alone(states, monkeypatch)
    endpoints.looks = 0
    cluster.review()
    assert 0 < endpoints.looks < 4


def test_many_brokers_that_join_at_once_are_taken_in_short_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To make routes and listeners for a thousand took 0.12 s in one step."""
    endpoints = {node: Endpoint("b", node, None) for node in range(1, 101)}
    states = {1: BrokerState(endpoints=endpoints, reachable=True, view=LeaderView("k"))}
    cluster = _alone(states, monkeypatch)
    host: Any = cluster._host
    cluster.review()
    assert host.made < 30
    most = 0
    while cluster._due.is_set():
        before = host.made
        cluster._due = trio.Event()
        cluster._go_on()
        most = max(most, host.made - before)
    assert (host.made, most) == (100, 10)


async def _wait(log: Log, name: str, count: int) -> list[dict[str, Any]]:
    await until_true(lambda: len(log.events(name)) >= count)
    return log.events(name)


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


@asynccontextmanager
async def _local(real: _Real, log: Log, **values: Any) -> AsyncIterator[int]:
    """A virtual cluster before the real brokers; its base port."""
    base = free_range(_SPAN)
    host = values.pop("host", "127.0.0.1")
    renew, stage = values.pop("renew", None), values.pop("stage", None)
    seek: Seek | None = values.pop("seek", None)
    more, cluster = values.pop("settings", {}), values.pop("cluster", "")
    at = values.pop("found", real.addresses)
    plans = values.pop("plans", len(real.brokers))
    poll = values.pop("poll_interval_ms", 100)
    listen = Address(host, base)
    if "ports_from_base" in values:
        values["ports"] = {n: base + at for n, at in values.pop("ports_from_base").items()}
    local = LocalSettings(bootstrap=tuple(at.values()), listen=listen, **values)
    settings = Settings(
        routes=tuple(
            RouteSettings(listen=Address(host, 0), upstream=address, name=f"r{node}")
            for node, address in at.items()
        ),
        subscription=SubscriptionSettings(
            poll_interval_ms=poll, reconnect_min_ms=50, reconnect_max_ms=100
        ),
        **more,
    )
    async with trio.open_nursery() as nursery:
        found = Found(local, at, renew, stage, cluster=cluster, seek=seek)
        nursery.start_soon(app.serve, settings, found)
        await _wait(log, "listening", len(at) + 1)
        await _wait(log, "route_plan", plans)
        await _wait(log, "subscription_ready", plans)
        yield base
        nursery.cancel_scope.cancel()


async def _ask(port: int, host: str = "127.0.0.1", request: bytes = _METADATA) -> bytes:
    """Ask for Metadata; return the answer."""
    with trio.fail_after(_SECONDS):
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(request)
            data = b""
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                chunk = await stream.receive_some()
                if not chunk:
                    raise ConnectionError
                data += bytes(chunk)
            return data


def _address(host: str, port: int) -> bytes:
    return bytes([len(host) + 1]) + host.encode() + port.to_bytes(4, "big")


async def test_each_broker_has_a_port_that_follows_from_its_id(real: _Real, log: Log) -> None:
    for node in (1, 3):
        real.start(node)
    async with _local(real, log, advertise="localhost") as base:
        for port in (base, base + 2, base + 4):
            answer = await _ask(port)
            assert _address("localhost", base + 2) in answer
            assert _address("localhost", base + 4) in answer
            assert b"127.0.0.1" not in answer


async def test_a_broker_that_joins_can_be_reached_when_a_client_first_learns_of_it(
    real: _Real, log: Log
) -> None:
    real.start(1)
    async with _local(real, log) as base:
        real.start(2)
        answer = await _ask(base)
        assert _address("127.0.0.1", base + 3) in answer
        assert _address("127.0.0.1", base + 3) in await _ask(base + 3)


async def test_a_broker_that_moves_keeps_its_port(real: _Real, log: Log) -> None:
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        real.stop(2)
        real.start(2)
        await _ask(base + 2)
        await _wait(log, "broker_moved", 1)
        assert _address("127.0.0.1", base + 3) in await _ask(base + 3)


async def test_brokers_that_move_one_after_the_other_are_found_though_no_client_asks(
    real: _Real, log: Log
) -> None:
    """A rolling restart at other addresses: no broker could be reached any more, for good."""
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        for number, node in enumerate((2, 1), 1):
            real.stop(node)
            real.start(node)
            await _wait(log, "broker_moved", number)
            # The next one moves when this one is asked again.
            await _wait(log, "subscription_ready", 2 + number)
        for port in (base, base + 2, base + 3):
            assert _address("127.0.0.1", base + 3) in await _ask(port)


async def test_brokers_that_swap_their_addresses_are_found_though_no_client_asks(
    real: _Real, log: Log
) -> None:
    real.leaders = [(1, 5), (2, 5)]
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        before = real.addresses
        for node in before:
            real.stop(node)
        await _wait(log, "subscription_lost", 2)
        real.start(1, before[2].port)
        real.start(2, before[1].port)
        await _wait(log, "broker_moved", 2)
        moved = {line["route"]: line["upstream"] for line in log.events("broker_moved")}
        assert moved == {"broker-1": str(before[2]), "broker-2": str(before[1])}
        await _ask(base + 2)


async def _give_way(
    real: _Real, log: Log, other: _Real, node: int, *, of: int = 3, listed: bool = False
) -> None:
    """Have broker ``of`` of three stop, and another cluster's ``node`` at its address. ``listed``:
    its own cluster still has it; else it leaves."""
    port = real.addresses[of].port
    real.stop(of)
    if not listed:
        real.forget(of)
    await _wait(log, "subscription_lost" if listed else "broker_left", 1)
    other.start(node, port)


async def test_a_broker_of_another_cluster_at_an_address_that_was_left_is_none_of_these(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    """Clients were led to it: by bootstrap, and by a listener whose broker had not moved."""
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log) as base:
        await _give_way(real, log, _Real(nursery, "another"), 7)
        await _wait(log, "subscription_ready", 4)
        await trio.sleep(0.5)
        assert log.events("broker_of_another_cluster") == []
        for _ in range(4):
            assert b"another" not in await _ask(base)
        assert "broker-7" not in [line["route"] for line in log.events("listening")]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_client_of_another_clusters_broker_leads_no_other_client_there(
    real: _Real, log: Log, nursery: trio.Nursery, waits: bool
) -> None:
    """All listeners led to that cluster from then on: its brokers have the same ids. ``waits``:
    until the proxy itself has found who is there."""
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log) as base:
        await _wait(log, "subscription_ready", 3)
        other = _Real(nursery, "another")
        for node in (1, 2):
            other.start(node)
        await _give_way(real, log, other, 3, listed=True)
        if waits:
            await _wait(log, "subscription_ready", 4)
            with pytest.raises((ConnectionError, trio.BrokenResourceError)):
                await _ask(base + 4)
        else:
            with contextlib.suppress(ConnectionError, trio.BrokenResourceError):
                await _ask(base + 4)
        await _wait(log, "subscription_ready", 4)
        for at in (base, base, base, base + 2, base + 3):
            assert b"another" not in await _ask(at)
        assert log.events("broker_moved") == []


async def test_a_broker_is_followed_though_another_clusters_has_its_id_and_former_address(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log) as base:
        await _wait(log, "subscription_ready", 3)
        await _give_way(real, log, _Real(nursery, "another"), 1, of=1, listed=True)
        await _wait(log, "subscription_ready", 4)
        (line,) = await _wait(log, "broker_of_another_cluster", 1)
        assert (line["route"], line["cluster"], line["found"]) == ("broker-1", "k", "another")
        real.start(1)
        (moved,) = await _wait(log, "broker_moved", 1)
        assert moved["upstream"] == str(real.addresses[1])
        await _wait(log, "subscription_ready", 5)
        assert b"another" not in await _ask(base + 2)


async def test_a_cluster_that_restarts_beside_another_at_a_former_address_stays_itself(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    """Only the other one could be reached meanwhile, and it has brokers of the same ids."""
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log) as base:
        before = real.addresses
        await _give_way(real, log, _Real(nursery, "another"), 1)
        await _wait(log, "subscription_ready", 4)
        for node in (1, 2):
            real.stop(node)
        await _wait(log, "subscription_lost", 3)
        await trio.sleep(0.5)
        for node in (1, 2):
            real.start(node, before[node].port)
        await _wait(log, "subscription_ready", 6)
        for at in (base, base + 2, base + 3):
            assert b"another" not in await _ask(at)
        assert log.events("broker_moved") == []


async def test_the_first_broker_that_answers_does_not_decide_which_cluster_it_is(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    """It had a dead broker's address, and all listeners led to its cluster, ready, for good."""
    for node in (1, 2, 3):
        real.start(node)
    at_3 = real.addresses[3].port
    real.stop(3)
    await trio.testing.wait_all_tasks_blocked()
    other = _Real(nursery, "another")
    other.start(1, at_3)
    real.gate()
    async with _local(real, log, cluster="k", plans=1) as base:
        await _wait(log, "subscription_ready", 1)
        real.open_gate()
        await _wait(log, "subscription_ready", 3)
        for at in (base, base, base + 2, base + 3):
            assert b"another" not in await _ask(at)
        assert log.events("broker_moved") == []


async def test_a_route_to_another_clusters_broker_is_not_ready(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    """Its clients are reset, and it was ready, with a broker that answers."""
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log, settings={"admin": ANY}):
        await _wait(log, "subscription_ready", 3)
        await _give_way(real, log, _Real(nursery, "another"), 7, listed=True)
        await _wait(log, "broker_of_another_cluster", 1)
        ready, reasons = await _admin(log, "/readyz")
        why = f"another cluster's broker is at {real.addresses[3]}"
        assert (ready, reasons["not_ready"]) == (False, {"broker-3": why})
        at_3 = (await _routes(log))["broker-3"]["upstream"]
        assert (at_3["answers"], at_3["error"]) == (False, why)
        # It comes back elsewhere.
        real.start(3)
        await _wait(log, "broker_moved", 1)
        await _wait(log, "subscription_ready", 5)
        assert (await _admin(log, "/readyz"))[0]


@pytest.mark.parametrize("change", ["leaves", "joins"])
async def test_what_brokers_list_before_it_listens_is_taken_when_it_does(
    real: _Real, log: Log, change: str
) -> None:
    """It waits for the brokers that give synthetic ids, and brokers may come and go meanwhile."""
    real.leaders = [(1, 5), (2, 5)]
    for node in (1, 2, 3):
        real.start(node)
    found = real.addresses
    if change == "leaves":
        real.stop(3)
        real.forget(3)
    else:
        real.start(4)
    more = {"admin": ANY, "topic_ids": "synthesize"}
    async with _local(real, log, settings=more, found=found, plans=2) as base:
        if change == "joins":
            await _wait(log, "listening", 5)
            await _ask(base + 5)
        else:
            await _wait(log, "broker_left", 1)
            assert (await _routes(log))["broker-3"]["upstream"]["error"] == "has left the cluster"
            real.start(3)
            await _wait(log, "broker_moved", 1)
            await _ask(base + 4)
            assert (await _routes(log))["broker-3"]["listen"] == f"127.0.0.1:{base + 4}"
        assert (await _admin(log, "/readyz"))[0]


async def test_a_brokers_own_port_is_left_to_it(real: _Real, log: Log) -> None:
    """While it was down its listener took the port: the proxy then connected to itself without end,
    and the broker could not start."""
    real.start(1)
    async with _local(real, log) as base:
        real.start(2, base + 3)
        (line,) = await _wait(log, "broker_without_port", 1)
        assert line["reason"] == (
            f"broker-2 is at 127.0.0.1:{base + 3}, so nothing else may be; give --port 2=PORT"
        )
        await _wait(log, "subscription_ready", 2)
        real.stop(2)
        await _wait(log, "subscription_lost", 1)
        # It is tried again each second.
        await trio.sleep(1.5)
        assert len(log.events("listening")) == 2
        real.start(2, base + 3)
        await _wait(log, "subscription_ready", 3)


async def test_a_broker_at_the_bootstrap_listener_gets_none(real: _Real, log: Log) -> None:
    real.start(1)
    async with _local(real, log) as base:
        real.brokers.append(Broker(2, "localhost", base))
        await _ask(base)
        (line,) = await _wait(log, "broker_without_port", 1)
        assert line["reason"] == f"it is at localhost:{base}, which is --listen; give another one"
        await _ask(base)


async def test_a_connection_of_the_proxy_to_itself_is_turned_away(real: _Real, log: Log) -> None:
    """By a name of which it is not known before that it leads here."""
    real.start(1)
    async with _local(real, log) as base:
        real.brokers.append(Broker(2, "127.1", base + 2))
        await _ask(base + 2)
        await _wait(log, "listening", 3)
        # A client of broker 2, and the proxy's own connection that asks it.
        assert isinstance(await _ended(base + 3), ConnectionResetError)
        loops = {(line["route"], line["leads_to"]) for line in log.events("route_loops")}
        assert loops == {("broker-2", "broker-1")}


async def test_brokers_that_all_come_back_elsewhere_are_found_where_clients_bootstrap(
    real: _Real, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leader_hints.local.virtual_cluster._SEEK", 0.05)
    found: list[Discovered] = []

    async def seek() -> Discovered:
        if not found:
            raise BrokerError("no cluster")
        return found[-1]

    for node in (1, 2):
        real.start(node)
    async with _local(real, log, cluster="k", seek=seek) as base:
        await _wait(log, "subscription_ready", 2)
        for node in (1, 2):
            real.stop(node)
        await _wait(log, "subscription_lost", 2)
        for node in (1, 2):
            real.start(node)
        found.append(Discovered("another", real.addresses))
        await trio.sleep(0.2)
        assert log.events("broker_moved") == []
        found.append(Discovered("k", real.addresses))
        await _wait(log, "broker_moved", 2)
        await _wait(log, "subscription_ready", 4)
        for at in (base, base + 2, base + 3):
            await _ask(at)


async def test_a_stale_answer_has_leaders_of_the_cluster_alone(
    real: _Real, log: Log, nursery: trio.Nursery
) -> None:
    """At the address of a broker that had left another cluster's was: its leader was sent."""
    real.leaders = [(1, 5), (2, 5)]
    for node in (1, 2, 3):
        real.start(node)
    stage = FaultInjector()
    async with _local(real, log, stage=stage):
        await _wait(log, "subscription_ready", 3)
        other = _Real(nursery, "another")
        other.leaders = [(7, 99), (7, 99)]
        await _give_way(real, log, other, 7)
        await _wait(log, "subscription_ready", 4)
        await trio.sleep(0.3)
        assert stage._leaders() == {("t", 0): (1, 5), ("t", 1): (2, 5)}


async def test_a_cluster_that_is_recreated_is_taken(real: _Real, log: Log) -> None:
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        before = real.addresses
        for node in (1, 2):
            real.stop(node)
        await _wait(log, "subscription_lost", 2)
        real.cluster = "another"
        for node in (1, 2):
            real.start(node, before[node].port)
        # The third one shows that its lists count.
        await _wait(log, "subscription_ready", 4)
        real.start(3)
        await _wait(log, "listening", 4)
        assert b"another" in await _ask(base + 4)


async def test_an_address_that_a_client_got_is_not_undone_by_an_older_list(
    real: _Real, log: Log
) -> None:
    """Clients that followed the answer were reset: it led to the former address again."""
    for node in (1, 2, 3):
        real.start(node)
    async with _local(real, log, poll_interval_ms=60_000) as base:
        real.stop(1)
        await _wait(log, "subscription_lost", 1)
        real.start(1)
        # Broker 3 was asked before, and will be again in a minute.
        assert _address("127.0.0.1", base + 2) in await _ask(base + 3)
        assert _address("127.0.0.1", base + 2) in await _ask(base + 2)
        await _wait(log, "subscription_ready", 4)
        (moved,) = log.events("broker_moved")
        assert moved["upstream"] == str(real.addresses[1])


async def test_a_broker_that_left_takes_no_connections_until_it_is_back(
    real: _Real, log: Log
) -> None:
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        real.stop(2)
        real.forget(2)
        await _wait(log, "broker_left", 1)
        with pytest.raises(OSError, match="all attempts to connect"):
            await _ask(base + 3)
        real.start(2)
        await _ask(base)
        await _ask(base + 3)


async def _admin(log: Log, path: str) -> tuple[bool, Any]:
    """Whether a page of the admin server has status 200, and its JSON."""
    (line,) = log.events("admin_listening")
    admin = Address.parse(line["listen"])
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with await trio.open_tcp_stream(admin.host, admin.port) as client:
        answer = await exchange(client, request.encode(), 1 << 20)
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.startswith(b"HTTP/1.1 200"), json.loads(body)


async def _switch(log: Log, route: str, hints: str) -> None:
    """Have the admin server switch a route."""
    (line,) = log.events("admin_listening")
    admin = Address.parse(line["listen"])
    head = f"PUT /routes/{route}/hints HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    request = f"{head}Content-Length: {len(hints)}\r\n\r\n{hints}"
    async with await trio.open_tcp_stream(admin.host, admin.port) as client:
        answer = await exchange(client, request.encode(), 1 << 20)
    assert answer.startswith(b"HTTP/1.1 200")


async def _routes(log: Log) -> dict[str, Any]:
    """What the status has of each route."""
    _, status = await _admin(log, "/status")
    return {route["name"]: route for route in status["routes"]}


async def test_it_is_ready_again_once_no_broker_lists_the_one_that_is_gone(
    real: _Real, log: Log
) -> None:
    """It was not ready any more, for good, and its status had the address of a closed listener."""
    for node in (1, 2):
        real.start(node)
    async with _local(real, log, settings={"admin": ANY}) as base:
        assert (await _routes(log))["broker-2"]["listen"] == f"127.0.0.1:{base + 3}"
        real.stop(2)
        await _wait(log, "subscription_lost", 1)
        ready, reasons = await _admin(log, "/readyz")
        assert (ready, [*reasons["not_ready"]]) == (False, ["broker-2"])
        real.forget(2)
        await _wait(log, "broker_left", 1)
        assert (await _admin(log, "/readyz"))[0]
        left = (await _routes(log))["broker-2"]
        assert left["listen"] == ""
        assert (left["upstream"]["answers"], left["upstream"]["error"]) == (
            None,
            "has left the cluster",
        )
        real.start(2)
        # Also where no client asks for Metadata.
        await _wait(log, "listening", 4)
        assert (await _routes(log))["broker-2"]["listen"] == f"127.0.0.1:{base + 3}"
        assert (await _admin(log, "/readyz"))[0]


async def test_a_broker_without_a_port_that_leaves_does_not_count_either(
    real: _Real, log: Log
) -> None:
    real.start(1)
    async with _local(real, log, settings={"admin": ANY}) as base:
        with socket.create_server(("127.0.0.1", base + 3)):
            real.start(2)
            await _wait(log, "broker_without_port", 1)
            assert (await _routes(log))["broker-2"]["listen"] == ""
            real.stop(2)
            real.forget(2)
            await until_true(lambda: log.events("subscription_lost"))
            with trio.fail_after(_SECONDS):
                while not (await _admin(log, "/readyz"))[0]:  # noqa: ASYNC110 - it tells nobody
                    await trio.sleep(0.01)
        assert log.events("broker_left") == []


async def test_bootstrap_leads_past_a_broker_that_is_down(real: _Real, log: Log) -> None:
    for node in (1, 2):
        real.start(node)
    async with _local(real, log) as base:
        real.stop(1)
        for _ in range(3):
            assert _address("127.0.0.1", base + 3) in await _ask(base)


async def test_a_broker_that_is_back_is_served_once_its_port_is_free(real: _Real, log: Log) -> None:
    """It had left the cluster, for its page and for readiness, until a client asked for it."""
    for node in (1, 2):
        real.start(node)
    async with _local(real, log, settings={"admin": ANY}) as base:
        real.stop(2)
        real.forget(2)
        await _wait(log, "broker_left", 1)
        # The listener is closed a moment after that is reported.
        await until_true(lambda: _is_free(base + 3))
        with socket.create_server(("127.0.0.1", base + 3)):
            real.start(2)
            await _wait(log, "broker_without_port", 1)
            await _wait(log, "subscription_ready", 3)
            back = (await _routes(log))["broker-2"]
            assert (back["listen"], back["upstream"]["answers"]) == ("", True)
        await _wait(log, "listening", 4)
        assert _address("127.0.0.1", base + 3) in await _ask(base + 3)
        assert len(log.events("broker_without_port")) == 1


async def test_with_hints_off_brokers_join_and_leave_too(real: _Real, log: Log) -> None:
    """It was not ready any more once a broker had left, for good: no broker was asked."""
    for node in (1, 2):
        real.start(node)
    async with _local(real, log, settings={"admin": ANY, "hints": "off"}) as base:
        real.stop(2)
        real.forget(2)
        await _wait(log, "broker_left", 1)
        assert (await _admin(log, "/readyz"))[0]
        real.start(3)
        await _wait(log, "listening", 4)
        assert _address("127.0.0.1", base + 4) in await _ask(base + 4)


async def test_a_broker_that_joins_keeps_what_the_switch_file_says(
    real: _Real, log: Log, tmp_path: Path
) -> None:
    """It got hints, and the next switch of another broker removed it from the file."""
    file = tmp_path / "switch.json"
    file.write_text('{"broker-2": "off", "broker-3": "off"}', encoding="utf-8")
    for node in (1, 3):
        real.start(node)
    async with _local(real, log, settings={"admin": ANY, "switch_file": str(file)}):
        real.start(2)
        await _wait(log, "listening", 4)
        routes = await _routes(log)
        assert [routes[f"broker-{node}"]["hints"] for node in (1, 2, 3)] == ["on", "off", "off"]
        switched = [(line["route"], line["hints"]) for line in log.events("hints_switched")]
        assert switched == [("broker-3", "off"), ("broker-2", "off")]
        await _switch(log, "broker-1", "observe")
        await until_true(lambda: "broker-1" in file.read_text(encoding="utf-8"))
        assert json.loads(file.read_text(encoding="utf-8")) == {
            "broker-1": "observe",
            "broker-2": "off",
            "broker-3": "off",
        }


async def test_a_broker_that_joins_stays_switched_as_the_others_after_a_restart(
    real: _Real, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "switch.json"
    real.start(1)
    async with _local(real, log, settings={"admin": ANY, "switch_file": str(file)}):
        await _switch(log, "broker-1", "off")
        real.start(2)
        await until_true(lambda: file.exists() and "broker-2" in file.read_text(encoding="utf-8"))
        assert json.loads(file.read_text(encoding="utf-8")) == {
            "broker-1": "off",
            "broker-2": "off",
        }


async def test_a_map_gives_other_ports(real: _Real, log: Log) -> None:
    (port,) = free_ports(1)
    real.start(1)
    async with _local(real, log, ports={1: port}) as base:
        assert _address("127.0.0.1", port) in await _ask(base)
        await _ask(port)


async def test_a_broker_whose_port_is_taken_costs_the_others_nothing(real: _Real, log: Log) -> None:
    real.start(1)
    async with _local(real, log) as base:
        with socket.create_server(("127.0.0.1", base + 3)):
            real.start(2)
            await _ask(base + 2)
            (line,) = await _wait(log, "broker_without_port", 1)
            assert "address already in use" in line["reason"]
            await _ask(base + 2)
        await _ask(base + 2)
        await _ask(base + 3)


async def test_over_ipv6(real: _Real, log: Log) -> None:
    real.host = "::1"
    real.start(1)
    async with _local(real, log, host="::1") as base:
        answer = await _ask(base, "::1")
        assert _address("::1", base + 2) in answer
        assert _address("::1", base + 2) in await _ask(base + 2, "::1")


async def test_tls_is_read_once_and_good_for_brokers_that_join(
    real: _Real, log: Log, tmp_path: Path
) -> None:
    authority = trustme.CA()
    roots = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(roots))
    real.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(real.host).configure_cert(real.tls)
    real.start(1)
    async with _local(
        real, log, upstream_tls=BrokerTlsSettings(enabled=True, ca=str(roots))
    ) as base:
        assert _address("127.0.0.1", base + 2) in await _ask(base)
        roots.unlink()
        real.start(2)
        assert _address("127.0.0.1", base + 3) in await _ask(base + 2)
        assert _address("127.0.0.1", base + 3) in await _ask(base + 3)


async def test_a_client_for_whom_no_descriptor_is_left_is_closed_and_no_other(
    real: _Real, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    real.start(1)
    async with _local(real, log, stage=FaultInjector()) as base:
        answer = await _ask(base + 2)
        for port in (base, base + 2):
            with monkeypatch.context() as patch:
                patch.setattr(trio.socket, "socketpair", short)
                with pytest.raises((ConnectionError, trio.BrokenResourceError)):
                    await _ask(port)
            assert await _ask(port) == answer
        assert {line["error"] for line in log.events("accept_failed")} == {"too many open files"}


async def test_a_cluster_that_does_not_start_again_is_tried_again(real: _Real, log: Log) -> None:
    real.start(1)
    failures = [BrokerError("it died again"), BrokerError("it died")]

    def renew() -> Mapping[int, Address] | None:
        if failures:
            raise failures.pop()
        return None if log.events("cluster_restarted") else real.addresses

    async with _local(real, log, renew=renew) as base:
        await _wait(log, "cluster_restarted", 1)
        assert [line["reason"] for line in log.events("cluster_not_restarted")] == ["it died"]
        assert _address("127.0.0.1", base + 2) in await _ask(base)


async def test_an_address_that_is_taken_is_named(real: _Real, log: Log) -> None:
    real.start(1)
    base = free_range(_SPAN)
    with socket.create_server(("127.0.0.1", base + 2)):
        local = LocalSettings(
            bootstrap=tuple(real.addresses.values()), listen=Address("127.0.0.1", base)
        )
        route = RouteSettings(listen=Address("127.0.0.1", 0), upstream=real.addresses[1])
        settings = Settings(routes=(route,))
        with pytest.RaisesGroup(
            pytest.RaisesExc(ListenError, match=f"cannot listen on 127.0.0.1:{base + 2}"),
            flatten_subgroups=True,
        ):
            await app.serve(settings, Found(local, real.addresses))


async def _ended(port: int) -> BaseException | None:
    """How a connection ends that is turned away: ``None``, or the error of a reset."""
    with trio.fail_after(_SECONDS):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            try:
                assert await stream.receive_some() == b""
            except trio.BrokenResourceError as error:
                return error.__cause__
            return None


async def test_a_client_whose_broker_is_down_is_reset_so_that_it_tries_again(
    real: _Real, log: Log
) -> None:
    """franz-go takes an end before the first answer for TLS, and its producers give up."""
    real.start(1)
    async with _local(real, log) as base:
        real.stop(1)
        for port in (base, base + 2):
            assert isinstance(await _ended(port), ConnectionResetError)


async def test_a_refused_connection_is_reset_and_counted_once_at_bootstrap_too(
    real: _Real, log: Log
) -> None:
    for node in (1, 2):
        real.start(node)
    stage = FaultInjector()
    async with _local(real, log, stage=stage) as base:
        stage.begin(Fault(action=Action.REFUSE, times=1))
        assert isinstance(await _ended(base), ConnectionResetError)
        assert _address("127.0.0.1", base + 2) in await _ask(base)
        assert len(log.events("fault_done")) == 1


async def test_a_port_that_another_node_has_leads_no_client_there(real: _Real, log: Log) -> None:
    real.start(1)
    async with _local(real, log, ports_from_base={1: 3}) as base:
        real.start(2)
        answer = await _ask(base)
        (line,) = await _wait(log, "broker_without_port", 1)
        assert "which another node has; give --port 2=PORT" in line["reason"]
        assert answer.count(_address("127.0.0.1", base + 3)) == 1
        assert _address("127.0.0.1", 0) in answer


async def test_topic_ids_are_synthesized_and_no_client_comes_before_it_is_known_where(
    real: _Real, log: Log
) -> None:
    real.start(1)
    async with _local(real, log, settings={"topic_ids": "synthesize"}) as base:
        events = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
        assert events.index("topic_ids_offered") < events.index("listening")
        assert synthetic_id("k", "t") in await _ask(base, request=metadata_request(12, 1))


async def test_it_is_not_ready_before_it_listens(real: _Real, log: Log) -> None:
    """It was, for as long as it waited for the brokers that give synthetic ids."""
    for node in (1, 2):
        # Both claim to lead the same partition, so which is which stays unknown.
        real.start(node)
    local = LocalSettings(
        bootstrap=tuple(real.addresses.values()), listen=Address("127.0.0.1", free_range(_SPAN))
    )
    route = RouteSettings(listen=Address("127.0.0.1", 0), upstream=real.addresses[1])
    settings = Settings(
        routes=(route,), admin=ANY, topic_ids="synthesize", topic_ids_wait_ms=600_000
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve, settings, Found(local, real.addresses))
        await _wait(log, "route_plan", 2)
        (line,) = log.events("admin_listening")
        admin = Address.parse(line["listen"])
        async with await trio.open_tcp_stream(admin.host, admin.port) as client:
            answer = await exchange(
                client, b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 4096
            )
        assert log.events("listening") == []
        assert answer.startswith(b"HTTP/1.1 503")
        assert answer.count(b"not listening yet") == 2
        nursery.cancel_scope.cancel()
