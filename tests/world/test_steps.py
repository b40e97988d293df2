"""No step of the proxy's event loop grows with the cluster, nor with what its clients wait for: the
lines of its code are counted."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

import leader_hints
from leader_hints.core.cluster import leader_view
from leader_hints.core.hints import hint_judge
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.flow import Flow
from leader_hints.core.link.request_flow import RequestFlow
from leader_hints.core.link.response_flow import ResponseFlow
from tests.world import product
from tests.world.happenings import happenings, profile
from tests.world.world import World

_PACKAGE = str(Path(leader_hints.__file__).parent)
#: What one step runs at most, of the package: one or two milliseconds; and where clients wait for
#: very many partitions, of which each response is judged in steps of 200.
_MOST, _MOST_JUDGED = 7000, 45_000
#: What the pump does one of in each step.
_APART = {"received", "resume", "release", "ended", "submit"}
#: A world in which much happens, and topics in it, of ten partitions each.
_SEED, _TOPICS = 3, 1500
#: Another one, in which leaders of all topics move that clients use.
_SEED_OF_USED, _USED = 5, 60


class _Steps(trio.abc.Instrument):
    """``most``: lines of the package that one step of any task, or of a link, has run.

    ``too_many``: cancelled once that is beyond ``bound``: then there is no more to see.
    """

    def __init__(self, bound: int) -> None:
        self.most = 0
        self.too_many = trio.CancelScope()
        self._bound = bound
        self._lines = 0

    def _end(self) -> None:
        self.most = max(self.most, self._lines)
        if self.most > self._bound:
            self.too_many.cancel()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._lines = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._end()

    def apart(self, done: Callable[..., Any]) -> Callable[..., Any]:
        """Have calls counted as steps of their own: in a process others get their turn between."""

        def step(*arguments: Any, waited: bool = False) -> Any:
            if waited:
                # Those that have waited together go on in the step that ends their wait.
                return done(*arguments, waited=True)
            outer, self._lines = self._lines, 0
            try:
                return done(*arguments)
            finally:
                self._end()
                self._lines = outer

        return step

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count in the package alone; see sys.settrace."""
        return self._count if frame.f_code.co_filename.startswith(_PACKAGE) else None

    def _count(self, frame: FrameType, event: str, argument: object) -> Any:
        self._lines += event == "line"
        return self._count


def _most_lines(
    monkeypatch: pytest.MonkeyPatch, topics: int, bound: int, seed: int = _SEED, *, used: bool
) -> int:
    """Live a world with more topics, and return what its longest step runs.

    ``used``: by all clients, and not by none.
    """
    steps = _Steps(bound)
    for of in (Flow, RequestFlow, ResponseFlow, HoldQueue):
        for name in _APART & vars(of).keys():
            monkeypatch.setattr(of, name, steps.apart(vars(of)[name]))
    # The machine's clock ends a turn after each part of the work.
    monkeypatch.setattr(product, "SLICE", 0.0)
    world = World(
        seed, profile(seed), happenings(seed), proxied=True, spare=topics, spare_used=used
    )
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


# To trace each line takes half a minute, on a slow and busy machine three.
@pytest.mark.timeout(300)
def test_no_step_grows_with_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1000 < _most_lines(monkeypatch, _TOPICS, _MOST, used=False) < _MOST


def test_a_step_that_grows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_view, "_LOOKED_AT_AT_ONCE", 1 << 40)
    assert _most_lines(monkeypatch, _TOPICS, _MOST, used=False) > _MOST


def _most_lines_of_used(monkeypatch: pytest.MonkeyPatch) -> int:
    return _most_lines(monkeypatch, _USED, _MOST_JUDGED, _SEED_OF_USED, used=True)


def test_no_step_grows_with_what_clients_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _MOST < _most_lines_of_used(monkeypatch) < _MOST_JUDGED


def test_a_step_that_grows_with_what_clients_wait_for_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hint_judge, "JUDGED_AT_ONCE", 1 << 40)
    assert _most_lines_of_used(monkeypatch) > _MOST_JUDGED
