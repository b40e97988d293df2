"""Which replicas of a topic's partitions are in sync; only where ``closest_replica`` needs it."""

import struct
from array import array

from leader_hints.apis.metadata import Led

_NONE = array("i", [-1])
_NODE = 4


class InSyncReplicas:
    """By partition: the node ids as Metadata has them, and the leader epoch that they belong to.

    What is in sync changes without a new epoch; what was reported last counts. At a new epoch
    nothing is known until a broker reports it with that.
    """

    __slots__ = ("_epochs", "_nodes")

    def __init__(self) -> None:
        self._epochs = array("i")
        self._nodes: list[bytes] = []

    def report(self, led: Led, nodes: bytes) -> bool:
        """Take what a broker reports beside the leader that is known; return whether it is new."""
        missing = led.partition + 1 - len(self._nodes)
        if missing > 0:
            self._epochs.extend(_NONE * missing)
            self._nodes.extend([b""] * missing)
        self._epochs[led.partition] = led.epoch
        if self._nodes[led.partition] == nodes:
            return False
        self._nodes[led.partition] = nodes
        return True

    def at(self, partition: int, epoch: int) -> tuple[int, ...] | None:
        """Return the nodes in sync at a leader epoch, ``None`` if they are not known."""
        if not 0 <= partition < len(self._nodes) or self._epochs[partition] != epoch:
            return None
        nodes = self._nodes[partition]
        return struct.unpack(f">{len(nodes) // _NODE}i", nodes)
