"""Handshake of a client before it is joined to a broker: PROXY header and TLS.

Tested in ``tests/net/tls/test_tls.py``.
"""

import ssl
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.net.clients.preamble import (
    HandshakeError,
    TlsSession,
    at_once,
    do_tls_handshake,
    read_proxy_header,
)
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.net.tls.handshake_turns import Arrival, Turn

#: Names of the parts of a subject as principals of Kafka have them (RFC 2253).
_SHORT: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
}


class Admitted(NamedTuple):
    """A client that has passed. ``name``: where it comes from. ``session``: if it speaks TLS.

    ``principal``: the subject of its certificate, "" without one, or if it cannot be read.
    """

    name: str
    session: TlsSession | None
    principal: str = ""


class RefusedError(Exception):
    """A client was not let in; the text says why. ``client``: where it comes from.

    ``silent``: it connected and said nothing at all, as health checks do.
    """

    def __init__(self, client: str, reason: str, *, silent: bool = False) -> None:
        super().__init__(reason)
        self.client = client
        self.silent = silent


class Handshake:
    """Of one route. ``tls``: clients speak TLS with the proxy. ``seconds``: to read all of it."""

    def __init__(self, tls: TlsFiles | None, *, proxy_protocol: bool, seconds: float) -> None:
        self._tls = tls
        self._proxy_protocol = proxy_protocol
        self._seconds = seconds

    async def admit(
        self,
        client: trio.SocketStream,
        turn: Turn = nullcontext,
        arrival: Arrival = at_once,
    ) -> Admitted:
        """Read what goes before the first request.

        ``turn``: in which each step is done, and a client is refused. ``arrival``: awaited before
        bytes are received.

        :raises RefusedError: the client is not let in.
        """
        name = peer_name(client)
        session = None
        try:
            with trio.fail_after(self._seconds):
                if self._proxy_protocol:
                    source = await read_proxy_header(client, arrival)
                    if source is not None:
                        name = str(Address(source.host, source.port))
                if self._tls is not None:
                    session = await do_tls_handshake(
                        client, self._tls.context, turn=turn, arrival=arrival
                    )
        except trio.TooSlowError:
            reason = f"has not finished its handshake within {self._seconds:g} s"
            refused = RefusedError(name, reason)
        except HandshakeError as error:
            refused = RefusedError(name, str(error), silent=error.silent)
        else:
            return Admitted(name, session, "" if session is None else _subject(session))
        try:
            # Thousands may go at the same time, and what is done then takes longer than a short
            # step.
            async with turn():
                raise refused
        finally:
            # It would be in a circle with this frame. To look for the garbage of thousands of
            # clients takes a third of a second.
            del refused


def _subject(session: TlsSession) -> str:
    """Return the subject of a certificate that was checked: from the end, as Kafka writes it."""
    try:
        certificate: Mapping[str, Any] = session.tls.getpeercert() or {}
    except (ValueError, ssl.SSLError):
        # Python reads all names in it, such as those of e-mail, and takes none that is not UTF-8.
        # OpenSSL and brokers do.
        return ""
    names = [name for part in certificate.get("subject", ()) for name in part]
    return ",".join(f"{_SHORT.get(kind, kind)}={value}" for kind, value in reversed(names))


def peer_name(stream: trio.SocketStream) -> str:
    """Return a client's address as HOST:PORT."""
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:
        return "a client that has gone"
    return str(Address(host, port))
