"""Which sockets are ready."""

import select
import selectors
from typing import Protocol

#: The system's own bits for both, so that epoll's answers need not be translated.
READ, WRITE = 1, 4


class Poller(Protocol):
    """Sockets and what is to be told of them. They block nobody; who asks may wait."""

    def fileno(self) -> int:
        """Return a descriptor that can be read when some socket is ready."""

    def watch(self, descriptor: int, before: int, events: int) -> None:
        """Have ``events`` told, of READ and WRITE, in place of those ``before``; 0 for none."""

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """Return descriptors that are ready within so many seconds, and for what.

        What is neither READ nor WRITE is an error or an end: reading and writing both tell it.
        """

    def close(self) -> None:
        """Be of no further use; the sockets stay open."""


class EpollPoller:
    """Linux. It is asked for each small message, and what `selectors` does around it costs more
    than the call: an eighth of all that the proxy does for a small Produce request."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.poll = self._epoll.poll
        self.fileno = self._epoll.fileno
        self.close = self._epoll.close

    def watch(self, descriptor: int, before: int, events: int) -> None:
        """See :class:`Poller`."""
        if not before:
            self._epoll.register(descriptor, events)
        elif events:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.unregister(descriptor)


class SelectorPoller:
    """Where there is no epoll: whatever `selectors` finds best."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.close = self._selector.close

    def fileno(self) -> int:
        """See :class:`Poller`."""
        descriptor: int = self._selector.fileno()
        return descriptor

    def watch(self, descriptor: int, before: int, events: int) -> None:
        """See :class:`Poller`."""
        wanted = (selectors.EVENT_READ if events & READ else 0) | (
            selectors.EVENT_WRITE if events & WRITE else 0
        )
        if not before:
            self._selector.register(descriptor, wanted)
        elif events:
            self._selector.modify(descriptor, wanted)
        else:
            self._selector.unregister(descriptor)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """See :class:`Poller`."""
        return [
            (
                key.fd,
                (READ if events & selectors.EVENT_READ else 0)
                | (WRITE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(seconds)
        ]


def make_poller() -> Poller:
    """Return the cheapest that the system has."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
