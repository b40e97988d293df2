"""Recent leader moves: the former leader, and whether the new one has confirmed."""

from collections import OrderedDict

from leader_hints.apis.metadata import Led
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.doubts import Place, Reporter
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.metadata_brokers import MetadataBrokers

#: Moves remembered in all: enough for every partition of a large broker to move at once.
RECENT_MOVES = 20_000
#: Seconds after which an answer of the new leader cannot be of an earlier time as leader: it may
#: have waited behind a response that was held.
_WAITED = 0.25


class LeaderMove:
    """The leader ``before``, and ``at`` what time the view learnt of the new one.

    ``confirmed``: whether the new leader confirms its leadership; ``None``: it has not answered.
    ``serves``: whether it has answered as leader, or has served a client. Metadata is no such
    answer: a KRaft broker's names it a while before its replica leads (BrokerMetadataPublisher sets
    the image first). ``named``: the brokers whose Metadata names the new leader, as the bits of
    :class:`leader_hints.core.cluster.metadata_brokers.MetadataBrokers`.
    """

    __slots__ = ("at", "before", "confirmed", "named", "serves")

    def __init__(self, before: Leader, at: float, confirmed: bool | None, serves: bool) -> None:
        self.before = before
        self.at = at
        self.confirmed = confirmed
        self.serves = serves
        self.named = 0


class LeaderMoves(OrderedDict[Place, LeaderMove]):
    """The last move of each partition that moved recently, the oldest first.

    A leader without one has led for long. ``brokers``: those whose Metadata is awaited.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.brokers = MetadataBrokers()
        self._clock = clock

    def add(self, place: Place, before: Leader, led: Led, *, confirmed: bool) -> None:
        """Note a move; ``confirmed``: the new leader itself reported it."""
        # Each election raises the epoch by one: a leader that stays has served at the next one too.
        stays = before == Leader(led.leader, led.epoch - 1)
        serves = stays and ((last := self.get(place)) is None or last.serves)
        self[place] = LeaderMove(before, self._clock(), confirmed or None, serves)
        self.move_to_end(place)
        if len(self) > RECENT_MOVES:
            self.popitem(last=False)

    def name(self, place: Place, reporter: Reporter) -> bool:
        """Note that a broker's Metadata names the new leader; whether it was the last awaited."""
        move = self.get(place)
        bit = self.brokers.bit(reporter)
        if move is None or move.named & bit:
            return False
        move.named |= bit
        return self.brokers.all_in(move.named)

    def served(self, place: Place) -> None:
        """Note that the new leader has served a client."""
        move = self.get(place)
        if move is not None and self._clock() >= move.at + _WAITED:
            move.serves = True
