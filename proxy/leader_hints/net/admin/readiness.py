"""Whether each route can serve clients now."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import trio

from leader_hints.address import Address
from leader_hints.apis.keys import ApiKey
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connector
from leader_hints.observe.watched import Upstream
from leader_hints.wire.errors import WireError

#: Seconds in which a broker must take a connection, and again to answer on it.
_PATIENCE = 2.0
#: Brokers to which connecting begins before other tasks get their turn. There may be hundreds.
_CONNECTING_AT_ONCE = 5


class Readiness:
    """Looks whether the brokers behind ``routes`` answer.

    ``upstream``: what is known. A broker that answers by that is not asked once more. ``urgent``:
    has links take short turns while it is begun to ask. Not until all have answered: some may be
    down, and be looked at again and again.
    """

    def __init__(
        self,
        routes: Sequence[tuple[Route, Address, Connector]],
        upstream: Callable[[Route], Upstream],
        client_id: str,
        urgent: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._routes = routes
        self._upstream = upstream
        self._client_id = client_id
        self._urgent = urgent

    async def check(self) -> Mapping[str, str]:
        """Return by route name why it is not ready, an empty text where it is."""
        # Only what is proved: clients meet a broker that refuses nearly all that they ask.
        found = {route.name: route.advertised.crossed for route, *_ in self._routes}

        async def look(route: Route, address: Address, connector: Connector) -> None:
            found[route.name] = await self._reason(route, address, connector)

        begun = 0
        async with trio.open_nursery() as nursery:
            with self._urgent():
                for route, address, connector in self._routes:
                    if found[route.name] or self._upstream(route).answers:
                        continue
                    nursery.start_soon(look, route, address, connector)
                    begun += 1
                    if begun % _CONNECTING_AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
        return found

    async def _reason(self, route: Route, address: Address, connector: Connector) -> str:
        try:
            connection = await connector.connect(address, _PATIENCE, self._client_id, _PATIENCE)
            async with contextlib.aclosing(connection):
                # A plain relay may be in front of a listener that speaks TLS: it can only know
                # of the connection. Listeners with SASL answer this question of any client.
                if route.mode is not Mode.OFF:
                    await connection.ask(ApiKey.API_VERSIONS, 0, b"")
        except (BrokerError, WireError) as error:
            return f"broker {address}: {error}"
        return ""
