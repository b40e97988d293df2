"""Whose Metadata clients may be given, and which of these brokers name a new leader.

A client without a hint asks any broker. Brokers learn of a move one after the other, so an error is
settled once the Metadata of all of them names the new leader.
"""

from collections.abc import Iterable
from typing import Protocol

from leader_hints.core.cluster.doubts import Reporter

#: Seconds after which a broker that has not answered is left out: half a hold by default. Clients
#: that ask it wait for longer than a hold in any case.
SILENT = 0.05


class Asked(Protocol):
    """A broker that can be asked. ``unanswered_since``: infinity if it owes no answer."""

    @property
    def reporter(self) -> Reporter: ...

    @property
    def unanswered_since(self) -> float: ...


class MetadataBrokers:
    """Brokers as bits, since thousands of moves note which brokers name them.

    ``awaited``: the bits of all that must name a move; 0 before any broker was asked.
    """

    def __init__(self) -> None:
        self.awaited = 0
        self._bits: dict[Reporter, int] = {}

    def bit(self, reporter: Reporter) -> int:
        """Return the bit of a broker."""
        return self._bits.setdefault(reporter, 1 << len(self._bits))

    def expect(self, brokers: Iterable[Asked], now: float) -> None:
        """Await these brokers, but those that are silent."""
        self.awaited = 0
        for broker in brokers:
            if now < broker.unanswered_since + SILENT:
                self.awaited |= self.bit(broker.reporter)

    def all_in(self, named: int) -> bool:
        """Whether ``named`` has all that are awaited, and any is."""
        return self.awaited > 0 and named & self.awaited == self.awaited
