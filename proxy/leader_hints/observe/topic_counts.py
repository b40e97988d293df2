"""What events add up to by topic, for the topics that the settings name.

Tested in ``tests/observe/test_metrics.py``.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from leader_hints.core.events import Event, HintGiven, HintMissed, LeaderMoved
from leader_hints.observe.client_names import OTHER

#: Topics that are labels at the same time.
_MOST_TOPICS = 1000


class TopicCounts:
    """Counters by their labels, in the order of the metrics' labels.

    ``topics``: those that are counted; True: all, as far as the bound allows. ``is_known``: whether
    a route's cluster has a topic now, as far as the proxy is shown it.
    """

    def __init__(self, topics: bool | Collection[str]) -> None:
        self.given: Counter[tuple[str, str]] = Counter()
        self.missed: Counter[tuple[str, str, str]] = Counter()
        self.moves: Counter[tuple[str, str]] = Counter()
        self.is_known: Callable[[str, str], bool] = lambda route, topic: False
        self._topics = topics
        #: Topics that are labels now, and those of them that a cluster has had.
        self._labels: set[str] = set()
        self._shown: set[str] = set()

    def __bool__(self) -> bool:
        """Whether any topic is counted."""
        return bool(self._topics)

    def take(self, event: Event) -> None:
        """Count ``event``, if it is of a topic that is counted."""
        if isinstance(event, HintGiven):
            topic, api = event.answered.topic, event.answered.api
            if self._counts(topic):
                self.given[self._label_of_known(topic), api] += 1
        elif isinstance(event, HintMissed):
            topic, api = event.answered.topic, event.answered.api
            if self._counts(topic):
                # It may be deleted before the next scrape.
                route = event.answered.route
                known = topic not in self._shown and self.is_known(route, topic)
                label = self._label_of_known(topic) if known else self._label(topic)
                self.missed[label, api, event.reason] += 1
        elif isinstance(event, LeaderMoved) and self._counts(event.topic):
            self.moves[event.cluster, self._label_of_known(event.topic)] += 1

    def forget_deleted(self, clusters: Iterable[Collection[str]]) -> None:
        """Forget the topics that a cluster has had, and that none has now.

        ``clusters``: the names of each one's topics.

        A topic that no cluster has shown stays: the proxy may not be allowed to see it.
        """
        known = {topic for names in clusters for topic in self._labels if topic in names}
        deleted, self._shown = self._shown - known, known
        if not deleted:
            return
        self._labels -= deleted
        for given in [cell for cell in self.given if cell[0] in deleted]:
            del self.given[given]
        for missed in [cell for cell in self.missed if cell[0] in deleted]:
            del self.missed[missed]
        for moved in [cell for cell in self.moves if cell[1] in deleted]:
            del self.moves[moved]

    def _counts(self, topic: str) -> bool:
        return self._topics if isinstance(self._topics, bool) else topic in self._topics

    def _label_of_known(self, topic: str) -> str:
        """Return the label of a topic that a cluster shows, perhaps not for long."""
        label = self._label(topic)
        if label == topic:
            self._shown.add(topic)
        return label

    def _label(self, topic: str) -> str:
        if topic not in self._labels:
            if len(self._labels) >= _MOST_TOPICS:
                return OTHER
            self._labels.add(topic)
        return topic
