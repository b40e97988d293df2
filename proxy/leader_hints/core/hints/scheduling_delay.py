"""How late turns come."""

from collections import deque

#: Seconds for which it is remembered how late a turn came.
_REMEMBERED = 1.0


class SchedulingDelay:
    """The most that a turn came late in the last second."""

    def __init__(self) -> None:
        #: When a turn came and how late. Only what no later turn was late by, too: the first one
        #: is the most.
        self._turns: deque[tuple[float, float]] = deque()

    def came(self, due: float, now: float) -> None:
        """Note a turn that was due then and comes now."""
        late = now - due
        if late <= 0:
            return
        while self._turns and self._turns[-1][1] <= late:
            self._turns.pop()
        self._turns.append((now, late))

    def most(self, now: float) -> float:
        """Return the most, in seconds; 0 where no turn came late."""
        while self._turns and now >= self._turns[0][0] + _REMEMBERED:
            self._turns.popleft()
        return self._turns[0][1] if self._turns else 0.0
