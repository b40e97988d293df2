"""The bytes that may be kept back."""

#: Of the whole: what links may keep together whose broker has answered nothing yet. It is no less
#: than most first requests need where requests must be kept until all of them is there.
_STRANGERS = 1 / 4
_LEAST_FOR_STRANGERS = 1 << 22
#: The part of the whole that copies of requests may take is one by this.
_COPIES = 2


class Budget:
    """Bounds what all links together keep while they look for errors.

    ``per_link`` bounds one frame, ``total`` the sum. Sizes in bytes. ``strangers``: what is kept
    for links that nobody has authenticated yet; see :class:`Account`. ``copied``: copies of
    requests, which thousands of consumers have under way all the time. They leave half of it for
    responses with errors: an error without a copy may get its hint later, one that cannot be kept
    gets none.
    """

    def __init__(self, per_link: int, total: int) -> None:
        self.per_link = per_link
        self.total = total
        self.used = 0
        self.strangers = 0
        self.copied = 0
        self._most_copied = total // _COPIES
        self._share = max(int(total * _STRANGERS), min(total, _LEAST_FOR_STRANGERS))

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; false where they are not to be had."""
        if size > self.per_link or self.used + size > self.total:
            return False
        self.used += size
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

    def admits(self, size: int) -> bool:
        """Whether links that nobody has authenticated may keep so much more."""
        return self.strangers + size <= self._share


class Account:
    """What one link keeps of a budget.

    Whoever can connect may open as many links as the limits allow and send what must be kept. So
    all links whose broker has answered nothing but what it answers anybody have a share of the
    budget together, and nothing beyond it. The first other answer ends that: see :meth:`trust`.
    """

    __slots__ = ("_budget", "kept", "per_link", "trusted")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.per_link = budget.per_link
        self.kept = 0
        self.trusted = False

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; false where they are not to be had."""
        budget = self._budget
        if not self.trusted and not budget.admits(size):
            return False
        if not budget.take(size):
            return False
        self._note(size)
        return True

    def take_anyway(self, size: int) -> bool:
        """Reserve ``size`` bytes of what cannot go on before all of it is there.

        False where the link may not keep them, and so cannot be served.
        """
        if not self.trusted and not self._budget.admits(size):
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

    def trust(self) -> None:
        """Have the link share the whole budget from now on."""
        if not self.trusted:
            self._budget.strangers -= self.kept
            self.trusted = True

    def _note(self, size: int) -> None:
        self.kept += size
        if not self.trusted:
            self._budget.strangers += size
