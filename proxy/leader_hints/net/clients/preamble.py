"""Preamble of a connection: a PROXY header and a TLS handshake, before the first request.

The sender is not authenticated yet. So each reads no more than it needs, and the caller bounds the
time.

Tested in ``tests/net/tls/test_tls.py``.
"""

import contextlib
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import trio

from leader_hints.net.tls import tls_errors
from leader_hints.net.tls.handshake_turns import Turn
from leader_hints.wire import proxy_header
from leader_hints.wire.errors import Malformed
from leader_hints.wire.proxy_header import Source

_RECEIVE: Final = 16_384
#: The first byte of every TLS handshake: the record type of its first message.
_HANDSHAKE: Final = 0x16
_ENDED: Final = "ended the connection in the TLS handshake"
_ENDED_AT_ONCE: Final = "ended the connection at its first bytes of TLS; perhaps it speaks none"
#: Seconds for the alert that gives the other side the reason of a refusal.
_ALERT: Final = 1.0


#: In which bytes are awaited, and nothing else.
Receiving = Callable[[], AbstractContextManager[None]]


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


async def read_proxy_header(
    stream: trio.abc.Stream, receiving: Receiving = contextlib.nullcontext
) -> Source | None:
    """Read a PROXY header and nothing behind it; see :func:`leader_hints.wire.proxy_header.read`.

    :raises HandshakeError: there is none, or it is not well formed.
    """
    data = b""
    try:
        while missing := proxy_header.missing(data):
            with receiving():
                chunk = await stream.receive_some(missing)
            if not chunk:
                text = "ended the connection before its PROXY header"
                raise HandshakeError(text, silent=not data)
            data += chunk
        return proxy_header.read(data)
    except Malformed as error:
        raise HandshakeError(f"sends no PROXY header that can be read: {error}") from None
    except trio.BrokenResourceError as error:
        raise HandshakeError(tls_errors.describe(error.__cause__), silent=not data) from None


async def do_tls_handshake(
    stream: trio.abc.Stream,
    context: ssl.SSLContext,
    server_name: str | None = None,
    turn: Turn = contextlib.nullcontext,
    receiving: Receiving = contextlib.nullcontext,
) -> TlsSession:
    """Do the TLS handshake: as a client with a server of a name, or as a server.

    ``turn``: in which each step is done.

    :raises HandshakeError: it failed.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        tls = context.wrap_bio(
            incoming, outgoing, server_side=server_name is None, server_hostname=server_name
        )
    except ValueError as error:
        # Of a name that no certificate can have: empty labels, labels of 64 letters.
        raise HandshakeError(f"cannot be verified by the name {server_name!r}: {error}") from None
    begun = False
    try:
        while True:
            async with turn():
                done = _step(tls)
            if outgoing.pending:
                await stream.send_all(outgoing.read())
            if done:
                return TlsSession(tls, incoming, outgoing)
            with receiving():
                data = await stream.receive_some(_RECEIVE)
            if not data:
                raise HandshakeError(_ENDED if begun else _ENDED_AT_ONCE, silent=not begun)
            if not begun and server_name is None and data[0] != _HANDSHAKE:
                raise HandshakeError("speaks no TLS on a TLS listener")
            begun = True
            incoming.write(data)
    except ssl.SSLError as error:
        with contextlib.suppress(trio.BrokenResourceError), trio.move_on_after(_ALERT):
            await stream.send_all(outgoing.read())
        raise HandshakeError(tls_errors.describe(error)) from None
    except trio.BrokenResourceError as error:
        raise HandshakeError(tls_errors.describe(error.__cause__), silent=not begun) from None


def _step(tls: ssl.SSLObject) -> bool:
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
