"""What happened in the last hour, for people to look at."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from leader_hints.core.events import (
    ClientSeen,
    Event,
    HintGiven,
    HintMissed,
    LeaderMoved,
    Recovered,
)
from leader_hints.core.versions.client_capabilities import BUILT_IN
from leader_hints.observe.client_names import ClientNames

#: Seconds that are remembered, and into how long slots they are cut.
SPAN = 3600
SLOT = 30
#: Remembered one by one: the newest leader moves in all, and the newest times of each kind.
_MOVES = 100
_TIMES = 1000
_Answered = HintGiven | HintMissed


@dataclass(slots=True)
class Slot:
    """Counts of the ``SLOT`` seconds that begin at ``start`` (Unix time)."""

    start: int
    moves: int = 0
    given: int = 0
    missed: int = 0


class Move(NamedTuple):
    """A leader move, and when it was learnt (Unix time)."""

    at: float
    moved: LeaderMoved


class Percentiles(NamedTuple):
    """Of some ``times``; milliseconds."""

    times: int
    p50: float
    p90: float
    p99: float
    most: float


class _Times:
    """Times of one kind, as far as they are of the last hour and the newest."""

    def __init__(self) -> None:
        self._taken: deque[tuple[float, float]] = deque(maxlen=_TIMES)

    def add(self, now: float, milliseconds: float) -> None:
        self._taken.append((now, milliseconds))

    def percentiles(self, now: float) -> Percentiles | None:
        while self._taken and self._taken[0][0] <= now - SPAN:
            self._taken.popleft()
        values = sorted(taken for at, taken in self._taken if now - SPAN < at <= now)
        if not values:
            return None
        p50, p90, p99 = (values[math.ceil(len(values) * share) - 1] for share in (0.5, 0.9, 0.99))
        return Percentiles(len(values), p50, p90, p99, values[-1])


class History:
    """Leader moves, hints, holds and recoveries of the last hour, and the clients seen.

    ``clock``: Unix time in seconds. If it is set back, what lies in the future then is left out.
    ``known``: see :class:`leader_hints.observe.client_names.ClientNames`.
    """

    def __init__(self, clock: Callable[[], float], known: Collection[str] = BUILT_IN.names) -> None:
        self._clock = clock
        self._slots: deque[Slot] = deque()
        self._moves: deque[Move] = deque(maxlen=_MOVES)
        self._holds: dict[str, _Times] = {}
        self._recoveries: dict[str, dict[tuple[str, bool], _Times]] = {}
        self._clients: dict[tuple[str, str], float] = {}
        self._names = ClientNames(known)

    def take(self, event: Event) -> None:
        """Remember ``event``."""
        if isinstance(event, LeaderMoved):
            now = self._clock()
            self._slot(now).moves += 1
            self._moves.append(Move(now, event))
        elif isinstance(event, _Answered):
            now = self._clock()
            slot = self._slot(now)
            if isinstance(event, HintGiven):
                slot.given += 1
            else:
                slot.missed += 1
            self._hold(event, now)
        elif isinstance(event, Recovered) and event.recovery_ms is not None:
            of_route = self._recoveries.setdefault(event.route, {})
            times = of_route.setdefault((event.api, event.hinted), _Times())
            times.add(self._clock(), event.recovery_ms)
        elif isinstance(event, ClientSeen):
            self._clients[self._names.label(event.software, event.version)] = self._clock()

    def _hold(self, event: _Answered, now: float) -> None:
        answered = event.answered
        if not answered.observed:
            times = self._holds.get(answered.route)
            if times is None:
                times = self._holds[answered.route] = _Times()
            times.add(now, answered.hold_ms)

    def _slot(self, now: float) -> Slot:
        start = int(now // SLOT) * SLOT
        if self._slots and self._slots[-1].start == start:
            return self._slots[-1]
        self._expire(now)
        if not self._slots or self._slots[-1].start < start:
            self._slots.append(Slot(start))
        return self._slots[-1]

    def _expire(self, now: float) -> None:
        while self._slots and self._slots[0].start <= now - SPAN - SLOT:
            self._slots.popleft()
        while self._slots and self._slots[-1].start > now:
            self._slots.pop()

    def slots(self) -> list[Slot]:
        """Return the slots of the last hour in which something happened, oldest first."""
        self._expire(self._clock())
        return [*self._slots]

    def moves(self) -> list[Move]:
        """Return the newest leader moves of the last hour, newest first."""
        now = self._clock()
        return [move for move in reversed(self._moves) if now - SPAN < move.at <= now]

    def holds(self, route: str) -> Percentiles | None:
        """Return how long error responses of a route were held, ``None`` where there was none."""
        times = self._holds.get(route)
        return times.percentiles(self._clock()) if times else None

    def recoveries(self, route: str) -> Iterator[tuple[str, bool, Percentiles]]:
        """Iterate over API, whether a hint was given, and the times of a route's recoveries."""
        of_route = self._recoveries.get(route, {})
        for (api, hinted), times in sorted(of_route.items(), key=itemgetter(0)):
            percentiles = times.percentiles(self._clock())
            if percentiles is not None:
                yield api, hinted, percentiles

    def last_seen(self, software: tuple[str, str]) -> float | None:
        """Return when a client of this name and version was last seen (Unix time)."""
        return self._clients.get(software)
