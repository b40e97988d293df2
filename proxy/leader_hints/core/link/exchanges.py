"""The requests of a link that await their responses, in order."""

from collections import deque

from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.latency_sampler import LatencySampler


class Exchanges:
    """Exchanges under way, of which one at a time may be timed.

    ``waiting``: the oldest first. ``unread``: requests are no longer looked at, so neither are the
    responses to come. ``timed``: the exchange whose time is taken.
    """

    __slots__ = ("_sampler", "_since", "timed", "unread", "waiting")

    def __init__(self, sampler: LatencySampler | None) -> None:
        self.waiting: deque[Exchange] = deque()
        self.unread = False
        self.timed: Exchange | None = None
        self._since = 0.0
        self._sampler = sampler

    def add(self, exchange: Exchange) -> None:
        """Take an exchange whose request goes on now, and its time, if it is chosen."""
        self.waiting.append(exchange)
        exchange.policy.cell.requests += 1
        if self._sampler is not None:
            self._sample(self._sampler, exchange)

    def _sample(self, sampler: LatencySampler, exchange: Exchange) -> None:
        if sampler.chooses(exchange.policy.key, busy=self.timed is not None):
            self.timed = exchange
            self._since = sampler.clock()

    def end_timing(self) -> float:
        """Return the seconds of the timed exchange, whose response has begun."""
        assert self._sampler is not None
        self.timed = None
        return self._sampler.clock() - self._since

    def stop(self) -> None:
        """Keep no further ones: responses are no longer looked at."""
        self.waiting = deque(maxlen=0)
