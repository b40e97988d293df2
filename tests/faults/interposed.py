"""One connection with an interposer in it, and a link that the test plays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.faults.interposer import Interposer

#: A Kafka response without a body, to correlation id 1.
RESPONSE = bytes.fromhex("00000008 00000001 00000000")

Ends = tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]


@asynccontextmanager
async def interposed(
    interposer: Interposer,
    *,
    client: Ends | None = None,
    link: Ends | None = None,
    seconds: float = 10.0,
) -> AsyncIterator[Ends]:
    """Yield the client's stream and the link's; wait until the connection has ended.

    ``client`` and ``link``: the two ends of each, in memory where none are given. ``seconds``: the
    longest that all of it takes.
    """
    client_here, client_there = client or trio.testing.memory_stream_pair()
    link_here, link_there = link or trio.testing.memory_stream_pair()
    with trio.fail_after(seconds):
        async with trio.open_nursery() as nursery:
            route = Route("r", Mode.ON)
            nursery.start_soon(interposer.serve, route, client_there, link_there)
            yield client_here, link_here
