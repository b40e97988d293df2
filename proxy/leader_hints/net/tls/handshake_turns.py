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
    """

    def __init__(self, urgent: Callable[[], AbstractContextManager[None]]) -> None:
        self._urgent = urgent
        self._lock = trio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn, and keep it."""
        with self._urgent():
            # A task that gets the lock continues only in Trio's next round.
            async with self._lock:
                yield
