"""What comes of a look at TLS files."""

from itertools import pairwise
from typing import cast

import trio
from trio.testing import MockClock

from leader_hints.app.certificate_watch import CertificateWatch
from leader_hints.app.observers import Observers
from leader_hints.core.events import CertificatesReloaded, Event, TaskFailed
from leader_hints.net.tls.route_security import Security


class _ManyRoutes:
    async def reload(self, *, all_of_them: bool) -> list[Event]:
        routes = [f"r{number}" for number in range(90)]
        return [CertificatesReloaded(route=route, group="client_tls") for route in routes]


class _SlowOnce:
    """Its first look takes long."""

    def __init__(self) -> None:
        self.looks: list[str] = []

    async def reload(self, *, all_of_them: bool) -> list[Event]:
        first = not self.looks
        self.looks.append("begins")
        await trio.sleep(30 if first else 0)
        self.looks.append("all" if all_of_them else "changed")
        return []


async def test_a_look_waits_for_the_one_before(autojump_clock: MockClock) -> None:
    """An older one that a slow disk had kept brought the former certificate back."""
    security = _SlowOnce()
    failed: list[str] = []
    watch = CertificateWatch(
        cast(Security, security), lambda event: None, lambda task, error: failed.append(task)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        await trio.sleep(11)
        watch.renew()
        await trio.sleep(40)
        nursery.cancel_scope.cancel()
    assert security.looks[:4] == ["begins", "changed", "begins", "all"]
    assert not failed


async def test_what_came_of_many_routes_is_reported_some_at_a_time(
    autojump_clock: MockClock,
) -> None:
    """900 events in one step took 20 to 35 ms."""
    emitted: list[Event] = []
    at_each_turn: list[int] = []
    observers = Observers()
    observers.add(emitted.append)
    watch = CertificateWatch(cast(Security, _ManyRoutes()), observers.emit, observers.task_failed)

    async def look_on() -> None:
        while True:
            at_each_turn.append(len(emitted))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        watch.renew()
        nursery.start_soon(watch.run)
        while len(emitted) < 91:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert not [event for event in emitted if isinstance(event, TaskFailed)]
    grew = [later - before for before, later in pairwise(at_each_turn)]
    # Trio has tasks run in any order, so two steps may lie between two turns.
    assert 0 < max(grew) <= 40
