"""What is done when a socket is ready: bytes go through the link to the other one."""

import socket
from collections.abc import Sequence

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.response_flow import NEVER
from leader_hints.net.pump.endings import Endings
from leader_hints.net.pump.holds import Holds
from leader_hints.net.pump.lookahead import Lookahead
from leader_hints.net.pump.pipe import Pipe, UnfitError
from leader_hints.net.pump.poller import DUE, PEER_CLOSED, READ, WRITE
from leader_hints.net.pump.reports import Reports
from leader_hints.net.pump.send_queues import SendQueues
from leader_hints.net.pump.socket_pair import Side, SocketPair
from leader_hints.net.pump.watched_sides import WatchedSides, may_be_read

#: Bytes that go on as they come, whatever they are, from which on they are moved within the system;
#: and as many as these, received at once, are seldom the last.
_MUCH = 65_536
#: How often a side that sends so much is served before others get their turn: each time it is a
#: pipe full of bytes that are not copied at most, or a buffer full of others.
_TIMES = 4


class Relay:
    """Serves the sockets of all links, one at a time."""

    __slots__ = ("_endings", "_hold_timer", "_lookahead", "_queues", "_reports", "_watched")

    def __init__(
        self,
        watched: WatchedSides,
        queues: SendQueues,
        lookahead: Lookahead,
        endings: Endings,
        hold_timer: Holds,
        reports: Reports,
    ) -> None:
        self._watched = watched
        self._queues = queues
        self._lookahead = lookahead
        self._endings = endings
        self._hold_timer = hold_timer
        self._reports = reports

    def ready(self, side: Side, events: int) -> None:
        """Serve a side that is ready for more than to be read."""
        if events & ~READ and side.events & WRITE:
            self._writable(side)
        if events & DUE and side.events & DUE:
            self._resume(side)
        elif events & ~WRITE and side.events & READ:
            self.readable(side)
        elif events & ~(READ | WRITE | DUE) and side.events & PEER_CLOSED:
            self._endings.peer_closed(side)

    def readable(self, side: Side) -> None:
        """Receive what is there, and send what becomes of it to the other side."""
        for times in range(_TIMES):
            # Mostly more has come meanwhile. To have the poller say so costs more than to look.
            if side.flow.ahead is not None:
                again = self._look(side.pair)
            else:
                again = self._receive(side, is_there=not times)
            if not again:
                return

    def _receive(self, side: Side, *, is_there: bool, copies: bool = False) -> bool:
        """Receive once; return whether it is to be tried again at once.

        ``is_there``: the poller says that there is something. ``copies``: nothing is moved within
        the system.
        """
        pair, flow, queues = side.pair, side.flow, self._queues
        pipe = queues.pipe_from(side) if flow.passing >= _MUCH and not copies else None
        try:
            if pipe is not None:
                size = queues.fill(pipe, side)
            else:
                buffer = flow.buffer()
                if queues.queued > queues.most:
                    buffer = queues.little_of(buffer)
                size = side.socket.recv_into(buffer)
        except UnfitError:
            # It is tried in the other way at once: the socket stays ready.
            queues.stop_moving()
            return False
        except (BlockingIOError, InterruptedError):
            # Nothing is moved from a byte on that was sent as urgent (MSG_OOB): the socket would
            # stay ready for ever. What receives leaves that byte out.
            urgent = is_there and pipe is not None
            return urgent and self._receive(side, is_there=False, copies=True)
        except OSError:
            if side is pair.client:
                self._endings.close(pair)
                return False
            if not pair.answered:
                self._endings.turn_away(pair)
                return False
            # A reset broker: the answers that came before it are good all the same.
            size = 0
        if not size and pipe is not None:
            # Nor is the end the end there: what came behind that byte is still to be received.
            return self._receive(side, is_there=False, copies=True)
        if not size:
            self._endings.end(side)
            return False
        if pipe is None:
            self._went_on(side, size, queues.send(side.peer, flow.received(size)))
        else:
            flow.passed(size)
            self._went_on(side, size, queues.pour(side.peer, pipe))
        return (size >= _MUCH or flow.ahead is not None) and pair.open and may_be_read(side)

    def _look(self, pair: SocketPair) -> bool:
        """Look at bytes that the broker has sent, without receiving them; return as `_receive`."""
        sock, responses, lookahead = pair.broker.socket, pair.link.responses, self._lookahead
        ahead = responses.ahead
        assert ahead is not None
        # Nothing is ahead where a side has TLS.
        assert isinstance(sock, socket.socket)
        there = lookahead.peek(sock, ahead)
        pieces: Pieces = []
        if there is None:
            responses.look_no_more()
            responses.looks_from = NEVER
        else:
            pieces = responses.looked(there)
        if responses.ahead is ahead:
            if lookahead.wait(sock, ahead.distance + ahead.least):
                return False
            responses.look_no_more()
        if responses.ahead is None:
            lookahead.go_on(sock)
        self._went_on(pair.broker, 0, self._queues.send(pair.client, pieces))
        return pair.open and may_be_read(pair.broker)

    def _resume(self, side: Side) -> None:
        """Go on with what was left of what a side has received."""
        self._went_on(side, 0, self._queues.send(side.peer, side.flow.resume()))

    def _went_on(self, side: Side, size: int, error: OSError | None) -> None:
        """See to what comes of ``size`` bytes that were received, and sent or not."""
        pair, flow = side.pair, side.flow
        if not side.peer.write_closed:
            # What goes nowhere is no progress.
            pair.moves += 1
        if error is not None:
            self._endings.refused(side.peer, error)
        if side is pair.client:
            pair.link.state.traffic.up += size
            if flow.fault is not None:
                self._endings.client_at_fault(pair, flow.fault)
            elif pair.open:
                self._requested(pair)
        else:
            pair.link.state.traffic.down += size
            pair.answered = True
            if pair.open:
                self._responded(pair)

    def release(self, pair: SocketPair, hints: Sequence[LeaderHint | None]) -> None:
        """Let a held response go on with its hints."""
        self._release(pair, hints, waited=True)
        if pair.open:
            self._responded(pair)

    def _writable(self, side: Side) -> None:
        pair, peer = side.pair, side.peer
        moved = isinstance(side.queue[0], Pipe)
        try:
            if not self._queues.flush(side):
                return
        except OSError as error:
            self._endings.refused(side, error)
            return
        if side.shut:
            self._endings.shut(side)
        if moved and pair.open and may_be_read(peer):
            # Where the reader is slow the next bytes are here already.
            self.readable(peer)
        if pair.open:
            self._watched.update(side)
            self._watched.update(peer)

    def _requested(self, pair: SocketPair) -> None:
        if pair.link.state.events:
            self._reports.events(pair.link.state)
        if pair.client.events != READ or pair.link.crowded or pair.client.flow.unfinished:
            self._watched.update(pair.client)

    def _responded(self, pair: SocketPair) -> None:
        responses = pair.link.responses
        while responses.held is not None and pair.open:
            hints = self._hold_timer.submit(responses.held)
            if hints is None:
                break
            self._release(pair, hints, waited=False)
        if responses.fault is not None and pair.open:
            ended = self._endings
            report = ended.client_at_fault if responses.unread else ended.broker_at_fault
            report(pair, responses.fault)
        state = pair.link.state
        if state.snooped:
            self._reports.metadata(state)
        if state.topic_ids.lacking:
            self._reports.lacking_ids(state)
        if not pair.open:
            return
        if state.events:
            self._reports.events(state)
        if pair.broker.ended and not responses.unfinished:
            self._endings.end(pair.broker)
            return
        if pair.broker.events != READ or responses.held is not None or responses.unfinished:
            self._watched.update(pair.broker)
        if not pair.client.events & READ:
            # A response may have made room for requests.
            self._watched.update(pair.client)
        if self._endings.draining is not None:
            self._endings.close_at_rest(pair, quiet=False)
        elif state.topic_ids.outdated:
            self._endings.close_outdated(pair)

    def _release(
        self, pair: SocketPair, hints: Sequence[LeaderHint | None], *, waited: bool
    ) -> None:
        pieces = pair.link.responses.release(hints, waited=waited)
        error = self._queues.send(pair.client, pieces)
        if error is not None:
            self._endings.refused(pair.client, error)
