"""Lookahead: bytes are looked at while they stay in a socket's receive buffer.

So what precedes them may be moved to another socket without being received. Linux can do that for
TCP since 6.9, for IPv6 since 6.11. Where it cannot, all is received.
"""

import socket
import sys
from contextlib import suppress

from leader_hints.core.link.ahead import Ahead
from leader_hints.wire.steps import Steps

#: From so many bytes on it costs less to look behind them than to receive them.
LOOKS_FROM = 65_536
#: From where on MSG_PEEK looks (SO_PEEK_OFF), which Python has no name for; -1: the beginning.
_PEEK_OFF = 42
#: A socket waits until as many sweeps have begun.
_SWEEPS = 2
#: Sockets that one step of a sweep looks after; each may cost a system call.
_SWEPT_AT_ONCE = 200


class Lookahead:
    """Looks into sockets, and knows which of them wait until there is enough to look at."""

    __slots__ = ("_sweeps", "_waiting")

    def __init__(self) -> None:
        self._sweeps = 0
        #: How many sweeps there had been when each began to wait.
        self._waiting: dict[socket.socket, int] = {}

    def peek(self, sock: socket.socket, ahead: Ahead) -> bytes | None:
        """Return what is there of bytes that are ahead; ``None`` where the system cannot say."""
        if sys.platform != "linux":
            return None
        try:
            sock.setsockopt(socket.SOL_SOCKET, _PEEK_OFF, ahead.distance)
        except OSError:
            return None
        try:
            return sock.recv(ahead.most, socket.MSG_PEEK)
        except OSError:
            # They have not come, or never will: that shows when all before them is received.
            return b""
        finally:
            sock.setsockopt(socket.SOL_SOCKET, _PEEK_OFF, -1)

    def wait(self, sock: socket.socket, size: int) -> bool:
        """Have the poller report a socket only once so many bytes are there.

        It does so earlier if no more can come, or there is no room for more. False where there
        never would be, and nothing is waited for.
        """
        self._waiting[sock] = self._sweeps
        with suppress(OSError):
            # Linux makes room for as many, up to the half of net.ipv4.tcp_rmem's maximum.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) >= size:
                return True
        self.go_on(sock)
        return False

    def go_on(self, sock: socket.socket) -> None:
        """Have the poller report a socket again as soon as anything is there."""
        if self._waiting.pop(sock, None) is not None:
            # It may be closed.
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    def sweep(self) -> Steps[None]:
        """Let none wait for long, in short steps; call it about every second.

        Bytes that come slowly are received, as they show that a link is not idle.
        """
        self._sweeps += 1
        for number, sock in enumerate([*self._waiting], 1):
            if self._sweeps - self._waiting.get(sock, self._sweeps) >= _SWEEPS:
                self.go_on(sock)
            if number % _SWEPT_AT_ONCE == 0:
                yield
