"""Lives worlds: with the proxy and without, and says what they broke."""

import gc
import hashlib
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from tests.world.happenings import Happening, Profile, happenings, newer, profile
from tests.world.progress import Delays, Near, hints
from tests.world.rules import Broken, Lived, broken
from tests.world.world import World

#: Seconds by which happenings come sooner or later in worlds that are near.
_NEAR = 0.02


@dataclass(slots=True)
class Life:
    """A world that was lived, and what it broke."""

    seed: int
    profile: Profile
    happenings: Sequence[Happening]
    lived: Lived
    broken: list[Broken]

    @property
    def trace(self) -> str:
        """All that was said and asked, as one digest: the same seed has the same."""
        digest = hashlib.sha256()
        world = self.lived.world
        digest.update(repr(world.said).encode())
        for broker in world.brokers.values():
            digest.update(repr(broker.asked).encode())
        for client in world.clients:
            times = [[one.at for one in work.served] for work in client.work.values()]
            digest.update(repr(times).encode())
        return digest.hexdigest()


def live(seed: int, only: Sequence[Happening] | None = None, late: float = 0.0) -> Life:
    """Live a world by its seed; ``only``: with these happenings in place of its own; ``late``: with
    errors that come so many seconds late by a planted defect.
    """
    drawn = happenings(seed) if only is None else only
    of = replace(profile(seed), late=late)
    with _uncollected():
        world = World(seed, of, drawn, proxied=True)
        world.run()
        twin, newest = (cache(partial(_twin, seed, one, drawn)) for one in (of, newer(of)))
        lived = Lived(world, twin, newest, partial(_nearby, seed, of, drawn))
        return Life(seed, of, drawn, lived, broken(lived))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile: a world has little, and much that lives as long as it does."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _twin(
    seed: int,
    of: Profile,
    drawn: Sequence[Happening],
    luck: int,
    only: frozenset[int],
    delays: Delays = (),
) -> World:
    twin = World(seed, of, drawn, proxied=False, luck=luck, only=only, delays=delays)
    twin.run()
    return twin


def _nearby(seed: int, of: Profile, drawn: Sequence[Happening], number: int) -> Near:
    draw = random.Random(f"{seed} {number} nearby")
    moved = sorted(one._replace(at=one.at + draw.uniform(-_NEAR, _NEAR)) for one in drawn)
    # From 1 on: by 0 clients begin as they do in all worlds.
    like = partial(World, seed, of, moved, luck=number + 1)
    proxied = like(proxied=True)
    proxied.run()
    direct, hinted = like(proxied=False), like(proxied=False, told=hints(proxied))
    direct.run()
    hinted.run()
    return Near(proxied, direct, hinted)
