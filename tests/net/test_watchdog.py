"""A stalled event loop is noticed from outside, and reports it afterwards."""

import threading

import trio

from leader_hints.net.watchdog import Watchdog


async def test_where_the_loop_stands_still_is_reported_once_and_for_how_long_afterwards() -> None:
    told: list[tuple[float, str]] = []
    noticed = threading.Event()
    stalled: list[float] = []
    over = trio.Event()

    def stuck(seconds: float, stack: str) -> None:
        told.append((seconds, stack))
        noticed.set()

    def stalled_still(seconds: float) -> None:
        stalled.append(seconds)
        over.set()

    # Long enough that a loaded machine does not stop the loop for it elsewhere.
    watchdog = Watchdog(0.5, stuck, stalled_still)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watchdog.run)
        await trio.testing.wait_all_tasks_blocked()
        _stand_still_until(noticed)
        await over.wait()
        nursery.cancel_scope.cancel()
    ((seconds, stack),) = told
    assert seconds >= 0.5
    assert "_stand_still_until" in stack
    assert stalled[0] >= seconds


def _stand_still_until(noticed: threading.Event) -> None:
    assert noticed.wait(10), "nobody noticed"


async def test_a_loop_that_turns_is_no_news() -> None:
    told: list[object] = []
    watchdog = Watchdog(60.0, lambda *words: told.append(words), told.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watchdog.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told == []
