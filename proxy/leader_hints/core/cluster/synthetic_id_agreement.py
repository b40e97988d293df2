"""Whether every broker of a cluster gives synthetic topic ids.

A client that learns ids from one broker and none from the next is served badly (librdkafka 2.5.0
asks for topics without ids, franz-go ignores its answers). So synthetic ids are offered only where
all brokers are behind proxies that synthesize them. That is detected from the effect: the proxy
asks other brokers for Metadata where clients ask them, and compares the ids in their answers.
"""

from collections.abc import Collection

from leader_hints.apis.metadata import ZERO_ID, TopicMetadata
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import Event, TopicIdsOffered, TopicIdsWithheld
from leader_hints.core.route import Route

#: Seconds between two rounds of questions because of what clients say.
_DOUBT_SECONDS = 10
#: Seconds for which a broker that gives none counts after it has left its cluster. Most come back:
#: until then clients would get ids, and lose them again, which franz-go does not survive.
AWAY_SECONDS = 3600
#: What an operator can do about brokers for which synthetic ids cannot be offered.
_SHOW_ALL = "it hides topics from the proxy, so ids of theirs have no names; allow it Describe"
_HAVE_IT_PROXIED = "have it advertise a leader-hints proxy with topic_ids: synthesize"
_NEEDS_NO_PROXY = "its version gives hints and topic ids itself; set topic_ids: broker"


class SyntheticIdAgreement:
    """What is known of the brokers of one cluster, by node id.

    ``reached``: each of them gives the ids.
    """

    def __init__(self, cluster_id: str) -> None:
        self.reached = False
        self._cluster_id = cluster_id
        self._gives: dict[int, bool] = {}
        #: How often that has changed; and what it was when a conclusion was drawn, with the rest.
        self._judged = 0
        self._basis: object = None
        #: Brokers that do not give them: when each was first found to have left, by the same clock.
        self._lacking: dict[int, float | None] = {}
        self._doubts = RefreshRate(1 / _DOUBT_SECONDS, 1)

    def judge(self, node: int, broker: str, fault: str | None) -> list[Event]:
        """Take what a broker's answer shows: ``fault`` says why it does not give the ids.

        ``broker``: its name in events. The judgement stands until the next one, also while the
        broker cannot be asked.
        """
        before = self._gives.get(node)
        self._gives[node] = fault is None
        self._judged += before is not self._gives[node]
        if fault is None or before is False:
            return []
        return [TopicIdsWithheld(cluster=self._cluster_id, broker=broker, reason=fault)]

    def judge_topic(self, node: int, broker: str, topic: TopicMetadata) -> list[Event]:
        """Take a topic of another broker's answer: has it the synthetic id?"""
        fault = None
        if topic.id != synthetic_id(self._cluster_id, topic.name):
            gives = "no topic ids" if topic.id == ZERO_ID else "topic ids of its own"
            fault = f"it gives {gives}; {_HAVE_IT_PROXIED}"
        return self.judge(node, broker, fault)

    def judge_route(self, route: Route, broker: str, *, hides: bool) -> list[Event]:
        """Take what is known of the broker behind a route; ``hides``: it hides topics."""
        if route.broker.node is None or route.broker.plan is None:
            return []
        fault = None if route.broker.plan.reads else _NEEDS_NO_PROXY
        if fault is None and hides:
            fault = _SHOW_ALL
        return self.judge(route.broker.node, f"{route.broker.node} at {broker}", fault)

    def is_news(self, basis: object, now: float) -> bool:
        """Whether a conclusion may be another one since the last call.

        ``basis``: what it rests on, but for the judgements so far. Each Metadata response asks, and
        there may be a thousand brokers. ``now``: see :meth:`doubted`.
        """
        before, self._basis = self._basis, (self._judged, basis)
        return self._basis != before or any(self._is_over(at, now) for at in self._lacking.values())

    def doubted(self, now: float) -> bool:
        """Take it that a client says that some broker gave no id; return whether to ask them now.

        That is no proof: anybody can say so, before he has authenticated. The brokers' answers are.
        ``now``: in seconds, by a clock that never goes back.
        """
        return self._doubts.take(now)

    def review(self, nodes: Collection[int], now: float) -> list[Event]:
        """Conclude, for a cluster that consists of ``nodes`` now. ``now``: see :meth:`doubted`."""
        before = self.reached
        lacking = {node: None for node in nodes if not self._gives.get(node, False)}
        away = {
            node: now if at is None else at
            for node, at in self._lacking.items()
            # One that was never asked may give them, as most that join do.
            if node not in nodes and node in self._gives and not self._is_over(at, now)
        }
        self._lacking = {**away, **lacking}
        self.reached = bool(nodes) and not self._lacking
        if self.reached and not before:
            return [TopicIdsOffered(cluster=self._cluster_id)]
        return []

    @staticmethod
    def _is_over(left_at: float | None, now: float) -> bool:
        return left_at is not None and now - left_at >= AWAY_SECONDS
