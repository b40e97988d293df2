"""The process that serves until this one is ready.

Tested in ``tests/net/takeover/test_successors.py``.
"""

import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import trio

from leader_hints.errors import TakeoverError
from leader_hints.net.takeover.messages import (
    PROTOCOL,
    Message,
    check_peer,
    close_all,
    new_socket,
    reason_of,
    receive,
    send,
)

#: Seconds in which it must answer: no more than a look at its sockets.
_PATIENCE = 10.0


class Predecessor:
    """A process that has handed its listening ``sockets`` over; see
    :class:`leader_hints.net.takeover.listening_sockets.ListeningSockets` for the keys.

    ``process``: its number. It serves until :meth:`leave`; if :meth:`close` comes before that, it
    goes on. If it comes before :meth:`serving`, that process takes it that nobody serves.
    """

    def __init__(self, connection: trio.socket.SocketType, process: int) -> None:
        self.process = process
        self.sockets: dict[str, list[socket.socket]] = {}
        self._connection = connection

    async def hand_over(self) -> None:
        """Ask for the sockets.

        :raises TakeoverError: it does not hand them over.
        """
        with trio.move_on_after(_PATIENCE):
            await send(self._connection, {"protocol": PROTOCOL})
            while await self._take_some():
                pass
            return
        raise TakeoverError(f"process {self.process} does not answer; stop it, and start again")

    async def leave(self) -> Mapping[str, str] | None:
        """Have it accept no connection any more; return when it does not.

        If it does not answer it has ended, or hangs: then it accepts none either. Return which
        routes its kill switch has set to what, where it could not keep that in the file.
        """
        message: Message = {}
        with trio.move_on_after(_PATIENCE), suppress(TakeoverError):
            await send(self._connection, {"ready": True, "reports": True})
            message, descriptors = await receive(self._connection)
            close_all(descriptors)
        self._close_sockets()
        switched = message.get("switched")
        if not isinstance(switched, dict):
            return None
        return {route: str(mode) for route, mode in switched.items()}

    async def serving(self) -> None:
        """Tell it that this process listens, and end the connection."""
        with trio.move_on_after(_PATIENCE), suppress(TakeoverError):
            await send(self._connection, {"serving": True})
        self.close()

    def close(self) -> None:
        """End the connection to it, and close what it handed over and nobody has taken."""
        self._connection.close()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for sockets in self.sockets.values():
            for one in sockets:
                one.close()

    def take(self) -> dict[str, list[socket.socket]]:
        """Return the sockets, which are the caller's from now on."""
        taken, self.sockets = self.sockets, {}
        return taken

    async def _take_some(self) -> bool:
        """Take some sockets; return whether there are more."""
        message, descriptors = await receive(self._connection)
        addresses = message.get("addresses")
        if not isinstance(addresses, list) or len(addresses) != len(descriptors):
            close_all(descriptors)
            refused = message.get("refused", "it sends what is not understood")
            raise TakeoverError(f"process {self.process} hands nothing over: {refused}")
        for key, number in zip(addresses, descriptors, strict=True):
            self.sockets.setdefault(str(key), []).append(socket.socket(fileno=number))
        return bool(message.get("more"))


async def find_predecessor(path: Path) -> Predecessor | None:
    """Return the process that serves at ``path``, ``None`` if there is none.

    :raises TakeoverError: there is something else.
    """
    connection = new_socket()
    try:
        await connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise TakeoverError(f"cannot connect to {path}: {reason_of(error)}") from None
    try:
        return Predecessor(connection, check_peer(connection))
    except TakeoverError:
        connection.close()
        raise
