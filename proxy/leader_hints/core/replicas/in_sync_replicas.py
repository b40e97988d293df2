"""Which replicas of a topic's partitions are in sync; only where ``closest_replica`` needs it."""

import struct
from array import array
from collections.abc import Iterator

from leader_hints.apis.metadata import Led

_NONE = array("i", [-1])
_NODE = 4


class InSyncReplicas:
    """By partition: the node ids as Metadata has them, and the leader epoch that they belong to.

    What is in sync changes without a new epoch; what was reported last counts. At a new epoch
    nothing is known until a broker reports it with that. The leader decides what is in sync: once
    it has reported, others can only take out. A broker that is cut off takes itself for in sync.

    ``disputed``: partitions of which another broker names a node that the leader did not: either
    that broker is cut off, or the node came back since, and only the leader can say which.
    """

    __slots__ = ("_by_leader", "_epochs", "_nodes", "disputed")

    def __init__(self) -> None:
        self._epochs = array("i")
        self._nodes: list[bytes] = []
        self._by_leader = bytearray()
        #: Changed in place: where a broker comes back it may have all partitions, one by one.
        self.disputed: set[int] = set()

    def report(self, led: Led, nodes: bytes, reporter: int | None) -> bool:
        """Take what a broker reports beside the leader that is known; return whether it is new.

        ``reporter``: the broker, where that is known.
        """
        partition = led.partition
        missing = partition + 1 - len(self._nodes)
        if missing > 0:
            self._epochs.extend(_NONE * missing)
            self._nodes.extend([b""] * missing)
            self._by_leader.extend(bytes(missing))
        known = self._nodes[partition]
        if reporter == led.leader or self._epochs[partition] != led.epoch:
            self._by_leader[partition] = reporter == led.leader
            self.disputed.discard(partition)
        elif nodes != known and self._by_leader[partition]:
            named = {*_each(nodes)}
            left = b"".join(node for node in _each(known) if node in named)
            if len(left) < len(nodes):
                self.disputed.add(partition)
            nodes = left
        self._epochs[partition] = led.epoch
        self._nodes[partition] = nodes
        return nodes != known

    def at(self, partition: int, epoch: int) -> tuple[int, ...] | None:
        """Return the nodes in sync at a leader epoch, ``None`` if they are not known."""
        if not 0 <= partition < len(self._nodes) or self._epochs[partition] != epoch:
            return None
        nodes = self._nodes[partition]
        return struct.unpack(f">{len(nodes) // _NODE}i", nodes)


def _each(nodes: bytes) -> Iterator[bytes]:
    return (nodes[at : at + _NODE] for at in range(0, len(nodes), _NODE))
