"""HandshakeTurns: handshakes of clients go on one after the other, and links are served in between.

Tested in ``tests/net/tls/test_handshake_turns.py``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from enum import IntEnum

import trio

from leader_hints.net.pump.poller import READ, Poller, make_poller

#: In which a step of a handshake is done.
Turn = Callable[[], AbstractAsyncContextManager[None]]
#: Clients that are noted at once as having sent something. Each takes some 2 µs.
_NOTED = 256


class Rank(IntEnum):
    """Who goes first of clients whose bytes have come.

    ANSWERED: it has cost its signature, which would be in vain if its time were over. SLOW: it has
    sent its handshake in many pieces, as nobody does who means to finish it; of these the oldest
    goes first.
    """

    ANSWERED = 0
    NEW = 1
    SLOW = 2


#: Waits until bytes of a client can be received, and it is its turn to.
Arrival = Callable[[Rank], Awaitable[None]]


class HandshakeTurns:
    """Of one process. ``urgent``: has links take short turns while somebody waits for his.

    A step may be a signature, of a millisecond, and anybody can ask for it. Trio gives all tasks
    that have something to do one turn before any of them has its second: without this, links would
    wait for as many signatures as clients have asked for at the same time. They would also wait for
    as many tasks to be woken as clients have sent a byte at the same time, some 30 µs for each.
    So the bytes of a client are left with the system until it is its turn, and a silent client
    takes nobody's place.

    Who has begun to wait last goes first. Handshakes have several steps and little time. If the
    first steps of all were done before the last one of any, and all of them took too long, nobody
    would be in when that time is over; nor would anybody when all come again. So some are in soon,
    and others are late.
    """

    def __init__(self, urgent: Callable[[], AbstractContextManager[None]]) -> None:
        self._urgent = urgent
        self._taken = False
        #: Those that wait for a turn with no bytes to come, the newest last.
        self._waiting: dict[trio.Event, None] = {}
        #: By descriptor: those whose bytes are awaited.
        self._awaited: dict[int, tuple[trio.Event, Rank]] = {}
        #: By rank: those whose bytes have come, the newest last.
        self._arrived: dict[Rank, dict[trio.Event, None]] = {rank: {} for rank in Rank}
        self._poller: Poller | None = None

    async def run(self, wake: Callable[[int], AbstractContextManager[None]]) -> None:
        """Look for bytes of clients until cancelled.

        ``wake``: in which links end their turns while a descriptor is readable.
        """
        poller = self._poller = make_poller()
        try:
            for descriptor in self._awaited:
                poller.watch(descriptor, 0, READ)
            with wake(poller.fileno()):
                while True:
                    await trio.lowlevel.wait_readable(poller.fileno())
                    with self._urgent():
                        while self._note(poller):
                            await trio.lowlevel.checkpoint()
        finally:
            self._poller = None
            poller.close()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn, and keep it."""
        with self._urgent():
            await self._take()
            try:
                yield
            finally:
                self._give_on()

    async def arrival(self, descriptor: int, rank: Rank) -> None:
        """Wait until bytes can be received, and it is the turn of who receives them.

        :raises OSError: the system has no room to watch the descriptor.
        """
        called = trio.Event()
        if self._poller is not None:
            self._poller.watch(descriptor, 0, READ)
        self._awaited[descriptor] = called, rank
        try:
            await called.wait()
        finally:
            if called.is_set():
                self._give_on()
            elif called in self._arrived[rank]:
                del self._arrived[rank][called]
            else:
                self._forget(descriptor)

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

    def _note(self, poller: Poller) -> bool:
        """Note who has sent something; return whether any of them waits for his turn."""
        noted = 0
        while noted < _NOTED and (ready := poller.poll(0)):
            noted += len(ready)
            for descriptor, _ in ready:
                called, rank = self._forget(descriptor)
                self._arrived[rank][called] = None
        if not self._taken:
            self._give_on()
        return any(self._arrived.values())

    def _forget(self, descriptor: int) -> tuple[trio.Event, Rank]:
        if self._poller is not None:
            self._poller.watch(descriptor, READ, 0)
        return self._awaited.pop(descriptor)

    def _give_on(self) -> None:
        called = self._next()
        self._taken = called is not None
        if called is not None:
            called.set()

    def _next(self) -> trio.Event | None:
        # Of clients' steps first those whose bytes have been received: there are few of them.
        for some in (self._waiting, *self._arrived.values()):
            if some:
                slow = some is self._arrived[Rank.SLOW]
                called = next(iter(some) if slow else reversed(some))
                del some[called]
                return called
        return None
