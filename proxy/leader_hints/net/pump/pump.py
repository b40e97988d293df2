"""Moves the bytes of all links.

One task polls the sockets of all links and serves whatever is ready in one synchronous step:
task switches, not work on bytes, are what small messages cost. One buffer serves all links,
since each step sends or copies what it has received before it ends.

Back-pressure: a socket is read only while the other side takes everything. What a full socket
did not take is kept, at most one buffer or one gathered frame for each direction of a link. Where
that is too much for all links together, each receives but little at a time.

Time: a link whose client never said anything ends, and one of whose sides has ended while the
other moves no byte. There is never a deadline on a frame: large ones may take as long as they make
progress.
"""

import fcntl
import math
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import NamedTuple

import trio

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import (
    BadBrokerBytes,
    BadClientBytes,
    Event,
    LimitReached,
    LinkFailed,
)
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.flow import Flow, Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.link.link import Link
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.route import Route
from leader_hints.errors import places_of
from leader_hints.net.clients.reset import RESETS
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.pump.pipe import Pipe, Pipes, UnfitError
from leader_hints.net.pump.poller import PEER_CLOSED, READ, WRITE, Poller, make_poller
from leader_hints.net.pump.tls_socket import Transport

#: Received at once. Large, since each step costs the same for few bytes and for many; it also
#: must hold the longest prefix that a request is carried over with.
BUFFER_BYTES = 262_144
#: Seconds that sockets are served before other tasks get their turn. To be woken by Trio costs more
#: than to relay a small message, so a turn is long where nobody waits for his.
_TURN = 0.015
#: The same where somebody does: while a response is held, since its hint comes through Trio, and
#: while a client's connection is being made.
_SHORT_TURN = 0.0005
#: Seconds that the next bytes are waited for within a long turn.
_MOMENT = 0.01
#: Pieces given to the system at once; IOV_MAX is 1024.
_MOST_PIECES = 512
#: Received at once where too much waits to be sent.
_LITTLE = 4096
#: Bytes that go on as they come, whatever they are, from which on they are moved within the system.
_MOVED = 65_536
_INT = struct.Struct("@i")

Snoop = Callable[[Route, int, bytes], None]
Lack = Callable[[Route, Collection[bytes]], None]
Doubt = Callable[[Route], None]


@dataclass(frozen=True, slots=True)
class PumpLimits:
    """What links may take up; see the settings of these names. Times in seconds, inf: no limit."""

    request_bytes: int
    requests_in_flight: int
    queued_bytes: int = 1 << 28
    first_bytes: float = math.inf
    idle: float = math.inf
    linger: float = math.inf


class Load(NamedTuple):
    """What all links have now: requests that await a response, bytes that wait to be sent."""

    exchanges: int
    queued_bytes: int


class Side:
    """One socket of a link: ``flow`` takes what is received here and yields what ``peer`` sends.

    ``ended``: the other end sends nothing more. ``peer_closed``: that is known, but what it sent
    before is not read yet. ``shut``: our direction to it is shut too, or will be when the queue is
    empty. ``write_closed``: it takes nothing more, so bytes for it are dropped. ``queue``: bytes
    that the socket did not take yet; a pipe is always first, since nothing is read for a side that
    has a queue.
    """

    __slots__ = (
        *(
            "write_closed",
            "ended",
            "events",
            "flow",
            "peer_closed",
            "pair",
            "peer",
            "queue",
            "shut",
            "socket",
        ),
    )

    def __init__(self, sock: Transport, flow: Flow, pair: "SocketPair") -> None:
        self.socket = sock
        self.flow = flow
        self.pair = pair
        self.peer: Side = self
        self.queue: deque[memoryview | bytes | Pipe] = deque()
        self.events = 0
        self.ended = False
        self.peer_closed = False
        self.shut = False
        self.write_closed = False


class SocketPair:
    """A link and its two sockets.

    ``answered``: the broker has said something. ``moves``: how often bytes moved; ``seen``: that
    number when it was last looked at, and it is the same ``since`` then. ``plain``: neither socket
    encrypts. ``ending``: a side has ended; ``unsent``: see :func:`_unsent`.
    """

    __slots__ = (
        *("answered", "broker", "client", "client_name", "ending", "link", "moves", "open"),
        *("plain", "seen", "since", "unsent"),
    )

    def __init__(self, link: Link, client: Transport, broker: Transport, client_name: str) -> None:
        self.link = link
        self.client_name = client_name
        self.client = Side(client, link.requests, self)
        self.broker = Side(broker, link.responses, self)
        self.client.peer, self.broker.peer = self.broker, self.client
        self.plain = isinstance(client, socket.socket) and isinstance(broker, socket.socket)
        self.open = True
        self.answered = False
        self.ending = False
        self.moves = 0
        self.seen = 0
        self.since = 0.0
        self.unsent = 0

    def part(self) -> None:
        """Have it and its sides, once it is closed, not keep each other."""
        for side in (self.client, self.broker):
            del side.pair, side.peer


def _unsent(pair: SocketPair) -> int:
    """Return how many bytes the system has that the far ends did not take yet: one that reads
    slowly takes them long before there is room for more."""
    unsent = 0
    for side in (pair.client, pair.broker):
        with suppress(OSError):
            (size,) = _INT.unpack(fcntl.ioctl(side.socket, termios.TIOCOUTQ, bytes(_INT.size)))
            unsent += size
    return unsent


class Pump:
    """Owns the sockets of all links from :meth:`adopt` on.

    ``emit``: where events go. ``snoop``: where Metadata responses go that pass by. ``lack``: what
    is called with topic ids that a client used and that are not known; ``doubt``: when one had no
    id for a topic although this proxy synthesizes them. ``recovery``: what all links await.
    """

    def __init__(
        self,
        budget: Budget,
        hold_timer: HoldTimer,
        emit: Callable[[Event], None],
        snoop: Snoop,
        lack: Lack,
        doubt: Doubt,
        recovery: Recovery,
        limits: PumpLimits,
        *,
        poller: Poller | None = None,
    ) -> None:
        self._budget = budget
        self._hold_timer = hold_timer
        self._emit = emit
        self._snoop = snoop
        self._lack = lack
        self._recovery = recovery
        self._doubt = doubt
        self._limits = limits
        self._shared = memoryview(bytearray(BUFFER_BYTES))
        self._poller = poller or make_poller()
        self._pipes = Pipes()
        self._sides: dict[int, Side] = {}
        #: Sockets that were ready when a turn was over.
        self._left: list[tuple[int, int, Side | None]] = []
        self._called = False
        self._urgent = 0
        self._pairs: dict[int, SocketPair] = {}
        self._numbers = 0
        self._over = False
        self._queued = 0
        self._short_of_room = False
        self._now = 0.0
        #: Links that may not have said anything yet, the oldest first.
        self._young: deque[tuple[float, int]] = deque()
        self._ending: dict[int, SocketPair] = {}
        #: Links that are closed, and whose parts still keep each other.
        self._closed_pairs: list[SocketPair] = []
        self._exempt: Callable[[LinkState], bool] | None = None

    def adopt(self, route: Route, client: Transport, broker: Transport, client_name: str) -> None:
        """Join two connected sockets, which do not block, to a link of ``route``.

        Once :meth:`run` is over they are closed.

        :raises OSError: the system has no room to watch them (ENOSPC of epoll); they are closed.
        """
        if self._over:
            client.close()
            broker.close()
            return
        self._numbers += 1
        link = Link(
            route,
            self._numbers,
            self._shared,
            self._budget,
            self._recovery,
            largest_request=self._limits.request_bytes,
            requests_in_flight=self._limits.requests_in_flight,
            address=client_name,
        )
        pair = SocketPair(link, client, broker, client_name)
        pair.since = self._now
        if self._limits.first_bytes < math.inf:
            self._young.append((self._now + self._limits.first_bytes, self._numbers))
        self._pairs[self._numbers] = pair
        route.traffic.links += 1
        route.traffic.links_open += 1
        try:
            self._watch(pair.client)
            self._watch(pair.broker)
        except OSError:
            self._turn_away(pair)
            raise

    @contextmanager
    def wake_on_readable(self, descriptor: int) -> Iterator[None]:
        """End a turn when something can be read there: other tasks wait for it."""
        self._poller.watch(descriptor, 0, READ)
        try:
            yield
        finally:
            if not self._over:
                self._poller.watch(descriptor, READ, 0)

    def load(self) -> Load:
        """Return what all links have now."""
        pairs = self._pairs.values()
        return Load(sum(len(pair.link.state.exchanges.waiting) for pair in pairs), self._queued)

    def sweep(self, now: float) -> None:
        """End links whose time is over; call it about every second, with a time in seconds."""
        self._now = now
        self._part()
        self._pipes.sweep()
        self._short_of_room = self._queued > self._limits.queued_bytes
        while self._young and self._young[0][0] <= now:
            young = self._pairs.get(self._young.popleft()[1])
            if young is not None and not young.moves:
                self._expire(young, "first_bytes_ms")
        everyone = self._exempt is not None or self._limits.idle < math.inf
        for pair in list((self._pairs if everyone else self._ending).values()):
            try:
                self._review(pair, now)
            except Exception as error:
                self._failed(pair, error)

    def _review(self, pair: SocketPair, now: float) -> None:
        if pair.moves != pair.seen:
            pair.seen = pair.moves
            pair.since = now
        elif pair.ending and now - pair.since >= self._limits.linger:
            before, pair.unsent = pair.unsent, _unsent(pair)
            if pair.unsent == before:
                self._expire(pair, "linger_ms")
            pair.since = now
        elif now - pair.since >= self._limits.idle:
            self._expire(pair, "idle_ms")
        elif self._exempt is not None:
            self._close_at_rest(pair, quiet=True)

    def end_held(self, error: Exception) -> None:
        """End the links whose responses are held: a defect has ended what would let them go."""
        for pair in list(self._pairs.values()):
            if pair.link.responses.held is not None:
                self._failed(pair, error)

    def exempt(self) -> int:
        """Return how many links are open that :meth:`drain` does not close."""
        exempt = self._exempt
        if exempt is None:
            return 0
        return sum(exempt(pair.link.state) for pair in self._pairs.values())

    def drain(self, exempt: Callable[[LinkState], bool]) -> None:
        """Close links from now on as soon as they have no request under way, but ``exempt`` ones.

        Of a link whose requests are not read that is not known: it is closed when no byte has
        moved between two sweeps.
        """
        self._exempt = exempt
        for pair in list(self._pairs.values()):
            self._close_at_rest(pair, quiet=False)

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Have turns short meanwhile: another task has something to do that must not wait."""
        self._urgent += 1
        try:
            yield
        finally:
            self._urgent -= 1

    async def run(self) -> None:
        """Serve all links until cancelled; then close them."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._poller.fileno())
                self._take_turn()
        finally:
            self._over = True
            for pair in list(self._pairs.values()):
                self._close(pair)
            self._poller.close()
            self._pipes.close()

    def _take_turn(self) -> None:
        """Serve until all sockets are quiet for a moment, or it is others' turn."""
        begun = monotonic()
        wait = 0.0
        self._called = False
        while self.step(wait, begun) and not self._called:
            if self._is_over(begun):
                return
            wait = 0.0 if self._awaited else _MOMENT

    @property
    def _awaited(self) -> bool:
        """Whether another task has something to do that must not wait."""
        return self._urgent > 0 or self._hold_timer.waiting.is_set()

    def _is_over(self, begun: float) -> bool:
        """Whether a turn that has begun then has taken long enough."""
        return monotonic() - begun >= (_SHORT_TURN if self._awaited else _TURN)

    def step(self, wait: float = 0.0, begun: float = math.inf) -> int:
        """Serve every socket that is ready within ``wait`` seconds; return how many there were.

        ``begun``: when the turn began. Those that are not served when it is over come first in the
        next step, or the clients that send the most would keep them from being served.
        """
        ready = self._take_left() or self._poller.poll(wait)
        rest = iter(ready)
        for descriptor, events in rest:
            side = self._sides.get(descriptor)
            if side is None:
                # One that another task watches, or that was closed in this very step.
                self._called = True
                continue
            try:
                if events == READ:
                    self._readable(side)
                else:
                    self._several(side, events)
            except Exception as error:
                # A defect of the proxy must end one link and not all of them.
                self._failed(side.pair, error)
            if self._is_over(begun):
                self._left = [(d, told, self._sides.get(d)) for d, told in rest]
        return len(ready)

    def _several(self, side: Side, events: int) -> None:
        if events & ~READ and side.events & WRITE:
            self._writable(side)
        if events & ~WRITE and side.events & READ:
            self._readable(side)
        elif events & ~(READ | WRITE) and side.events & PEER_CLOSED:
            self._peer_closed(side)

    def _take_left(self) -> list[tuple[int, int]]:
        """Return what the last step left, but for descriptors that are another's by now."""
        if not self._left:
            return []
        left, self._left = self._left, []
        return [(d, told) for d, told, side in left if self._sides.get(d) is side]

    def settle(self, decided: Iterable[tuple[Held, Sequence[LeaderHint | None]]]) -> None:
        """Let held responses go on with their hints."""
        for held, hints in decided:
            pair = self._pairs.get(held.link.number)
            if pair is None:
                continue
            try:
                self._send(pair.client, pair.link.responses.release(hints))
                if pair.open:
                    self._responded(pair)
            except Exception as error:
                self._failed(pair, error)

    # Receiving.

    def _readable(self, side: Side) -> None:
        flow = side.flow
        pipe = self._pipe_for(side) if flow.passing >= _MOVED else None
        try:
            if pipe is not None:
                size = self._fill(pipe, side)
            else:
                buffer = flow.buffer()
                if self._queued > self._limits.queued_bytes:
                    buffer = self._little_of(buffer)
                size = side.socket.recv_into(buffer)
        except UnfitError:
            # It is tried in the other way at once: the socket stays ready.
            self._pipes.stop()
            return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            if side is side.pair.client:
                self._close(side.pair)
                return
            if not side.pair.answered:
                self._turn_away(side.pair)
                return
            # A reset broker: the answers that came before it are good all the same.
            size = 0
        if not size:
            self._end(side)
            return
        pair = side.pair
        pair.moves += 1
        traffic = pair.link.state.traffic
        if pipe is not None:
            flow.passed(size)
            self._pour(side.peer, pipe)
        else:
            self._send(side.peer, flow.received(size))
        if side is pair.client:
            traffic.up += size
            if flow.fault is not None:
                self._client_at_fault(pair, flow.fault)
            elif pair.open:
                self._requested(pair)
        else:
            traffic.down += size
            pair.answered = True
            if pair.open:
                self._responded(pair)

    def _pipe_for(self, side: Side) -> Pipe | None:
        """Return a pipe from this side to the other; ``None`` where bytes must be received."""
        peer = side.peer
        if not side.pair.plain or peer.queue or peer.write_closed:
            return None
        return None if self._queued > self._limits.queued_bytes else self._pipes.take()

    def _fill(self, pipe: Pipe, side: Side) -> int:
        try:
            return pipe.fill(side.socket.fileno(), side.flow.passing)
        finally:
            if not pipe:
                self._pipes.give_back(pipe)

    def _little_of(self, buffer: memoryview) -> memoryview:
        if not self._short_of_room:
            self._short_of_room = True
            self._emit(LimitReached(route="", limit="queued_bytes", client=""))
        return buffer[:_LITTLE]

    def _requested(self, pair: SocketPair) -> None:
        if pair.link.state.events:
            self._report(pair)
        if pair.client.events != READ or pair.link.crowded:
            self._watch(pair.client)

    def _responded(self, pair: SocketPair) -> None:
        responses = pair.link.responses
        while responses.held is not None and pair.open:
            hints = self._hold_timer.submit(responses.held)
            if hints is None:
                break
            self._send(pair.client, responses.release(hints))
        if responses.fault is not None and pair.open:
            self._broker_at_fault(pair, responses.fault)
        state = pair.link.state
        if state.snooped:
            snooped, state.snooped = state.snooped, []
            for version, payload in snooped:
                self._snoop(state.route, version, payload)
        ids = state.topic_ids
        if ids.lacking:
            lacking, ids.lacking = ids.lacking, []
            self._lack(state.route, lacking)
        if not pair.open:
            return
        if pair.link.state.events:
            self._report(pair)
        if pair.broker.ended:
            self._end(pair.broker)
            return
        if pair.broker.events != READ or responses.held is not None:
            self._watch(pair.broker)
        if not pair.client.events & READ:
            # A response may have made room for requests.
            self._watch(pair.client)
        if self._exempt is not None:
            self._close_at_rest(pair, quiet=False)
        elif ids.outdated:
            self._close_outdated(pair)

    def _end(self, side: Side) -> None:
        """The other end has no more to say: pass on what was kept back, and say so too."""
        pair = side.pair
        side.ended = True
        if side is pair.broker:
            # A broker that closes has closed both directions.
            self._close_write(side)
            if pair.link.responses.held is not None:
                return
        self._send(side.peer, side.flow.ended())
        if pair.open:
            side.peer.shut = True
            if not side.peer.queue:
                self._shut(side.peer)
            if pair.open:
                self._watch(side)
                self._linger(pair)

    def _peer_closed(self, side: Side) -> None:
        """A side that is not read now has ended: who takes what it said must not take for ever."""
        side.peer_closed = True
        self._linger(side.pair)
        self._watch(side)

    def _linger(self, pair: SocketPair) -> None:
        if not pair.ending:
            pair.ending = True
            pair.seen, pair.since, pair.unsent = pair.moves, self._now, _unsent(pair)
            self._ending[pair.link.state.number] = pair

    def _shut(self, side: Side) -> None:
        pair = side.pair
        if side is pair.client:
            # The broker has closed, and the client has all that it sent.
            self._close(pair)
            return
        if side.write_closed:
            return
        try:
            side.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(pair)

    # Sending.

    def _send(self, side: Side, pieces: Pieces) -> None:
        if not pieces:
            return
        if side.write_closed:
            side.peer.flow.flushed()
            return
        if side.queue:
            self._queue(side, pieces, 0)
            return
        try:
            if len(pieces) == 1:
                sent = side.socket.send(pieces[0])
            else:
                sent = side.socket.sendmsg(pieces[:_MOST_PIECES])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._refused(side, error)
            return
        if sent == sum(map(len, pieces)):
            side.peer.flow.flushed()
        else:
            self._queue(side, pieces, sent)

    def _pour(self, side: Side, pipe: Pipe) -> None:
        """Send what is in a pipe; what is not taken at once stays there."""
        target = side.socket.fileno()
        try:
            while pipe:
                pipe.empty(target)
        except (BlockingIOError, InterruptedError):
            side.queue.append(pipe)
            self._queued += len(pipe)
            self._watch(side)
            self._watch(side.peer)
            return
        except OSError as error:
            self._pipes.give_back(pipe)
            self._refused(side, error)
            return
        self._pipes.give_back(pipe)

    def _queue(self, side: Side, pieces: Pieces, sent: int) -> None:
        """Keep what was not sent: as it is, or as a copy where the buffer is the shared one."""
        for piece in pieces:
            if sent >= len(piece):
                sent -= len(piece)
                continue
            rest = memoryview(piece)[sent:]
            sent = 0
            shared = rest.obj is self._shared.obj
            side.queue.append(bytes(rest) if shared else rest)
            self._queued += len(rest)
        self._watch(side)
        self._watch(side.peer)

    def _writable(self, side: Side) -> None:
        queue = side.queue
        try:
            sent = self._send_queued(side)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._refused(side, error)
            return
        side.pair.moves += 1
        self._queued -= sent
        while queue:
            piece = queue[0]
            if isinstance(piece, Pipe):
                if piece:
                    return
                self._pipes.give_back(piece)
                sent = 0
            elif sent < len(piece):
                queue[0] = memoryview(piece)[sent:]
                return
            else:
                sent -= len(piece)
            queue.popleft()
        side.peer.flow.flushed()
        if side.shut:
            self._shut(side)
        if side.pair.open:
            self._watch(side)
            self._watch(side.peer)

    def _send_queued(self, side: Side) -> int:
        first = side.queue[0]
        if isinstance(first, Pipe):
            return first.empty(side.socket.fileno())
        pieces = islice(side.queue, _MOST_PIECES)
        return side.socket.sendmsg([piece for piece in pieces if not isinstance(piece, Pipe)])

    def _refused(self, side: Side, error: OSError) -> None:
        """Go on without what cannot be sent, or close the link.

        A broker that has closed may have answered before: its bytes are read to their end,
        which is what closes the link then.
        """
        if side is side.pair.broker and isinstance(error, ConnectionError):
            self._close_write(side)
        else:
            self._close(side.pair)

    def _close_write(self, side: Side) -> None:
        side.write_closed = True
        self._drop_queue(side)
        side.peer.flow.flushed()
        self._watch(side)
        self._watch(side.peer)

    def _drop_queue(self, side: Side) -> None:
        self._queued -= sum(map(len, side.queue))
        for piece in side.queue:
            if isinstance(piece, Pipe):
                self._pipes.give_back(piece)
        side.queue.clear()

    def _watch(self, side: Side) -> None:
        """Have the selector tell what this socket is to be used for now."""
        pair = side.pair
        events = WRITE if side.queue else 0
        if not side.ended:
            if not side.peer.queue and self._may_read(pair, side):
                events |= READ
            elif not side.peer_closed:
                events |= PEER_CLOSED
        if events == side.events:
            return
        descriptor = side.socket.fileno()
        self._poller.watch(descriptor, side.events, events)
        if events:
            self._sides[descriptor] = side
        else:
            del self._sides[descriptor]
        side.events = events

    def _may_read(self, pair: SocketPair, side: Side) -> bool:
        if side is pair.client:
            return not pair.link.crowded
        return pair.link.responses.held is None

    # Ending.

    def _part(self) -> None:
        """Free the memory of links that have gone.

        Else it would only be freed when Python looks through all there is for what nobody can
        reach: that is seldom, and stops all links for a while.
        """
        closed, self._closed_pairs = self._closed_pairs, []
        for pair in closed:
            pair.part()

    def _turn_away(self, pair: SocketPair) -> None:
        """Close a link on which the broker has said nothing; see
        :mod:`leader_hints.net.clients.reset`."""
        with suppress(OSError):
            pair.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        self._close(pair)

    def _close(self, pair: SocketPair) -> None:
        if not pair.open:
            return
        pair.open = False
        for side in (pair.client, pair.broker):
            if side.events:
                descriptor = side.socket.fileno()
                self._poller.watch(descriptor, side.events, 0)
                del self._sides[descriptor]
                side.events = 0
            self._drop_queue(side)
            side.socket.close()
        if pair.link.state.events:
            self._report(pair)
        pair.link.close()
        pair.link.state.traffic.links_open -= 1
        self._hold_timer.forget(pair.link.state.number)
        self._pairs.pop(pair.link.state.number, None)
        self._ending.pop(pair.link.state.number, None)
        # What has called this may still look at its sides.
        self._closed_pairs.append(pair)

    def _expire(self, pair: SocketPair, limit: str) -> None:
        route = pair.link.state.route.name
        self._emit(LimitReached(route=route, limit=limit, client=pair.client_name))
        self._close(pair)

    def _close_at_rest(self, pair: SocketPair, *, quiet: bool) -> None:
        """Close a link that has no request under way; ``quiet``: it moved no byte for a while."""
        link = pair.link
        assert self._exempt is not None
        if pair.client.queue or pair.broker.queue or self._exempt(link.state):
            return
        if not link.resting if link.matched else not quiet:
            return
        if pair.answered:
            self._close(pair)
        else:
            self._turn_away(pair)

    def _close_outdated(self, pair: SocketPair) -> None:
        """Close a link whose client is to be offered other versions, once nothing is under way."""
        if pair.open and pair.link.resting and not (pair.client.queue or pair.broker.queue):
            self._close(pair)

    def _client_at_fault(self, pair: SocketPair, fault: str) -> None:
        route = pair.link.state.route
        self._emit(BadClientBytes(route=route.name, client=pair.client_name, reason=fault))
        self._close(pair)
        if pair.link.state.topic_ids.without_ids:
            self._doubt(route)

    def _broker_at_fault(self, pair: SocketPair, fault: str) -> None:
        state = pair.link.state
        self._emit(BadBrokerBytes(route=state.route.name, link=state.number, reason=fault))
        self._close(pair)

    def _failed(self, pair: SocketPair, error: Exception) -> None:
        state = pair.link.state
        places = places_of(error)
        self._emit(LinkFailed(route=state.route.name, link=state.number, traceback=places))
        self._close(pair)

    def _report(self, pair: SocketPair) -> None:
        events, pair.link.state.events = pair.link.state.events, []
        self._hold_timer.emit(events)
