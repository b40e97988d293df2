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


async def test_what_came_of_many_routes_is_reported_some_at_a_time(
    autojump_clock: MockClock,
) -> None:
    """900 events in one step took 20 to 35 ms."""
    emitted: list[Event] = []
    at_each_turn: list[int] = []
    observers = Observers()
    observers.add(emitted.append)
    watch = CertificateWatch(cast(Security, _ManyRoutes()), observers)

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
