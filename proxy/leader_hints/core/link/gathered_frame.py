"""A frame that is received into memory of its own, since it cannot go on as it comes."""

from leader_hints.apis.fetch_response import FetchScan
from leader_hints.core.link.budget import Account
from leader_hints.core.link.exchange import Exchange

#: Memory with which a frame begins. It doubles as bytes come: a frame that only claims to be large
#: costs nothing.
_FIRST = 65_536
_FIRST_UNAUTHENTICATED = 8192


class GatheredFrame:
    """The beginning of a frame of ``size`` bytes, of which ``filled`` are in ``memory``.

    ``must``: it cannot go on unless more of it is there. ``reserved``: what was taken for it of the
    budget, as the bytes came; what takes it gives that back. ``exchange``: the one that a response
    answers; ``scan``: what was read so far of a Fetch response; ``waited``: the bytes to be looked
    at next were not there yet when it was tried.
    """

    __slots__ = (
        "_account",
        "_whole",
        "exchange",
        "filled",
        "memory",
        "must",
        "reserved",
        "scan",
        "size",
        "waited",
    )

    def __init__(self, account: Account, begun: memoryview, size: int, *, must: bool) -> None:
        self._account = account
        #: What ``memory`` is the beginning of: memory that is used again may be larger.
        self._whole = memoryview(b"")
        self.memory = begun
        self.filled = len(begun)
        self.size = size
        self.must = must
        self.reserved = 0
        self.exchange: Exchange | None = None
        self.scan: FetchScan | None = None
        self.waited = False

    def grow(self) -> bool:
        """Make room for as much as there is again, or for the rest; false if over budget."""
        account = self._account
        first = 0 if self.reserved else _FIRST if account.trusted else _FIRST_UNAUTHENTICATED
        capacity = min(max(first, 2 * self.filled), self.size)
        more = max(capacity - self.reserved, 0)
        take = account.take_anyway if self.must else account.take
        if more and not take(more):
            return False
        self.reserved += more
        if capacity > len(self._whole):
            self._whole = memoryview(account.memory.take(capacity, self.size))
            self._whole[: self.filled] = self.memory
        self.memory = self._whole[:capacity]
        return True
