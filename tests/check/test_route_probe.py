"""What `check` finds of a proxy that runs, before a fake broker; tests/real/test_doctor.py has the
rest."""

import socket
import struct
from typing import Any

import pytest
import trio

from leader_hints.address import Address
from leader_hints.check import route_probe
from leader_hints.check.rules import Bounds, judge
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
from tests.harness.ports import free_ports
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker
from tests.net.serving import Log, serving

_DESCRIBE_CONFIGS = 32


def _settings(listen: Address, upstream: Address) -> Settings:
    return Settings(routes=(RouteSettings(listen=listen, upstream=upstream, name="r"),))


def _of_no_config(correlation: int, version: int) -> bytes:
    return struct.pack(">iiii", 12, correlation, 0, 0)


@pytest.mark.parametrize(
    ("listen", "advertised", "found"),
    [
        ("0.0.0.0", "127.0.0.1", "advertised_right"),
        ("0.0.0.0", "::1", "advertised_unreachable"),
        ("::", "::1", "advertised_right"),
        ("::", "127.0.0.1", "advertised_unreachable"),
        # Clients try all addresses of a name.
        ("0.0.0.0", "localhost", "advertised_right"),
    ],
)
async def test_a_listener_at_all_addresses_takes_those_of_its_own_family_only(
    listen: str, advertised: str, found: str, log: Log
) -> None:
    broker = FakeBroker(1, [], {"t": [(1, 5)]})
    broker.answers[_DESCRIBE_CONFIGS] = _of_no_config
    async with trio.open_nursery() as nursery:
        brokers = await trio.open_tcp_listeners(0, host="127.0.0.1")
        upstream = Address(*brokers[0].socket.getsockname())
        nursery.start_soon(trio.serve_listeners, broker.serve, brokers)
        async with serving(_settings(Address(listen, 0), upstream), log) as (bound,):
            broker.brokers = [Broker(1, advertised, bound.port)]
            facts = await route_probe._examine(_settings(bound, upstream))
        nursery.cancel_scope.cancel()
    codes = [finding.code for finding in judge(*facts, Bounds(100, 1 << 30))]
    assert [code for code in codes if code.startswith("advertised_")] == [
        *[found],
        *(["advertised_loopback"] if found == "advertised_right" else []),
    ]
    assert "listen_proxy" in codes


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        ("127.0.0.1:5", 5),
        ("10.0.0.1:1, localhost:6", 6),
        # As brokers take them: the name of what has this machine's address.
        ("proxy.example:7,10.0.0.1:1", 7),
        ("elsewhere.example:8,nowhere.example:9", 100),
    ],
)
async def test_a_brokers_limit_for_this_machine_may_be_by_name(
    overrides: str, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"proxy.example": "127.0.0.1", "elsewhere.example": "10.0.0.9"}

    def looked_up(host: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name == "nowhere.example":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return look_up(names.get(name, name), *more, **named)

    def limits(correlation: int, version: int) -> bytes:
        settings = {
            "max.connections.per.ip": "100",
            "max.connections.per.ip.overrides": overrides,
        }
        body = struct.pack(">iih", 0, 1, 0) + _text("") + b"\x04" + _text("1")
        body += struct.pack(">i", len(settings))
        for name, value in settings.items():
            body += _text(name) + _text(value) + bytes(3) + struct.pack(">i", 0)
        return struct.pack(">ii", 4 + len(body), correlation) + body

    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    broker = FakeBroker(1, [], {"t": [(1, 5)]})
    broker.answers[_DESCRIBE_CONFIGS] = limits
    async with trio.open_nursery() as nursery:
        brokers = await trio.open_tcp_listeners(0, host="127.0.0.1")
        upstream = Address(*brokers[0].socket.getsockname())
        broker.brokers = [Broker(1, "127.0.0.1", upstream.port)]
        nursery.start_soon(trio.serve_listeners, broker.serve, brokers)
        ((route,), _) = await route_probe._examine(_settings(Address("127.0.0.1", 0), upstream))
        nursery.cancel_scope.cancel()
    assert route.limits.most_connections == found


async def test_a_port_that_an_outgoing_connection_has_is_not_taken_for_a_listener() -> None:
    broker = FakeBroker(1, [], {"t": [(1, 5)]})
    broker.answers[_DESCRIBE_CONFIGS] = _of_no_config
    (port,) = free_ports(1)
    listen = Address("127.0.0.1", port)
    broker.brokers = [Broker(1, "127.0.0.1", port)]
    async with trio.open_nursery() as nursery:
        brokers = await trio.open_tcp_listeners(0, host="127.0.0.1")
        upstream = Address(*brokers[0].socket.getsockname())
        nursery.start_soon(trio.serve_listeners, broker.serve, brokers)
        with socket.create_connection(
            brokers[0].socket.getsockname(), source_address=("127.0.0.1", port)
        ):
            facts = await route_probe._examine(_settings(listen, upstream))
        nursery.cancel_scope.cancel()
    found = {finding.code: finding for finding in judge(*facts, Bounds(100, 1 << 30))}
    assert str(upstream) in found["listen_connection"].text
    assert found.keys() & {"listen_free", "listen_taken", "advertised_right"} == set()
    assert "advertised_unreachable" in found
