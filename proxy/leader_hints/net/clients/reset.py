"""Ends a connection with a reset, which tells a client to try again.

Tested in ``tests/net/pump/test_endings.py``.
"""

import contextlib
import socket
import struct

import trio

#: Of SO_LINGER: what has it is reset when it is closed.
RESETS = struct.pack("ii", 1, 0)
_ENDS = struct.pack("ii", 0, 0)


def reset_when_closed(client: trio.abc.AsyncResource) -> None:
    """Have a client that cannot be served try again.

    franz-go takes an end before the first answer for TLS that was not expected, and gives up; it
    tries again after a reset, as it does where nobody listens. A stream that is no socket's stays
    as it is, and so does one that is closed or that the pump has.
    """
    if isinstance(client, trio.SocketStream):
        with contextlib.suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)


def end_when_closed(client: socket.socket) -> None:
    """Undo :func:`reset_when_closed`: who has the client now sees to how it ends."""
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ENDS)


async def turn_away(client: trio.SocketStream) -> None:
    """Close a client that cannot be served."""
    reset_when_closed(client)
    await trio.aclose_forcefully(client)
