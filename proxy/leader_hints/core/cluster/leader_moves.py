"""Recent leader moves: the former leader, whether the new one has confirmed, and who names it.

A client without a hint asks any broker for Metadata. Brokers learn of a move one after the other,
so an error is settled once the Metadata of all of them names the new leader.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Protocol

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import Led
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.doubts import Place, Reporter
from leader_hints.core.cluster.leader import Leader

#: Moves remembered in all: enough for every partition of a large broker to move at once.
RECENT_MOVES = 20_000
#: Seconds after which an answer of the new leader cannot be of an earlier time as leader: it may
#: have waited behind a response that was held.
_WAITED = 0.25
#: Seconds after which a broker that has not answered is left out: half a hold by default. Clients
#: that ask it wait for longer than a hold in any case.
SILENT = 0.05
#: Brokers that are remembered although none of their Metadata is awaited: most of them come back.
MOST_GONE = 64
#: Topics of which is remembered that some broker hides them.
_MOST_HIDDEN = 10_000


class Asked(Protocol):
    """A broker that can be asked. ``unanswered_since``: infinity if it owes no answer."""

    @property
    def reporter(self) -> Reporter: ...

    @property
    def unanswered_since(self) -> float: ...


class LeaderMove:
    """The leader ``before``, and ``at`` what time the view learnt of the new one.

    ``confirmed``: whether the new leader confirms its leadership; ``None``: it has not answered.
    ``serves``: whether it has answered as leader, or has served a client. Metadata is no such
    answer: a KRaft broker's names it a while before its replica leads (BrokerMetadataPublisher sets
    the image first). ``named``: the brokers whose Metadata names the new leader, as the bits of
    :class:`MetadataBrokers`.
    """

    __slots__ = ("at", "before", "confirmed", "named", "serves")

    def __init__(self, before: Leader, at: float, confirmed: bool | None, serves: bool) -> None:
        self.before = before
        self.at = at
        self.confirmed = confirmed
        self.serves = serves
        self.named = 0


class MetadataBrokers:
    """Which brokers' Metadata names the leaders to which partitions moved, and whose is awaited.

    Brokers are bits, since thousands of moves note which of them name the leader. ``awaited``: the
    bits of all that must; 0 before any broker was asked. Brokers come and go for years, so the bits
    of those that have gone are given to others; one that comes back later names the leaders again.
    """

    def __init__(self, moves: Mapping[Place, LeaderMove]) -> None:
        self.awaited = 0
        self._moves = moves
        self._expected: set[Reporter] = set()
        self._bits: dict[Reporter, int] = {}
        #: By topic: those that hide it from the proxy, and so never name its leaders.
        self._hiding: dict[Topic, int] = {}
        #: All of these bits.
        self._taken = 0

    def expect(self, brokers: Iterable[Asked], now: float) -> bool:
        """Await these brokers, but those that are silent; return whether these are others."""
        expected = {one.reporter for one in brokers if now < one.unanswered_since + SILENT}
        changed, self._expected = expected != self._expected, expected
        self.awaited = 0
        for reporter in expected:
            self.awaited |= self._bit(reporter)
        return changed

    def names(self, reporter: Reporter, place: Place) -> bool:
        """Note that a broker's Metadata names the leader; whether it was the last one awaited."""
        move, bit = self._moves[place], self._bit(reporter)
        if move.named & bit:
            return False
        move.named |= bit
        return self.all_name(place)

    def all_name(self, place: Place) -> bool:
        """Whether any is awaited, and all name the leader that show its topic.

        True as well where it led for long.
        """
        move = self._moves.get(place)
        return move is None or 0 < self.awaited == self.awaited & self._done(move, place)

    def lags(self, reporter: Reporter, place: Place) -> bool:
        """Whether a broker's Metadata has not named the leader since a recent move."""
        move = self._moves.get(place)
        return move is not None and not self._done(move, place) & self._bits.get(reporter, 0)

    def hides(self, reporter: Reporter, topic: Topic, *, hidden: bool) -> bool:
        """Note whether a broker hides a topic from the proxy; return whether that is news.

        Only once brokers are awaited: then they are asked again.
        """
        hiding = self._hiding.get(topic, 0)
        if hidden is bool(hiding & self._bits.get(reporter, 0)) or not self.awaited:
            return False
        if hidden and not hiding and len(self._hiding) >= _MOST_HIDDEN:
            return False
        bit = self._bit(reporter)
        # That may have freed bits of others.
        hiding = self._hiding.get(topic, 0)
        self._hide(topic, hiding | bit if hidden else hiding & ~bit)
        return True

    def forget(self, topic: Topic) -> None:
        """Forget who hides a topic: it is not known any more."""
        self._hiding.pop(topic, None)

    def _hide(self, topic: Topic, bits: int) -> None:
        if bits:
            self._hiding[topic] = bits
        else:
            self._hiding.pop(topic, None)

    def _done(self, move: LeaderMove, place: Place) -> int:
        """Return the bits of those that name the leader, or never will."""
        return move.named | self._hiding.get(place[0], 0)

    def _bit(self, reporter: Reporter) -> int:
        """Return the bit of a broker, the lowest free one if it has none yet."""
        bit = self._bits.get(reporter)
        if bit is None:
            if len(self._bits) >= len(self._expected) + MOST_GONE:
                self._forget_gone()
            bit = ~self._taken & (self._taken + 1)
            self._bits[reporter] = bit
            self._taken |= bit
        return bit

    def _forget_gone(self) -> None:
        """Free the bits of all brokers that are not awaited."""
        self._bits = {one: bit for one, bit in self._bits.items() if one in self._expected}
        self._taken = sum(self._bits.values())
        for move in self._moves.values():
            move.named &= self._taken
        for topic, bits in [*self._hiding.items()]:
            self._hide(topic, bits & self._taken)


class LeaderMoves(OrderedDict[Place, LeaderMove]):
    """The last move of each partition that moved recently, the oldest first.

    A leader without one has led for long. ``brokers``: those whose Metadata names the new leaders.
    ``claims``: the moves that nobody but the new leader itself has reported yet.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.brokers = MetadataBrokers(self)
        self.claims: dict[Place, None] = {}
        self._clock = clock

    def add(self, place: Place, before: Leader, led: Led, *, confirmed: bool) -> None:
        """Note a move; ``confirmed``: the new leader itself reported it."""
        # Each election raises the epoch by one: a leader that stays has served at the next one too.
        stays = before == Leader(led.leader, led.epoch - 1)
        serves = stays and ((last := self.get(place)) is None or last.serves)
        self[place] = LeaderMove(before, self._clock(), confirmed or None, serves)
        self.move_to_end(place)
        self.claims.pop(place, None)
        if len(self) > RECENT_MOVES:
            self.drop(next(iter(self)))

    def drop(self, place: Place) -> None:
        """Forget the move of a partition, if there is one."""
        self.pop(place, None)
        self.claims.pop(place, None)

    def served(self, place: Place) -> None:
        """Note that the new leader has served a client."""
        move = self.get(place)
        if move is not None and self._clock() >= move.at + _WAITED:
            move.serves = True
