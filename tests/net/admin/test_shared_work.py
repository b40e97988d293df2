"""Work that many ask for at the same time is done once."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leader_hints.net.admin.shared_work import SharedWork


class _Work:
    """Takes a second, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0

    async def do(self) -> str:
        """Return the number of this time."""
        self.begun += 1
        number = self.begun
        await trio.sleep(1)
        return f"result {number}"


async def test_requests_during_work_share_it(autojump_clock: MockClock) -> None:
    shared, results = SharedWork(_Work().do), []

    async def ask() -> None:
        results.append(await shared.result())

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask)
    assert results == ["result 1"] * 50
    assert await shared.result() == "result 2"


async def test_work_that_is_given_up_is_done_again_for_another(autojump_clock: MockClock) -> None:
    shared, first = SharedWork(_Work().do), trio.CancelScope()

    async def give_up() -> None:
        with first:
            await shared.result()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await wait_all_tasks_blocked(0.1)
        first.deadline = trio.current_time() + 0.1
        assert await shared.result() == "result 2"


async def test_a_request_waits_between_two_times(
    autojump_clock: MockClock,
) -> None:
    work, begun_at = _Work(), trio.current_time()
    shared = SharedWork(work.do, pause=3)
    assert [await shared.result() for _ in range(4)] == [f"result {n}" for n in range(1, 5)]
    assert trio.current_time() - begun_at == 3 * 3 + 1


async def test_requests_in_a_pause_share_what_follows(autojump_clock: MockClock) -> None:
    shared, results, first = SharedWork(_Work().do, pause=3), [], trio.CancelScope()
    assert await shared.result() == "result 1"

    async def ask(scope: trio.CancelScope) -> None:
        with scope:
            results.append(await shared.result())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, first)
        await wait_all_tasks_blocked()
        for _ in range(5):
            nursery.start_soon(ask, trio.CancelScope())
        # Nor does it matter who waits for all.
        first.cancel()
    assert results == ["result 2"] * 5
