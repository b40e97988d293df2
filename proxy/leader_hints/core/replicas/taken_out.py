"""From where on records were last taken out of the responses of one link, by partition.

Tested in ``tests/core/replicas/test_placement.py``.
"""

from leader_hints.core.replicas.named_replicas import PAUSE

#: Partitions that a link remembers; the oldest go first.
_MOST = 2000
#: Seconds for which the replica is left to have the records: a follower learns one Fetch later that
#: they are committed, and answers without them at once if it has something of another partition.
_PATIENCE = 1.0


class TakenOut:
    """Shows whether a consumer has read at the replica what was kept from it here.

    If it goes on to ask the leader for the same records it gets none there: it is refused, or it
    does not read from replicas at all. So it gets them here, and for a while all that follow.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        #: Offset, since when it is asked for, and until when nothing is to be taken out.
        self._last: dict[tuple[str, int], tuple[int, float, float]] = {}

    def note(self, topic: str, partition: int, position: int, now: float) -> None:
        """Take note that records from offset ``position`` on are taken out, at a time in s."""
        place = topic, partition
        # The newest stand last.
        last = self._last.pop(place, None)
        since = last[1] if last is not None and last[0] == position else now
        self._last[place] = position, since, 0.0
        if len(self._last) > _MOST:
            del self._last[next(iter(self._last))]

    def asked_again(self, topic: str, partition: int, position: int, now: float) -> bool:
        """Whether records from ``position`` on are to be left in, at a time in seconds."""
        place = topic, partition
        before, since, until = self._last.get(place, (-1, now, 0.0))
        if before == position and now - since >= _PATIENCE:
            until = now + PAUSE
            self._last[place] = position, since, until
        return until > now
