"""What the consumer of one link reads from its broker as from a follower.

What a broker does not replicate any more has no news, and so stands in no response of a fetch
session, in which the consumer could be sent back (KIP-227). So its session is to begin again.

Tested in ``tests/core/replicas/test_placement.py``.
"""

import math

from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.replicas.closest_replica import Outcome
from leader_hints.core.replicas.named_replicas import PAUSE

#: Partitions that a link remembers.
_MOST = 300
#: Seconds within which a partition that has news stands in a response.
_HAS_NEWS = 1.0
#: Seconds after a leader move for which no replica is named: clients and followers find the leader.
SETTLED = 5.0
#: What does not say where a consumer is to read from then on.
_UNDECIDED = (Outcome.ERROR, Outcome.UNKNOWN, Outcome.MOVED)


class Followed:
    """Partitions, by the topic's name, that the broker was in sync with when it served them.

    Or that it served out of sync while the leader was not to be named again yet.
    """

    __slots__ = ("_changed_at", "_places")

    def __init__(self) -> None:
        #: From when on each may be left, those noted last at the end.
        self._places: dict[tuple[str, int], float] = {}
        #: Since when it is to be looked whether the broker has fallen out of sync.
        self._changed_at = math.inf

    def note(
        self, topic: str, partition: int, outcome: Outcome, now: float, *, in_sync: bool
    ) -> None:
        """Take note of what became of a partition that the broker has served.

        ``in_sync``: whether it is in sync with it.
        """
        if outcome in _UNDECIDED:
            # The consumer may go on to read it here, and have no news from then on.
            return
        self._places.pop((topic, partition), None)
        if outcome is Outcome.FOLLOWER:
            self._add(topic, partition, now)
        elif outcome is Outcome.PAUSED and not in_sync:
            self._add(topic, partition, now + PAUSE)
            self.changed(now + PAUSE)

    def _add(self, topic: str, partition: int, since: float) -> None:
        self._places[topic, partition] = since
        if len(self._places) > _MOST:
            # It may be another consumer's of the group by now.
            del self._places[next(iter(self._places))]

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
            for (topic, partition), since in self._places.items()
            if since <= now and (in_sync := view.in_sync(topic, partition)) and node not in in_sync
        ]
        settled = any(
            not view.in_doubt(*place) and not has_just_moved(view, *place, now) for place in fallen
        )
        later = {place: since for place, since in self._places.items() if since > now}
        if settled:
            self._places = later
        if settled or not fallen:
            self._changed_at = min(later.values(), default=math.inf)
        return settled


def has_just_moved(view: LeaderView, topic: str | bytes, partition: int, now: float) -> bool:
    """Whether a partition's leader moved so lately that no replica is named."""
    moved_at = view.moved_at(topic, partition)
    return moved_at is not None and now - moved_at < SETTLED
