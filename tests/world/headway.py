"""How far each client has come, with the proxies and without: in the same world, the same script.

Headway is the time for which a partition was served. A record that is written counts for its
period. A Fetch counts from when it was sent until it was answered, or until the broker refused it:
so long it would have got what was written.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tests.world.clients import Client
from tests.world.model.releases import FETCH
from tests.world.world import CLOSING, END, PAUSE, World

#: When headway is compared: seconds since the world began.
TIMES: Final = (5.0, 7.0, 9.0, 11.0, 13.0, PAUSE, CLOSING, END)
#: Twins at most with which a client is compared that is behind; see :func:`behind`.
MOST_TWINS = 60
#: Seconds by which a client may be behind besides: it may have just missed its turn.
_TURN = 0.15
#: Messages that an error or a lost connection costs, each of which passes one hop more each way.
_MESSAGES = 6

Place = tuple[str, int]


class Behind(NamedTuple):
    """A client that is behind. ``seconds``: than all twins, beyond what is allowed."""

    at: float
    client: str
    place: Place
    seconds: float


class _Progress:
    """For how long one partition was served until a time."""

    def __init__(self, intervals: list[tuple[float, float]]) -> None:
        self._ends: list[float] = []
        self._begins: list[float] = []
        self._sums = [0.0]
        last = 0.0
        for begin, end in sorted(intervals):
            begin = max(begin, last)
            if begin < end:
                self._begins.append(begin)
                self._ends.append(end)
                self._sums.append(self._sums[-1] + end - begin)
                last = end

    def until(self, time: float) -> float:
        """Return the seconds until ``time``."""
        whole = bisect_left(self._ends, time)
        part = max(time - self._begins[whole], 0.0) if whole < len(self._begins) else 0.0
        return self._sums[whole] + part


def _progress(world: World, client: Client) -> dict[Place, _Progress]:
    intervals = {place: [*work.served] for place, work in client.work.items()}
    if client.api == FETCH:
        for seen in client.seen:
            # The proxy itself refuses an id that it cannot name any more.
            failed_at = world.cluster.failures.get(seen.request, seen.asked_at)
            intervals[seen.name, seen.place[1]].append((seen.asked_at, failed_at))
    return {place: _Progress(some) for place, some in intervals.items()}


def behind(world: World, twin: Callable[[int], World]) -> Iterator[Behind]:
    """Iterate over the clients that have come less far than without the proxies.

    ``twin``: lives the same world without them; its number decides what clients draw themselves:
    when they begin, and which broker they ask for Metadata. A client is behind if it has come less
    far than in all of ``MOST_TWINS`` twins. What is allowed besides: for how long its own responses
    were held, the hop more that each message has, and a turn that it has just missed.
    """
    reached = [_progress(world, client) for client in world.clients]
    late = [
        (number, place, at, progress.until(at) + _allowed(world, client, at))
        for number, client in enumerate(world.clients)
        for place, progress in reached[number].items()
        for at in TIMES
    ]
    least: dict[tuple[int, Place, float], float] = {}
    for luck in range(MOST_TWINS):
        other = twin(luck)
        there = [_progress(other, client) for client in other.clients]
        still = []
        for number, place, at, enough in late:
            progress = there[number].get(place)
            seconds = progress.until(at) - enough if progress is not None else 0.0
            if seconds > 0.0:
                still.append((number, place, at, enough))
                key = number, place, at
                least[key] = min(least.get(key, seconds), seconds)
        late = still
        if not late:
            return
    for number, place, at, _ in late:
        yield Behind(at, world.clients[number].name, place, least[number, place, at])


def _allowed(world: World, client: Client, until: float) -> float:
    holds = (
        min(hold.until, until) - hold.since
        for proxy in world.proxies
        for hold in proxy.holds
        if hold.client == client.name and hold.since < until
    )
    errors = sum(seen.at < until for seen in client.seen)
    lost = sum(at < until for at in client.lost_at)
    hops = (errors + lost) * _MESSAGES * 2 * world.profile.latency
    return sum(holds) + hops + _TURN
