"""Departure: when the brokers of all routes are gone, so that a proxy may go after them."""

from collections.abc import Sequence

import trio

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_stream import OpenStream, open_broker_stream
from leader_hints.settings.settings import Settings

#: Seconds between two looks at a broker, and in which it must take a connection to count as there.
_PAUSE = 0.5
_PATIENCE = 5.0
#: Looks in a row at which it takes none until it has gone. One alone may find its queue of
#: connections full (somaxconn), a firewall that limits their rate, or no answer of a name server.
_LOOKS = 3


def await_departure(settings: Settings, at_most: float) -> None:
    """Return when no broker behind a route takes connections any more.

    :raises BrokerError: one still does after ``at_most`` seconds.
    """
    trio.run(departed, [route.upstream for route in settings.routes], at_most)


async def departed(
    brokers: Sequence[Address], at_most: float, open_stream: OpenStream = open_broker_stream
) -> None:
    """The same, of brokers by their addresses."""
    still = set(brokers)

    async def watch(broker: Address) -> None:
        missed = 0
        while True:
            try:
                stream = await open_stream(broker, _PATIENCE)
            except BrokerError:
                missed += 1
                still.discard(broker)
                if missed == _LOOKS:
                    return
            else:
                missed = 0
                still.add(broker)
                await stream.aclose()
            await trio.sleep(_PAUSE)

    with trio.move_on_after(at_most):
        async with trio.open_nursery() as nursery:
            for broker in brokers:
                nursery.start_soon(watch, broker)
    if still:
        names = ", ".join(str(broker) for broker in sorted(still))
        raise BrokerError(f"still there after {at_most:g} s: {names}")
