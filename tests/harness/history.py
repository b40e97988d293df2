"""Every leader and epoch that a cluster had."""

import re
from collections import defaultdict
from collections.abc import Iterable

from tests.harness.admin import TopicPartition
from tests.harness.cluster import RealCluster

# Written by Partition.makeLeader in ZooKeeper and KRaft mode alike, by the leader itself: up to
# 2.6 in the partition's own log, from then on in that of state changes, without topic ids at first.
_LED = re.compile(
    r"\[(?:Broker id=|Partition \S+ broker=)(?P<leader>\d+)\] (?:Leader )?"
    r"(?P<topic>\S+)-(?P<partition>\d+) (?:with topic id .*? )?"
    r"starts at leader epoch (?P<epoch>\d+) "
)


class LeaderHistory:
    """Who led which partition under which epoch, as the leaders' own logs say.

    A log misses nothing, where repeated Metadata questions could miss a short term. Topics are
    told apart by name: do not judge one that was deleted and made anew.
    """

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster

    def terms(self) -> dict[tuple[str, int], dict[int, int]]:
        """For each topic and partition the leaders by epoch, up to now."""
        brokers = self._cluster.brokers.values()
        return terms_in(broker.log.read_text(errors="replace") for broker in brokers)


def terms_in(logs: Iterable[str]) -> dict[tuple[str, int], dict[int, int]]:
    """For each topic and partition the leaders by epoch, as brokers' logs say."""
    terms: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for term in (term for log in logs for term in _LED.finditer(log)):
        where = TopicPartition(term["topic"], int(term["partition"]))
        leader, epoch = int(term["leader"]), int(term["epoch"])
        before = terms[where].setdefault(epoch, leader)
        assert before == leader, f"{where}: {before} and {leader} both led {epoch}"
    return dict(terms)
