"""Which successes of clients a worker tells: those that may end a recovery.

The process that decides has the :class:`leader_hints.core.hints.recovery.Recovery` of all workers.
To hear each success would cost it more than to relay the responses. So a worker knows of the
errors that clients met at any worker, and of leaders that moved to the broker of a route; of what
that may concern it tells the first success. What it tells in vain does no harm.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from leader_hints.core.clock import Clock
from leader_hints.core.events import Recovered
from leader_hints.core.hints.recovery import (
    FORGOTTEN_AT_ONCE,
    MOST_ARRIVALS,
    MOST_ERRORS,
    MOST_MOVES,
    PATIENCE,
    Client,
    cluster_of,
)
from leader_hints.core.route import Route
from leader_hints.core.workers.messages import LeaderMove


class _Error(NamedTuple):
    cluster: str
    client_id: str
    api: str
    topic: str
    partition: int


class _Place(NamedTuple):
    route: str
    topic: str
    partition: int


class _Move:
    __slots__ = ("came", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.came: set[tuple[str, str]] = set()


class AwaitedSuccesses:
    """See :class:`leader_hints.core.hints.recovery.Awaiting`; for the ``routes`` of a worker.

    ``tell_failed``: called with route, client id, API and partitions that failed;
    ``tell_served``: with a success that may be awaited.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        clock: Clock,
        tell_failed: Callable[[Route, str, str, Sequence[tuple[str, int]]], None],
        tell_served: Callable[[Route, Client, str, str, int], None],
    ) -> None:
        self._routes = routes
        self._clock = clock
        self._tell_failed = tell_failed
        self._tell_served = tell_served
        #: When each came last.
        self._errors: OrderedDict[_Error, float] = OrderedDict()
        self._moves: OrderedDict[_Place, _Move] = OrderedDict()
        #: How many clients are remembered to have come after moves.
        self._arrivals = 0
        self._awaiting = False

    @property
    def remembered(self) -> int:
        """How many errors, moves and clients that came are remembered."""
        return len(self._errors) + len(self._moves) + self._arrivals

    def failed(
        self, route: Route, client_id: str, api: str, failed: Iterable[tuple[str, int]]
    ) -> None:
        """Take errors of a link of this worker."""
        some = tuple(failed)
        self.failed_anywhere(route, client_id, api, some)
        self._tell_failed(route, client_id, api, some)

    def failed_anywhere(
        self, route: Route, client_id: str, api: str, failed: Iterable[tuple[str, int]]
    ) -> None:
        """Take errors that a client met, at this worker or another one."""
        now, cluster = self._clock(), cluster_of(route)
        for topic, partition in failed:
            error = _Error(cluster, client_id, api, topic, partition)
            self._errors[error] = now
            self._errors.move_to_end(error)
        self._forget_old(now)

    def moved(self, cluster: str, moves: Iterable[LeaderMove]) -> None:
        """Take it that partitions have other leader epochs."""
        now, before = self._clock(), len(self._moves)
        # Looked up once: there may be hundreds of moves, and of routes.
        by_node: dict[int | None, list[str]] = {}
        for route in self._routes:
            view = route.broker.view
            if view is not None and view.cluster_id == cluster:
                by_node.setdefault(route.broker.node, []).append(route.name)
        for topic, partition, leader in moves:
            for name in by_node.get(leader, ()):
                self._await(_Place(name, topic, partition), now)
        self._forget_old(now, len(self._moves) - before)

    def succeeded(
        self, route: Route, client: Client, api: str, topic: str, partition: int
    ) -> Recovered | None:
        """Take a success of a link of this worker; it is reported if it may be awaited."""
        if self._is_awaited(route, client.client_id, api, topic, partition):
            self._tell_served(route, client, api, topic, partition)
        return None

    def served_elsewhere(
        self, route: Route, client_id: str, api: str, topic: str, partition: int
    ) -> None:
        """Take it that another worker has told such a success."""
        self._is_awaited(route, client_id, api, topic, partition)

    def _is_awaited(
        self, route: Route, client_id: str, api: str, topic: str, partition: int
    ) -> bool:
        """Whether it may be; from then on it is not, by this client."""
        now = self._clock()
        error = _Error(cluster_of(route), client_id, api, topic, partition)
        failed = self._errors.pop(error, None) is not None
        place = _Place(route.name, topic, partition)
        if failed:
            # The client may know earlier than the view that this broker leads now, and other
            # clients come for the same reason.
            self._await(place, now)
        move = self._moves.get(place)
        came = move is not None and (client_id, api) not in move.came
        if came and move is not None:
            move.came.add((client_id, api))
            self._arrivals += 1
        self._forget_old(now)
        return failed or came

    def _await(self, place: _Place, now: float) -> None:
        self._forget(place)
        self._moves[place] = _Move(now)

    def _forget(self, place: _Place) -> None:
        move = self._moves.pop(place, None)
        if move is not None:
            self._arrivals -= len(move.came)

    def _forget_old(self, now: float, came: int = 0) -> None:
        """Forget what has been waited for long enough, or is too much.

        If it is very much: some of it, more than ``came``, and the rest later. Until then it tells
        successes in vain.
        """
        errors, moves = self._errors, self._moves
        least = len(errors) + len(moves) - FORGOTTEN_AT_ONCE - came
        while (
            errors
            and len(errors) + len(moves) > least
            and (next(iter(errors.values())) + PATIENCE <= now or len(errors) > MOST_ERRORS)
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
        awaiting = bool(errors or moves)
        if awaiting != self._awaiting:
            self._awaiting = awaiting
            for route in self._routes:
                route.awaited = awaiting
