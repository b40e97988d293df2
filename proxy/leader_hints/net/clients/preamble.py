"""Preamble of a connection: a PROXY header and a TLS handshake, before the first request.

The sender is not authenticated yet. So each reads no more than it needs, and the caller bounds the
time.

Tested in ``tests/net/tls/test_tls.py``.
"""

import contextlib
import socket
import ssl
from typing import Final, NamedTuple

import trio

from leader_hints.net.tls import tls_errors
from leader_hints.net.tls.handshake_turns import Arrival, Rank, Turn
from leader_hints.wire import client_hello, proxy_header
from leader_hints.wire.errors import Malformed
from leader_hints.wire.proxy_header import Source

_RECEIVE: Final = 16_384
#: Bytes of a client's handshake after which there must be no more to come, but for one piece. A
#: chain of certificates has 2 to 20 KB; OpenSSL takes 100, of which each KB keeps links waiting
#: for half a millisecond.
_LONGEST: Final = 24_576
_ENDED: Final = "ended the connection in the TLS handshake"
_ENDED_AT_ONCE: Final = "ended the connection at its first bytes of TLS; perhaps it speaks none"
#: Seconds for the alert that gives the other side the reason of a refusal.
_ALERT: Final = 1.0
#: Pieces, of what the system had at a time, in which a client may send its part of a preamble
#: before others go first. A long chain of certificates comes in a few.
_PIECES: Final = 8


class HandshakeError(Exception):
    """The other side is at fault; the text is the end of a sentence that begins with it.

    ``silent``: it connected and said nothing at all, as health checks do.
    """

    def __init__(self, text: str, *, silent: bool = False) -> None:
        super().__init__(text)
        self.silent = silent


class TlsSession(NamedTuple):
    """A TLS session after its handshake, and the memory between it and the socket."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


async def at_once(_: Rank) -> None:
    """Wait only as long as receiving does."""


async def read_proxy_header(stream: trio.SocketStream, arrival: Arrival = at_once) -> Source | None:
    """Read a PROXY header and nothing behind it; see :func:`leader_hints.wire.proxy_header.read`.

    :raises HandshakeError: there is none, or it is not well formed.
    """
    data, pieces = b"", 0
    try:
        while proxy_header.missing(data):
            await arrival(_rank(Rank.NEW, pieces))
            seen = await stream.socket.recv(_RECEIVE, socket.MSG_PEEK)
            if not seen:
                text = "ended the connection before its PROXY header"
                raise HandshakeError(text, silent=not data)
            rest = seen
            while rest and (missing := proxy_header.missing(data)):
                data, rest = data + rest[:missing], rest[missing:]
            await stream.socket.recv(len(seen) - len(rest))
            pieces += 1
        return proxy_header.read(data)
    except Malformed as error:
        raise HandshakeError(f"sends no PROXY header that can be read: {error}") from None
    except OSError as error:
        raise HandshakeError(tls_errors.describe(error), silent=not data) from None


async def do_tls_handshake(
    stream: trio.abc.Stream,
    context: ssl.SSLContext,
    server_name: str | None = None,
    turn: Turn = contextlib.nullcontext,
    arrival: Arrival = at_once,
) -> TlsSession:
    """Do the TLS handshake: as a client with a server of a name, or as a server.

    ``turn``: in which each step is done. ``arrival``: awaited before bytes are received.

    :raises HandshakeError: it failed.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    received, is_server, rank = _Received(stream, arrival), server_name is None, Rank.NEW
    try:
        if is_server:
            # OpenSSL takes 40 KB for each client from its first step on, and thousands may be
            # silent.
            incoming.write(await _client_hello(received))
        tls = context.wrap_bio(
            incoming, outgoing, server_side=is_server, server_hostname=server_name
        )
        while True:
            async with turn():
                done = _step(tls)
            if answer := outgoing.read():
                await stream.send_all(answer)
            if done:
                return TlsSession(tls, incoming, outgoing)
            if is_server and client_hello.is_asked_again(answer):
                incoming.write(await _client_hello(received))
                continue
            if is_server and received.bytes > _LONGEST:
                raise HandshakeError("sends more in its TLS handshake than certificates have")
            rank = Rank.ANSWERED if answer else rank
            incoming.write(await received.piece(rank))
    except ssl.SSLError as error:
        with contextlib.suppress(trio.BrokenResourceError), trio.move_on_after(_ALERT):
            await stream.send_all(outgoing.read())
        raise HandshakeError(tls_errors.describe(error)) from None
    except ValueError as error:
        # Of a name that no certificate can have: empty labels, labels of 64 letters.
        raise HandshakeError(f"cannot be verified by the name {server_name!r}: {error}") from None
    except trio.BrokenResourceError as error:
        text = tls_errors.describe(error.__cause__)
        raise HandshakeError(text, silent=not received.pieces) from None


class _Received:
    """Receives pieces of a handshake: at each time what the system has.

    ``pieces``, ``bytes``: how many have come.
    """

    def __init__(self, stream: trio.abc.Stream, arrival: Arrival) -> None:
        self._stream = stream
        self._arrival = arrival
        self.pieces = 0
        self.bytes = 0

    async def piece(self, rank: Rank) -> bytes:
        """Receive the next one; ``rank``: of a client that has sent few so far.

        :raises HandshakeError: there is no more.
        """
        await self._arrival(_rank(rank, self.pieces))
        data = await self._stream.receive_some(_RECEIVE)
        if not data:
            text = _ENDED if self.pieces else _ENDED_AT_ONCE
            raise HandshakeError(text, silent=not self.pieces)
        self.pieces += 1
        self.bytes += len(data)
        return bytes(data)


async def _client_hello(received: _Received) -> bytes:
    """Receive a client's first message, before OpenSSL does anything for it.

    :raises HandshakeError: it is none, or answering it costs too much.
    """
    data = b""
    try:
        while client_hello.missing(data):
            data += await received.piece(Rank.NEW)
        is_costly = client_hello.is_costly(data)
    except Malformed as error:
        text = f"speaks no TLS on a TLS listener, or breaks it: {error}"
        raise HandshakeError(text) from None
    if is_costly:
        raise HandshakeError(
            "wants keys exchanged over a finite field (ffdhe), which takes long; allow it a curve, "
            "such as x25519 or secp256r1"
        )
    return data


def _rank(rank: Rank, pieces: int) -> Rank:
    return rank if pieces < _PIECES else Rank.SLOW


def _step(tls: ssl.SSLObject) -> bool:
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
