"""The leader of a partition, and since which epoch.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

from typing import Final, NamedTuple

#: The last epoch that a message can have.
LAST_EPOCH: Final = (1 << 31) - 1


class Leader(NamedTuple):
    """Node and epoch, both from one and the same answer. Node -1: no leader."""

    node: int
    epoch: int
