"""The bytes that may be kept back."""


class Budget:
    """Bounds what all links together keep while they look for errors.

    ``per_link`` bounds one frame, ``total`` the sum. Sizes in bytes.
    """

    def __init__(self, per_link: int, total: int) -> None:
        self.per_link = per_link
        self.total = total
        self.used = 0

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
