"""The injector: it plays a scenario, and a defect in it ends no process."""

from collections.abc import Mapping

import trio
import trio.testing

from leader_hints.core.events import Event, TaskFailed
from leader_hints.faults.injector import FaultInjector
from leader_hints.faults.scenario import Scenario

_SCENARIO = Scenario.model_validate(
    {
        "steps": [
            {"at_ms": 0, "begin": {"a": {"action": "drop"}}},
            {"at_ms": 1000, "begin": {"b": {"action": "drop"}}},
            {"at_ms": 2000, "end": ["a"]},
        ]
    }
)


async def test_a_scenario_is_played_step_by_step(autojump_clock: trio.testing.MockClock) -> None:
    stage = FaultInjector(_SCENARIO)
    stage.bind(lambda event: None, dict)
    counts = []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.play)
        for _ in range(3):
            await trio.sleep(0.5)
            counts.append(len([*stage.faults]))
            await trio.sleep(0.5)

    assert counts == [1, 2, 1]


async def test_a_defect_in_a_step_is_reported_and_the_next_steps_are_played(
    autojump_clock: trio.testing.MockClock,
) -> None:
    events: list[Event] = []
    fails = [True]

    def leaders() -> Mapping[tuple[str, int], tuple[int, int]]:
        if fails.pop() if fails else False:
            raise RuntimeError("no leaders")
        return {}

    stage = FaultInjector(_SCENARIO)
    stage.bind(events.append, leaders)
    await stage.play()

    (failed,) = events
    assert isinstance(failed, TaskFailed)
    assert failed.task == "scenario"
    assert "RuntimeError" in failed.traceback
    assert len([*stage.faults]) == 1
