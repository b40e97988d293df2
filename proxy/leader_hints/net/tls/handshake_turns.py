"""HandshakeTurns: one step of all TLS handshakes at a time, and links are served in between.

Tested in ``tests/net/tls/test_tls.py``.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager

import trio

#: In which a step of a handshake is done.
Turn = Callable[[], AbstractAsyncContextManager[None]]


class HandshakeTurns:
    """Of one process. ``urgent``: has links take short turns while somebody waits for his.

    A step may be a signature, of a millisecond, and anybody can ask for it. Trio gives all tasks
    that have something to do one turn before any of them has its second: without this, links would
    wait for as many signatures as clients have asked for at the same time.

    Who has begun to wait last goes first. Handshakes have several steps and little time. If the
    first steps of all were done before the last one of any, and all of them took too long, nobody
    would be in when that time is over; nor would anybody when all come again. So some are in soon,
    and others are late.
    """

    def __init__(self, urgent: Callable[[], AbstractContextManager[None]]) -> None:
        self._urgent = urgent
        self._taken = False
        #: Those that wait, the newest last.
        self._waiting: dict[trio.Event, None] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn, and keep it."""
        with self._urgent():
            await self._take()
            try:
                yield
            finally:
                self._give_on()

    async def _take(self) -> None:
        called = trio.Event()
        if self._taken:
            self._waiting[called] = None
        else:
            self._taken = True
            called.set()
        try:
            # It goes on only in Trio's next round, also where nobody else has the turn.
            await called.wait()
        except BaseException:
            if called.is_set():
                self._give_on()
            else:
                del self._waiting[called]
            raise

    def _give_on(self) -> None:
        if self._waiting:
            called, _ = self._waiting.popitem()
            called.set()
        else:
            self._taken = False
