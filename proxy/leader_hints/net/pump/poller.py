"""Which sockets are ready."""

import select
import selectors
import socket
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Protocol

#: The system's own bits, so that epoll's answers need not be translated. PEER_CLOSED: the other end
#: sends nothing more (EPOLLRDHUP), for sockets that are not read now; only epoll reports it.
READ, WRITE, PEER_CLOSED = 1, 4, 0x2000
#: No bit of the system's: a side has work left, and is ready whatever its socket is.
DUE = 0x10_0000
#: Sockets that are reported in one call. Hundreds of clients may get errors at the same time, and
#: each error response takes a millisecond to look at; the system goes round among those that are
#: ready.
_AT_ONCE = 8


class Poller(Protocol):
    """Sockets and the events to report of each. No socket blocks; :meth:`poll` may wait."""

    def fileno(self) -> int:
        """Return a descriptor that can be read when some socket is ready."""

    def watch(self, descriptor: int, before: int, events: int) -> None:
        """Report ``events`` (READ, WRITE, PEER_CLOSED) in place of those ``before``; 0: none."""

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
        self.poll = partial(self._epoll.poll, maxevents=_AT_ONCE)
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
        before, events = before & ~PEER_CLOSED, events & ~PEER_CLOSED
        wanted = (selectors.EVENT_READ if events & READ else 0) | (
            selectors.EVENT_WRITE if events & WRITE else 0
        )
        if before == events:
            return
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


class KeepingPoller:
    """A poller of sockets of which some are ready for reasons that the system cannot know.

    What decrypts reads whole TLS records, and its reader may have room for less. Such a socket says
    so with :meth:`keep`, and is ready to be read for as long as it does. One that is watched for
    DUE is ready for that.
    """

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._reading: set[int] = set()
        self._keeping: set[int] = set()
        #: Those that are ready for such a reason, and for what; those reported last are last.
        self._due: dict[int, int] = {}
        # While bytes are kept that are to be read, the poller's own descriptor must be readable.
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        poller.watch(self._woken.fileno(), 0, READ)
        self.fileno = poller.fileno
        # Most of the time no other is ready than the system knows.
        self.poll: Callable[[float], list[tuple[int, int]]] = poller.poll

    def keep(self, descriptor: int, keeps: bool) -> None:
        """Note whether a socket keeps bytes back."""
        if keeps:
            self._keeping.add(descriptor)
        else:
            self._keeping.discard(descriptor)
        self._review(descriptor, self._due.get(descriptor, 0) & DUE)

    def watch(self, descriptor: int, before: int, events: int) -> None:
        """See :class:`Poller`."""
        if (before ^ events) & ~DUE:
            self._poller.watch(descriptor, before & ~DUE, events & ~DUE)
        if events & READ:
            self._reading.add(descriptor)
        else:
            self._reading.discard(descriptor)
        self._review(descriptor, events & DUE)

    def _poll_with_due(self, seconds: float) -> list[tuple[int, int]]:
        events = dict(self._poller.poll(seconds))
        # It may not be among the sockets of one call.
        events.pop(self._woken.fileno(), None)
        for descriptor in [*islice(self._due, _AT_ONCE)]:
            why = self._due[descriptor] = self._due.pop(descriptor)
            events[descriptor] = events.get(descriptor, 0) | why
        return [*events.items()]

    def close(self) -> None:
        """See :class:`Poller`."""
        self._poller.close()
        self._wake.close()
        self._woken.close()

    def _review(self, descriptor: int, due: int) -> None:
        idle = not self._due
        keeps = descriptor in self._keeping and descriptor in self._reading
        why = due | (READ if keeps else 0)
        if why:
            self._due[descriptor] = why
        else:
            self._due.pop(descriptor, None)
        if idle and self._due:
            self._wake.send(b".")
            self.poll = self._poll_with_due
        elif not idle and not self._due:
            self._woken.recv(1)
            self.poll = self._poller.poll
