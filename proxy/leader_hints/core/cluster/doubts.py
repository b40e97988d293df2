"""Partitions of which a broker reports what contradicts the view.

Without topic ids (clusters before 2.8) a lower epoch, or another leader at the same epoch, has two
possible causes: the broker lags, or the topic was deleted and created again, and its epochs begin
with 0. With ids another leader at the same epoch means that a broker was taken for another node.
One answer does not show which one is right, so the partition is in doubt until one of these:

- the leader that the view has confirms that it leads at that epoch (ListOffsets compares the epoch,
  KIP-320), or every broker that reported another one reports the same by now: the view was right;
- that leader denies it, the one that was reported instead confirms that it leads, and no other
  broker has agreed with the view for a while: the view was wrong, and adopts that leader. (At a
  move the new leader may be the last to learn of it, and the former one serves until it does.)

If two confirm that they lead, the higher epoch counts: a former leader that is cut off from its
controller continues to serve.
"""

import math
from collections import OrderedDict

from leader_hints.apis.fetch_response import Topic
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.leader import Leader

#: Seconds after which a doubt that was not renewed is over. Before a hint of a topic without an id
#: is given, its broker is asked, which renews it.
_LASTS = 30.0
#: Seconds for which the leader's own confirmation outweighs what others report: their Metadata
#: lags. No topic is deleted, created and moved within that time.
_CONFIRMED_FOR = 0.25
#: Seconds for which nobody must have agreed with the view before it is found to be wrong. All
#: brokers are asked more often than that while a response is held.
_STANDS = 0.5
#: Seconds within which one leader must deny and the other confirm: else it may be a move.
_TOGETHER = 1.0

Place = tuple[Topic, int]
#: A broker: its node, or the name of its route while that is not known.
Reporter = int | str


class _Doubt:
    """``claim``: what was said last instead of the view's leader, ``by``: which nodes say such.

    ``since``: nobody has agreed with the view from then on.
    """

    __slots__ = ("at", "by", "claim", "confirmed", "confirmed_at", "denied_at", "since")

    def __init__(self, since: float) -> None:
        self.since = self.at = since
        self.by: set[Reporter] = set()
        self.claim: Leader | None = None
        self.confirmed: Leader | None = None
        self.confirmed_at = -math.inf
        self.denied_at = -math.inf


class Doubts:
    """The partitions of one view that are in doubt; of ``capacity`` the oldest give way."""

    def __init__(self, clock: Clock, capacity: int) -> None:
        self._clock = clock
        self._capacity = capacity
        self._doubts: OrderedDict[Place, _Doubt] = OrderedDict()
        self._confirmed: OrderedDict[Place, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._doubts)

    def __contains__(self, place: Place) -> bool:
        doubt = self._doubts.get(place)
        return doubt is not None and self._clock() <= doubt.at + _LASTS

    def claim(self, place: Place) -> Leader | None:
        """Return who was named last instead of the view's leader, where that is in doubt."""
        return self._doubts[place].claim if place in self else None

    def contradicted(self, place: Place, claim: Leader, reporter: Reporter) -> bool:
        """Take another leader, or a lower epoch, from a broker.

        Return whether that began a doubt.
        """
        now = self._clock()
        if now < self._confirmed.get(place, -math.inf) + _CONFIRMED_FOR:
            return False
        begins = place not in self
        if begins:
            self.dropped(place)
        doubt = self._doubts.setdefault(place, _Doubt(now))
        self._doubts.move_to_end(place)
        doubt.at, doubt.claim = now, claim
        doubt.by.add(reporter)
        if len(self._doubts) > self._capacity:
            self._doubts.popitem(last=False)
        return begins

    def agreed(self, place: Place, reporter: Reporter) -> bool:
        """Take what the view has from a broker; return whether that ended a doubt."""
        doubt = self._doubts.get(place)
        if doubt is None:
            return False
        doubt.since = self._clock()
        doubt.by.discard(reporter)
        return not doubt.by and self.dropped(place)

    def confirmed(self, place: Place) -> bool:
        """Take it from the view's leader that it leads; return whether that ended a doubt."""
        self._confirmed[place] = self._clock()
        self._confirmed.move_to_end(place)
        if len(self._confirmed) > self._capacity:
            self._confirmed.popitem(last=False)
        return self.dropped(place)

    def denied(self, place: Place) -> Leader | None:
        """Take it from the view's leader that it does not lead; return who does instead."""
        doubt = self._doubts.get(place)
        if doubt is None:
            return None
        doubt.denied_at = self._clock()
        return self._settled(doubt)

    def served(self, place: Place, leader: Leader) -> Leader | None:
        """Take it from ``leader`` itself that it leads; return it if the view's does not."""
        doubt = self._doubts.get(place)
        if doubt is None:
            return None
        doubt.confirmed, doubt.confirmed_at = leader, self._clock()
        return self._settled(doubt)

    def dropped(self, place: Place) -> bool:
        """Forget a doubt; return whether there was one."""
        return self._doubts.pop(place, None) is not None

    def _settled(self, doubt: _Doubt) -> Leader | None:
        together = abs(doubt.denied_at - doubt.confirmed_at) <= _TOGETHER
        return doubt.confirmed if together and self._clock() >= doubt.since + _STANDS else None
