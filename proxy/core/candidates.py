"""Which brokers are worth asking whether they lead a partition, and at which epoch."""

from collections import OrderedDict

from proxy.apis.fetch import Topic
from proxy.apis.list_offsets import Partition
from proxy.core.view import RECENT_MOVES, Leader, LeaderView


class Candidates:
    """What the brokers of one cluster have declined for good, and which epochs are over.

    A broker compares epochs before it looks at who leads: NOT_LEADER_OR_FOLLOWER to a question at
    its own epoch says that another leads at that epoch, now and for ever. (One that is to become a
    replica and has not heard of it says the same. It is asked again once Metadata names it.)
    FENCED_LEADER_EPOCH says that the epoch asked is over. A reassignment raises the epoch under the
    same leader and once more with the next one, so it may be over before anybody was told of it.

    ``view``: of the cluster.
    """

    def __init__(self, view: LeaderView, capacity: int = RECENT_MOVES) -> None:
        self._view = view
        self._capacity = capacity
        #: Epochs by node, topic and partition. A topic that is made anew has others.
        self._declined: OrderedDict[tuple[int, Topic, int], int] = OrderedDict()
        #: By topic and partition: the epoch that is over, and what the view had when it was said.
        self._over: OrderedDict[tuple[Topic, int], tuple[int, Leader | None]] = OrderedDict()

    def __len__(self) -> int:
        return max(len(self._declined), len(self._over))

    def declined(self, node: int, partition: Partition, epoch: int) -> None:
        """Note that ``node`` does not lead ``partition`` at ``epoch``."""
        place = self._place(node, partition)
        self._declined[place] = epoch
        self._declined.move_to_end(place)
        if len(self._declined) > self._capacity:
            self._declined.popitem(last=False)

    def fenced(self, partition: Partition, epoch: int) -> bool:
        """Note that ``epoch`` is over; return whether that is news."""
        if self.epoch(partition, epoch) != epoch:
            return False
        name, number = partition
        place = self._view.key(name), number
        self._over[place] = epoch, self._view.leader(name, number)
        self._over.move_to_end(place)
        if len(self._over) > self._capacity:
            self._over.popitem(last=False)
        return True

    def epoch(self, partition: Partition, epoch: int) -> int:
        """Return at which epoch to ask: ``epoch``, or the next that may not be over."""
        name, number = partition
        over, known = self._over.get((self._view.key(name), number), (epoch - 1, None))
        # Once the view has moved it tells which epoch is next; a topic that was made anew has
        # begun with 0 again.
        if known != self._view.leader(name, number):
            return epoch
        return max(epoch, over + 1)

    def may_lead(self, node: int | None, partition: Partition, epoch: int) -> bool:
        """Whether it is news what ``node`` says of its office; ``None`` is a node not known yet."""
        if node is None:
            return True
        known = self._view.leader(*partition)
        if known is not None and known.epoch == epoch and known.node >= 0:
            return node == known.node
        return self._declined.get(self._place(node, partition)) != epoch

    def _place(self, node: int, partition: Partition) -> tuple[int, Topic, int]:
        name, number = partition
        return node, self._view.key(name), number
