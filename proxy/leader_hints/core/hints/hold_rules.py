"""The bounds of holds, in seconds and in responses.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

from dataclasses import dataclass
from typing import Final

from leader_hints.core.route import Route

#: Seconds after the deadline in which further errors under the same epoch are not held, while the
#: search for the leader goes on.
CALM: Final = 1.0
#: Seconds after a move in which an error of the former leader counts as an error of that move, and
#: not of a later one.
RECENT: Final = 1.0


@dataclass(frozen=True, slots=True)
class HoldRules:
    """Bounds in seconds; the numbers are those of :mod:`leader_hints.core.hints.hold_queue`.

    ``deadline``: rule 4. ``link_second``: the longest hold of a link in each second; ``shared``:
    the longest hold if other partitions brought something (rule 5). ``kraft``: as much as this for
    both ``deadline`` and ``link_second`` in front of a KRaft broker: it learns of a move with the
    next record of the metadata log, up to half a second later than others
    (``metadata.max.idle.interval.ms``). ``grace``: rule 6. ``confirm``: how long a hint waits for a
    leader that confirms nothing. ``most``: responses held at the same time (rule 8). All are
    settings, which have the defaults.
    """

    deadline: float
    link_second: float
    kraft: float
    shared: float
    grace: float
    confirm: float
    most: int

    def deadline_of(self, route: Route) -> float:
        """Return the ``deadline`` in front of the broker of ``route``."""
        return self._longest(route, self.deadline)

    def link_second_of(self, route: Route) -> float:
        """Return the ``link_second`` of links to the broker of ``route``."""
        return self._longest(route, self.link_second)

    def _longest(self, route: Route, bound: float) -> float:
        # Where nothing is to be held, nothing is.
        return max(bound, self.kraft) if bound and route.broker.kraft else bound
