"""Takes over from the process that serves, and is replaced by the next one.

Tested in ``tests/cli/test_takeover.py``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from leader_hints.address import Address
from leader_hints.core.events import Event, TakenOver
from leader_hints.errors import LeaderHintsError
from leader_hints.net.takeover.listening_sockets import ListeningSockets
from leader_hints.net.takeover.predecessor import Predecessor, find_predecessor
from leader_hints.net.takeover.successors import Successors


class Takeover:
    """Both ends of a process that its settings let take over, and be taken over.

    ``path``: of the Unix socket. ``sockets``: the listening sockets of this process.
    """

    def __init__(
        self, path: Path, sockets: ListeningSockets, emit: Callable[[Event], None]
    ) -> None:
        self._path = path
        self._sockets = sockets
        self._emit = emit
        self._successors = Successors(path, sockets.opened, emit)
        self._predecessor: Predecessor | None = None
        #: Set when a successor can serve: this process is to end.
        self.replaced = self._successors.ready

    def on_asked(self, asked: Callable[[int], None]) -> None:
        """Have it called with the number of each process that asks for the listening sockets."""
        self._successors.asked = asked

    async def begin(self) -> bool:
        """Get the listening sockets of the process that serves; return whether there is one.

        :raises ListenError: no other process could find this one.
        :raises TakeoverError: the one that serves does not hand them over.
        """
        with self._closed_if_that_fails():
            await self._successors.prepare()
            predecessor = self._predecessor = await find_predecessor(self._path)
            if predecessor is None:
                return False
            await predecessor.hand_over()
            self._sockets.inherit(predecessor.take())
            return True

    async def replace(self, addresses: Sequence[tuple[str, Address]]) -> Mapping[str, str] | None:
        """Have the process that serves, if there is one, accept no connection any more.

        ``addresses``: at which this process is to listen, and what for. Return as
        :meth:`leader_hints.net.takeover.predecessor.Predecessor.leave`.

        :raises ListenError: one of them cannot be listened on; the other process goes on.
        """
        if self._predecessor is None:
            return None
        with self._closed_if_that_fails():
            for name, address in addresses:
                await self._sockets.prepare(name, address)
        switched = await self._predecessor.leave()
        self._emit(TakenOver(predecessor=self._predecessor.process))
        return switched

    async def serve(self) -> None:
        """Be the process that successors find, until one is ready."""
        await self._successors.serve()

    async def leave(self, switched: Mapping[str, str] | None) -> None:
        """Tell a successor, if there is one, that this process accepts no connection any more.

        ``switched``: see :meth:`leader_hints.net.takeover.successors.Successors.leave`.
        """
        await self._successors.leave(switched)

    async def serving(self) -> None:
        """Tell the process before this one, if there was one, that this one listens."""
        if self._predecessor is not None:
            await self._predecessor.serving()

    async def check_successor(self) -> None:
        """See :meth:`leader_hints.net.takeover.successors.Successors.check_successor`.

        :raises TakeoverError: the successor has ended before it served.
        """
        await self._successors.check_successor()

    def close(self) -> None:
        """Neither take over nor be taken over any more."""
        if self._predecessor is not None:
            self._predecessor.close()
        self._successors.close()

    @contextmanager
    def _closed_if_that_fails(self) -> Iterator[None]:
        try:
            yield
        except LeaderHintsError:
            self.close()
            raise
