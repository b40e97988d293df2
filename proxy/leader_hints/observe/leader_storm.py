"""Tells which leader moves get a log line of their own: a storm of them becomes one line.

Tested in ``tests/observe/test_event_log.py``.
"""

from collections import Counter
from typing import Any

from leader_hints.core.events import LeaderMoved


class LeaderStorm:
    """Lets ``most`` moves through in each second; the others are summed up when it is over."""

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self._second = -1
        self._let_through = 0
        self._leaders: Counter[int] = Counter()
        self._topics: set[tuple[str, str]] = set()

    def takes(self, moved: LeaderMoved, now: float) -> bool:
        """Whether ``moved`` is summed up and gets no line. Call :meth:`over` before."""
        if int(now) != self._second:
            self._second, self._let_through = int(now), 0
        if self._let_through < self.most:
            self._let_through += 1
            return False
        self._leaders[moved.leader] += 1
        self._topics.add((moved.cluster, moved.topic))
        return True

    def over(self, now: float) -> dict[str, Any] | None:
        """Return the fields of the line that sums up, once the second of it is over."""
        if not self._leaders or int(now) == self._second:
            return None
        leaders, self._leaders = self._leaders, Counter()
        topics, self._topics = self._topics, set()
        return {
            "moves": leaders.total(),
            "topics": len(topics),
            "to_leaders": {str(node): n for node, n in sorted(leaders.items())},
        }
