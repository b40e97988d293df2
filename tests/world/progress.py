"""How far each client has come, with the proxies and without: in the same world, the same script.

Progress is the time for which a partition was served by its leader. A record that is written counts
until the next one is due. A Fetch counts from when it was sent until it was answered, or until the
broker refused it, or its connection was lost: so long it would have got what was written. What a
broker served that had not learnt of the leader of the time does not count: nobody else has such
records. Nor does what a follower served: it has them late. (So brokers of 2.4 serve consumers whose
epochs they have forgotten; the proxy's links ask the leader alone.)

While a client is away nothing counts: it asks for nothing then, and how much of a Fetch is left is
luck.

What waits for its turn counts as if it had been sent: a client asks a broker one thing after the
other, and a Fetch of other partitions waits for half a second there. Which of them comes too late
for it is luck.
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat, zip_longest
from statistics import fmean, stdev
from typing import Final, NamedTuple, Protocol

from tests.world.clients import HINTED, LONG_POLL, Client, Seen, Served, Told
from tests.world.model.releases import FETCH
from tests.world.model.truth import Leader
from tests.world.product import IDS_WAIT, Hold
from tests.world.world import CLOSING, END, PAUSE, World

#: When progress is compared: seconds since the world began.
TIMES: Final = (5.0, 7.0, 9.0, 11.0, 13.0, PAUSE, CLOSING, END)
#: Seconds from one record of a partition to the next: a client waits for a period after the answer,
#: and then for its turn.
_RECORD = 0.3
#: Seconds by which a client may be behind besides: it may have just missed its turn.
_TURN = 0.15
#: Messages that an error or a lost connection costs, each of which passes one hop more each way.
_MESSAGES = 6

#: Worlds that are near, of each kind, and how many standard errors their mean may be off. After
#: some of them it is looked whether that is clear already: for one look among several the mean has
#: to be further off.
_NEARBY: Final = 60
_ERRORS: Final = 2.0
_LOOKS: Final = (10, 20, 40)
_CLEARLY: Final = 4.0
#: Fewer say nothing.
_FEW: Final = 5

Place = tuple[str, int]
_Reached = tuple[int, Place, float]
#: By client and partition: from when until when the client knows of it.
_Known = dict[tuple[int, Place], list[tuple[float, float]]]
#: By client: how many seconds late its responses with errors came, 0: not held.
Delays = tuple[tuple[float, ...], ...]
#: By client: the hints that come with its errors.
Hints = tuple[tuple[Told, ...], ...]


class Twin(Protocol):
    """Lives the same world without proxies.

    ``luck`` decides what clients draw themselves: when they begin, how far away brokers are, and
    which of them they ask for Metadata. ``only``: the numbers of those that ask anything; clients
    do not know of each other. ``delays``: of which each draws how much later its errors come;
    with them brokers that have a route are asked as proxies ask them.
    """

    def __call__(self, luck: int, only: frozenset[int], delays: Delays = (), /) -> World: ...


class Near(NamedTuple):
    """Worlds that are nearly the same as one: with the proxies, without, and without but with the
    proxies' hints.
    """

    proxied: World
    direct: World
    hinted: World


class Nearby(Protocol):
    """Lives worlds that are nearly the same; ``number``: which ones.

    Each happening comes a little sooner or later, and clients begin at other times.
    """

    def __call__(self, number: int, /) -> Near: ...


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

    def since(self, begin: float, end: float) -> float:
        """Return the seconds between ``begin`` and ``end``."""
        return max(self._until(end) - self._until(begin), 0.0)

    def _until(self, time: float) -> float:
        whole = bisect_left(self._ends, time)
        part = max(time - self._begins[whole], 0.0) if whole < len(self._begins) else 0.0
        return self._sums[whole] + part


def _asked(client: Client) -> dict[Place, list[float]]:
    """Return when a client has asked for each partition."""
    asked = {place: [one.asked_at for one in work.served] for place, work in client.work.items()}
    for seen in client.seen:
        asked[seen.name, seen.place[1]].append(seen.asked_at)
    return asked


def _progress(world: World, client: Client, *, judged: bool = False) -> dict[Place, _Progress]:
    """Return how far a client has come; ``judged``: it is not to be further behind than others.

    Then what a former leader has served counts as well that has not learnt of the next one: no
    error tells the client, and when it asks for Metadata because of other partitions is luck.
    """
    intervals: dict[Place, list[tuple[float, float]]] = {
        place: [
            *chain.from_iterable(
                _served(world, client, place, one, judged=judged) for one in work.served
            )
        ]
        for place, work in client.work.items()
    }
    for place, work in client.work.items():
        for since, until, leader in work.waited:
            intervals[place] += _led(world, place, leader, since, min(until, since + LONG_POLL))
    if client.api == FETCH:
        for seen in client.seen:
            intervals[seen.name, seen.place[1]].extend(_waited(world, seen))
    return {place: _Progress([*_there(client, some)]) for place, some in intervals.items()}


def _there(client: Client, intervals: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Iterate over the parts of intervals in which the client was not away."""
    for since, until in zip_longest(client.turned[::2], client.turned[1::2], fillvalue=math.inf):
        yield from ((max(begin, since), min(end, until)) for begin, end in intervals)


def _served(
    world: World, client: Client, place: Place, one: Served, *, judged: bool
) -> Iterator[tuple[float, float]]:
    """Iterate over from when until when a success counts."""
    by = world.services.get(one.request, {}).get(place)
    until = one.at if client.api == FETCH else one.asked_at + _RECORD
    for term in world.truth.terms(*place):
        if (term.incarnation, term.leader) == by:
            yield max(one.asked_at, term.since), until if judged else min(until, term.until)


def _waited(world: World, seen: Seen) -> Iterator[tuple[float, float]]:
    """Iterate over from when until when a Fetch counts that had an error in the end."""
    failures = world.failures.get(seen.request, {})
    # Where the proxy has recoded it to names, the broker has not seen the client's id.
    failure = failures.get(seen.place) or failures.get((seen.name, seen.place[1]))
    if failure is None:
        # The proxy itself refuses an id that it cannot name any more.
        return
    led = Leader(failure.node, failure.client_epoch)
    yield from _led(world, (seen.name, seen.place[1]), led, seen.asked_at, failure.at)


def _led(
    world: World, place: Place, leader: Leader, since: float, until: float
) -> Iterator[tuple[float, float]]:
    """Iterate over from when until when a partition was led as somebody thought."""
    for term in world.truth.terms(*place):
        if term.leader == leader:
            yield max(since, term.since), min(until, term.until)


def behind(world: World, twin: Twin, nearby: Nearby, most: int) -> Iterator[Behind]:
    """Iterate over the clients that have come less far than without the proxies.

    ``twin``: lives the same world without them. A client may be behind if it has come less far than
    in all of ``most`` twins, and of as many that are more like the world with proxies. There errors
    come later, as some did that were held: that changes whom the client asks next, and what has
    befallen that broker by then. And a broker of 2.4 with a route does not serve a client as a
    follower that takes it for the leader: an error changes when the client asks for Metadata next,
    also because of other partitions. What is allowed besides: for how long its own responses were
    held, the hop more that each message has, the time for which processes that begin wait for
    synthetic ids, that for which workers were stopped, and a turn that it has just missed. A client
    that has come to know an epoch of a former topic is left out from then on: it ignores what is
    true of the recreated one. When it comes to know of a partition at all depends on when it last
    asked for Metadata, so it is compared from then on. A partition of a recreated topic is another
    one. One that keeps to a synthetic id is not compared once there are brokers of 3.7.

    That may still be luck of this one world. So a client is behind only if it is also behind in
    the mean of ``nearby`` worlds, by more than chance explains, and also behind what it reaches
    there without the proxies where its errors carry the same hints. Whether these are right other
    rules say. A client that takes a right one does not back off: so its Fetches may stay in step
    with each other, and the connection that is idle whenever it wants Metadata may be the one to a
    broker that lags.
    """
    known = _known(world)
    late = _enough(world, known)
    least: dict[_Reached, float] = {}
    delays = tuple(tuple(_delays(world, client)) for client in world.clients)
    for luck in range(2 * most):
        numbers = frozenset(number for number, _, _ in late)
        other = twin(luck, numbers) if luck < most else twin(luck, numbers, delays)
        without = _without(other, known, late)
        for key, enough in [*late.items()]:
            seconds = without[key] - enough
            if seconds <= 0.0:
                del late[key]
            least[key] = min(least.get(key, seconds), seconds)
        if not late:
            return
    for key in _behind_nearby(late, nearby):
        number, place, at = key
        yield Behind(at, world.clients[number].name, place, least[key])


def _behind_nearby(keys: Collection[_Reached], nearby: Nearby) -> Iterator[_Reached]:
    """Iterate over what is behind in the mean of worlds that are near.

    Only as many are lived as it takes to see that clearly.
    """
    behind: dict[_Reached, list[tuple[float, float]]] = {key: [] for key in keys}
    for number in range(_NEARBY):
        if number in _LOOKS:
            clear = [key for key, pairs in behind.items() if _least(pairs, _CLEARLY) > 0.0]
            if clear:
                yield from clear
                return
            for key in [key for key, pairs in behind.items() if _least(pairs, -_ERRORS) < 0.0]:
                del behind[key]
            if not behind:
                return
        near = nearby(number)
        known = _known(near.proxied)
        enough = _enough(near.proxied, known)
        # Where it is not compared there is nothing to see.
        compared = enough.keys() & behind.keys()
        direct, hinted = (_without(one, known, compared) for one in (near.direct, near.hinted))
        for key in compared:
            behind[key].append((direct[key] - enough[key], hinted[key] - enough[key]))
    for key, pairs in behind.items():
        if len(pairs) < _FEW or _least(pairs, _ERRORS) > 0.0:
            yield key


def _least(pairs: Sequence[tuple[float, float]], errors: float) -> float:
    """Return the smaller mean of the two kinds less so many standard errors, 0 for too few."""
    if len(pairs) < _FEW:
        return 0.0
    return min(_mean_less(errors, kind) for kind in zip(*pairs, strict=True))


def _mean_less(errors: float, values: Sequence[float]) -> float:
    return fmean(values) - errors * stdev(values) / math.sqrt(len(values))


def _enough(world: World, known: _Known) -> dict[_Reached, float]:
    """Return how far each client is to have come at most: as it has, and what is allowed."""
    return {
        (number, place, at): _since(progress, known[number, place], at)
        + _allowed(world, client, at)
        for number, client in enumerate(world.clients)
        for place, progress in _progress(world, client, judged=True).items()
        for at in TIMES
        if at < world.outdated.get((client.name, *place), math.inf)
        and not world.keeps_lost_id(client, at)
    }


def _without(world: World, known: _Known, keys: Iterable[_Reached]) -> dict[_Reached, float]:
    """Return how far clients have come in a world without the proxies."""
    keys = [*keys]
    numbers = {number for number, _, _ in keys}
    there = {number: _progress(world, world.clients[number]) for number in numbers}
    return {
        (number, place, at): _since(progress, known[number, place], at)
        + _sum(world.clients[number].late, at)
        if (progress := there[number].get(place))
        else 0.0
        for number, place, at in keys
    }


def _known(world: World) -> _Known:
    return {
        (number, place): [*_known_from(world, place, asked)]
        for number, client in enumerate(world.clients)
        for place, asked in _asked(client).items()
    }


def _known_from(world: World, place: Place, asked: list[float]) -> Iterator[tuple[float, float]]:
    """Iterate over from when until when a client knows of each incarnation of a partition."""
    births: dict[int, float] = {}
    for term in world.truth.terms(*place):
        births.setdefault(term.incarnation, term.since)
    for birth, end in pairwise([*births.values(), math.inf]):
        if (begun := min((at for at in asked if birth <= at < end), default=None)) is not None:
            yield begun, end


def _since(progress: _Progress, known: list[tuple[float, float]], until: float) -> float:
    """Return the seconds that count until a time: of what the client knows of."""
    return sum(progress.since(begun, min(end, until)) for begun, end in known)


def _allowed(world: World, client: Client, until: float) -> float:
    holds = _sum(((hold.since, hold.until) for hold in _holds(world, client)), until)
    errors = sum(seen.at < until for seen in client.seen)
    hops = errors * _MESSAGES * 2 * world.profile.latency
    waits = IDS_WAIT * world.profile.synthesize * sum(0 < at < until for at in world.begun)
    stops = _sum((stop for proxy in world.proxies for stop in proxy.stops), until)
    return holds + hops + waits + stops + _TURN


def _holds(world: World, client: Client) -> Iterator[Hold]:
    return (hold for proxy in world.proxies for hold in proxy.holds if hold.client == client.name)


def _delays(world: World, client: Client) -> Iterator[float]:
    held = [hold.until - hold.since for hold in _holds(world, client)]
    yield from held
    refused = {seen.request for seen in client.seen if seen.error in HINTED}
    yield from repeat(0.0, len(refused) - len(held))


def hints(world: World) -> Hints:
    """Return the hints that clients got, each for as long as the same error may come by luck.

    That is a long poll sooner or later, and not before the leader was elected, nor once the topic
    is another: a former one's epoch may be higher than any of the recreated one for long.
    """
    return tuple(tuple(_told(world, client)) for client in world.clients)


def _told(world: World, client: Client) -> Iterator[Told]:
    for seen in client.seen:
        place = seen.name, seen.place[1]
        terms = [term for term in world.truth.terms(*place) if term.since <= seen.at]
        # A former topic may have had the same leader at the same epoch.
        term = next((term for term in reversed(terms) if term.leader == seen.hint), None)
        if term is not None and seen.hint is not None:
            of_it = (t for t in world.truth.terms(*place) if t.incarnation == term.incarnation)
            begin = max(term.since, seen.at - LONG_POLL)
            end = min(max(t.until for t in of_it), seen.at + LONG_POLL)
            yield Told(begin, end, place, seen.hint, seen.endpoint)


def _sum(intervals: Iterable[tuple[float, float]], until: float) -> float:
    return sum(min(end, until) - begin for begin, end in intervals if begin < until)
