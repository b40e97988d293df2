"""The task that moves the bytes of all links.

It polls the sockets of all links and serves whatever is ready in one synchronous step: task
switches, not work on bytes, are what small messages cost. One buffer serves all links, since each
step sends or copies what it has received before it ends.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import trio

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import Event
from leader_hints.core.hints.recovery import Awaiting
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.held import Held
from leader_hints.core.link.link import Link
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.route import Route
from leader_hints.net.pump.endings import Endings
from leader_hints.net.pump.holds import Holds
from leader_hints.net.pump.limits import Load, PumpLimits
from leader_hints.net.pump.lookahead import LOOKS_FROM, Lookahead
from leader_hints.net.pump.poller import READ, KeepingPoller, Poller, make_poller
from leader_hints.net.pump.relay import Relay
from leader_hints.net.pump.reports import Doubt, Lack, Reports, Snoop
from leader_hints.net.pump.send_queues import SendQueues
from leader_hints.net.pump.socket_pair import SocketPair
from leader_hints.net.pump.tls_socket import Transport
from leader_hints.net.pump.turns import Turns
from leader_hints.net.pump.watched_sides import WatchedSides

#: Received at once. Large, since each step costs the same for few bytes and for many; it also
#: must hold the longest prefix that a request is carried over with.
BUFFER_BYTES = 262_144
#: Links of which is counted in one step what they await.
_COUNTED_AT_ONCE = 2000


class Pump:
    """Owns the sockets of all links from :meth:`adopt` on.

    ``emit``, ``snoop``, ``lack``, ``doubt``: see :class:`leader_hints.net.pump.reports.Reports`.
    ``recovery``: what all links await.
    """

    def __init__(
        self,
        budget: Budget,
        hold_timer: Holds,
        emit: Callable[[Event], None],
        snoop: Snoop,
        lack: Lack,
        doubt: Doubt,
        recovery: Awaiting,
        limits: PumpLimits,
        *,
        poller: Poller | None = None,
    ) -> None:
        self._budget = budget
        self._recovery = recovery
        self._limits = limits
        self._shared = memoryview(bytearray(BUFFER_BYTES))
        self._pairs: dict[int, SocketPair] = {}
        self._numbers = 0
        self._over = False
        self._turns = Turns(hold_timer)
        reports = Reports(hold_timer, emit, snoop, lack, doubt)
        self._watched = watched = WatchedSides(poller or KeepingPoller(make_poller()))
        self._queues = queues = SendQueues(self._shared, limits.queued_bytes, watched, reports)
        self._endings = Endings(self._pairs, watched, queues, hold_timer, reports, limits)
        self._lookahead = Lookahead()
        self._relay = Relay(watched, queues, self._lookahead, self._endings, hold_timer, reports)
        budget.turns.on_turn = self._turn_came

    def adopt(
        self,
        route: Route,
        client: Transport,
        broker: Transport,
        client_name: str,
        number: int | None = None,
        principal: str = "",
    ) -> None:
        """Join two connected sockets, which do not block, to a link of ``route``.

        ``number``: of the link, where others have given it one; else it gets the next one here.
        ``principal``: the subject of the client's certificate, "" without one.

        Once :meth:`run` is over they are closed.

        :raises OSError: the system has no room to watch them (ENOSPC of epoll); they are closed.
        """
        if self._over:
            client.close()
            broker.close()
            return
        if number is None:
            self._numbers = number = self._numbers + 1
        link = Link(
            route,
            number,
            self._shared,
            self._budget,
            self._recovery,
            largest_request=self._limits.request_bytes,
            requests_in_flight=self._limits.requests_in_flight,
            address=client_name,
            principal=principal,
        )
        pair = SocketPair(link, client, broker, client_name)
        if pair.plain:
            # Else nothing is moved within the system, and what is not received now is later.
            link.responses.looks_from = LOOKS_FROM
        self._endings.times.begin(pair)
        self._pairs[number] = pair
        route.traffic.links += 1
        route.traffic.links_open += 1
        try:
            self._watched.update(pair.client)
            self._watched.update(pair.broker)
        except OSError:
            self._endings.turn_away(pair)
            raise

    def has(self, number: int) -> bool:
        """Whether a link of that number is open."""
        return number in self._pairs

    @contextmanager
    def wake_on_readable(self, descriptor: int) -> Iterator[None]:
        """End a turn when something can be read there: other tasks wait for it."""
        if not self._over:
            self._watched.poller.watch(descriptor, 0, READ)
        try:
            yield
        finally:
            if not self._over:
                self._watched.poller.watch(descriptor, READ, 0)

    def urgent(self) -> AbstractContextManager[None]:
        """Have turns short meanwhile: another task has something to do that must not wait."""
        return self._turns.urgent()

    def load(self) -> Load:
        """Return what all links have now."""
        return Load(self._exchanges(), self._queues.queued)

    def _exchanges(self) -> Iterator[int]:
        pairs = [*self._pairs.values()]
        for begin in range(0, len(pairs), _COUNTED_AT_ONCE):
            some = pairs[begin : begin + _COUNTED_AT_ONCE]
            yield sum(len(pair.link.state.exchanges.waiting) for pair in some)

    def sweep(self, now: float) -> Iterator[None]:
        """End links whose time is over; call it about every second, with a time in seconds.

        Each step is short, and links may be served in between.
        """
        self._queues.sweep()
        yield from self._lookahead.sweep()
        self._budget.memory.sweep()
        yield from self._endings.sweep(now)

    def note_again(self) -> Iterator[None]:
        """Have links note again what their clients ask. In short steps, as :meth:`sweep`."""
        for pair in list(self._pairs.values()):
            pair.link.state.policies.note_again()
            yield

    def end_held(self, error: Exception) -> None:
        """End the links whose responses are held: a defect has ended what would let them go."""
        for pair in list(self._pairs.values()):
            if pair.link.responses.held is not None:
                self._endings.failed(pair, error)

    @property
    def drained(self) -> bool:
        """Whether no link is open that :meth:`drain` closes."""
        exempt = self._endings.draining
        return exempt is not None and all(exempt(pair.link.state) for pair in self._pairs.values())

    def drain(self, exempt: Callable[[LinkState], bool]) -> Iterator[None]:
        """Close links from now on as soon as they have no request under way, but ``exempt`` ones.

        In short steps, as :meth:`sweep`. Of a link whose requests are not read that is not known:
        it is closed when no byte has moved between two sweeps.
        """
        return self._endings.drain(exempt)

    def take_no_more(self) -> Iterator[None]:
        """Take no further request of the links that :meth:`drain` has not closed yet.

        In short steps, as :meth:`sweep`.
        """
        return self._endings.take_no_more()

    def settle(self, decided: Iterable[tuple[Held, Sequence[LeaderHint | None]]]) -> None:
        """Let held responses go on with their hints."""
        for held, hints in decided:
            pair = self._pairs.get(held.link.number)
            if pair is None:
                continue
            try:
                self._relay.release(pair, hints)
            except Exception as error:
                self._endings.failed(pair, error)

    def _turn_came(self, link: int) -> None:
        pair = self._pairs.get(link)
        if pair is not None:
            self._watched.update(pair.client)

    async def run(self) -> None:
        """Serve all links until cancelled; then close them."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._watched.poller.fileno())
                self._take_turn()
        finally:
            self._over = True
            for pair in list(self._pairs.values()):
                self._endings.give_up(pair)
            self._watched.poller.close()
            self._queues.close()

    def _take_turn(self) -> None:
        """Serve until all sockets are quiet for a moment, or it is others' turn."""
        turns = self._turns
        begun = turns.begin()
        wait = 0.0
        while self.step(wait, begun) and not turns.called:
            if turns.is_over(begun):
                return
            wait = turns.wait

    def step(self, wait: float = 0.0, begun: float = math.inf) -> int:
        """Serve every socket that is ready within ``wait`` seconds; return how many there were.

        ``begun``: when the turn began. Those that are not served when it is over come first in the
        next step, or the clients that send the most would keep them from being served.
        """
        watched, turns = self._watched, self._turns
        ready = watched.ready(wait)
        several = len(ready) > 1
        rest = iter(ready)
        for descriptor, events in rest:
            side = watched.by_descriptor.get(descriptor)
            if side is None:
                # One that another task watches, or that was closed in this very step.
                turns.called = True
                continue
            try:
                if events == READ:
                    self._relay.readable(side)
                else:
                    self._relay.ready(side, events)
            except Exception as error:
                # A defect of the proxy must end one link and not all of them.
                self._endings.failed(side.pair, error)
            if several and turns.is_over(begun):
                watched.leave(rest)
        return len(ready)
