"""How often brokers may be asked on demand."""


class RefreshRate:
    """A token bucket: ``per_second`` in the long run, ``burst`` after a quiet time.

    ``per_second`` may be changed at any time.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self.per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Whether one more may start now."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
