"""Which topics there was news of."""

from collections import deque
from collections.abc import Collection
from itertools import islice

from leader_hints.apis.fetch_response import Topic

#: Changes of which it is remembered what they were about.
_REMEMBERED = 10_000


class TopicChanges:
    """The news of one cluster's topics, counted, so that a reader asks for what it has not seen.

    ``count``: how often there was news.
    """

    def __init__(self) -> None:
        self.count = 0
        #: All names and ids of the topics that the last news were of.
        self._topics: deque[tuple[Topic, ...]] = deque(maxlen=_REMEMBERED)

    def add(self, aliases: tuple[Topic, ...]) -> None:
        """Note news of a topic, given by all its names and ids."""
        self.count += 1
        self._topics.append(aliases)

    def add_any(self) -> None:
        """Note that there may be news of any topic."""
        self.count += 1
        self._topics.clear()

    def since(self, count: int) -> Collection[tuple[Topic, ...]] | None:
        """Return of which topics there was news since ``count`` had a value.

        Each with all its names and ids. ``None``: there may be news of any topic.
        """
        news = self.count - count
        if news > len(self._topics):
            return None
        return dict.fromkeys(islice(reversed(self._topics), news)).keys()
