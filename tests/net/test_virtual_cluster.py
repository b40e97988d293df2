"""The listeners of a virtual cluster as brokers come, move and go."""

import io
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
import trio

from proxy.errors import ListenError
from proxy.net import app
from proxy.net.virtual_cluster import Found
from proxy.observe.logs import configure_logs
from proxy.settings import (
    Address,
    LocalSettings,
    RouteSettings,
    Settings,
    SubscriptionSettings,
)
from tests.harness.ports import free_ports, free_range
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker

_SECONDS = 5.0
#: Ports that a virtual cluster takes here.
_SPAN = 9
#: Metadata 9 for all topics, as correlation 1 of a client with an empty id.
_METADATA = bytes.fromhex("0000001000030009000000010000000000000000")


class _Real:
    """Real listeners whose brokers say what ``brokers`` has; each may be stopped."""

    def __init__(self, nursery: trio.Nursery, host: str = "127.0.0.1") -> None:
        self._nursery = nursery
        self._host = host
        self.brokers: list[Broker] = []
        self._scopes: dict[int, trio.CancelScope] = {}

    def start(self, node: int) -> None:
        """Start a broker, or start it again at another address."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = socket.create_server((self._host, 0), family=family)
        self.brokers[:] = [known for known in self.brokers if known.node != node]
        self.brokers.append(Broker(node, self._host, sock.getsockname()[1]))
        broker = FakeBroker(node, self.brokers, {"t": [(node, 5)]})
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        scope = self._scopes[node] = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await trio.serve_listeners(broker.serve, [listener])

        self._nursery.start_soon(serve)

    def stop(self, node: int) -> None:
        """End a broker and its connections."""
        self._scopes.pop(node).cancel()

    def forget(self, node: int) -> None:
        """Have the others say that it is gone."""
        self.brokers[:] = [known for known in self.brokers if known.node != node]

    @property
    def addresses(self) -> dict[int, Address]:
        """Where they are."""
        return {known.node: Address(known.host, known.port) for known in self.brokers}


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged."""
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    yield stream
    structlog.reset_defaults()


def _events(log: io.StringIO, name: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == name]


async def _wait(log: io.StringIO, name: str, count: int) -> list[dict[str, Any]]:
    with trio.fail_after(_SECONDS):
        while len(found := _events(log, name)) < count:  # noqa: ASYNC110 - a log has no event
            await trio.sleep(0.002)
    return found


@asynccontextmanager
async def _local(real: _Real, log: io.StringIO, **values: Any) -> AsyncIterator[int]:
    """A virtual cluster before the real brokers; its base port."""
    base = free_range(_SPAN)
    host = values.pop("host", "127.0.0.1")
    listen = Address(host, base)
    local = LocalSettings(bootstrap=tuple(real.addresses.values()), listen=listen, **values)
    settings = Settings(
        routes=tuple(
            RouteSettings(listen=Address(host, 0), upstream=address, name=f"r{node}")
            for node, address in real.addresses.items()
        ),
        subscription=SubscriptionSettings(poll_interval_ms=100),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve, settings, Found(local, real.addresses))
        await _wait(log, "listening", len(real.brokers) + 1)
        await _wait(log, "route_plan", len(real.brokers))
        yield base
        nursery.cancel_scope.cancel()


async def _ask(port: int, host: str = "127.0.0.1") -> bytes:
    """Ask for Metadata; return the answer."""
    with trio.fail_after(_SECONDS):
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(_METADATA)
            data = b""
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                chunk = await stream.receive_some()
                if not chunk:
                    raise ConnectionError
                data += bytes(chunk)
            return data


def _address(host: str, port: int) -> bytes:
    return bytes([len(host) + 1]) + host.encode() + port.to_bytes(4, "big")


async def test_each_broker_has_a_port_that_follows_from_its_id(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
        for node in (1, 3):
            real.start(node)
        async with _local(real, log, advertise="localhost") as base:
            for port in (base, base + 2, base + 4):
                answer = await _ask(port)
                assert _address("localhost", base + 2) in answer
                assert _address("localhost", base + 4) in answer
                assert b"127.0.0.1" not in answer
        nursery.cancel_scope.cancel()


async def test_a_broker_that_joins_can_be_reached_when_a_client_first_hears_of_it(
    log: io.StringIO,
) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
        real.start(1)
        async with _local(real, log) as base:
            real.start(2)
            answer = await _ask(base)
            assert _address("127.0.0.1", base + 3) in answer
            assert _address("127.0.0.1", base + 3) in await _ask(base + 3)
        nursery.cancel_scope.cancel()


async def test_a_broker_that_moves_keeps_its_port(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
        for node in (1, 2):
            real.start(node)
        async with _local(real, log) as base:
            real.stop(2)
            real.start(2)
            await _ask(base + 2)
            await _wait(log, "broker_moved", 1)
            assert _address("127.0.0.1", base + 3) in await _ask(base + 3)
        nursery.cancel_scope.cancel()


async def test_a_broker_that_left_takes_no_connections_until_it_is_back(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
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
        nursery.cancel_scope.cancel()


async def test_bootstrap_leads_past_a_broker_that_is_down(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
        for node in (1, 2):
            real.start(node)
        async with _local(real, log) as base:
            real.stop(1)
            for _ in range(3):
                assert _address("127.0.0.1", base + 3) in await _ask(base)
        nursery.cancel_scope.cancel()


async def test_a_map_gives_other_ports(log: io.StringIO) -> None:
    (port,) = free_ports(1)
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
        real.start(1)
        async with _local(real, log, ports={1: port}) as base:
            assert _address("127.0.0.1", port) in await _ask(base)
            await _ask(port)
        nursery.cancel_scope.cancel()


async def test_a_broker_whose_port_is_taken_costs_the_others_nothing(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
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
        nursery.cancel_scope.cancel()


async def test_over_ipv6(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery, "::1")
        real.start(1)
        async with _local(real, log, host="::1") as base:
            answer = await _ask(base, "::1")
            assert _address("::1", base + 2) in answer
            assert _address("::1", base + 2) in await _ask(base + 2, "::1")
        nursery.cancel_scope.cancel()


async def test_an_address_that_is_taken_is_named(log: io.StringIO) -> None:
    async with trio.open_nursery() as nursery:
        real = _Real(nursery)
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
        nursery.cancel_scope.cancel()
