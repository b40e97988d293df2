"""The leader of a partition, and since which epoch."""

from typing import NamedTuple


class Leader(NamedTuple):
    """Node and epoch, both from one and the same answer. Node -1: no leader."""

    node: int
    epoch: int
