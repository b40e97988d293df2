"""How links come to rest while a process ends."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import trio

from leader_hints.core.link.link_state import LinkState
from leader_hints.net.pump.pump import Pump
from leader_hints.net.time_slices import TimeSlices
from leader_hints.observe.journal import CLIENT_ID_PREFIX

#: Seconds between two checks whether all links have ended.
_LOOK = 0.02
#: Which part of the time links have to come to rest while their requests are still taken. On three
#: loaded brokers all did within 1.2 s (``tests/real/test_takeover.py``).
_BY_THEMSELVES = 1 / 3
#: Seconds between the ends of two routes' links. A client connects again meanwhile.
PAUSE = 0.25
#: In how many groups routes end one after the other, so that all links are looked at this often.
_GROUPS = 20


class Drain:
    """Ends all links of ``pump`` as soon as they have no request under way, but the journal's.

    ``seconds``: after which those that do not rest are left. ``routes``: by name, if another
    process takes their clients' connections by now, else none. Their links end one route after the
    other: a client all of whose brokers are gone at the same moment begins again from its bootstrap
    servers (KIP-899 and KIP-1102). librdkafka 2.16.0 waits for up to two seconds then.
    ``joining``: whether some client is being joined to its broker. It was accepted before the other
    process took over, and is not to be refused for that: its handshake may take a while.
    """

    def __init__(
        self, pump: Pump, seconds: float, routes: Sequence[str], joining: Callable[[], bool]
    ) -> None:
        self._pump = pump
        self._seconds = seconds
        self._routes = routes
        self._joining = joining
        self._slices = TimeSlices()

    async def run(self) -> None:
        """Return when all links have ended, or their time is over."""
        by_themselves = trio.current_time() + self._seconds * _BY_THEMSELVES
        with trio.move_on_after(self._seconds):
            with trio.move_on_at(by_themselves):
                await self._end_routes()
            await self._slices.take(self._pump.drain(_is_the_journals))
            with trio.move_on_at(by_themselves):
                await self._joined()
                await self._ended()
            await self._slices.take(self._pump.take_no_more())
            await self._ended()

    async def _end_routes(self) -> None:
        groups = min(len(self._routes), _GROUPS)
        for group in range(1, groups):
            # Neighbours are mostly of one cluster, so they are in different groups.
            later = {name for at, name in enumerate(self._routes) if at % groups >= group}
            await self._slices.take(self._pump.drain(partial(_stays, later)))
            await trio.sleep(min(PAUSE, self._seconds * _BY_THEMSELVES / groups))

    async def _joined(self) -> None:
        while self._routes and self._joining():  # noqa: ASYNC110 - it ends in many ways
            await trio.sleep(_LOOK)

    async def _ended(self) -> None:
        while not self._pump.drained:  # noqa: ASYNC110 - links close in many ways
            await trio.sleep(_LOOK)


def _stays(routes: Collection[str], link: LinkState) -> bool:
    return link.route.name in routes or _is_the_journals(link)


def _is_the_journals(link: LinkState) -> bool:
    return (link.client.id or "").startswith(CLIENT_ID_PREFIX)
