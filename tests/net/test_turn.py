import trio

from proxy.net.turn import Turn


async def _others_turns(turn: Turn, steps: int) -> int:
    """How often another task ran while one took so many steps."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for _ in range(steps):
            await turn.yield_if_over()
        nursery.cancel_scope.cancel()
    return turns


async def test_others_get_their_turn_when_it_is_over() -> None:
    assert await _others_turns(Turn(0.0), 10) >= 9


async def test_nobody_is_switched_to_before() -> None:
    assert await _others_turns(Turn(3600.0), 10) <= 1
