"""Move: one leader move, and what it cost the clients."""

from dataclasses import dataclass
from typing import Any

LogLine = dict[str, Any]
"""One line of the proxy's JSON log."""


@dataclass(frozen=True)
class Move:
    """A partition went from one leader to another.

    The recovery times, in ms, run from the move to the first record produced after it: to its
    acknowledgement for Produce, to its arrival for Fetch. None: not within the demo's deadline.
    """

    partition: int
    leader_before: int
    leader: int
    epoch: int
    produce_ms: float | None
    fetch_ms: float | None
    hints: tuple[LogLine, ...]
    """The proxy's `hint_given` lines that name this move's epoch."""

    @property
    def hold_ms(self) -> float:
        """The longest that the proxy held a response for a hint, 0 without one."""
        return max((hint["hold_ms"] for hint in self.hints), default=0.0)
