"""Takes the time of every so-many-th exchange of Produce and Fetch."""

from typing import TYPE_CHECKING

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.core.clock import Clock
from leader_hints.core.events import LatencySampled
from leader_hints.core.link.exchange import Exchange

if TYPE_CHECKING:
    from leader_hints.core.link.link_state import LinkState

_SAMPLED = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})


class LatencySampler:
    """One for all routes of a process.

    ``every``: of so many exchanges one is timed, at least 1. ``clock``: seconds of a clock that
    never goes back. It is asked here, so that exchanges that are not sampled cost no look at it.
    """

    __slots__ = ("_clock", "_every", "_left")

    def __init__(self, every: int, clock: Clock) -> None:
        self._every = every
        self._left = every
        self._clock = clock

    def asked(self, link: "LinkState", exchange: Exchange) -> None:
        """Note an exchange whose request goes on now. A link has one timed at a time."""
        if exchange.handling.key not in _SAMPLED:
            return
        self._left -= 1
        if self._left <= 0 and link.timed is None:
            self._left = self._every
            link.timed = exchange
            link.timed_at = self._clock()

    def answered(self, link: "LinkState") -> None:
        """Tell of the timed exchange of ``link``, whose response has begun."""
        timed, link.timed = link.timed, None
        assert timed is not None
        link.events.append(
            LatencySampled(
                route=link.route.name,
                link=link.number,
                client_id=link.client_id or "",
                software=link.software,
                api=api_name(timed.handling.key),
                version=timed.handling.version,
                latency_ms=(self._clock() - link.timed_at) * 1000,
            )
        )
