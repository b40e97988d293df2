"""When it is looked which node a broker is, since leaders have moved.

Tested in ``tests/net/metadata/test_refresher.py``.
"""

import math

#: Seconds between two such looks at one broker: for each of them all topics are looked at.
_PAUSE = 10.0


class IdentityLooks:
    """Those at one broker. ``at``: when the next one is due, infinity if none is.

    Times are in seconds, by a clock that never goes back.
    """

    def __init__(self) -> None:
        self.at = math.inf
        self._earliest = -math.inf

    def want(self, now: float) -> None:
        """Have the broker looked at: the first time now, and then after a pause."""
        self.at = min(self.at, max(now, self._earliest))

    def take(self, now: float) -> bool:
        """Whether one is due now; it is done by that."""
        if now < self.at:
            return False
        self.at = math.inf
        self._earliest = now + _PAUSE
        return True
