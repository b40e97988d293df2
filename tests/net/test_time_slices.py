from collections.abc import Iterator

import trio

from leader_hints.net.time_slices import TimeSlices, in_turns
from leader_hints.wire.steps import Steps


async def _done(slices: TimeSlices, workers: int, steps: int) -> list[int]:
    """Who did a step, in order; -1: a task that has but a moment's work, again and again."""
    done: list[int] = []

    def work(number: int) -> Iterator[None]:
        for _ in range(steps):
            done.append(number)
            yield

    async def other() -> None:
        while True:
            done.append(-1)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with trio.open_nursery() as working:
            for number in range(workers):
                working.start_soon(slices.take, work(number))
        nursery.cancel_scope.cancel()
    return done


async def test_others_get_their_turn_when_it_is_over() -> None:
    done = await _done(TimeSlices(0.0), 1, 10)
    assert done.count(0) == 10
    assert done.count(-1) >= 9


async def test_all_who_work_long_have_one_turn_at_a_time() -> None:
    done = await _done(TimeSlices(0.0), 5, 10)
    working = [number for number in done if number >= 0]
    assert sorted(working) == sorted([*range(5)] * 10)
    # Nobody has to wait until another has done all of his.
    assert len({*working[:5]}) == 5
    # Five of them leave as many slices to others as one does.
    assert done.count(-1) >= 45


async def test_nobody_is_switched_to_before() -> None:
    done = await _done(TimeSlices(3600.0), 1, 10)
    begin = done.index(0)
    assert done[begin : begin + 10] == [0] * 10


async def test_work_that_is_cancelled_keeps_nobody_from_his_turn() -> None:
    slices = TimeSlices(0.0)

    def without_end() -> Iterator[None]:
        while True:
            yield

    with trio.move_on_after(0.01):
        await slices.take(without_end())
    assert (await _done(slices, 1, 3)).count(0) == 3


async def test_steps_are_done_in_turns_with_others_and_what_comes_of_them_is_returned() -> None:
    done: list[str] = []

    def steps() -> Steps[str]:
        for _ in range(3):
            done.append("step")
            yield
        return "found"

    async def other() -> None:
        while True:
            done.append("other")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        assert await in_turns(steps()) == "found"
        nursery.cancel_scope.cancel()
    assert done.count("step") == 3
    assert done.count("other") >= 2
