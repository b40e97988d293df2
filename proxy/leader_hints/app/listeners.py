"""Open listeners that are closed together.

Tested in ``tests/app/test_process.py``.
"""

from collections.abc import Callable

import trio

from leader_hints.address import Address
from leader_hints.core.events import Event
from leader_hints.net.clients.listening import Beginnings, Handler, accept, open_listeners
from leader_hints.net.pump.pump import Pump


class Listeners:
    """Accepts connections until :meth:`close`; those that were accepted go on."""

    def __init__(self, pump: Pump, emit: Callable[[Event], None]) -> None:
        self._pump = pump
        self._emit = emit
        self._scopes: list[trio.CancelScope] = []
        self._beginnings = Beginnings()

    async def open(self, address: Address, handler: Handler, nursery: trio.Nursery) -> str:
        """Serve connections to ``address`` in ``nursery``; return the address that was bound.

        :raises ListenError: the address cannot be listened on.
        """
        listeners, bound = await open_listeners(address)
        for listener in listeners:
            nursery.start_soon(self.accept_all, listener, handler, nursery)
        return bound

    async def accept_all(
        self, listener: trio.SocketListener, handler: Handler, nursery: trio.Nursery
    ) -> None:
        """Serve connections of a listener in ``nursery`` until it is closed here."""
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            await accept(listener, handler, nursery, self._pump, self._emit, self._beginnings)

    def close(self) -> None:
        """Accept no connection any more."""
        for scope in self._scopes:
            scope.cancel()
