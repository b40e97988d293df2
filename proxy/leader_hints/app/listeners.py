"""Open listeners that are closed together.

Tested in ``tests/app/test_process.py``.
"""

from collections.abc import Callable

import trio

from leader_hints.address import Address
from leader_hints.core.events import Event
from leader_hints.net.clients.listening import Beginnings, Handler, accept
from leader_hints.net.pump.pump import Pump
from leader_hints.net.takeover.listening_sockets import ListeningSockets


class Listeners:
    """Accepts connections until :meth:`close`; those that were accepted go on.

    ``sockets``: of the whole process.
    """

    def __init__(
        self, pump: Pump, emit: Callable[[Event], None], sockets: ListeningSockets
    ) -> None:
        self._pump = pump
        self._emit = emit
        self.sockets = sockets
        self._scopes: set[trio.CancelScope] = set()
        self._closed = False
        self._beginnings = Beginnings()

    async def open(
        self, name: str, address: Address, handler: Handler, nursery: trio.Nursery
    ) -> str:
        """Serve connections to ``address`` in ``nursery``; return the address that was bound.

        ``name``: what is served there.

        :raises ListenError: the address cannot be listened on.
        """
        listeners, bound = await self.sockets.open(name, address)
        for listener in listeners:
            nursery.start_soon(self.accept_all, listener, handler, nursery)
        return bound

    async def accept_all(
        self, listener: trio.SocketListener, handler: Handler, nursery: trio.Nursery
    ) -> None:
        """Serve connections of a listener in ``nursery`` until it is closed here."""
        with trio.CancelScope() as scope:
            if self._closed:
                scope.cancel()
            self._scopes.add(scope)
            try:
                await accept(listener, handler, nursery, self._pump, self._emit, self._beginnings)
            finally:
                self._scopes.discard(scope)

    def close(self) -> None:
        """Accept no connection any more."""
        self._closed = True
        for scope in self._scopes:
            scope.cancel()

    async def closed(self) -> None:
        """Wait until all listeners are closed, after :meth:`close`: a few rounds."""
        while self._scopes:
            await trio.lowlevel.checkpoint()
