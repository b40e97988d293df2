"""Sending: at once, from socket to socket within the system, or when a socket takes more.

Back-pressure: a socket is read only while the other side takes everything. What a full socket
did not take is kept, at most one buffer or one gathered frame for each direction of a link. Where
that is too much for all links together, each receives but little at a time.
"""

from itertools import islice

from leader_hints.core.events import LimitReached
from leader_hints.core.link.flow import Pieces
from leader_hints.net.pump.pipe import Pipe, Pipes
from leader_hints.net.pump.reports import Reports
from leader_hints.net.pump.socket_pair import Side
from leader_hints.net.pump.watched_sides import WatchedSides

#: Pieces given to the system at once; IOV_MAX is 1024.
_MOST_PIECES = 512
#: Received at once where too much waits to be sent.
_LITTLE = 4096


class SendQueues:
    """The queues of all sides.

    ``queued``: bytes in all of them; ``most``: from which on that is too much. ``shared``: the
    buffer that all links receive into.
    """

    __slots__ = ("_pipes", "_reports", "_shared", "_short_of_room", "_watched", "most", "queued")

    def __init__(
        self, shared: memoryview, most: int, watched: WatchedSides, reports: Reports
    ) -> None:
        self._shared = shared
        self._watched = watched
        self._reports = reports
        self._pipes = Pipes()
        self._short_of_room = False
        self.most = most
        self.queued = 0

    def send(self, side: Side, pieces: Pieces) -> OSError | None:
        """Send pieces, or queue what is not taken; return why the socket takes nothing more."""
        if not pieces:
            return None
        if side.write_closed:
            side.peer.flow.flushed()
            return None
        if side.queue:
            self._queue(side, pieces, 0)
            return None
        try:
            if len(pieces) == 1:
                size = len(pieces[0])
                sent = side.socket.send(pieces[0])
            else:
                size = sum(map(len, pieces))
                sent = side.socket.sendmsg(pieces[:_MOST_PIECES])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            # With its frames it would keep those of the callers, and be kept by them.
            return error.with_traceback(None)
        if sent == size:
            side.peer.flow.flushed()
        else:
            self._queue(side, pieces, sent)
        return None

    def pipe_from(self, side: Side) -> Pipe | None:
        """Return a pipe from this side to the other; ``None`` where bytes must be received."""
        peer = side.peer
        if not side.pair.plain or peer.queue or peer.write_closed:
            return None
        return None if self.queued > self.most else self._pipes.take()

    def fill(self, pipe: Pipe, side: Side) -> int:
        """Take bytes that pass from a socket; return how many.

        :raises UnfitError: the system does not move bytes between such sockets.
        :raises OSError: there are none, or the socket is broken.
        """
        try:
            return pipe.fill(side.socket.fileno(), side.flow.passing)
        finally:
            if not pipe:
                self._pipes.give_back(pipe)

    def pour(self, side: Side, pipe: Pipe) -> OSError | None:
        """Send what is in a pipe, as :meth:`send`; what is not taken at once stays there."""
        target = side.socket.fileno()
        try:
            while pipe:
                pipe.empty(target)
        except (BlockingIOError, InterruptedError):
            side.queue.append(pipe)
            self.queued += len(pipe)
            self._watched.update(side)
            self._watched.update(side.peer)
            return None
        except OSError as error:
            self._pipes.give_back(pipe)
            return error.with_traceback(None)
        self._pipes.give_back(pipe)
        return None

    def stop_moving(self) -> None:
        """Receive all bytes from now on."""
        self._pipes.stop()

    def little_of(self, buffer: memoryview) -> memoryview:
        """Return where to receive while too much waits to be sent."""
        if not self._short_of_room:
            self._short_of_room = True
            self._reports.emit(LimitReached(route="", limit="queued_bytes", client=""))
        return buffer[:_LITTLE]

    def flush(self, side: Side) -> bool:
        """Send what is queued for a socket that takes more; return whether nothing is left.

        :raises OSError: it takes nothing more.
        """
        queue = side.queue
        try:
            sent = _send_queued(side)
        except (BlockingIOError, InterruptedError):
            return False
        side.pair.moves += 1
        self.queued -= sent
        while queue:
            piece = queue[0]
            if isinstance(piece, Pipe):
                if piece:
                    return False
                self._pipes.give_back(piece)
                sent = 0
            elif sent < len(piece):
                queue[0] = memoryview(piece)[sent:]
                return False
            else:
                sent -= len(piece)
            queue.popleft()
        side.peer.flow.flushed()
        return True

    def drop(self, side: Side) -> None:
        """Drop what is queued for a socket."""
        self.queued -= sum(map(len, side.queue))
        for piece in side.queue:
            if isinstance(piece, Pipe):
                self._pipes.give_back(piece)
        side.queue.clear()

    def sweep(self) -> None:
        """Close pipes that are not needed; call it about every second."""
        self._pipes.sweep()
        self._short_of_room = self.queued > self.most

    def close(self) -> None:
        """Close all pipes."""
        self._pipes.close()

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
            self.queued += len(rest)
        self._watched.update(side)
        self._watched.update(side.peer)


def _send_queued(side: Side) -> int:
    first = side.queue[0]
    if isinstance(first, Pipe):
        return first.empty(side.socket.fileno())
    pieces = islice(side.queue, _MOST_PIECES)
    return side.socket.sendmsg([piece for piece in pieces if not isinstance(piece, Pipe)])
