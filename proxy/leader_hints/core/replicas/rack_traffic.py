"""Counts of what consumers read across racks; metrics are made of them when they are asked for.

Tested in ``tests/core/replicas/test_placement.py``.
"""

from collections import Counter
from dataclasses import dataclass, field

#: In place of a rack that no broker has: anybody can name any.
OTHER = "other"


@dataclass(slots=True)
class RackTraffic:
    """``read``: bytes of Fetch responses to consumers that name a rack, by (this broker's rack,
    the consumer's); "" for a broker whose rack is not known. ``avoidable``: in observe, those of
    them for which a replica in sync is in the consumer's rack. ``outcomes``: partitions in
    responses that were looked at, by what came of it. ``selector``: the broker has named a
    preferred replica itself, so it has a selector of its own, as long as this process runs.
    """

    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    avoidable: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    selector: bool = False
