"""Moves the bytes of all links.

One task polls the sockets of all links and serves whatever is ready in one synchronous step:
task switches, not work on bytes, are what small messages cost. One buffer serves all links,
since each step sends or copies what it has received before it ends.

Back-pressure: a socket is read only while the other side takes everything. What a full socket
did not take is kept, at most one buffer or one gathered frame for each direction of a link.
"""

import socket
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

import trio

from proxy.apis.leader_hint import LeaderHint
from proxy.core.budget import Budget
from proxy.core.events import BadBrokerBytes, BadClientBytes, Event, LinkFailed
from proxy.core.flow import Flow, Pieces
from proxy.core.held import Held
from proxy.core.link import Link
from proxy.core.recovery import Recovery
from proxy.core.route import Route
from proxy.net.hold_keeper import HoldKeeper
from proxy.net.poller import READ, WRITE, Poller, make_poller
from proxy.net.tls_socket import Transport

#: Received at once. Large, since each step costs the same for few bytes and for many; it also
#: must hold the longest prefix that a request is carried over with.
BUFFER_BYTES = 262_144
#: Seconds that sockets are served before other tasks get their turn. To be woken by Trio costs more
#: than to relay a small message, so a turn is long where nobody waits for his.
_TURN = 0.05
#: The same where somebody does: while a response is held, since its hint comes through Trio, and
#: while a client's connection is being made.
_SHORT_TURN = 0.002
#: Seconds that the next bytes are waited for within a long turn.
_MOMENT = 0.01
#: Pieces given to the system at once; IOV_MAX is 1024.
_MOST_PIECES = 512

Snoop = Callable[[Route, int, bytes], None]
Lack = Callable[[Route], None]


class _Side:
    """One socket of a link: ``flow`` takes what is received here and yields what ``peer`` sends.

    ``ended``: the other end has no more to say. ``shut``: we told it the same, or will when
    the queue is empty. ``deaf``: it takes nothing more, so what is meant for it is dropped.
    """

    __slots__ = ("deaf", "ended", "events", "flow", "joint", "peer", "queue", "shut", "socket")

    def __init__(self, sock: Transport, flow: Flow, joint: "_Joint") -> None:
        self.socket = sock
        self.flow = flow
        self.joint = joint
        self.peer: _Side = self
        self.queue: deque[memoryview | bytes] = deque()
        self.events = 0
        self.ended = False
        self.shut = False
        self.deaf = False


class _Joint:
    """A link and its two sockets."""

    __slots__ = ("broker", "client", "client_name", "link", "open")

    def __init__(self, link: Link, client: Transport, broker: Transport, client_name: str) -> None:
        self.link = link
        self.client_name = client_name
        self.client = _Side(client, link.requests, self)
        self.broker = _Side(broker, link.responses, self)
        self.client.peer, self.broker.peer = self.broker, self.client
        self.open = True


class Pump:
    """Owns the sockets of all links from :meth:`adopt` on.

    ``emit``: where events go. ``snoop``: where Metadata responses go that pass by. ``lack``: what
    is called when a client used a topic id that is not known; ``doubt``: when one had no id for a
    topic although this proxy makes them up. ``recovery``: what all links await.
    """

    def __init__(
        self,
        budget: Budget,
        keeper: HoldKeeper,
        emit: Callable[[Event], None],
        snoop: Snoop,
        lack: Lack,
        doubt: Lack,
        recovery: Recovery,
        *,
        largest_request: int,
        requests_in_flight: int,
        poller: Poller | None = None,
    ) -> None:
        self._budget = budget
        self._keeper = keeper
        self._emit = emit
        self._snoop = snoop
        self._lack = lack
        self._recovery = recovery
        self._doubt = doubt
        self._largest_request = largest_request
        self._requests_in_flight = requests_in_flight
        self._shared = memoryview(bytearray(BUFFER_BYTES))
        self._poller = poller or make_poller()
        self._sides: dict[int, _Side] = {}
        self._called = False
        self._urgent = 0
        self._joints: dict[int, _Joint] = {}
        self._numbers = 0
        self._over = False

    def adopt(self, route: Route, client: Transport, broker: Transport, client_name: str) -> None:
        """Join two connected sockets, which do not block, to a link of ``route``.

        Once :meth:`run` is over they are closed.
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
            largest_request=self._largest_request,
            requests_in_flight=self._requests_in_flight,
            address=client_name,
        )
        joint = _Joint(link, client, broker, client_name)
        self._joints[self._numbers] = joint
        route.tally.links += 1
        route.tally.links_open += 1
        self._watch(joint.client)
        self._watch(joint.broker)

    def heed(self, descriptor: int) -> None:
        """End a turn when something can be read there: other tasks wait for it."""
        self._poller.watch(descriptor, 0, READ)

    def disregard(self, descriptor: int) -> None:
        """End the effect of :meth:`heed`, before the descriptor is closed."""
        self._poller.watch(descriptor, READ, 0)

    @contextmanager
    def heeding(self, descriptor: int) -> Iterator[None]:
        """The same meanwhile; the descriptor stays open."""
        self.heed(descriptor)
        try:
            yield
        finally:
            if not self._over:
                self._poller.watch(descriptor, READ, 0)

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
            for joint in list(self._joints.values()):
                self._close(joint)
            self._poller.close()

    def _take_turn(self) -> None:
        """Serve until all sockets are quiet for a moment, or it is others' turn."""
        begun = monotonic()
        wait = 0.0
        self._called = False
        while self.step(wait) and not self._called:
            short = self._urgent or self._keeper.waiting.is_set()
            if monotonic() - begun >= (_SHORT_TURN if short else _TURN):
                return
            wait = 0.0 if short else _MOMENT

    def step(self, wait: float = 0.0) -> int:
        """Serve every socket that is ready within ``wait`` seconds; return how many there were."""
        ready = self._poller.poll(wait)
        for descriptor, events in ready:
            side = self._sides.get(descriptor)
            if side is None:
                # One that others heed, or that was closed in this very step.
                self._called = True
                continue
            try:
                if events == READ:
                    self._readable(side)
                    continue
                if events & ~READ and side.events & WRITE:
                    self._writable(side)
                if events & ~WRITE and side.events & READ:
                    self._readable(side)
            except Exception as error:
                # A defect of ours must end one link and not all of them.
                self._failed(side.joint, error)
        return len(ready)

    def settle(self, decided: Iterable[tuple[Held, Sequence[LeaderHint | None]]]) -> None:
        """Let held responses go on with their hints."""
        for held, hints in decided:
            joint = self._joints.get(held.link.number)
            if joint is None:
                continue
            try:
                self._send(joint.client, joint.link.responses.release(hints))
                if joint.open:
                    self._responded(joint)
            except Exception as error:
                self._failed(joint, error)

    # Receiving.

    def _readable(self, side: _Side) -> None:
        try:
            size = side.socket.recv_into(side.flow.buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            if side is side.joint.client:
                self._close(side.joint)
                return
            # A reset broker: the answers that came before it are good all the same.
            size = 0
        if not size:
            self._end(side)
            return
        joint = side.joint
        tally = joint.link.state.tally
        pieces = side.flow.received(size)
        if side is joint.client:
            tally.up += size
            self._send(side.peer, pieces)
            if side.flow.fault is not None:
                self._blame(joint, side.flow.fault)
            elif joint.open:
                self._requested(joint)
        else:
            tally.down += size
            self._send(side.peer, pieces)
            if joint.open:
                self._responded(joint)

    def _requested(self, joint: _Joint) -> None:
        if joint.link.state.lacking:
            joint.link.state.lacking = False
            self._lack(joint.link.state.route)
        if joint.link.state.events:
            self._tell(joint)
        if joint.client.events != READ or joint.link.crowded:
            self._watch(joint.client)

    def _responded(self, joint: _Joint) -> None:
        responses = joint.link.responses
        while responses.held is not None and joint.open:
            hints = self._keeper.submit(responses.held)
            if hints is None:
                break
            self._send(joint.client, responses.release(hints))
        if responses.fault is not None and joint.open:
            self._blame_broker(joint, responses.fault)
        if responses.snooped:
            snooped, responses.snooped = responses.snooped, []
            for version, payload in snooped:
                self._snoop(joint.link.state.route, version, payload)
        if not joint.open:
            return
        if joint.link.state.events:
            self._tell(joint)
        if joint.broker.ended:
            self._end(joint.broker)
            return
        if joint.broker.events != READ or responses.held is not None:
            self._watch(joint.broker)
        if not joint.client.events & READ:
            # A response may have made room for requests.
            self._watch(joint.client)

    def _end(self, side: _Side) -> None:
        """The other end has no more to say: pass on what was kept back, and say so too."""
        joint = side.joint
        side.ended = True
        if side is joint.broker:
            # A broker that closes has closed both directions.
            self._deafen(side)
            if joint.link.responses.held is not None:
                return
        self._send(side.peer, side.flow.ended())
        if joint.open:
            side.peer.shut = True
            if not side.peer.queue:
                self._shut(side.peer)
            if joint.open:
                self._watch(side)

    def _shut(self, side: _Side) -> None:
        joint = side.joint
        if side is joint.client:
            # The broker has gone, and the client has all that it said.
            self._close(joint)
            return
        if side.deaf:
            return
        try:
            side.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(joint)

    # Sending.

    def _send(self, side: _Side, pieces: Pieces) -> None:
        if not pieces:
            return
        if side.deaf:
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

    def _queue(self, side: _Side, pieces: Pieces, sent: int) -> None:
        """Keep what was not sent: as it is, or as a copy where the buffer is the shared one."""
        for piece in pieces:
            if sent >= len(piece):
                sent -= len(piece)
                continue
            rest = memoryview(piece)[sent:]
            sent = 0
            shared = rest.obj is self._shared.obj
            side.queue.append(bytes(rest) if shared else rest)
        self._watch(side)
        self._watch(side.peer)

    def _writable(self, side: _Side) -> None:
        queue = side.queue
        try:
            sent = side.socket.sendmsg([queue[i] for i in range(min(len(queue), _MOST_PIECES))])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._refused(side, error)
            return
        while queue and sent >= len(queue[0]):
            sent -= len(queue.popleft())
        if queue:
            queue[0] = memoryview(queue[0])[sent:]
            return
        side.peer.flow.flushed()
        if side.shut:
            self._shut(side)
        if side.joint.open:
            self._watch(side)
            self._watch(side.peer)

    def _refused(self, side: _Side, error: OSError) -> None:
        """Go on without what cannot be sent, or close the link.

        A broker that has closed may have answered before: its bytes are read to their end,
        which is what closes the link then.
        """
        if side is side.joint.broker and isinstance(error, ConnectionError):
            self._deafen(side)
        else:
            self._close(side.joint)

    def _deafen(self, side: _Side) -> None:
        side.deaf = True
        side.queue.clear()
        side.peer.flow.flushed()
        self._watch(side)
        self._watch(side.peer)

    def _watch(self, side: _Side) -> None:
        """Have the selector tell what this socket is to be used for now."""
        joint = side.joint
        events = WRITE if side.queue else 0
        if not side.ended and not side.peer.queue and self._may_read(joint, side):
            events |= READ
        if events == side.events:
            return
        descriptor = side.socket.fileno()
        self._poller.watch(descriptor, side.events, events)
        if events:
            self._sides[descriptor] = side
        else:
            del self._sides[descriptor]
        side.events = events

    def _may_read(self, joint: _Joint, side: _Side) -> bool:
        if side is joint.client:
            return not joint.link.crowded
        return joint.link.responses.held is None

    # Ending.

    def _close(self, joint: _Joint) -> None:
        if not joint.open:
            return
        joint.open = False
        for side in (joint.client, joint.broker):
            if side.events:
                descriptor = side.socket.fileno()
                self._poller.watch(descriptor, side.events, 0)
                del self._sides[descriptor]
                side.events = 0
            side.queue.clear()
            side.socket.close()
        if joint.link.state.events:
            self._tell(joint)
        joint.link.close()
        joint.link.state.tally.links_open -= 1
        self._keeper.forget(joint.link.state.number)
        self._joints.pop(joint.link.state.number, None)

    def _blame(self, joint: _Joint, fault: str) -> None:
        route = joint.link.state.route
        self._emit(BadClientBytes(route=route.name, client=joint.client_name, reason=fault))
        self._close(joint)
        if joint.link.state.without_ids:
            self._doubt(route)

    def _blame_broker(self, joint: _Joint, fault: str) -> None:
        state = joint.link.state
        self._emit(BadBrokerBytes(route=state.route.name, link=state.number, reason=fault))
        self._close(joint)

    def _failed(self, joint: _Joint, error: Exception) -> None:
        state = joint.link.state
        places = "".join(traceback.format_tb(error.__traceback__))
        text = f"{places}{type(error).__name__}"
        self._emit(LinkFailed(route=state.route.name, link=state.number, traceback=text))
        self._close(joint)

    def _tell(self, joint: _Joint) -> None:
        events, joint.link.state.events = joint.link.state.events, []
        for event in events:
            self._emit(event)
