"""What a poll of a broker behind a route asks for."""

import math
from collections.abc import Collection, Iterator
from itertools import islice

from leader_hints.apis.metadata import ANY_TOPIC
from leader_hints.core.cluster.leader_view import LeaderView

#: Every so many polls ask for all topics, so that new and deleted ones are seen; those between
#: ask for the known ones, in slices.
FULL_POLL_EVERY = 5
#: Names of hidden topics that one request asks for again.
_MOST_HIDDEN = 1000


class PollPlan:
    """Plans the polls of one broker. ``slice_partitions``: the most of one request.

    ``repeats``: the poll under way only repeats the one before, which was made within the interval
    of polls. What two polls report counts, since others are polled in between.
    """

    def __init__(self, slice_partitions: int) -> None:
        self._most = slice_partitions
        self._polls = 0
        self._counted_at = -math.inf
        self.repeats = False

    def begin(self, now: float, interval: float) -> None:
        """Begin a poll. Until a broker is identified, and after it broke, some follow soon."""
        self.repeats = now < self._counted_at + interval
        if not self.repeats:
            self._counted_at = now

    def reset(self) -> None:
        """Begin with a poll of everything: another broker may answer."""
        self._polls = 0

    def poll(self, view: LeaderView | None, route: str = "") -> Iterator[Collection[str] | None]:
        """Yield the topics of each request of the next poll, ``None`` for all topics.

        ``route``: whose broker is asked.
        """
        due = self._polls % FULL_POLL_EVERY == 0
        self._polls += 1
        if view is not None and view.topics.names and not due:
            yield from slices(view, self._most)
            return
        # First, since what is offered to clients depends on it as soon as topics are known. What
        # was hidden is asked for again, or one that was deleted would count as hidden for ever.
        hidden = islice(view.hidden.names(route) if view is not None else (), _MOST_HIDDEN)
        yield [*dict.fromkeys((ANY_TOPIC, *hidden))]
        yield None


def slices(view: LeaderView, most: int) -> Iterator[list[str]]:
    """Yield the known topics in lists of at most ``most`` partitions, or of one topic."""
    names: list[str] = []
    partitions = 0
    for name in list(view.topics.names):
        size = view.partitions(name)
        if names and partitions + size > most:
            yield names
            names, partitions = [], 0
        names.append(name)
        partitions += size
    if names:
        yield names
