"""What `check` finds of a proxy that runs, before a fake broker; tests/real/test_doctor.py has the
rest."""

import struct

import pytest
import trio

from leader_hints.address import Address
from leader_hints.check import route_probe
from leader_hints.check.rules import Bounds, judge
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
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
