"""TlsSocket: a socket that speaks TLS, for the pump."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

#: Received at once, and sent in one call.
_MOST = 262_144
#: Received by all of them: what comes is given to OpenSSL before the next one receives.
_SCRATCH = memoryview(bytearray(_MOST))
#: Of what is empty no view is kept: it would keep all that was there.
_NOTHING = memoryview(b"")
#: Encrypted at once, and so the most that is kept of what the other end does not take. OpenSSL
#: keeps memory of a third more, of the most that there ever was, for as long as the link lasts.
_ENCRYPTED = 65_536
#: Given to OpenSSL at once, by the proxy's own connections too. A record may be a message of TLS
#: itself, such as KeyUpdate (27 bytes), which costs some ten microseconds and brings nothing.
GIVEN = 16_384
#: The largest record, generously.
_RECORD = 17_408
#: Bytes received that bring nothing, in all: more than a record has of which the end is still to
#: come. By then the other end is at something else than sending data. Each byte of data makes up
#: for so many of them, which is more than the smallest record costs.
MOST_IDLE = 24_000
MAKES_UP_FOR = 30
#: Bytes of answers to messages of TLS itself that the other end has not taken.
_MOST_ANSWERS = 4096


class Transport(Protocol):
    """What the pump needs of a socket. Errors are OSErrors, as those of `socket`."""

    def fileno(self) -> int:
        """Return the descriptor that is polled."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive what there is; 0 at the end.

        :raises BlockingIOError: there is nothing.
        """

    def send(self, data: memoryview | bytes, /) -> int:
        """Send what is taken, and return how much.

        :raises BlockingIOError: nothing is taken.
        """

    def sendmsg(self, pieces: Sequence[memoryview | bytes], /) -> int:
        """The same of several pieces, in order."""

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None:
        """Set an option; SO_LINGER is for an end that sends only a reset."""

    def shutdown(self, how: int, /) -> None:
        """Say that nothing more will be sent."""

    def close(self) -> None:
        """Close it."""


class TlsSocket:
    """A :class:`Transport` over a socket that does not block, after its handshake.

    TLS works on memory (:class:`ssl.MemoryBIO`), so that a read of the socket takes all that is
    there and no more calls are made than for a plain one. ``keep``: told whether decrypted bytes
    are kept back, since the reader had no room.

    Bytes count as sent only when what they were encrypted into has gone. The caller offers those
    that did not count again, first, which is what it does with any socket.
    """

    __slots__ = (
        "_ahead",
        "_answers",
        "_idle",
        "_incoming",
        "_keep",
        "_keeps",
        "_outgoing",
        "_received",
        "_resets",
        "_socket",
        "_taken",
        "_tls",
        "_unsent",
    )

    def __init__(
        self,
        sock: socket.socket,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        keep: Callable[[int, bool], None],
    ) -> None:
        self._socket = sock
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._keep = keep
        self._unsent = _NOTHING
        #: Bytes at the head of what will be offered that are in ``_unsent``.
        self._taken = 0
        self._keeps = False
        #: What was received and is not decrypted yet, if the reader had no room for more; and what
        #: was decrypted before the reader asked for it.
        self._received = memoryview(b"")
        self._ahead = memoryview(b"")
        self._idle = 0
        self._answers = 0
        self._resets = False
        # The handshake may have brought more than its own bytes.
        self._note(True)

    def fileno(self) -> int:
        """See :class:`Transport`."""
        return self._socket.fileno()

    def recv_into(self, buffer: memoryview, /) -> int:
        """See :class:`Transport`.

        :raises ConnectionError: the other end keeps TLS busy and sends no data, or takes none of
            its answers.
        """
        filled = self._decrypt(buffer)
        if filled is None:
            filled = self._decrypt_more(buffer)
        else:
            # Of bytes that were weighed when their reader had no room for it.
            self._weigh(0, filled)
        if self._received:
            self._note(True)
        if self._outgoing.pending:
            # An alert, or an answer to a change of keys.
            self._answer()
        if filled is None:
            raise BlockingIOError
        return filled

    def _decrypt_more(self, buffer: memoryview) -> int | None:
        """Fill ``buffer`` with what is received now, or was before; return as :meth:`_decrypt`."""
        # What the reader has no room for is left to the system, which bounds it: here nobody does.
        room = _SCRATCH[: max(len(buffer), _RECORD)]
        received = self._received or room[: self._socket.recv_into(room)]
        if not received:
            self._incoming.write_eof()
            return self._decrypt(buffer)
        filled = given = 0
        # What brings little is gone on with in the next step: others wait for theirs.
        while given < len(received) and filled < len(buffer) and given - filled <= GIVEN:
            piece = received[given : given + GIVEN]
            self._incoming.write(piece)
            given += len(piece)
            try:
                more = self._decrypt(buffer[filled:]) or 0
            except ssl.SSLError:
                if not filled:
                    raise
                # It is raised again at the next call.
                self._note(True)
                break
            self._weigh(len(piece), more)
            filled += more
            # What fills the buffer may have more behind it, which makes up as it is read.
            if self._idle > MOST_IDLE and filled < len(buffer):
                raise ConnectionError("the other end keeps TLS busy and sends no data")
        if received is self._received:
            self._received = received[given:] if given < len(received) else _NOTHING
        elif given < len(received):
            self._received = memoryview(bytes(received[given:]))
        return filled or None

    def _weigh(self, given: int, filled: int) -> None:
        """Note how much data came of some bytes."""
        self._idle = max(self._idle + given - MAKES_UP_FOR * filled, 0)

    def _answer(self) -> None:
        self._answers += self._outgoing.pending
        # What cannot be sent any more, to an end that is gone or behind our own end, takes nothing
        # from what has come: its reader meets the end of that itself.
        with contextlib.suppress(OSError):
            self._flush()
            self._answers = 0
        if self._answers > _MOST_ANSWERS:
            raise ConnectionError("the other end does not take the answers that it asks for")

    def send(self, data: memoryview | bytes, /) -> int:
        """See :class:`Transport`."""
        return self.sendmsg((data,))

    def sendmsg(self, pieces: Sequence[memoryview | bytes], /) -> int:
        """See :class:`Transport`."""
        # One run of bytes makes the fewest records.
        data = pieces[0] if len(pieces) == 1 else b"".join(_first(pieces, _MOST))
        run, sent = memoryview(data)[:_MOST], 0
        try:
            while sent < len(run):
                if not self._taken:
                    # Into memory all of it goes.
                    self._taken = self._tls.write(run[sent : sent + _ENCRYPTED])
                self._flush()
                sent += self._taken
                self._taken = 0
        except BlockingIOError:
            if not sent:
                raise
        return sent

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None:
        """See :class:`Transport`."""
        self._socket.setsockopt(level, option, value)
        self._resets |= option == socket.SO_LINGER

    def shutdown(self, how: int, /) -> None:
        """See :class:`Transport`: with the alert close_notify, and then as TCP does."""
        with contextlib.suppress(ssl.SSLError):
            # What the other end still says can be read all the same, but what it has said must be
            # read before: OpenSSL looks here for its end, and breaks at data.
            self._decrypt_ahead()
            self._tls.unwrap()
        with contextlib.suppress(BlockingIOError):
            self._flush()
        self._socket.shutdown(how)

    def close(self) -> None:
        """See :class:`Transport`."""
        self._note(False)
        with contextlib.suppress(OSError):
            if not self._unsent and not self._resets:
                self._tls.unwrap()
        with contextlib.suppress(OSError):
            self._flush()
        self._socket.close()

    def _decrypt_ahead(self) -> None:
        """Decrypt what OpenSSL has received, which is little, before its reader has room for it."""
        room, ahead = memoryview(bytearray(GIVEN)), bytearray(self._ahead)
        self._ahead = memoryview(b"")
        try:
            while filled := self._decrypt(room):
                ahead += room[:filled]
        finally:
            self._ahead = memoryview(bytes(ahead))
            if self._ahead or self._received:
                self._note(True)

    def _decrypt(self, buffer: memoryview) -> int | None:
        """Fill ``buffer`` with what has come; return how much, 0 at the end, ``None``: nothing."""
        if self._ahead:
            filled = min(len(self._ahead), len(buffer))
            buffer[:filled] = self._ahead[:filled]
            self._ahead = self._ahead[filled:]
            # There may be more, if only the end.
            self._note(True)
            return filled
        filled = 0
        try:
            while filled < len(buffer):
                read = self._tls.read(len(buffer) - filled, buffer[filled:])
                if not read:
                    break
                filled += int(read)
        except ssl.SSLWantReadError:
            self._note(False)
            return filled or None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass
        except ssl.SSLError:
            if not filled:
                raise
        # There may be more, if only the end.
        self._note(True)
        return filled

    def _note(self, keeps: bool) -> None:
        if keeps is not self._keeps:
            self._keeps = keeps
            self._keep(self._socket.fileno(), keeps)

    def _flush(self) -> None:
        """Send what is encrypted.

        :raises BlockingIOError: not all of it is taken.
        """
        if self._outgoing.pending:
            encrypted = self._outgoing.read()
            self._unsent = memoryview(bytes(self._unsent) + encrypted)
        while self._unsent:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        self._unsent = _NOTHING


def _first(pieces: Sequence[memoryview | bytes], size: int) -> Iterator[memoryview | bytes]:
    for piece in pieces:
        yield memoryview(piece)[:size]
        size -= len(piece)
        if size <= 0:
            return
