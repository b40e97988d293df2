"""Every leader and epoch that a cluster had."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import time
from typing import NamedTuple

from tests.harness.admin import TopicPartition
from tests.harness.cluster import RealCluster

# Written by Partition.makeLeader in ZooKeeper and KRaft mode alike, by the leader itself: up to
# 2.6 in the partition's own log, from then on in that of state changes, without topic ids at first.
_LED = re.compile(
    r"^(?P<time>[\d:.]+) .*?\[(?:Broker id=|Partition \S+ broker=)(?P<leader>\d+)\] (?:Leader )?"
    r"(?P<topic>\S+)-(?P<partition>\d+) (?:with topic id .*? )?"
    r"starts at leader epoch (?P<epoch>\d+) ",
    re.MULTILINE,
)


class Term(NamedTuple):
    """Who led under one epoch, and the time of day in which that began here."""

    leader: int
    began: time


#: Terms by epoch, for each topic and partition.
Terms = dict[tuple[str, int], dict[int, Term]]


class LeaderHistory:
    """Who led which partition under which epoch, as the leaders' own logs say.

    A log misses nothing, where repeated Metadata questions could miss a short term. Topics are
    distinguished by name: one that was recreated with other leaders has no history here.
    """

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster

    @property
    def nodes(self) -> Collection[int]:
        """The cluster's brokers, in the order in which proxies are put before them."""
        return self._cluster.brokers.keys()

    def terms(self) -> Terms:
        """For each topic and partition the leaders by epoch, up to now."""
        brokers = self._cluster.brokers.values()
        return terms_in(broker.log.read_text(errors="replace") for broker in brokers)


def terms_in(logs: Iterable[str]) -> Terms:
    """Return the leaders by epoch for each topic and partition, as brokers' logs say."""
    terms: defaultdict[tuple[str, int], dict[int, Term]] = defaultdict(dict)
    recreated = set()
    for found in (found for log in logs for found in _LED.finditer(log)):
        where = TopicPartition(found["topic"], int(found["partition"]))
        term, epoch = Term(int(found["leader"]), time.fromisoformat(found["time"])), found["epoch"]
        before = terms[where].setdefault(int(epoch), term)
        if before.leader != term.leader:
            # One epoch has one leader, so these are two topics of a name: nothing tells which
            # term was whose, and every hint about them is judged wrong.
            recreated.add(where)
    return {where: of for where, of in terms.items() if where not in recreated}
