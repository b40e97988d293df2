"""From where on records were last taken out of the responses of one link, by partition.

Tested in ``tests/core/replicas/test_placement.py``.
"""

from leader_hints.core.replicas.named_replicas import PAUSE

#: Partitions that a link remembers; the oldest go first.
_MOST = 2000


class TakenOut:
    """Shows whether a consumer has read at the replica what was kept from it here.

    If it asks the leader for the same records again it has got none there: it was refused, or it
    does not read from replicas at all. So it gets them here, and for a while all that follow.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        #: Offset, and until when nothing is to be taken out.
        self._last: dict[tuple[str, int], tuple[int, float]] = {}

    def note(self, topic: str, partition: int, position: int) -> None:
        """Take note that records from offset ``position`` on are taken out."""
        place = topic, partition
        # The newest stand last.
        self._last.pop(place, None)
        self._last[place] = position, 0.0
        if len(self._last) > _MOST:
            del self._last[next(iter(self._last))]

    def asked_again(self, topic: str, partition: int, position: int, now: float) -> bool:
        """Whether records from ``position`` on are to be left in, at a time in seconds."""
        place = topic, partition
        last = self._last.get(place)
        if last is None:
            return False
        if last[0] == position:
            self._last[place] = position, max(last[1], now + PAUSE)
        return self._last[place][1] > now
