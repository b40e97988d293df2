"""The bytes that may be kept back."""

from ipaddress import AddressValueError, IPv6Address

from leader_hints.core.link.frame_memory import FrameMemory
from leader_hints.core.link.recoding_turns import RecodingTurns
from leader_hints.wire.steps import Steps, T

#: Of the whole: what links may keep together whose broker has answered nothing yet, half of it for
#: one address. That is no less than most first requests need if requests must be kept until all of
#: them is there.
_UNAUTHENTICATED = 1 / 2
_LEAST_UNAUTHENTICATED = 1 << 23
#: The part of the whole that copies of requests may take is one by this.
_COPIES = 2
#: The part of the whole that memory may be which is kept to be used again, one by this.
_UNUSED = 4


class Budget:
    """Bounds what all links together keep while they look for errors.

    ``per_link`` bounds one frame, ``total`` the sum. Sizes in bytes. ``unauthenticated``: what is
    kept for links that nobody has authenticated yet; see :class:`Account`. ``by_address``: the same
    by the clients' addresses. ``copied``: copies of requests, which thousands of consumers have
    under way all the time. They leave half of it for responses with errors: an error without a copy
    may get its hint later, one that cannot be kept gets none. ``turns``: of unauthenticated links
    whose requests are recoded. ``memory``: what frames are gathered into.
    """

    def __init__(self, per_link: int, total: int) -> None:
        self.per_link = per_link
        self.total = total
        self.used = 0
        self.unauthenticated = 0
        self.by_address: dict[str, int] = {}
        self.copied = 0
        self.turns = RecodingTurns(lambda _link: None)
        self.memory = FrameMemory(total // _UNUSED)
        self._most_copied = total // _COPIES
        self._share = max(int(total * _UNAUTHENTICATED), min(total, _LEAST_UNAUTHENTICATED))

    def take(self, size: int, beside: int = 0) -> bool:
        """Reserve ``size`` bytes for a frame, and what is known of it takes ``beside`` them.

        False where they are not to be had.
        """
        if size > self.per_link or self.used + size + beside > self.total:
            return False
        self.used += size + beside
        return True

    def take_anyway(self, size: int) -> None:
        """Reserve ``size`` bytes that must be kept, so that others get less."""
        self.used += size

    def give_back(self, size: int) -> None:
        """End a reservation."""
        self.used -= size

    def holds_copy(self, size: int) -> bool:
        """Whether so much more may be taken by copies of requests."""
        return self.copied + size <= self._most_copied

    def admits(self, address: str, size: int) -> bool:
        """Whether links of an address that nobody has authenticated may keep so much more.

        An address may have no more than it leaves to all others. So one address has half of the
        share at most, each of two a third, and the next address finds as much as any has.
        """
        unauthenticated = self.unauthenticated + size
        return self.by_address.get(address, 0) + size <= self._share - unauthenticated

    def note_unauthenticated(self, address: str, size: int) -> None:
        """Count what a link keeps that nobody has authenticated; ``size`` may be negative."""
        self.unauthenticated += size
        kept = self.by_address.get(address, 0) + size
        if kept:
            self.by_address[address] = kept
        else:
            self.by_address.pop(address, None)


class Account:
    """What one link keeps of a budget.

    Any client may open as many links as the limits allow and send what must be kept. So all links
    whose broker has answered only what it answers any client have a share of the
    budget together, and nothing beyond it. The links of one client's address leave as much of it as
    they have. The first other answer ends that: see :meth:`trust`.
    """

    __slots__ = ("_address", "_budget", "_link", "kept", "memory", "noted", "per_link", "trusted")

    def __init__(self, budget: Budget, address: str = "", link: int = 0) -> None:
        """``address``: HOST:PORT of the client, "" if it is not known. ``link``: its number."""
        self._budget = budget
        self._link = link
        self._address = network_of(address)
        self.per_link = budget.per_link
        self.memory = budget.memory
        self.kept = 0
        #: Of it: what is noted of requests, from other bytes than theirs.
        self.noted = 0
        self.trusted = False

    def take(self, size: int, beside: int = 0) -> bool:
        """Reserve bytes as :meth:`Budget.take`; false where they are not to be had."""
        budget = self._budget
        if not self.trusted and not budget.admits(self._address, size + beside):
            return False
        if not budget.take(size, beside):
            return False
        self._note(size + beside)
        return True

    def take_anyway(self, size: int) -> bool:
        """Reserve ``size`` bytes of what cannot go on before all of it is there.

        False where the link may not keep them, and so cannot be served.
        """
        if not self.trusted and not self._budget.admits(self._address, size):
            return False
        self._budget.take_anyway(size)
        self._note(size)
        return True

    def give_back(self, size: int) -> None:
        """End a reservation."""
        self._budget.give_back(size)
        self._note(-size)

    def take_copy(self, size: int) -> bool:
        """Reserve ``size`` bytes for the copy of a request; false where they are not to be had."""
        budget = self._budget
        if not budget.holds_copy(size) or not self.take(size):
            return False
        budget.copied += size
        return True

    def give_back_copy(self, size: int) -> None:
        """End the reservation of a copy."""
        self._budget.copied -= size
        self.give_back(size)

    def take_note(self, size: int) -> bool:
        """Reserve ``size`` bytes for what the response to a request needs; see take_anyway."""
        if not self.take_anyway(size):
            return False
        self.noted += size
        return True

    def give_back_note(self, size: int) -> None:
        """End the reservation of a note."""
        self.noted -= size
        self.give_back(size)

    def in_turn(self, size: int, steps: Steps[T]) -> Steps[T]:
        """See :meth:`RecodingTurns.in_turn`: only links that nobody has authenticated wait."""
        return steps if self.trusted else self._budget.turns.in_turn(self._link, size, steps)

    @property
    def waits_for_turn(self) -> bool:
        """See :meth:`RecodingTurns.waits`."""
        return self._budget.turns.waits(self._link)

    def trust(self) -> None:
        """Have the link share the whole budget from now on."""
        if not self.trusted:
            self._budget.note_unauthenticated(self._address, -self.kept)
            self.trusted = True

    def _note(self, size: int) -> None:
        self.kept += size
        if not self.trusted:
            self._budget.note_unauthenticated(self._address, size)


def network_of(address: str) -> str:
    """Return what distinguishes a client, given as HOST:PORT, from others: its IP address.

    Of an IPv6 address the first 64 bits: a client that has one has all that begin with these.
    """
    host = address.rpartition(":")[0]
    if not host.startswith("["):
        return host
    try:
        parsed = IPv6Address(host.strip("[]"))
    except AddressValueError:
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> 64 << 64))
