"""Messages between two processes, with sockets beside them.

Each is a length of four bytes and the bytes of :mod:`leader_hints.core.workers.codec`, on a Unix
socket. A message with a socket beside it has that with its first bytes (SCM_RIGHTS, unix(7)).
"""

import array
import errno
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import Final

import trio

from leader_hints.core.workers.codec import bytes_of, decode
from leader_hints.core.workers.messages import WITH_SOCKET, Message

_LENGTH: Final = struct.Struct(">I")
#: Received at once; and seconds for which messages are taken before other tasks get their turn. It
#: is measured and not counted: one message may have 500 failed partitions, which are judged.
_RECEIVED: Final = 1 << 18
_SLICE: Final = 0.004
#: Messages that are sent at once.
_SENT: Final = 100
#: What the system is short of for a moment: of sockets that are under way the processes of a user
#: may have no more than one process may have descriptors (unix(7)). And seconds until then.
_SHORT: Final = (errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM)
_PAUSE: Final = 0.01
#: A descriptor, and room for as many as may come beside the bytes that are received at once: one.
_DESCRIPTORS: Final = array.array("i")
_ROOM: Final = socket.CMSG_SPACE(_DESCRIPTORS.itemsize)

#: Takes a message, and the socket beside it; ``None``: none is beside it, or there was no
#: descriptor left for it.
Take = Callable[[Message, socket.socket | None], None]


class Channel:
    """One end. ``most``: bytes that may wait to be sent; if more do, the other process hangs.

    ``queued``: how many wait. ``taken``: how many messages have come. ``over``: nothing is sent any
    more: the other process has ended, or hangs (``hangs``).
    """

    def __init__(self, sock: socket.socket, most: int) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._most = most
        self._waiting: deque[tuple[bytes, socket.socket | None]] = deque()
        self._some = trio.Event()
        self._data = bytearray()
        self._sockets: deque[socket.socket | None] = deque()
        self.queued = self.taken = 0
        self.over = self.hangs = False

    def send(self, message: Message | bytes, sock: socket.socket | None = None) -> None:
        """Send a message, now or when the other process takes it; ``sock`` is closed here then.

        ``message``: or its bytes, see :func:`leader_hints.core.workers.codec.bytes_of`.
        """
        data = bytes_of(message)
        data = _LENGTH.pack(len(data)) + data
        if self.over or self.queued + len(data) > self._most:
            self.give_up()
            if sock is not None:
                sock.close()
            return
        self._waiting.append((data, sock))
        self.queued += len(data)
        if len(self._waiting) == 1:
            self._flush()
            if self._waiting:
                self._some.set()

    def give_up(self) -> None:
        """Take it that the other process hangs, unless it has ended."""
        self.hangs |= not self.over
        self.end()

    def end(self) -> None:
        """Say and hear nothing any more; the other process learns of that."""
        self.over = True
        while self._waiting:
            _, sock = self._waiting.popleft()
            if sock is not None:
                sock.close()
        self.queued = 0
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It has ended already.
            return

    def close(self) -> None:
        """Close the socket, once :meth:`run` is over."""
        self.end()
        self._sock.close()
        while self._sockets:
            sock = self._sockets.popleft()
            if sock is not None:
                sock.close()

    async def run(
        self,
        take: Take,
        waiting: Callable[[int], AbstractContextManager[None]] = lambda number: nullcontext(),
    ) -> None:
        """Have ``take`` take messages until the other end is closed, or :meth:`end`.

        ``waiting``: entered, with the descriptor, while the next ones are waited for.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_rest)
            try:
                while not self.over:
                    with waiting(self._sock.fileno()):
                        await trio.lowlevel.wait_readable(self._sock)
                    if not self._receive():
                        break
                    await self._take_all(take)
            finally:
                self.end()
                nursery.cancel_scope.cancel()

    async def _take_all(self, take: Take) -> None:
        at = 0
        data = self._data
        over_at = monotonic() + _SLICE
        while len(data) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            begin, end = at + _LENGTH.size, at + _LENGTH.size + length
            if len(data) < end:
                break
            message = decode(bytes(memoryview(data)[begin:end]))
            sock = None
            if isinstance(message, WITH_SOCKET):
                sock = self._sockets.popleft() if self._sockets else None
            take(message, sock)
            self.taken += 1
            at = end
            if monotonic() >= over_at:
                await trio.lowlevel.checkpoint()
                over_at = monotonic() + _SLICE
        del data[:at]

    def _receive(self) -> bool:
        """Receive what is there; return whether the other end is open."""
        try:
            data, beside, flags, _ = self._sock.recvmsg(_RECEIVED, _ROOM, socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        for level, kind, content in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._sockets.extend(socket.socket(fileno=number) for number in numbers)
        if flags & socket.MSG_CTRUNC:
            self._sockets.append(None)
        self._data += data
        return bool(data)

    async def _send_rest(self) -> None:
        while True:
            await self._some.wait()
            self._some = trio.Event()
            while self._waiting:
                await trio.lowlevel.wait_writable(self._sock)
                if not self._flush():
                    await trio.sleep(_PAUSE)

    def _flush(self) -> bool:
        """Send as much as is taken now; return false if the system is short of something."""
        while self._waiting:
            data, sock = self._waiting[0]
            try:
                if sock is None:
                    some: list[bytes] = []
                    for more, beside in self._waiting:
                        if beside is not None or len(some) == _SENT:
                            break
                        some.append(more)
                    sent = self._sock.sendmsg(some)
                else:
                    number = array.array("i", [sock.fileno()])
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, number)]
                    sent = self._sock.sendmsg([data], rights)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError as error:
                if error.errno in _SHORT:
                    return False
                self.end()
                return True
            self._sent(sent)
        return True

    def _sent(self, sent: int) -> None:
        self.queued -= sent
        while sent:
            data, sock = self._waiting.popleft()
            if sock is not None:
                # The system has taken it with the first byte.
                sock.close()
            if sent < len(data):
                self._waiting.appendleft((data[sent:], None))
                return
            sent -= len(data)
