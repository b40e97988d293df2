"""Which brokers are worth asking whether they lead a partition, and at which epoch."""

from collections import OrderedDict
from typing import TypeVar

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.leader import LAST_EPOCH, Leader
from leader_hints.core.cluster.leader_moves import RECENT_MOVES
from leader_hints.core.cluster.leader_view import LeaderView

_Place = TypeVar("_Place")
_Answer = TypeVar("_Answer")


class LeaderCandidates:
    """What the brokers of one cluster have denied for good, and which epochs are over.

    A broker compares epochs before leaders: NOT_LEADER_OR_FOLLOWER to a question at its own epoch
    means that another broker leads at that epoch, now and for ever. (One that is to become a
    replica and has not learnt of it answers the same. It is asked again once Metadata names it.)
    FENCED_LEADER_EPOCH means that the epoch asked is over. A reassignment raises the epoch under
    the same leader and once more with the next one, so it may be over before any broker reports it.

    ``view``: of the cluster.
    """

    def __init__(self, view: LeaderView, capacity: int = RECENT_MOVES) -> None:
        self._view = view
        self._capacity = capacity
        #: By node, topic and partition: the epoch, and how many topics had been forgotten by then.
        #: A recreated topic begins with epoch 0, without an id under the same key.
        self._denied: OrderedDict[tuple[int, Topic, int], tuple[int, int]] = OrderedDict()
        #: By topic and partition: the epoch that is over, and what the view had when it was said.
        self._over: OrderedDict[tuple[Topic, int], tuple[int, Leader | None]] = OrderedDict()

    def __len__(self) -> int:
        return max(len(self._denied), len(self._over))

    def denied(self, node: int, partition: Partition, epoch: int) -> None:
        """Note that ``node`` does not lead ``partition`` at ``epoch``."""
        self._remember(self._denied, (node, *self._place(partition)), self._term(epoch))

    def fenced(self, partition: Partition, epoch: int) -> bool:
        """Note that ``epoch`` is over; return whether that is news."""
        if self.epoch(partition, epoch) != epoch:
            return False
        known = self._view.leader(*partition)
        self._remember(self._over, self._place(partition), (epoch, known))
        return True

    def epoch(self, partition: Partition, epoch: int) -> int:
        """Return at which epoch to ask: ``epoch``, or the next that may not be over."""
        over, known = self._over.get(self._place(partition), (epoch - 1, None))
        # Once the view has moved it tells which epoch is next; a recreated topic has begun with 0.
        if known != self._view.leader(*partition):
            return epoch
        return max(epoch, min(over + 1, LAST_EPOCH))

    def may_lead(self, node: int | None, partition: Partition, epoch: int) -> bool:
        """Whether ``node`` may lead, and has not denied it; ``None`` is a node not known yet."""
        if node is None:
            return True
        known = self._view.leader(*partition)
        if known is not None and known.epoch == epoch and known.node >= 0:
            return node == known.node
        return self._denied.get((node, *self._place(partition))) != self._term(epoch)

    def _term(self, epoch: int) -> tuple[int, int]:
        return epoch, self._view.topics.forgotten

    def _remember(
        self, known: OrderedDict[_Place, _Answer], place: _Place, answer: _Answer
    ) -> None:
        known[place] = answer
        known.move_to_end(place)
        if len(known) > self._capacity:
            known.popitem(last=False)

    def _place(self, partition: Partition) -> tuple[Topic, int]:
        name, number = partition
        return self._view.topics.key(name), number
