"""Which sockets are watched, and for what.

Tested in ``tests/net/pump/test_turns.py``.
"""

from collections.abc import Iterable

from leader_hints.net.pump.poller import DUE, PEER_CLOSED, READ, WRITE, Poller
from leader_hints.net.pump.socket_pair import Side


class WatchedSides:
    """The sides that ``poller`` watches, ``by_descriptor``.

    A side is read only while the other one takes everything.
    """

    def __init__(self, poller: Poller) -> None:
        self.poller = poller
        self.by_descriptor: dict[int, Side] = {}
        #: Sockets that were ready when a turn was over.
        self._left: list[tuple[int, int, Side | None]] = []

    def update(self, side: Side) -> None:
        """Have the poller report what this socket is to be used for now."""
        events = WRITE if side.queue else 0
        if side.flow.unfinished and not side.peer.queue and not side.flow.waits:
            # What is left goes on only where there is room for it.
            events |= DUE
        elif may_be_read(side):
            events |= READ
        elif not (side.ended or side.peer_closed):
            events |= PEER_CLOSED
        if events == side.events:
            return
        descriptor = side.socket.fileno()
        self.poller.watch(descriptor, side.events, events)
        if events:
            self.by_descriptor[descriptor] = side
        else:
            del self.by_descriptor[descriptor]
        side.events = events

    def forget(self, side: Side) -> None:
        """Watch a socket no more."""
        if side.events:
            descriptor = side.socket.fileno()
            self.poller.watch(descriptor, side.events, 0)
            del self.by_descriptor[descriptor]
            side.events = 0

    def ready(self, wait: float) -> list[tuple[int, int]]:
        """Return descriptors that are ready within ``wait`` seconds, and for what.

        Those that were left come first, but for descriptors that are another's by now.
        """
        if not self._left:
            return self.poller.poll(wait)
        left, self._left = self._left, []
        still = [(d, events) for d, events, side in left if self.by_descriptor.get(d) is side]
        return still or self.poller.poll(wait)

    def leave(self, rest: Iterable[tuple[int, int]]) -> None:
        """Have these come first in the next step."""
        self._left = [(d, events, self.by_descriptor.get(d)) for d, events in rest]


def may_be_read(side: Side) -> bool:
    """Whether the proxy has room and time for what a socket has received."""
    if side.ended or side.flow.unfinished or side.peer.queue:
        return False
    pair = side.pair
    if side is pair.client:
        # What goes nowhere costs nothing, and shows when the client goes.
        return not pair.link.crowded or pair.broker.write_closed
    return pair.link.responses.held is None
