"""When each broker of a cluster learnt of each leader move, as the brokers' own logs say."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import time

from tests.harness.cluster import RealCluster

# Written by Partition.makeLeader and makeFollower; only partitions 0 are of interest.
_LEARNT = re.compile(
    r"^(?P<time>[\d:.]+) .*?\[Broker id=(?P<node>\d+)\] (?P<role>Leader|Follower) (?P<topic>\S+)-0 "
    r"(?:with topic id .*? )?starts at leader epoch (?P<epoch>\d+) ",
    re.MULTILINE,
)
_DAY = 86400.0


@dataclass
class Floor:
    """Milliseconds of each move in which nobody can be served, whatever the client knows.

    ``produce``: from the former leader's refusal until the new one serves; 0 where that is earlier.
    ``consume``: from the first moment at which a follower has left the former leader, which then
    counts no record as replicated any more, until the new one serves.
    """

    produce: list[float] = field(default_factory=list)
    consume: list[float] = field(default_factory=list)

    def add(self, other: "Floor") -> None:
        """Pool another round's."""
        self.produce += other.produce
        self.consume += other.consume


def floor_of(cluster: RealCluster, topic: str) -> Floor:
    """Return what the moves of partition 0 of a topic cost at least."""
    logs = (broker.log.read_text(errors="replace") for broker in cluster.brokers.values())
    return floor_in(logs, topic)


def floor_in(logs: Iterable[str], topic: str) -> Floor:
    """Return the same, as the brokers' logs say. An epoch at which the leader stayed is no move."""
    led: dict[int, tuple[int, float]] = {}
    followed: dict[int, dict[int, float]] = {}
    for found in (found for log in logs for found in _LEARNT.finditer(log)):
        if found["topic"] != topic:
            continue
        epoch, node, at = int(found["epoch"]), int(found["node"]), _seconds(found["time"])
        if found["role"] == "Leader":
            led[epoch] = node, at
        else:
            followed.setdefault(epoch, {}).setdefault(node, at)
    floor = Floor()
    for epoch, (node, at) in sorted(led.items()):
        before, followers = led.get(epoch - 1), followed.get(epoch, {})
        if before is None or before[0] == node or before[0] not in followers:
            continue
        floor.produce.append(_after(at, followers[before[0]]))
        floor.consume.append(_after(at, min(followers.values())))
    return floor


def _seconds(text: str) -> float:
    at = time.fromisoformat(text)
    return at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6


def _after(at: float, since: float) -> float:
    """Milliseconds by which one time of day is later than another, 0 where it is earlier."""
    later = at - since
    if later < -_DAY / 2:
        later += _DAY
    return max(later, 0.0) * 1000
