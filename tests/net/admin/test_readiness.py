"""Whether routes are ready: what the subscription knows, or the broker's own answer."""

from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.admin.readiness import Readiness
from leader_hints.net.brokers.connector import Connector
from leader_hints.observe.watched import Upstream
from tests.net.fake_broker import FakeBroker, FakeNetwork, network
from tests.net.messages import API_VERSIONS, Broker

_ONE, _TWO = Address("one", 9092), Address("two", 9092)


def _readiness(net: FakeNetwork, *modes: Mode, answers: bool | None = None) -> Readiness:
    """Of a route before each of the two addresses."""
    routes = [
        (Route(f"r{number}", mode), address)
        for number, (mode, address) in enumerate(zip(modes, (_ONE, _TWO), strict=False))
    ]
    connector = Connector(open_tcp=net.open)
    connectors = [(route, address, connector) for route, address in routes]
    return Readiness(connectors, lambda route: Upstream(answers), "leader-hints")


def _broker() -> FakeBroker:
    return FakeBroker(1, [Broker(1, "one", 9092)], {"t": [(1, 5)]})


async def test_a_broker_that_answers_the_subscription_is_not_asked(
    autojump_clock: MockClock,
) -> None:
    async with network() as net:
        assert await _readiness(net, Mode.ON, answers=True).check() == {"r0": ""}
        assert net.attempts == []


@pytest.mark.parametrize("answers", [None, False])
async def test_a_broker_is_asked_for_its_versions(
    autojump_clock: MockClock, answers: bool | None
) -> None:
    # As brokers do before authentication, which the subscription lacks.
    async with network() as net:
        net.brokers[_ONE] = broker = _broker()
        ready = _readiness(net, Mode.ON, answers=answers)
        assert await ready.check() == {"r0": ""}
        assert [asked.key for asked in broker.asked] == [API_VERSIONS]


async def test_of_a_plain_relay_the_connection_is_enough(autojump_clock: MockClock) -> None:
    async with network() as net:
        net.brokers[_ONE] = broker = _broker()
        assert await _readiness(net, Mode.OFF).check() == {"r0": ""}
        assert len(net.attempts) == 1
        assert broker.asked == []


async def test_each_route_has_its_own_reason(autojump_clock: MockClock) -> None:
    async with network() as net:
        net.brokers[_ONE] = _broker()
        found = await _readiness(net, Mode.ON, Mode.OFF).check()
        assert found["r0"] == ""
        assert found["r1"].startswith("broker two:9092: ")


async def test_a_broker_that_hangs_is_not_waited_for_long(autojump_clock: MockClock) -> None:
    async with network() as net:
        net.brokers[_ONE] = net.brokers[_TWO] = broker = _broker()
        broker.answers[API_VERSIONS] = lambda version, correlation_id: b""
        begin = trio.current_time()
        found = await _readiness(net, Mode.ON, Mode.ON).check()
        assert found == {
            "r0": "broker one:9092: no answer within 2 s",
            "r1": "broker two:9092: no answer within 2 s",
        }
        assert trio.current_time() - begin == 2


async def test_others_get_their_turn_while_many_brokers_are_asked(
    autojump_clock: MockClock,
) -> None:
    """With 300 plain relays each look stopped all links for 18 to 35 ms."""
    async with network() as net:
        net.brokers[_ONE] = _broker()
        connector = Connector(open_tcp=net.open)
        routes = [(Route(f"r{number}", Mode.OFF), _ONE, connector) for number in range(100)]
        readiness = Readiness(routes, lambda route: Upstream(None), "leader-hints")
        made = []

        async def look_on() -> None:
            while True:
                made.append(len(net.attempts))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look_on)
            assert {*(await readiness.check()).values()} == {""}
            nursery.cancel_scope.cancel()
        assert made[-1] == 100
        assert max(after - before for before, after in pairwise(made)) <= 10
