"""Self-connections: those of this process that reach an address where a route would listen."""

import errno
import secrets
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.check.facts import Listening

_RECEIVE = 4096
#: Seconds within which a connection must send its token, and a host name be resolved.
_PATIENCE = 2.0
#: A first request with its token is much smaller.
_LARGEST = 4096


class SelfConnections:
    """Listens in place of routes, and finds by a token which connection reached which route.

    All connections are closed, those of other processes too: no proxy runs there yet.
    """

    def __init__(self) -> None:
        self._routes: dict[str, str] = {}
        self._tokens: set[str] = set()

    def token(self) -> str:
        """Return a secret token for the first bytes of a connection."""
        token = secrets.token_hex(16)
        self._tokens.add(token)
        return token

    def route(self, token: str) -> str | None:
        """Return the name of the route that the token's connection reached."""
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
