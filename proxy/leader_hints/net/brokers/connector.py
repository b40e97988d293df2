"""Connections to brokers: with TLS or without, and with which credentials.

Tested in ``tests/net/tls/test_tls.py``.
"""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import NamedTuple, TypeVar

import trio

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.broker_stream import OpenStream, open_broker_stream
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.brokers.tls_stream import TlsStream
from leader_hints.net.clients.preamble import HandshakeError, TlsSession, do_tls_handshake
from leader_hints.net.tls import tls_errors
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.net.tls.handshake_turns import Turn

_T = TypeVar("_T")


class Connector:
    """Connects to brokers on one listener.

    ``tls``: where TLS is spoken. ``server_name``: what must stand in a broker's certificate then,
    "" for the host connected to. ``credentials``: where the proxy's own connections authenticate.
    ``principal_host``: the host in a broker's Kerberos principal, "" for the one connected to.
    ``speaks_tls``, ``authenticates``: whether it does.
    """

    def __init__(
        self,
        tls: TlsFiles | None = None,
        server_name: str = "",
        credentials: Credentials | None = None,
        open_tcp: OpenStream = open_broker_stream,
        *,
        principal_host: str = "",
    ) -> None:
        self._tls = tls
        self._server_name = server_name
        self._credentials = credentials
        self._open_tcp = open_tcp
        self._principal_host = principal_host
        self.speaks_tls = tls is not None
        self.authenticates = credentials is not None

    def to(self, address: Address) -> "Connector":
        """Return one for the IP addresses of a host, whose certificate and principal name it."""
        return Connector(
            self._tls,
            self._server_name or address.host,
            self._credentials,
            self._open_tcp,
            principal_host=self._principal_host or address.host,
        )

    async def connect(
        self, address: Address, patience: float, client_id: str, answer: float
    ) -> BrokerConnection:
        """Open a connection of the proxy's own.

        ``patience``: seconds to connect; ``answer``: seconds for each answer.

        :raises BrokerError: there is no connection; the text says why.
        """
        stream = await self.open_stream(address, patience)
        host = self._principal_host or address.host
        return BrokerConnection(stream, client_id, answer, self._credentials, host)

    async def open_stream(self, address: Address, patience: float) -> trio.abc.Stream:
        """Connect within ``patience`` seconds, TLS handshake included.

        :raises BrokerError: there is no connection; the text says why.
        """
        deadline = trio.current_time() + patience
        stream = await self._open_tcp(address, patience)
        if self._tls is None:
            return stream
        context, name = self._tls.context, self._server_name or address.host
        return await _finish(stream, lambda: _secure(stream, context, name), deadline)

    async def open_for_link(
        self,
        address: Address,
        patience: float,
        open_tcp: Callable[[Address, float], Awaitable[trio.SocketStream]] = open_broker_stream,
        turn: Turn = nullcontext,
    ) -> tuple[trio.SocketStream, TlsSession | None]:
        """The same for the pump, which speaks TLS itself: the stream, and its session if any.

        ``turn``: see :func:`leader_hints.net.clients.preamble.do_tls_handshake`.
        """
        deadline = trio.current_time() + patience
        stream = await open_tcp(address, patience)
        if self._tls is None:
            return stream, None
        context, name = self._tls.context, self._server_name or address.host
        return stream, await _finish(
            stream, lambda: do_tls_handshake(stream, context, name, turn), deadline
        )


class Connectors(NamedTuple):
    """Those of a route: to its own broker, and to the others at their advertised addresses."""

    upstream: Connector = Connector()
    advertised: Connector = Connector()


async def _secure(stream: trio.abc.Stream, context: ssl.SSLContext, name: str) -> trio.abc.Stream:
    try:
        secured = TlsStream(stream, context, name)
    except ValueError as error:
        raise HandshakeError(f"cannot be verified by the name {name!r}: {error}") from None
    await secured.do_handshake()
    return secured


async def _finish(
    stream: trio.abc.Stream, shake: Callable[[], Awaitable[_T]], deadline: float
) -> _T:
    """Do the handshake on a new stream, which is closed where that fails."""
    try:
        with trio.fail_at(deadline):
            return await shake()
    except BaseException as error:
        await trio.aclose_forcefully(stream)
        if isinstance(error, trio.TooSlowError):
            raise BrokerError("TLS: no handshake in time; perhaps it speaks none") from None
        if isinstance(error, HandshakeError):
            raise BrokerError(f"TLS: the broker {error}") from None
        if isinstance(error, trio.BrokenResourceError):
            raise BrokerError(f"TLS: the broker {tls_errors.describe(error.__cause__)}") from None
        raise
