"""What the consumer of one link reads from its broker as from a follower.

What a broker does not replicate any more has no news, and so stands in no response of a fetch
session, in which the consumer could be sent back (KIP-227). So its session is to begin again.

Tested in ``tests/core/replicas/test_placement.py``.
"""

import math

from leader_hints.core.cluster.leader_view import LeaderView

#: Partitions that a link remembers.
_MOST = 300
#: Seconds within which a partition that has news stands in a response.
_HAS_NEWS = 1.0
#: Seconds after a leader move for which no replica is named: clients and followers find the leader.
SETTLED = 5.0


class Followed:
    """Partitions, by the topic's name, that the broker was in sync with when it served them."""

    __slots__ = ("_changed_at", "_places")

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], None] = {}
        #: Since when it is to be looked whether the broker has fallen out of sync.
        self._changed_at = math.inf

    def note(self, topic: str, partition: int, *, follows: bool) -> None:
        """Take note whether the broker has served a partition as a follower in sync."""
        if not follows:
            self._places.pop((topic, partition), None)
        elif len(self._places) < _MOST:
            self._places[topic, partition] = None

    def changed(self, now: float) -> None:
        """Take it that other replicas are in sync than before, of any partition."""
        if self._places:
            self._changed_at = min(self._changed_at, now)

    def fell_out(self, view: LeaderView, node: int, now: float) -> bool:
        """Whether the broker, ``node``, is out of sync with one of them, and stays silent on it.

        Only once for what has changed, and once it can be said where the consumer is to read. Then
        they are forgotten: it asks for all of them again.
        """
        if now < self._changed_at + _HAS_NEWS:
            return False
        fallen = [
            (topic, partition)
            for topic, partition in self._places
            if (in_sync := view.in_sync(topic, partition)) and node not in in_sync
        ]
        settled = any(
            not view.in_doubt(*place) and not has_just_moved(view, *place, now) for place in fallen
        )
        if settled:
            self._places = {}
        if settled or not fallen:
            self._changed_at = math.inf
        return settled


def has_just_moved(view: LeaderView, topic: str | bytes, partition: int, now: float) -> bool:
    """Whether a partition's leader moved so lately that no replica is named."""
    moved_at = view.moved_at(topic, partition)
    return moved_at is not None and now - moved_at < SETTLED
