"""No step of the proxy's event loop grows with the cluster: the lines of its code are counted."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

import leader_hints
from leader_hints.core.cluster import leader_view
from tests.world import product
from tests.world.happenings import happenings, profile
from tests.world.world import World

_PACKAGE = str(Path(leader_hints.__file__).parent)
#: What one step runs at most, of the package: one or two milliseconds.
_MOST = 7000
#: Steps of links, which are none of a task here.
_OF_LINKS = ("_requested", "_go_on", "release")
#: A world in which much happens, and topics in it, of ten partitions each.
_SEED, _TOPICS = 3, 1500


class _Steps(trio.abc.Instrument):
    """``most``: lines of the package that one step of any task, or of a link, has run.

    ``too_many``: cancelled once that is beyond the bound: then there is no more to see.
    """

    def __init__(self) -> None:
        self.most = 0
        self.too_many = trio.CancelScope()
        self._lines = 0

    def begin(self) -> None:
        """Count from here on."""
        self._lines = 0

    def end(self) -> None:
        """Take what was counted."""
        self.most = max(self.most, self._lines)
        if self.most > _MOST:
            self.too_many.cancel()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.begin()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.end()

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count in the package alone; see sys.settrace."""
        return self._count if frame.f_code.co_filename.startswith(_PACKAGE) else None

    def _count(self, frame: FrameType, event: str, argument: object) -> Any:
        self._lines += event == "line"
        return self._count


def _most_lines(monkeypatch: pytest.MonkeyPatch, topics: int) -> int:
    """Live a world with topics that nobody uses, and return what its longest step runs."""
    steps = _Steps()
    for name in _OF_LINKS:
        monkeypatch.setattr(product._Relay, name, _counted(getattr(product._Relay, name), steps))
    world = World(_SEED, profile(_SEED), happenings(_SEED), proxied=True, spare=topics)
    for proxy in world.proxies:
        # The machine's clock ends a turn after each part of the work.
        proxy._refresher._answers.slices._seconds = 0.0
    live = world._live

    async def watched() -> None:
        trio.lowlevel.add_instrument(steps)
        with steps.too_many:
            await live()

    monkeypatch.setattr(world, "_live", watched)
    before = sys.gettrace()
    sys.settrace(steps.trace)
    try:
        world.run()
    finally:
        sys.settrace(before)
    return steps.most


def _counted(done: Any, steps: _Steps) -> Any:
    def step(relay: product._Relay, *arguments: Any) -> None:
        steps.begin()
        done(relay, *arguments)
        steps.end()

    return step


def test_no_step_grows_with_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1000 < _most_lines(monkeypatch, _TOPICS) < _MOST


def test_a_step_that_grows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_view, "_LOOKED_AT_AT_ONCE", 1 << 40)
    assert _most_lines(monkeypatch, _TOPICS) > _MOST
