"""Whether every broker of a cluster gives synthetic topic ids.

A client that learns ids from one broker and none from the next is served badly (librdkafka 2.5.0
asks for topics without ids, franz-go ignores its answers). So synthetic ids are offered only where
all brokers are behind proxies that synthesize them. That is detected from the effect: the proxy
asks other brokers for Metadata where clients ask them, and compares the ids in their answers.
"""

from collections.abc import Collection

from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import Event, TopicIdsOffered, TopicIdsWithheld

#: Seconds between two rounds of questions because of what clients say.
_DOUBT_SECONDS = 10


class SyntheticIdAgreement:
    """What is known of the brokers of one cluster, by node id.

    ``reached``: each of them gives the ids.
    """

    def __init__(self, cluster_id: str) -> None:
        self.reached = False
        self._cluster_id = cluster_id
        self._gives: dict[int, bool] = {}
        self._doubts = RefreshRate(1 / _DOUBT_SECONDS, 1)

    def judge(self, node: int, broker: str, fault: str | None) -> list[Event]:
        """Take what a broker's answer shows: ``fault`` says why it does not give the ids.

        ``broker``: its name in events. The judgement stands until the next one, also while the
        broker cannot be asked.
        """
        before = self._gives.get(node)
        self._gives[node] = fault is None
        if fault is None or before is False:
            return []
        return [TopicIdsWithheld(cluster=self._cluster_id, broker=broker, reason=fault)]

    def doubted(self, now: float) -> bool:
        """Take it that a client says that some broker gave no id; return whether to ask them now.

        That is no proof: anybody can say so, before he has authenticated. The brokers' answers are.
        ``now``: in seconds, by a clock that never goes back.
        """
        return self._doubts.take(now)

    def review(self, nodes: Collection[int]) -> list[Event]:
        """Conclude, for a cluster that consists of ``nodes`` now."""
        before = self.reached
        self.reached = bool(nodes) and all(self._gives.get(node, False) for node in nodes)
        if self.reached and not before:
            return [TopicIdsOffered(cluster=self._cluster_id)]
        return []
