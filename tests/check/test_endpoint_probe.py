"""Who answers at an address: fakes on real sockets, for what can be had of no real server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.check import endpoint_probe
from leader_hints.check.client_support import KINDS, PLAIN
from leader_hints.check.facts import EndpointKind, ProbeResult
from leader_hints.check.self_connection import SelfConnections
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connector
from tests.harness.ports import free_ports
from tests.net.fake_broker import FakeBroker
from tests.net.messages import (
    API_VERSIONS,
    Broker,
    api_versions_response,
    unsupported_api_versions,
)
from tests.net.rig import LEGACY

Handler = Callable[[trio.SocketStream], Awaitable[object]]
BROKERS = [Broker(1, "b1", 9092), Broker(2, "b2", 9092)]


@asynccontextmanager
async def _serving(handler: Handler) -> AsyncIterator[Address]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield Address(*listeners[0].socket.getsockname()[:2])
        nursery.cancel_scope.cancel()


async def _met(handler: Handler, known: Route | None = None) -> ProbeResult:
    async with _serving(handler) as address:
        return await endpoint_probe.meet(Connector(), address, SelfConnections(), known)


def _says(answer: bytes) -> Handler:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(answer)

    return handler


async def test_a_broker_and_what_it_offers() -> None:
    met = await _met(FakeBroker(1, BROKERS, {}).serve)

    assert met.kind is EndpointKind.BROKER
    assert met.maxima == LEGACY
    assert met.node is None


@pytest.mark.parametrize("node", [1, 2])
async def test_the_node_behind_an_address_is_proved(node: int) -> None:
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", bytes(16), (Led(0, 1, 7),)), None, poll=False)
    endpoints = {broker.node: Endpoint(broker.host, broker.port, None) for broker in BROKERS}
    known = Route("r", Mode.ON, broker=BrokerState(view=view, endpoints=endpoints))

    met = await _met(FakeBroker(node, BROKERS, {"t": [(1, 7)]}).serve, known)

    assert met.node == node
    # What was known of the route stays: another place was asked.
    assert (known.broker.node, known.broker.others) == (None, frozenset())


async def test_a_broker_that_lacks_version_3_is_asked_for_version_0() -> None:
    broker = FakeBroker(1, BROKERS, {})

    def answer(correlation: int, version: int) -> bytes:
        if version:
            return unsupported_api_versions(correlation)
        return api_versions_response(correlation, version, LEGACY)

    broker.answers[API_VERSIONS] = answer

    assert (await _met(broker.serve)).offers[PLAIN.name] == LEGACY


async def test_kinds_of_client_that_are_not_answered_are_asked_as_once_more() -> None:
    """On a busy machine: one TLS handshake in dozens took too long."""
    broker, connections = FakeBroker(1, BROKERS, {}), 0

    async def handler(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        if 2 <= connections <= len(KINDS):
            await stream.aclose()
        else:
            await broker.serve(stream)

    async with _serving(handler) as address:
        met = await endpoint_probe.meet(Connector(), address, SelfConnections(), kinds=KINDS)

    assert dict.fromkeys((kind.name for kind in KINDS), LEGACY) == met.offers
    assert connections == 1 + 2 * (len(KINDS) - 1)


async def test_a_connection_that_comes_out_at_a_route() -> None:
    self_connections, address = SelfConnections(), Address("127.0.0.1", free_ports(1)[0])
    async with trio.open_nursery() as nursery:
        await self_connections.listen(nursery, "r", address)
        met = await endpoint_probe.meet(Connector(), address, self_connections)
        nursery.cancel_scope.cancel()

    assert met == ProbeResult(kind=EndpointKind.ROUTE, route="r")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\x15\x03\x03\0\2\2\x46", EndpointKind.TLS),
        (b"\x16\x03\x03\0\x02", EndpointKind.TLS),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", EndpointKind.HTTP),
        (b"SSH-2.0-OpenSSH_9.2\r\n", EndpointKind.NOT_KAFKA),
        (b"\0\0\0\x04\0\0\0\x09", EndpointKind.NOT_KAFKA),
        (b"\0\0\0\x06\0\0\0\x01\0", EndpointKind.NOT_KAFKA),
        (b"", EndpointKind.NOT_KAFKA),
    ],
)
async def test_what_is_no_broker(answer: bytes, kind: EndpointKind) -> None:
    met = await _met(_says(answer))

    assert met.kind is kind
    assert met.reason


async def test_nobody() -> None:
    met = await endpoint_probe.meet(
        Connector(), Address("127.0.0.1", free_ports(1)[0]), SelfConnections()
    )

    assert met == ProbeResult(
        kind=EndpointKind.UNREACHABLE, reason="cannot connect: connection refused"
    )


@pytest.mark.parametrize(
    "address",
    [
        Address("no-such-host.invalid", 9092),
        Address("a..b", 9092),
        Address("x\0y", 9092),
        Address("h" * 300, 9092),
    ],
)
async def test_names_that_lead_nowhere(address: Address) -> None:
    with pytest.raises(BrokerError):
        await endpoint_probe.resolve(address.host, address.port)


async def test_a_name_without_a_thread_to_look_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where RLIMIT_NPROC or a control group's pids.max is met."""

    async def refused(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refused)
    with pytest.raises(BrokerError, match="can't start new thread"):
        await endpoint_probe.resolve("localhost", 9092)


@pytest.mark.parametrize("port", [-1, 0, 70000])
async def test_ports_that_are_none(port: int) -> None:
    try:
        await endpoint_probe.resolve("127.0.0.1", port)
    except BrokerError:
        return
    assert (
        await endpoint_probe.meet(Connector(), Address("127.0.0.1", port), SelfConnections())
    ).kind is EndpointKind.UNREACHABLE


async def test_a_host_that_is_far_too_long_is_not_even_encoded() -> None:
    """That took two seconds, in which nothing else ran: brokers may advertise anything."""
    with pytest.raises(BrokerError, match=r"^a host of 400000 letters$"):
        await endpoint_probe.resolve("äb" * 200_000, 9092)
