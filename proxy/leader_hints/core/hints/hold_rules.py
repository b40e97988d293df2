"""The bounds of holds, in seconds and in responses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoldRules:
    """Bounds in seconds; the numbers are those of :mod:`leader_hints.core.hints.hold_queue`.

    ``deadline``: rule 4. ``calm``: how long after it errors are not held, while the search for the
    leader goes on. ``link_second``: the longest hold of a link in each second; ``shared``: the
    longest hold if other partitions brought something (rule 5). ``grace``: rule 6. ``confirm``: how
    long a hint waits for a leader that confirms nothing. ``most``: responses held at the same time
    (rule 8). ``recent``: how long after a move an error of the former leader counts as an error of
    that move, and not of a later one. All but ``calm`` and ``recent`` are settings.
    """

    deadline: float
    link_second: float
    shared: float
    grace: float
    confirm: float
    most: int
    calm: float = 1.0
    recent: float = 1.0
