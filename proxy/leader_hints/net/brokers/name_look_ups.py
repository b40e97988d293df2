"""Look-ups of brokers' names, in threads of their own."""

import socket
from collections import OrderedDict
from copy import copy
from typing import Any

import trio

#: Threads for look-ups of names that were found before, and as many for all others. Each of them
#: may hang for as long as name servers do not answer.
_THREADS = 32
#: Names that are remembered as found.
_FOUND = 1000
#: Look-ups at the same time, including those that wait for a thread, besides those of names that
#: were found before: more than a large cluster has brokers.
_MOST = 2000
#: Tasks that go on with what was found before others get their turn: each then begins to connect,
#: which costs some 0.1 ms, and thousands of clients may have waited for the name of one broker.
_AT_ONCE = 20

#: Seconds after which a look-up is given up, and the next attempt begins another one. The resolver
#: of the C library may take 5 s for each name server, attempt and search domain, and still find the
#: name (resolv.conf(5)); other modules of nsswitch may hang for good.
_PATIENCE = 300.0
#: While so many that were given up still have a thread, others are given up after twice that time
#: alone, with twice as many after four times, and so on: threads stay few for years, and a resolver
#: that answers again is asked.
_HUNG = 32

#: What :func:`socket.getaddrinfo` takes: host, port, family, type, protocol and flags.
_Question = tuple[bytes | None, bytes | str | int | None, int, int, int, int]


class _LookUp:
    """A look-up under way, and what came of it. ``over``: its thread has ended."""

    __slots__ = ("error", "found", "over", "waiting")

    def __init__(self) -> None:
        self.over = False
        self.waiting = trio.lowlevel.ParkingLot()
        self.found: list[Any] = []
        self.error: Exception | None = None


class NameLookUps(trio.abc.HostnameResolver):
    """Looks names up for all tasks of a Trio run; see :func:`install`.

    A look-up cannot be cancelled. While name servers do not answer, each attempt of a client to
    reach a broker by name would keep one more thread, until none is left for anything else. So
    each name has one look-up at a time, which all attempts wait for, and a later attempt joins it.
    One that does not end is given up: others may, and there is a bound for threads that hang.

    A cluster may have hundreds of brokers whose names nobody here knows, and they are tried again
    and again. What was found before does not wait for those.
    """

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._limiter_of_found = trio.CapacityLimiter(_THREADS)
        self._found: OrderedDict[_Question, None] = OrderedDict()
        self._running: dict[_Question, _LookUp] = {}
        #: Those that were given up, and whose threads hang. Threads take themselves out.
        self._hung: set[_LookUp] = set()

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Look a name up.

        :raises OSError: there is no address, or too many names are being looked up.
        """
        question = host, port, family, type, proto, flags
        look_up = self._running.get(question)
        if look_up is None:
            if question not in self._found and len(self._running) >= _MOST:
                reason = f"{_MOST} names are being looked up already"
                raise socket.gaierror(socket.EAI_AGAIN, reason)
            look_up = self._running[question] = _LookUp()
            # Not a child of this task: others wait for it too, and the thread goes on in any case.
            trio.lowlevel.spawn_system_task(self._run, question, look_up)
        await look_up.waiting.park()
        if look_up.error is not None:
            # Each has its own: the frames of thousands, which an error keeps, were all in one
            # circle. To look for that garbage takes a quarter of a second.
            raise copy(look_up.error)
        return look_up.found

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        """Look up the name of an address.

        :raises OSError: there is none.
        """
        return await trio.to_thread.run_sync(
            socket.getnameinfo, sockaddr, flags, abandon_on_cancel=True, limiter=self._limiter
        )

    async def _run(self, question: _Question, look_up: _LookUp) -> None:
        limiter = self._limiter_of_found if question in self._found else self._limiter
        try:
            async with limiter:
                look_up.found = await self._ask(question, look_up)
            self._remember(question)
        except Exception as error:
            # It is that of the tasks that wait. Here it would end the process.
            look_up.error = error.with_traceback(None)
        finally:
            del self._running[question]
        # A task that comes from now on begins another one.
        while look_up.waiting:
            look_up.waiting.unpark(count=_AT_ONCE)
            await trio.lowlevel.checkpoint()

    async def _ask(self, question: _Question, look_up: _LookUp) -> list[Any]:
        def ask() -> list[Any]:
            try:
                return socket.getaddrinfo(*question)
            finally:
                look_up.over = True
                self._hung.discard(look_up)

        patience = _PATIENCE * 2 ** (len(self._hung) // _HUNG)
        with trio.move_on_after(patience):
            # The caller's limiter counts it, and not this one: when given up it leaves its place.
            own = trio.CapacityLimiter(1)
            return await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=own)
        self._hung.add(look_up)
        if look_up.over:
            self._hung.discard(look_up)
        raise socket.gaierror(socket.EAI_AGAIN, f"no answer within {patience:g} s")

    def _remember(self, question: _Question) -> None:
        self._found[question] = None
        self._found.move_to_end(question)
        if len(self._found) > _FOUND:
            self._found.popitem(last=False)


def install() -> None:
    """Have all names of this Trio run looked up so, unless it has a resolver of its own."""
    before = trio.socket.set_custom_hostname_resolver(NameLookUps())
    if before is not None:
        trio.socket.set_custom_hostname_resolver(before)
