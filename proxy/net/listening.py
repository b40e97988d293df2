"""Listens at an address and takes connections."""

import errno
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from proxy.core.events import AcceptFailed, Event
from proxy.errors import ListenError
from proxy.net.pump import Pump
from proxy.settings import Address

#: The system is short of something: descriptors of this process or of all, memory.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
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

    Where the system is short of descriptors, those that come wait until there are some.
    """
    host, port = listener.socket.getsockname()[:2]
    async with listener:
        while True:
            with pump.heeding(listener.socket.fileno()):
                failure = await _accept_until_failure(listener, handler, nursery)
            if failure.errno not in _EXHAUSTED:
                raise failure
            reason = (failure.strerror or str(failure)).lower()
            emit(AcceptFailed(listen=str(Address(host, port)), error=reason))
            # Not heeded meanwhile: what waits there would end each turn of the pump.
            await trio.sleep(_PAUSE)


async def _accept_until_failure(
    listener: trio.SocketListener, handler: Handler, nursery: trio.Nursery
) -> OSError:
    while True:
        try:
            stream = await listener.accept()
        except OSError as error:
            return error
        nursery.start_soon(partial(_handle, handler, stream))


async def _handle(handler: Handler, stream: trio.SocketStream) -> None:
    try:
        await handler(stream)
    finally:
        await trio.aclose_forcefully(stream)
