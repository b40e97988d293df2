"""A task's turn on the event loop."""

from time import monotonic

import trio


class Turn:
    """Long work is done in turns, so that links are served in between.

    ``seconds``: how long a turn lasts. It is measured and not counted in topics or partitions:
    what one of them costs depends on who takes the events that it makes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over_at = monotonic() + seconds

    async def yield_if_over(self) -> None:
        """Give all other tasks their turn, where this one is over."""
        if monotonic() >= self._over_at:
            await trio.lowlevel.checkpoint()
            self._over_at = monotonic() + self._seconds
