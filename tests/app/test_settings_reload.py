"""Settings that are read again while a disk hangs."""

import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
import trio
from trio.testing import MockClock

from leader_hints.app.settings_reload import SettingsReload
from leader_hints.core.events import Event, SettingsRefused, SettingsReloaded
from leader_hints.settings.settings import Settings
from tests.settings.samples import settings_of


class _Hanging:
    """Reads settings once it is let go, and others immediately after that has begun."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Event(), threading.Event()

    def read(self) -> Settings:
        """Return settings: the first call waits until it is let go."""
        if self.entered.is_set():
            return settings_of(hints="off")
        self.entered.set()
        self.let_go.wait()
        return settings_of(hints="observe")


class _Scene:
    """A reading that hangs.

    ``applied``: the modes of hints that were put in force; ``applying``: takes the time for that.
    """

    def __init__(self) -> None:
        self.hanging = _Hanging()
        self.events: list[Event] = []
        self.applied: list[str] = []
        self.applying: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        self.reload = SettingsReload(
            settings_of(),
            self.hanging.read,
            self._apply,
            self.events.append,
        )

    async def _apply(self, settings: Settings) -> None:
        self.applied.append(settings.hints)
        await self.applying()

    async def read_twice(self, nursery: trio.Nursery) -> None:
        """Read settings while the first reading hangs; with a real thread."""
        nursery.start_soon(self.reload.run)
        assert await trio.to_thread.run_sync(self.hanging.entered.wait, 10)
        await self.reload.run()


@pytest.fixture
def scene() -> Iterator[_Scene]:
    """What hangs ends with the test in any case."""
    scene = _Scene()
    yield scene
    scene.hanging.let_go.set()


async def test_a_reading_that_hangs_is_reported_and_keeps_no_later_one_from_it(
    mock_clock: MockClock, scene: _Scene
) -> None:
    async with trio.open_nursery() as nursery:
        await scene.read_twice(nursery)
        assert scene.events == [SettingsReloaded(keys=("hints",))]
        mock_clock.jump(60)
    assert scene.events[1:] == [
        SettingsRefused(keys=(), reason="they were not read within 60 s; does a disk hang?")
    ]
    assert scene.applied == ["off"]


async def test_what_was_to_be_read_before_does_not_count(scene: _Scene) -> None:
    async with trio.open_nursery() as nursery:
        await scene.read_twice(nursery)
        scene.hanging.let_go.set()
    assert (scene.applied, scene.events) == (["off"], [SettingsReloaded(keys=("hints",))])


async def test_what_is_read_while_settings_are_put_in_force_is_compared_with_these(
    scene: _Scene,
) -> None:
    scene.hanging.let_go.set()
    put = trio.Event()
    scene.applying = put.wait
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.reload.run)
        while not scene.applied:
            await trio.lowlevel.checkpoint()
        nursery.start_soon(scene.reload.run)
        while len(scene.applied) < 2:
            await trio.lowlevel.checkpoint()
        await scene.reload.run()
        # The second ones had been read once more: nothing is different.
        assert scene.events == [SettingsReloaded(keys=())]
        put.set()
    assert scene.applied == ["observe", "off"]
