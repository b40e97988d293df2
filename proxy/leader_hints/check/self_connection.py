"""Arrivals: listens where routes would listen, to see which connections come out there."""

import errno
import secrets
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.check.rules import Listening

_RECEIVE = 4096
#: What arrives must say so within this time, and a host name be resolved; in seconds.
_PATIENCE = 2.0
#: A first request with its token is much smaller.
_LARGEST = 4096


class Arrivals:
    """Knows by a token in its first request where a connection of this process came out.

    Connections that come out are closed, those of others too: no proxy runs there yet.
    """

    def __init__(self) -> None:
        self._routes: dict[str, str] = {}
        self._tokens: set[str] = set()

    def token(self) -> str:
        """Return a token that nobody else knows; it is to stand in a connection's first bytes."""
        token = secrets.token_hex(16)
        self._tokens.add(token)
        return token

    def route(self, token: str) -> str | None:
        """Return the name of the route where the token's connection came out."""
        return self._routes.get(token)

    async def listen(
        self, nursery: trio.Nursery, route: str, address: Address
    ) -> tuple[Listening, str]:
        """Hold a route's listening address in ``nursery``; return whether that can be, and why not.

        Port 0 is not held: it would be another one each time.
        """
        try:
            with trio.fail_after(_PATIENCE):
                listeners = await trio.open_tcp_listeners(address.port, host=address.host)
        except trio.TooSlowError:
            return Listening.REFUSED, f"its name is not resolved within {_PATIENCE:g} s"
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = (error.strerror or str(error)).lower()
            return (Listening.TAKEN if taken else Listening.REFUSED), reason
        if address.port == 0:
            for listener in listeners:
                await listener.aclose()
            return Listening.ANY, ""
        nursery.start_soon(partial(trio.serve_listeners, partial(self._arrive, route), listeners))
        return Listening.FREE, ""

    async def _arrive(self, route: str, stream: trio.SocketStream) -> None:
        data = b""
        async with stream:
            try:
                with trio.move_on_after(_PATIENCE):
                    while not (found := self._found(data)) and len(data) < _LARGEST:
                        chunk = await stream.receive_some(_RECEIVE)
                        if not chunk:
                            return
                        data += chunk
                    if found:
                        self._routes[found] = route
            except trio.BrokenResourceError:
                return

    def _found(self, data: bytes) -> str | None:
        return next((token for token in self._tokens if token.encode() in data), None)
