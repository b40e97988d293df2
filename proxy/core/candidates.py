"""Which brokers are worth asking whether they lead a partition at an epoch."""

from collections import OrderedDict

from proxy.apis.fetch import Topic
from proxy.apis.list_offsets import Partition
from proxy.core.view import RECENT_MOVES, LeaderView


class Candidates:
    """What the brokers of one cluster have declined for good.

    A broker compares epochs before it looks at who leads: NOT_LEADER_OR_FOLLOWER to a question at
    its own epoch says that another leads at that epoch, now and for ever. (One that is to become a
    replica and has not heard of it says the same. It is asked again once Metadata names it.)

    ``view``: of the cluster.
    """

    def __init__(self, view: LeaderView, capacity: int = RECENT_MOVES) -> None:
        self._view = view
        self._capacity = capacity
        #: Epochs by node, topic and partition. A topic that is made anew has others.
        self._declined: OrderedDict[tuple[int, Topic, int], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._declined)

    def declined(self, node: int, partition: Partition, epoch: int) -> None:
        """Note that ``node`` does not lead ``partition`` at ``epoch``."""
        place = self._place(node, partition)
        self._declined[place] = epoch
        self._declined.move_to_end(place)
        if len(self._declined) > self._capacity:
            self._declined.popitem(last=False)

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
