"""Which brokers are worth asking whether they lead a partition at an epoch."""

from collections import OrderedDict

from proxy.apis.list_offsets import Partition
from proxy.core.view import RECENT_MOVES, LeaderView


class Candidates:
    """What the brokers of one cluster have declined for good.

    A broker compares epochs before it looks at who leads: NOT_LEADER_OR_FOLLOWER to a question at
    its own epoch says that another leads at that epoch, now and for ever. (One that is to become a
    replica and has not heard of it says the same. It is asked again once Metadata names it.)
    """

    def __init__(self, capacity: int = RECENT_MOVES) -> None:
        self._capacity = capacity
        self._declined: OrderedDict[tuple[int, Partition], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._declined)

    def declined(self, node: int, partition: Partition, epoch: int) -> None:
        """Note that ``node`` does not lead ``partition`` at ``epoch``."""
        self._declined[node, partition] = epoch
        self._declined.move_to_end((node, partition))
        if len(self._declined) > self._capacity:
            self._declined.popitem(last=False)

    def may_lead(
        self, node: int | None, partition: Partition, epoch: int, view: LeaderView
    ) -> bool:
        """Whether it is news what ``node`` says of its office; ``None`` is a node not known yet."""
        known = view.leader(*partition)
        if known is not None and known.epoch == epoch and known.node >= 0:
            return node is None or node == known.node
        return node is None or self._declined.get((node, partition)) != epoch
