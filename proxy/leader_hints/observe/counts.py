"""What events add up to since the process began.

Tested in ``tests/observe/test_metrics.py``.
"""

from collections import Counter
from collections.abc import Collection

from leader_hints.core.events import (
    AdminFailed,
    BadBrokerBytes,
    BadClientBytes,
    CertificatesRefused,
    CertificatesReloaded,
    ClientRefused,
    ClientSeen,
    EpochRose,
    ErrorAnswered,
    Event,
    EventLoopStalled,
    HintGiven,
    HintMissed,
    LeaderMoved,
    LimitReached,
    LinkFailed,
    NotUnderstood,
    RoutePlan,
    TaskFailed,
    UpstreamGivesHints,
    UpstreamUnreachable,
    WorkerEnded,
)
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN
from leader_hints.observe.client_names import OTHER, ClientNames
from leader_hints.observe.topic_counts import TopicCounts

_Fault = (
    BadClientBytes
    | ClientRefused
    | BadBrokerBytes
    | NotUnderstood
    | UpstreamUnreachable
    | CertificatesRefused
    | LinkFailed
)
#: What an operator should look at, by the name under which it is counted.
FAULTS: dict[type[_Fault], str] = {
    BadClientBytes: "bad_client_bytes",
    ClientRefused: "client_refused",
    BadBrokerBytes: "bad_broker_bytes",
    NotUnderstood: "not_understood",
    UpstreamUnreachable: "upstream_unreachable",
    CertificatesRefused: "certificates_refused",
    LinkFailed: "link_failed",
}


class Counts:
    """Counters by their labels, in the order of the metrics' labels.

    ``topics``: see :class:`leader_hints.observe.topic_counts.TopicCounts`. ``known``: see
    :class:`leader_hints.observe.client_names.ClientNames`. ``uses``: the hints that the clients
    counted under a label use, ``None`` if that is not known.

    Large because each metric that is made of events has its counter here.
    """

    def __init__(
        self,
        topics: bool | Collection[str] = False,
        known: Collection[str] = BUILT_IN.names,
    ) -> None:
        self.errors: Counter[tuple[str, str, str]] = Counter()
        self.given: Counter[tuple[str, str, str]] = Counter()
        self.missed: Counter[tuple[str, str, str, str]] = Counter()
        #: Errors without a hint that were to be settled, by what came of that.
        self.settled: Counter[tuple[str, str, str, str]] = Counter()
        self.moves: Counter[str] = Counter()
        self.epoch_rises: Counter[str] = Counter()
        self.clients: Counter[tuple[str, str]] = Counter()
        self.using: Counter[tuple[str, str]] = Counter()
        self.uses: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self.faults: Counter[tuple[str, str]] = Counter()
        self.limits: Counter[tuple[str, str]] = Counter()
        #: Route and group of settings whose newest TLS files cannot be used.
        self.unusable: set[tuple[str, str]] = set()
        #: Routes that lead to another proxy.
        self.hints_behind: set[str] = set()
        self.stalls = self.worker_ends = 0
        #: Of the proxy itself, by the work that they ended.
        self.defects: Counter[str] = Counter()
        self.by_topic = TopicCounts(topics)
        self._names = ClientNames(known)

    def take(self, event: Event) -> None:
        """Count ``event``."""
        if isinstance(event, HintGiven):
            answered = event.answered
            self._error(answered)
            self.given[answered.route, answered.api, mode(answered)] += 1
        elif isinstance(event, HintMissed):
            answered = event.answered
            self._error(answered)
            cell = answered.route, answered.api, mode(answered)
            self.missed[*cell, event.reason] += 1
            if event.settling:
                self.settled[*cell, event.settling] += 1
        elif isinstance(event, LeaderMoved):
            self.moves[event.cluster] += 1
        elif isinstance(event, EpochRose):
            self.epoch_rises[event.cluster] += 1
        elif isinstance(event, ClientSeen):
            self._client(event)
        elif isinstance(event, _Fault):
            self.faults[event.route, FAULTS[type(event)]] += 1
            if isinstance(event, CertificatesRefused):
                self.unusable.add((event.route, event.group))
            if isinstance(event, LinkFailed):
                self.defects["link"] += 1
        elif isinstance(event, CertificatesReloaded):
            self.unusable.discard((event.route, event.group))
        elif isinstance(event, UpstreamGivesHints):
            self.hints_behind.add(event.route)
        elif isinstance(event, RoutePlan):
            self.hints_behind.discard(event.route)
        elif isinstance(event, LimitReached):
            self.limits[event.route, event.limit] += 1
        elif isinstance(event, EventLoopStalled):
            self.stalls += 1
        elif isinstance(event, WorkerEnded):
            self.worker_ends += 1
        elif isinstance(event, TaskFailed):
            self.defects[event.task] += 1
        elif isinstance(event, AdminFailed):
            self.defects["admin"] += 1
        if self.by_topic:
            self.by_topic.take(event)

    def _client(self, event: ClientSeen) -> None:
        label = self._names.label(event.software, event.version)
        self.clients[label] += 1
        if event.uses:
            self.using[label] += 1
        # Where versions share a label, one says nothing of the others.
        self.uses[label] = None if OTHER in label else event.uses

    def _error(self, answered: ErrorAnswered) -> None:
        self.errors[answered.route, answered.api, str(answered.error)] += 1


def mode(answered: ErrorAnswered) -> Mode:
    """Return whether hints were given or only counted when an error was answered."""
    return Mode.OBSERVE if answered.observed else Mode.ON
