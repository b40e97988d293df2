"""When a client's partition is served again.

A client usually leaves the broker that refused it and comes back at another one, which may be
behind another process that saw no error. So two things are waited for: the first success after
an error, wherever in this process; and, where a leader moved to the broker of a route, the
first success of each client there.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from leader_hints.core.broker_state import BrokerState
from leader_hints.core.clock import Clock, stopped
from leader_hints.core.events import (
    ErrorAnswered,
    Event,
    HintGiven,
    HintMissed,
    LeaderChange,
    Recovered,
)
from leader_hints.core.route import Route

#: Seconds after the last error, or the move, for which a success is waited for. Then the client
#: has gone elsewhere, or asks for no answers (acks=0).
PATIENCE = 30.0
#: Errors, moves, and clients that came after a move, remembered at most. What was noted first
#: gives way.
MOST_ERRORS = 10_000
MOST_MOVES = 20_000
MOST_ARRIVALS = 20_000
#: Errors and moves that are forgotten in one step: thousands may have come at the same time.
FORGOTTEN_AT_ONCE = 500
#: A client id is kept beyond its link. One that is longer than any real one is not.
_LONGEST_ID = 255
_Answered = HintGiven | HintMissed


class Client(NamedTuple):
    """Who asked: see :class:`leader_hints.core.events.Recovered`."""

    link: int
    client_id: str
    software: str


class Awaiting(Protocol):
    """What links report: errors and successes."""

    def failed(
        self, route: Route, client_id: str, api: str, failed: Iterable[tuple[str, int]]
    ) -> None:
        """See :meth:`Recovery.failed`."""

    def succeeded(
        self, route: Route, client: Client, api: str, topic: str, partition: int
    ) -> Recovered | None:
        """See :meth:`Recovery.succeeded`."""


class _Key(NamedTuple):
    cluster: str
    client_id: str
    api: str
    topic: str
    partition: int


class _Place(NamedTuple):
    """A partition at a route."""

    route: str
    topic: str
    partition: int


class _Error:
    """``first`` and ``last``: when. ``hinted``: how the first was answered, once decided."""

    __slots__ = ("first", "hinted", "last")

    def __init__(self, now: float) -> None:
        self.first = now
        self.last = now
        self.hinted: bool | None = None


class _Move:
    """A leader that moved to a route's broker; ``came``: client ids and APIs served since.

    ``heard``: the view knows of it. A client may know earlier, and must not be reported again.
    """

    __slots__ = ("came", "heard", "since")

    def __init__(self, since: float, *, heard: bool) -> None:
        self.since = since
        self.heard = heard
        self.came: set[tuple[str, str]] = set()


class Recovery:
    """What all links of a process await.

    ``routes``: those of the process; each has ``awaited`` set while a success there would tell
    something, so that nothing need be looked at while it is not. ``clock``: seconds that never
    go back; without one nothing expires.
    """

    def __init__(self, routes: Sequence[Route], clock: Clock = stopped) -> None:
        self._routes = {route.name: route for route in routes}
        self._clock = clock
        self._errors: OrderedDict[_Key, _Error] = OrderedDict()
        self._moves: OrderedDict[_Place, _Move] = OrderedDict()
        #: How many moves are remembered for a route, and how many clients that came.
        self._places: Counter[str] = Counter()
        self._arrivals = 0
        #: Routes by the cluster and the node of their brokers, when those last changed.
        self._before: dict[tuple[str, int | None], list[Route]] = {}
        self._placements: int | None = None
        #: Errors were remembered when :meth:`_settle` last looked.
        self._failing = False

    @property
    def remembered(self) -> int:
        """How many errors, moves and clients that came are remembered."""
        return len(self._errors) + len(self._moves) + self._arrivals

    def awaited_errors(self) -> Sequence[tuple[str, str, str, str, int]]:
        """Return cluster, client id, API, topic and partition of each error that is remembered."""
        return [*self._errors]

    def awaited_moves(self) -> Sequence[tuple[str, str, int]]:
        """Return route, topic and partition of each move that is remembered."""
        return [*self._moves]

    def follow(self, route: Route) -> None:
        """Have one more route of the process served."""
        self._routes[route.name] = route
        self._placements = None
        self._settle_at(route.name)

    def take(self, event: Event) -> None:
        """Note what an event tells: how an error was answered, or that a leader moved."""
        if isinstance(event, _Answered):
            self._decided(event.answered, isinstance(event, HintGiven))
        elif isinstance(event, LeaderChange):
            self._moved(event)

    def failed(
        self, route: Route, client_id: str, api: str, failed: Iterable[tuple[str, int]]
    ) -> None:
        """Note errors of a response when it comes from the broker, by topic name and partition."""
        if route.name not in self._routes or len(client_id) > _LONGEST_ID:
            return
        now, cluster = self._clock(), cluster_of(route)
        for topic, partition in failed:
            key = _Key(cluster, client_id, api, topic, partition)
            error = self._errors.get(key)
            if error is None or error.last + PATIENCE <= now:
                self._errors.pop(key, None)
                error = self._errors[key] = _Error(now)
            else:
                self._errors.move_to_end(key)
            error.last = now
        self._forget_old(now)
        self._settle()

    def _decided(self, answered: ErrorAnswered, hinted: bool) -> None:
        route = self._routes.get(answered.route)
        if route is None:
            return
        key = _key(route, answered.client_id, answered.api, answered.topic, answered.partition)
        error = self._errors.get(key)
        if error is not None and error.hinted is None:
            error.hinted = hinted and not answered.observed

    def _moved(self, moved: LeaderChange) -> None:
        now = self._clock()
        routes = self._routes_before(moved.cluster, moved.leader)
        for route in routes:
            place = _Place(route.name, moved.topic, moved.partition)
            known = self._awaited(place, now)
            if known is not None and not known.heard:
                known.heard = True
            else:
                self._forget(place)
                self._remember(place, _Move(now, heard=True))
        if routes:
            self._forget_old(now)
            self._settle()

    def _routes_before(self, cluster: str, node: int) -> Sequence[Route]:
        """Return the routes before a node; there may be thousands of moves, and of routes."""
        if self._placements != BrokerState.placements:
            self._placements = BrokerState.placements
            self._before = {}
            for route in self._routes.values():
                self._before.setdefault((cluster_of(route), route.broker.node), []).append(route)
        return self._before.get((cluster, node), ())

    def succeeded(
        self, route: Route, client: Client, api: str, topic: str, partition: int
    ) -> Recovered | None:
        """Take a success; return what it tells, ``None`` where it was not awaited."""
        now = self._clock()
        self._forget_old(now)
        error = self._errors.pop(_key(route, client.client_id, api, topic, partition), None)
        if error is not None and error.last + PATIENCE <= now:
            error = None
        place = _Place(route.name, topic, partition)
        move = self._awaited(place, now)
        self._settle()
        if error is None and move is None:
            return None
        known = (
            route.broker.view.leader(topic, partition) if route.broker.view is not None else None
        )
        ahead = known is not None and route.broker.is_self(known.node) is False
        if error is not None and ahead and (move is None or move.heard):
            # The client heard earlier than the view that this broker leads now.
            self._forget(place)
            self._remember(place, _Move(now, heard=False))
        came = self._came(place, client.client_id, api)
        if error is None and not came:
            return None
        self._forget_old(now)
        self._settle()
        return Recovered(
            route=route.name,
            link=client.link,
            client_id=client.client_id,
            software=client.software,
            api=api,
            topic=topic,
            partition=partition,
            epoch=known.epoch if known else -1,
            recovery_ms=(now - error.first) * 1000 if error else None,
            hinted=bool(error and error.hinted),
        )

    def _awaited(self, place: _Place, now: float) -> _Move | None:
        """Return the move of a partition, if its time is not over."""
        move = self._moves.get(place)
        if move is not None and move.since + PATIENCE <= now:
            self._forget(place)
            return None
        return move

    def _came(self, place: _Place, client_id: str, api: str) -> bool:
        """Whether this is the first success of a client after a move; note that it came."""
        move = self._moves.get(place)
        if move is None or (client_id, api) in move.came or len(client_id) > _LONGEST_ID:
            return False
        move.came.add((client_id, api))
        self._arrivals += 1
        return move.heard

    def _forget_old(self, now: float) -> None:
        """Forget what has been waited for long enough, or is too much.

        If it is very much: some of it, and the rest later.
        """
        errors, moves = self._errors, self._moves
        least = len(errors) + len(moves) - FORGOTTEN_AT_ONCE
        while (
            errors
            and len(errors) + len(moves) > least
            and (next(iter(errors.values())).last + PATIENCE <= now or len(errors) > MOST_ERRORS)
        ):
            errors.popitem(last=False)
        while (
            len(errors) + len(moves) > least
            and moves
            and (
                next(iter(moves.values())).since + PATIENCE <= now
                or len(moves) > MOST_MOVES
                or self._arrivals > MOST_ARRIVALS
            )
        ):
            self._forget(next(iter(moves)))

    def _remember(self, place: _Place, move: _Move) -> None:
        self._moves[place] = move
        self._places[place.route] += 1
        self._settle_at(place.route)

    def _forget(self, place: _Place) -> None:
        move = self._moves.pop(place, None)
        if move is not None:
            self._places[place.route] -= 1
            self._arrivals -= len(move.came)
            self._settle_at(place.route)

    def _settle(self) -> None:
        """Have routes await what errors are remembered for: all of them, wherever it comes."""
        if self._failing != bool(self._errors):
            self._failing = bool(self._errors)
            for name in self._routes:
                self._settle_at(name)

    def _settle_at(self, name: str) -> None:
        route = self._routes.get(name)
        if route is not None:
            route.awaited = bool(self._errors) or self._places[name] > 0


def cluster_of(route: Route) -> str:
    """Return the id of the cluster of a route's broker, "" while it is not known."""
    return route.broker.view.cluster_id if route.broker.view is not None else ""


def _key(route: Route, client_id: str, api: str, topic: str, partition: int) -> _Key:
    return _Key(cluster_of(route), client_id, api, topic, partition)
