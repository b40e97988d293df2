"""Prints what happened in a world, in plain words and in the order of its times."""

from collections.abc import Iterator

from tests.world.run import Life

#: Seconds before what was broken from which on everything is printed.
_BEFORE = 4.0


def timeline(life: Life) -> Iterator[str]:
    """Yield lines: what the world is like, what it broke, and what led to the first of it."""
    yield f"seed {life.seed}: {life.profile}"
    yield "clients: " + ", ".join(client.name for client in life.lived.world.clients)
    yield from (f"happening: {happening}" for happening in life.happenings)
    for broken in life.broken:
        yield f"BROKEN at {broken.at:.4f}: {broken.rule}: {broken.text}"
    if life.broken:
        at = life.broken[0].at
        told = set()
        for said_at, text in life.lived.world.said:
            # Of a client that tries again and again the first attempt will do.
            if at - _BEFORE <= said_at <= at + 0.5 and text not in told:
                told.add(text)
                yield f"{said_at:10.4f}  {text}"
