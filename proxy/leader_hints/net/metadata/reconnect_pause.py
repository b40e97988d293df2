"""How long it is waited until a broker that was lost is connected to again.

Tested in ``tests/net/metadata/test_broker_poller.py``.
"""

import trio


class ReconnectPause:
    """Grows from ``least`` seconds to ``most``, doubling, until the broker has answered again."""

    def __init__(self, least: float, most: float) -> None:
        self._least = least
        self._most = most
        self._next = least
        self._reached = trio.Event()

    def reset(self) -> None:
        """Begin with the least again: the broker answers."""
        self._next = self._least

    def end(self) -> None:
        """End the pause once the least has passed: somebody else has reached the broker."""
        self._reached.set()

    async def wait(self, *, connected: bool) -> None:
        """Pause until the next attempt.

        That others reach the broker is news only where it could not be ``connected`` to: they may
        do so for as long as it refuses the proxy's own credentials.
        """
        self._reached = trio.Event()
        pause, self._next = self._next, min(2 * self._next, self._most)
        await trio.sleep(self._least)
        with trio.move_on_after(pause - self._least):
            if connected:
                await trio.sleep_forever()
            await self._reached.wait()
