"""The processes that come to take over from this one."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from leader_hints.core.events import Event, TakeoverBegun, TakeoverFailed, TaskFailed
from leader_hints.errors import ListenError, TakeoverError, places_of
from leader_hints.net.takeover.messages import (
    MOST_SOCKETS,
    PROTOCOL,
    Message,
    check_peer,
    close_all,
    has_room,
    new_socket,
    reason_of,
    receive,
    send,
)

#: Seconds for a message to come that needs no work, and to be taken.
_PATIENCE = 10.0
#: Seconds before connections are taken again, where the system is short of something.
_PAUSE = 1.0
_BACKLOG = 8


class Successors:
    """Hands the listening sockets over at a Unix socket, and learns when a successor can serve.

    ``sockets``: the descriptors of those that are open, each with what it is for. ``ready``: set
    when a successor can serve; this process is to accept no connection any more then, and to call
    :meth:`leave`, and :meth:`check_successor` before it ends. ``asked``: called with the number of
    the process that asks for the sockets.
    """

    def __init__(
        self,
        path: Path,
        sockets: Callable[[], Sequence[tuple[str, int]]],
        emit: Callable[[Event], None],
    ) -> None:
        self.ready = trio.Event()
        self._path = path
        #: Until it is this process that serves there.
        self._aside = path.with_name(f"{path.name}.{os.getpid()}")
        self._sockets = sockets
        self._emit = emit
        self._listener = new_socket()
        self._scope = trio.CancelScope()
        self._successor: trio.socket.SocketType | None = None
        self._process = 0
        self._reports = self._is_lost = False
        self._is_taken = False
        self.asked: Callable[[int], None] = lambda process: None

    async def prepare(self) -> None:
        """Open the Unix socket, at a path that nobody knows yet.

        :raises ListenError: that cannot be.
        """
        try:
            if self._path.exists() and not stat.S_ISSOCK(self._path.stat().st_mode):
                raise ListenError(f"cannot listen on {self._path}: it is no socket")
            self._aside.unlink(missing_ok=True)
            await self._listener.bind(str(self._aside))
            # Nobody connects before it listens.
            self._aside.chmod(0o600)
            self._listener.listen(_BACKLOG)
        except OSError as error:
            raise ListenError(f"cannot listen on {self._path}: {reason_of(error)}") from None

    async def serve(self) -> None:
        """Be the process that successors find, until one is ready, or :meth:`close`."""
        if self._aside.exists():
            self._aside.replace(self._path)
        with self._scope:
            async with trio.open_nursery() as nursery:
                while True:
                    try:
                        connection, _ = await self._listener.accept()
                    except OSError as error:
                        self._emit(TakeoverFailed(error=f"cannot be asked: {reason_of(error)}"))
                        await trio.sleep(_PAUSE)
                        continue
                    nursery.start_soon(self._meet, connection)

    async def leave(self, switched: Mapping[str, str] | None = None) -> None:
        """Tell the successor that no connection is accepted here any more.

        ``switched``: which routes the kill switch has set to what, where this process could not
        keep that in the file; ``None``: it is there, or is not kept.
        """
        closed: dict[str, object] = {"closed": True}
        if switched is not None and has_room({**closed, "switched": dict(switched)}):
            closed["switched"] = dict(switched)
        if self._successor is not None:
            with trio.move_on_after(_PATIENCE):
                try:
                    await send(self._successor, closed)
                except TakeoverError:
                    # If this process stalled for long, the other one serves without its answer:
                    # what it reported of that is still to be read.
                    self._is_lost = not self._reports

    async def check_successor(self) -> None:
        """Return once the successor serves, or has had long enough for that.

        :raises TakeoverError: it has ended before that, so nobody serves.
        """
        if self._successor is None:
            return
        with self._successor, trio.move_on_after(_PATIENCE):
            try:
                if self._reports and not self._is_lost:
                    await _receive(self._successor)
            except TakeoverError:
                self._is_lost = True
        if self._is_lost:
            error = f"process {self._process} took over, and ended before it listened"
            self._emit(TakeoverFailed(error=error))
            raise TakeoverError(error)

    def close(self) -> None:
        """Be found no more; a successor that is not ready yet finds this process gone."""
        self._scope.cancel()
        self._listener.close()
        # As it is where the folder was never there, or can be written to no more.
        with suppress(OSError):
            self._aside.unlink()

    async def _meet(self, connection: trio.socket.SocketType) -> None:
        try:
            process = check_peer(connection)
            await self._be_asked(connection, process)
            self._is_taken = True
            self.asked(process)
            try:
                await self._hand_over(connection, process)
            finally:
                self._is_taken = False
            self._successor = connection
        except TakeoverError as error:
            self._emit(TakeoverFailed(error=str(error)))
        except Exception as error:
            # A defect of the proxy must not end the takeover by another process.
            self._emit(TaskFailed(task="takeover", traceback=places_of(error)))
        finally:
            if self._successor is not connection:
                connection.close()
        if self._successor is connection:
            self.ready.set()
            self._scope.cancel()

    async def _be_asked(self, connection: trio.socket.SocketType, process: int) -> None:
        with _patience(process):
            message = await _receive(connection)
            if message.get("protocol") != PROTOCOL:
                await _refuse(connection, f"it knows protocol {PROTOCOL} alone")
            if self._is_taken:
                await _refuse(connection, "another process is taking over already")

    async def _hand_over(self, connection: trio.socket.SocketType, process: int) -> None:
        """Hand the sockets over; return when the successor can serve."""
        self._emit(TakeoverBegun(successor=process))
        sockets = self._sockets()
        with _patience(process):
            for begin in range(0, max(len(sockets), 1), MOST_SOCKETS):
                some = sockets[begin : begin + MOST_SOCKETS]
                more = len(sockets) > begin + MOST_SOCKETS
                addresses = [key for key, _ in some]
                numbers = [number for _, number in some]
                await send(connection, {"addresses": addresses, "more": more}, numbers)
        # Without a bound: it waits for brokers first. If it ends, so does this.
        message = await _receive(connection)
        if not message.get("ready"):
            raise TakeoverError(f"process {process} sends what is not understood")
        self._process, self._reports = process, bool(message.get("reports"))


@contextmanager
def _patience(process: int) -> Iterator[None]:
    with trio.move_on_after(_PATIENCE) as scope:
        yield
    if scope.cancelled_caught:
        raise TakeoverError(f"process {process} does not answer")


async def _receive(connection: trio.socket.SocketType) -> Message:
    message, descriptors = await receive(connection)
    close_all(descriptors)
    return message


async def _refuse(connection: trio.socket.SocketType, reason: str) -> None:
    await send(connection, {"refused": reason})
    raise TakeoverError(f"another process asked to take over, and was refused: {reason}")
