"""A TCP stream to a broker."""

import errno
import os
import socket
from collections.abc import Awaitable, Callable

import trio

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.tls_stream import TlsStream
from leader_hints.net.clients.reset import turn_away

#: What opens a stream: address, and the seconds that it may take.
OpenStream = Callable[[Address, float], Awaitable[trio.abc.Stream]]

#: Letters of a name in DNS, generously. Longer ones are not even encoded, which takes seconds for a
#: megabyte: brokers may advertise anything.
LONGEST_HOST = 255


async def open_broker_stream(address: Address, patience: float) -> trio.SocketStream:
    """Connect within ``patience`` seconds, the look-up of the name included.

    :raises BrokerError: there is no connection; the text says why.
    """
    if len(address.host) > LONGEST_HOST:
        raise BrokerError(f"cannot connect: a host of {len(address.host)} letters")
    try:
        with trio.fail_after(patience):
            stream = await trio.open_tcp_stream(address.host, address.port)
            if _leads_to_itself(stream):
                # A reset leaves the port free: else no broker could begin to listen there.
                await turn_away(stream)
                raise BrokerError(f"cannot connect: {os.strerror(errno.ECONNREFUSED).lower()}")
            return stream
    except trio.TooSlowError:
        raise BrokerError(f"no connection within {patience:g} s") from None
    except (OSError, ValueError, OverflowError, RuntimeError) as error:
        # Brokers may advertise what is no address: a port of 70000, a name with empty labels. And
        # a name is looked up in a thread, which the system may refuse ("can't start new thread").
        raise BrokerError(f"cannot connect: {_reason(error)}") from None


def peer_of(stream: trio.abc.Stream) -> str:
    """Return the IP address to which a stream leads; "" if that is not known."""
    inner = stream.transport if isinstance(stream, TlsStream) else stream
    if not isinstance(inner, trio.SocketStream):
        return ""
    try:
        return str(inner.socket.getpeername()[0])
    except OSError:
        # It has ended meanwhile.
        return ""


def _leads_to_itself(stream: trio.SocketStream) -> bool:
    """Whether the system chose the very port that is connected to.

    It may, where nobody listens at such a port of this machine.
    """
    try:
        return bool(stream.socket.getsockname() == stream.socket.getpeername())
    except OSError:
        # It has ended meanwhile.
        return False


def _reason(error: BaseException) -> str:
    """Say what Trio hides behind "all attempts failed": why the first attempt did."""
    cause = error.__cause__
    if isinstance(cause, ExceptionGroup):
        return _reason(cause.exceptions[0])
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno).lower()
    return str(getattr(error, "strerror", None) or error).lower()
