"""What events add up to since the process began.

Tested in ``tests/observe/test_metrics.py``.
"""

from collections import Counter
from collections.abc import Callable, Collection

from leader_hints.core.events import (
    AdminFailed,
    BadBrokerBytes,
    BadClientBytes,
    CertificatesRefused,
    CertificatesReloaded,
    ClientRefused,
    ClientSeen,
    ErrorAnswered,
    Event,
    EventLoopStalled,
    HintGiven,
    HintMissed,
    LeaderMoved,
    LimitReached,
    LinkFailed,
    NotUnderstood,
    TaskFailed,
    UpstreamUnreachable,
)
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN
from leader_hints.observe.client_names import OTHER, ClientNames

#: Topics that are labels at the same time.
_MOST_TOPICS = 1000

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

    ``topics``: those that are counted one by one; True: all, as far as the bound allows. ``known``:
    see :class:`leader_hints.observe.client_names.ClientNames`. ``uses``: the hints that the clients
    counted under a label use, ``None`` if that is not known.
    """

    def __init__(
        self,
        topics: bool | Collection[str] = False,
        known: Collection[str] = BUILT_IN.names,
    ) -> None:
        self.errors: Counter[tuple[str, str, str]] = Counter()
        self.given: Counter[tuple[str, str, str]] = Counter()
        self.missed: Counter[tuple[str, str, str, str]] = Counter()
        self.moves: Counter[str] = Counter()
        self.clients: Counter[tuple[str, str]] = Counter()
        self.using: Counter[tuple[str, str]] = Counter()
        self.uses: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self.faults: Counter[tuple[str, str]] = Counter()
        self.limits: Counter[tuple[str, str]] = Counter()
        #: Route and group of settings whose newest TLS files cannot be used.
        self.unusable: set[tuple[str, str]] = set()
        self.stalls = 0
        #: Of the proxy itself, by the work that they ended.
        self.defects: Counter[str] = Counter()
        self.topic_given: Counter[tuple[str, str]] = Counter()
        self.topic_missed: Counter[tuple[str, str, str]] = Counter()
        self.topic_moves: Counter[tuple[str, str]] = Counter()
        self.topics = topics
        #: Topics that are labels now, and those of them that a cluster had when last asked.
        self._labels: set[str] = set()
        self._shown: set[str] = set()
        self._names = ClientNames(known)

    def take(self, event: Event) -> None:
        """Count ``event``."""
        if isinstance(event, HintGiven):
            answered = event.answered
            self._error(answered)
            self.given[answered.route, answered.api, mode(answered)] += 1
            if self._counts(answered.topic):
                self.topic_given[self._topic(answered.topic), answered.api] += 1
        elif isinstance(event, HintMissed):
            answered = event.answered
            self._error(answered)
            self.missed[answered.route, answered.api, mode(answered), event.reason] += 1
            if self._counts(answered.topic):
                self.topic_missed[self._topic(answered.topic), answered.api, event.reason] += 1
        elif isinstance(event, LeaderMoved):
            self.moves[event.cluster] += 1
            if self._counts(event.topic):
                self.topic_moves[event.cluster, self._topic(event.topic)] += 1
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
        elif isinstance(event, LimitReached):
            self.limits[event.route, event.limit] += 1
        elif isinstance(event, EventLoopStalled):
            self.stalls += 1
        elif isinstance(event, TaskFailed):
            self.defects[event.task] += 1
        elif isinstance(event, AdminFailed):
            self.defects["admin"] += 1

    def forget_deleted(self, is_known: Callable[[str], bool]) -> None:
        """Forget the topics that a cluster had when this was last called, and that none has now.

        A topic that no cluster has shown stays: the proxy may not be allowed to see it.
        """
        deleted = {topic for topic in self._shown if not is_known(topic)}
        self._shown = {topic for topic in self._labels if is_known(topic)}
        if not deleted:
            return
        self._labels -= deleted
        for given in [cell for cell in self.topic_given if cell[0] in deleted]:
            del self.topic_given[given]
        for missed in [cell for cell in self.topic_missed if cell[0] in deleted]:
            del self.topic_missed[missed]
        for moved in [cell for cell in self.topic_moves if cell[1] in deleted]:
            del self.topic_moves[moved]

    def _client(self, event: ClientSeen) -> None:
        label = self._names.label(event.software, event.version)
        self.clients[label] += 1
        if event.uses:
            self.using[label] += 1
        # Where versions share a label, one says nothing of the others.
        self.uses[label] = None if OTHER in label else event.uses

    def _error(self, answered: ErrorAnswered) -> None:
        self.errors[answered.route, answered.api, str(answered.error)] += 1

    def _counts(self, topic: str) -> bool:
        return self.topics if isinstance(self.topics, bool) else topic in self.topics

    def _topic(self, topic: str) -> str:
        if topic not in self._labels:
            if len(self._labels) >= _MOST_TOPICS:
                return OTHER
            self._labels.add(topic)
        return topic


def mode(answered: ErrorAnswered) -> Mode:
    """Return whether hints were given or only counted when an error was answered."""
    return Mode.OBSERVE if answered.observed else Mode.ON
