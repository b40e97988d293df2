"""Chooses every so-many-th exchange of Produce and Fetch, whose time is taken."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.clock import Clock

_SAMPLED = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})


class LatencySampler:
    """One for all routes of a process.

    ``every``: of so many exchanges one is timed, at least 1. ``clock``: seconds of a clock that
    never goes back; exchanges that are not sampled cost no look at it.
    """

    __slots__ = ("_every", "_left", "clock")

    def __init__(self, every: int, clock: Clock) -> None:
        self._every = every
        self._left = every
        self.clock = clock

    def chooses(self, key: int, *, busy: bool) -> bool:
        """Whether to time an exchange that begins now; not on a link that is ``busy`` with one."""
        if key not in _SAMPLED:
            return False
        self._left -= 1
        if self._left > 0 or busy:
            return False
        self._left = self._every
        return True
