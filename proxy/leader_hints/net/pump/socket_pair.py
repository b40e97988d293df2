"""The two sockets of a link, and how far each has come.

Tested in ``tests/net/pump/test_endings.py``.
"""

import fcntl
import os
import socket
import struct
import termios
from collections import deque
from contextlib import suppress

from leader_hints.core.link.flow import Flow
from leader_hints.core.link.link import Link
from leader_hints.net.pump.pipe import Pipe
from leader_hints.net.pump.tls_socket import Transport

_INT = struct.Struct("@i")
#: Asks Linux for the bytes of a socket that it has not sent yet (SIOCOUTQNSD).
_NOT_SENT = 0x894B
#: Received at once of what nobody takes, and how often at most: a client may send on and on.
_UNTAKEN, _TIMES = 1 << 18, 32


class Side:
    """One socket of a link: ``flow`` takes what is received here and yields what ``peer`` sends.

    ``ended``: the other end sends nothing more. ``peer_closed``: that is known, but what it sent
    before is not read yet. ``shut``: our direction to it is shut too, or will be when the queue is
    empty. ``write_closed``: nothing more goes to it, so bytes for it are dropped: a broker takes
    nothing more, or a client has got our end. ``queue``: bytes that the socket did
    not take yet; a pipe is always first, since nothing is read for a side that has a queue.
    ``events``: for which it is watched now.
    """

    __slots__ = (
        *("ended", "events", "flow", "pair", "peer", "peer_closed", "queue", "shut", "socket"),
        *("write_closed",),
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
    encrypts. ``ending``: a side has ended; ``unsent``: see :meth:`unsent_bytes`, as it was then.
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

    @property
    def queued(self) -> bool:
        """Whether bytes wait for one of the sockets, or in the client's for the client.

        When it is closed these are lost, if anything comes that is not read.
        """
        return bool(self.client.queue or self.broker.queue or self.unsent_to_client)

    @property
    def unsent_to_client(self) -> int:
        """How many bytes the system could not send to the client yet, where it knows."""
        return _asked(self.client, _NOT_SENT)

    def unsent_bytes(self) -> int:
        """Return how many bytes the system has that the far ends did not take yet.

        One that reads slowly takes them long before there is room for more.
        """
        return sum(_asked(side, termios.TIOCOUTQ) for side in (self.client, self.broker))

    def drop_untaken(self) -> None:
        """Receive in vain what the client has said by now, before its socket is closed.

        Else Linux resets it. That is not sent again if it is lost, nor is what was sent before and
        is lost on its way: the client would wait for its last answer until its own time is over.
        """
        with suppress(OSError):
            for _ in range(_TIMES):
                if not os.read(self.client.socket.fileno(), _UNTAKEN):
                    return

    def part(self) -> None:
        """Have it and its sides, once it is closed, not keep each other."""
        for side in (self.client, self.broker):
            del side.pair, side.peer


def _asked(side: Side, what: int) -> int:
    """Return how many bytes of a kind the system has of a socket, 0 where it does not know."""
    with suppress(OSError):
        (size,) = _INT.unpack(fcntl.ioctl(side.socket, what, bytes(_INT.size)))
        return int(size)
    return 0
