"""Events of a worker's links, which let errors go first.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from leader_hints.core.workers.messages import Happened

#: Events that wait at most. Of errors without a hint thousands come when a broker restarts.
_MOST: Final = 20_000
#: Events that are sent in one step, each of which costs some 10 us; and seconds between two steps.
_SENT_AT_ONCE: Final = 200
_MOMENT: Final = 0.005


class WaitingEvents:
    """Events that wait while the process that decides has not read what was said before.

    There may be as many as clients make, and it takes each to its observers. Behind thousands of
    them an error would have its hints too late.

    ``send``: to that process; ``behind``: whether it has not read all. ``lose``: takes how many
    events are lost, where too many wait.
    """

    def __init__(
        self,
        send: Callable[[Happened], None],
        behind: Callable[[], bool],
        lose: Callable[[int], None],
    ) -> None:
        self._send = send
        self._behind = behind
        self._lose = lose
        self._waiting: deque[Happened] = deque()
        self._some = trio.Event()

    def take(self, happened: Happened) -> None:
        """Send an event, now or later."""
        if not self._waiting and not self._behind():
            self._send(happened)
        elif len(self._waiting) >= _MOST:
            self._lose(1)
        else:
            self._waiting.append(happened)
            self._some.set()

    def send_some(self) -> bool:
        """Send some of those that wait, if they may go; return whether others wait."""
        for _ in range(_SENT_AT_ONCE):
            if not self._waiting or self._behind():
                break
            self._send(self._waiting.popleft())
        return bool(self._waiting)

    async def run(self) -> None:
        """Send what waits when it may go, until cancelled."""
        while True:
            await self._some.wait()
            self._some = trio.Event()
            await self.sent()

    async def sent(self) -> None:
        """Send what waits when it may go; return when nothing waits."""
        while self.send_some():  # noqa: ASYNC110 - when that is depends on another process
            await trio.sleep(_MOMENT)
