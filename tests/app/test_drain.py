"""Links come to rest while a process ends."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
import trio
import trio.testing

from leader_hints.app.drain import PAUSE, Drain
from tests.net import messages
from tests.net.rig import Ends, Rig, ended, hinting_route, opened, received

_SECONDS = 15.0


@pytest.fixture
def rig() -> Iterator[Rig]:
    with opened(Rig()) as made:
        yield made


def _links(rig: Rig, routes: Sequence[str]) -> list[Ends]:
    return [rig.link(hinting_route(name)) for name in routes]


@contextlib.asynccontextmanager
async def _draining(
    rig: Rig, routes: Sequence[str], joining: Callable[[], bool] = lambda: False
) -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Drain(rig.pump, _SECONDS, routes, joining).run)
        await trio.testing.wait_all_tasks_blocked()
        yield nursery
        nursery.cancel_scope.cancel()


async def _after(clock: trio.testing.MockClock, seconds: float) -> None:
    clock.jump(seconds)
    await trio.testing.wait_all_tasks_blocked()


async def test_all_links_that_rest_end_at_once_where_no_other_process_serves(
    rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    links = _links(rig, "abc")
    async with _draining(rig, ()):
        assert [ended(ends.client) for ends in links] == [True, True, True]


async def test_links_end_one_route_after_the_other_where_another_process_serves(
    rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    """librdkafka waited for two seconds when all its brokers were gone at the same moment."""
    links = _links(rig, "abca")
    async with _draining(rig, "abc"):
        found = []
        for _ in range(3):
            found.append([ended(ends.client) for ends in links])
            await _after(mock_clock, PAUSE)
    assert found == [
        [True, False, False, True],
        [True, True, False, True],
        [True, True, True, True],
    ]


async def test_many_routes_end_within_a_third_of_the_time(
    rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    names = [str(number) for number in range(200)]
    links = _links(rig, names)
    async with _draining(rig, names):
        assert sum(ended(ends.client) for ends in links) == 10
        for _ in range(20):
            await _after(mock_clock, PAUSE)
        assert all(ended(ends.client) for ends in links)


@pytest.mark.parametrize("routes", ["", "ab"])
async def test_after_a_third_of_the_time_no_further_request_is_taken(
    routes: str, rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    (ends,) = _links(rig, "b")
    rig.send(ends.client, messages.produce_request(10, 0))
    async with _draining(rig, routes):
        for _ in range(4):
            await _after(mock_clock, _SECONDS / 12)
        rig.send(ends.client, messages.produce_request(10, 1))
        assert received(ends.broker) == messages.produce_request(9, 0)
        rig.send(ends.broker, messages.produce_response(0, {0: 0}))
        assert ended(ends.client)


async def test_a_link_whose_broker_is_silent_is_left_when_the_time_is_over(
    rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    (ends,) = _links(rig, "a")
    rig.send(ends.client, messages.produce_request(10, 0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Drain(rig.pump, _SECONDS, (), lambda: False).run)
        await trio.testing.wait_all_tasks_blocked()
        await _after(mock_clock, _SECONDS / 2)
        assert nursery.child_tasks
        await _after(mock_clock, _SECONDS / 2)
        assert not nursery.child_tasks
    assert not rig.pump.drained


async def test_clients_that_are_being_joined_are_waited_for_where_another_process_serves(
    rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    """Those whose TLS handshake was under way were reset, though no connection is to be refused."""
    joining = [True]
    async with _draining(rig, "a", lambda: bool(joining)) as nursery:
        await _after(mock_clock, _SECONDS / 4)
        assert nursery.child_tasks
        (ends,) = _links(rig, "a")
        joining.clear()
        await _after(mock_clock, _SECONDS / 24)
        assert nursery.child_tasks
        rig.send(ends.client, messages.produce_request(10, 0))
        rig.send(ends.broker, messages.produce_response(0, {0: 0}))
        assert received(ends.client) == messages.produce_response(0, {0: 0})
        await _after(mock_clock, _SECONDS / 24)
        assert not nursery.child_tasks


@pytest.mark.parametrize(("routes", "share"), [("", 0.01), ("a", 0.35)])
async def test_clients_that_are_silent_are_waited_for_briefly_if_at_all(
    routes: str, share: float, rig: Rig, mock_clock: trio.testing.MockClock
) -> None:
    async with _draining(rig, routes, lambda: True) as nursery:
        await _after(mock_clock, _SECONDS * share)
        assert not nursery.child_tasks
