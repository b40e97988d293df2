"""Listens at an address and takes connections."""

import errno
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio

from leader_hints.address import Address
from leader_hints.core.events import AcceptFailed, Event, TaskFailed
from leader_hints.errors import ListenError, places_of
from leader_hints.net.clients.reset import turn_away
from leader_hints.net.pump.pump import Pump

#: Seconds before connections are taken again. What came meanwhile waits with the system.
_PAUSE = 0.1
#: A port that the system chose for one address of a name may be taken at another.
_ATTEMPTS = 20
#: Connections that begin to be served in one round of the event loop, of all listeners together.
#: Each costs a millisecond in its first ten rounds, and hundreds of listeners may have some.
_BEGUN_AT_ONCE = 5

Handler = Callable[[trio.SocketStream], Awaitable[object]]


async def open_listeners(address: Address) -> tuple[list[trio.SocketListener], str]:
    """Listen on every address of a host; return the listeners, and HOST:PORT that was bound.

    Port 0 is one and the same port for all of them.

    :raises ListenError: that cannot be.
    """
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host)
        for _ in range(_ATTEMPTS):
            port = _port(listeners[0])
            if all(_port(listener) == port for listener in listeners):
                break
            for listener in listeners:
                await listener.aclose()
            listeners = await _open_at(port, address.host)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ListenError(f"cannot listen on {address}: {reason.lower()}") from None
    return listeners, bound_address(listeners)


def bound_address(listeners: Sequence[trio.SocketListener]) -> str:
    """Return HOST:PORT of what was bound for one address."""
    host = listeners[0].socket.getsockname()[0]
    return str(Address(host, _port(listeners[0])))


async def _open_at(port: int, host: str) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return await trio.open_tcp_listeners(0, host=host)


def _port(listener: trio.SocketListener) -> int:
    return int(listener.socket.getsockname()[1])


class Beginnings:
    """Bounds how many connections begin to be served in one round of the event loop."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_BEGUN_AT_ONCE)

    def may_begin(self, connection: object) -> bool:
        """Whether a connection may begin in this round; then it has :meth:`begun` in the next."""
        try:
            self._limiter.acquire_on_behalf_of_nowait(connection)
        except trio.WouldBlock:
            return False
        return True

    async def wait(self, connection: object) -> None:
        """Wait until a connection may begin."""
        await self._limiter.acquire_on_behalf_of(connection)

    def begun(self, connection: object) -> None:
        """Have another connection begin."""
        self._limiter.release_on_behalf_of(connection)


async def accept(
    listener: trio.SocketListener,
    handler: Handler,
    nursery: trio.Nursery,
    pump: Pump,
    emit: Callable[[Event], None],
    beginnings: Beginnings,
) -> None:
    """Take connections until cancelled, each served in ``nursery``; then close the listener.

    ``beginnings``: of all listeners. A connection that was taken is served also if that is
    cancelled while it waits for its turn, as where another process goes on to listen.

    Whatever keeps the system from giving a connection ends nothing, and those that come wait: it
    may be short of descriptors, memory or watches of epoll (ENOSPC), a firewall may refuse
    (EPERM), and Linux returns here errors of the network that the new connection has met
    (accept(2)).
    """
    host, port = listener.socket.getsockname()[:2]

    def begin(stream: trio.SocketStream) -> None:
        nursery.start_soon(partial(_handle, handler, stream, emit, beginnings))

    async with listener:
        while True:
            try:
                with pump.wake_on_readable(listener.socket.fileno()):
                    stream = await _accept_until_one_must_wait(listener, begin, beginnings)
                # Nor is it watched while a connection waits for its turn.
                await _wait_for_turn(stream, beginnings)
                begin(stream)
                continue
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                emit(AcceptFailed(listen=str(Address(host, port)), error=reason))
            except Exception as error:
                emit(TaskFailed(task="listener", traceback=places_of(error)))
            # Not watched meanwhile: a connection that waits there would end each turn of the pump.
            await trio.sleep(_PAUSE)


async def _accept_until_one_must_wait(
    listener: trio.SocketListener,
    begin: Callable[[trio.SocketStream], None],
    beginnings: Beginnings,
) -> trio.SocketStream:
    while True:
        stream = await listener.accept()
        if not beginnings.may_begin(stream):
            return stream
        begin(stream)


async def _wait_for_turn(stream: trio.SocketStream, beginnings: Beginnings) -> None:
    # For some rounds of the event loop: each connection that begins has others begin in the next.
    with trio.CancelScope(shield=True):
        await beginnings.wait(stream)


async def _handle(
    handler: Handler,
    stream: trio.SocketStream,
    emit: Callable[[Event], None],
    beginnings: Beginnings,
) -> None:
    beginnings.begun(stream)
    try:
        await handler(stream)
    except Exception as error:
        # A defect of the proxy must end one connection and not all of them.
        emit(TaskFailed(task="connection", traceback=places_of(error)))
    finally:
        # A client that is not served by now, as at the end of the process, is to try again.
        await turn_away(stream)
