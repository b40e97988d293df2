"""Which links have taken too long.

A link whose client never said anything ends, and one of whose sides has ended while the other moves
no byte. There is never a deadline on a frame: large ones may take as long as they make progress.
"""

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from leader_hints.net.pump.limits import PumpLimits
from leader_hints.net.pump.socket_pair import SocketPair


class Review(NamedTuple):
    """``moves``: a byte has moved since the last review. ``limit``: which one is reached."""

    moves: bool = False
    limit: str = ""


class LinkTimes:
    """The times of all links, in seconds of a clock that the caller reads about every second."""

    __slots__ = ("_ending", "_limits", "_now", "_young")

    def __init__(self, limits: PumpLimits) -> None:
        self._limits = limits
        self._now = 0.0
        #: Links that may not have said anything yet, the oldest first: until when each may wait.
        self._young: deque[tuple[float, int]] = deque()
        self._ending: dict[int, SocketPair] = {}

    def begin(self, pair: SocketPair) -> None:
        """Take note of a new link."""
        # It has just begun: at the end of the process it has a second to say something, too.
        pair.seen, pair.since = -1, self._now
        if self._limits.first_bytes < math.inf:
            self._young.append((self._now + self._limits.first_bytes, pair.link.state.number))

    def linger(self, pair: SocketPair) -> None:
        """Take note that a side of a link has ended."""
        if not pair.ending:
            pair.ending = True
            pair.seen, pair.since, pair.unsent = pair.moves, self._now, pair.unsent_bytes()
            self._ending[pair.link.state.number] = pair

    def forget(self, pair: SocketPair) -> None:
        """Take note that a link is closed."""
        self._ending.pop(pair.link.state.number, None)

    def silent(
        self, open_pairs: Mapping[int, SocketPair], now: float
    ) -> Iterator[SocketPair | None]:
        """Iterate over links whose clients should have said something by now.

        ``None`` in place of those that have.
        """
        self._now = now
        while self._young and self._young[0][0] <= now:
            pair = open_pairs.get(self._young.popleft()[1])
            yield None if pair is None or pair.moves else pair

    @property
    def ending(self) -> Collection[SocketPair]:
        """Links of which a side has ended."""
        return self._ending.values()

    def review(self, pair: SocketPair, now: float) -> Review:
        """Look at what has moved since the last time."""
        if pair.moves != pair.seen:
            pair.seen = pair.moves
            pair.since = now
            return Review(moves=True)
        if pair.ending and now - pair.since >= self._limits.linger:
            before, pair.unsent = pair.unsent, pair.unsent_bytes()
            pair.since = now
            return Review(limit="linger_ms") if pair.unsent == before else Review(moves=True)
        if now - pair.since >= self._limits.idle:
            return Review(limit="idle_ms")
        return Review()
