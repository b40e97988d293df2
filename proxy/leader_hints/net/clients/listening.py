"""Listens at an address and takes connections."""

import errno
from collections.abc import Awaitable, Callable
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
    host = listeners[0].socket.getsockname()[0]
    return listeners, str(Address(host, _port(listeners[0])))


async def _open_at(port: int, host: str) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return await trio.open_tcp_listeners(0, host=host)


def _port(listener: trio.SocketListener) -> int:
    return int(listener.socket.getsockname()[1])


async def accept(
    listener: trio.SocketListener,
    handler: Handler,
    nursery: trio.Nursery,
    pump: Pump,
    emit: Callable[[Event], None],
) -> None:
    """Take connections until cancelled, each served in ``nursery``; then close the listener.

    Whatever keeps the system from giving a connection ends nothing, and those that come wait: it
    may be short of descriptors, memory or watches of epoll (ENOSPC), a firewall may refuse
    (EPERM), and Linux returns here errors of the network that the new connection has met
    (accept(2)).
    """
    host, port = listener.socket.getsockname()[:2]
    async with listener:
        while True:
            try:
                with pump.wake_on_readable(listener.socket.fileno()):
                    await _accept_until_failure(listener, handler, nursery, emit)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                emit(AcceptFailed(listen=str(Address(host, port)), error=reason))
            except Exception as error:
                emit(TaskFailed(task="listener", traceback=places_of(error)))
            # Not watched meanwhile: a connection that waits there would end each turn of the pump.
            await trio.sleep(_PAUSE)


async def _accept_until_failure(
    listener: trio.SocketListener,
    handler: Handler,
    nursery: trio.Nursery,
    emit: Callable[[Event], None],
) -> None:
    while True:
        stream = await listener.accept()
        nursery.start_soon(partial(_handle, handler, stream, emit))


async def _handle(
    handler: Handler, stream: trio.SocketStream, emit: Callable[[Event], None]
) -> None:
    try:
        await handler(stream)
    except Exception as error:
        # A defect of the proxy must end one connection and not all of them.
        emit(TaskFailed(task="connection", traceback=places_of(error)))
    finally:
        # A client that is not served by now, as at the end of the process, is to try again.
        await turn_away(stream)
