"""Records of a topic that were removed before a stream read them."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql.streaming.query import StreamingQuery

#: What Spark says where a topic has fewer records than it should.
_LOST: Final = ("KAFKA_DATA_LOSS", "Some data may have been lost")
_PLACE: Final = re.compile(r"FetchPosition\{offset=(\d+).*? out of range for partition (\S+)")
_TOPIC: Final = "Kafka"


class LostRecords:
    """Looks for records that a query was to read, and that were gone.

    ``on_lost``: is called with their number, for each micro-batch that lacked some.
    """

    def __init__(self, query: StreamingQuery, on_lost: Callable[[int], None]) -> None:
        self._query, self._on_lost = query, on_lost
        self._seen = ""

    def look(self) -> None:
        """Look at what was read since the last time; Spark keeps the last 100 micro-batches."""
        last = self._query.lastProgress
        # All times are in UTC, and of one form.
        if last is None or last["timestamp"] <= self._seen:
            return
        for progress in self._query.recentProgress:
            if progress["timestamp"] > self._seen:
                self._seen = progress["timestamp"]
                if lost := lost_records(progress):
                    self._on_lost(lost)


def lost_records(progress: Mapping[str, Any]) -> int:
    """How many records a micro-batch did not find, by what Spark reports of it.

    A journal's topic has a record at each offset: it is not compacted, and nobody writes to it in
    transactions.
    """
    topics = (of for of in progress["sources"] if of["description"].startswith(_TOPIC))
    return sum(map(_lost_of, topics))


def why_it_ended(error: str) -> str | None:
    """Why a stream ended that found records gone; ``None``: it ended for another reason."""
    if not any(words in error for words in _LOST):
        return None
    place = _PLACE.search(error)
    at = f" (partition {place[2]}, offset {place[1]})" if place else ""
    return (
        f"records of the topic were removed before they were read{at}, or it was created again; to "
        "go on with those that are there, give --skip-lost"
    )


def _lost_of(source: Mapping[str, Any]) -> int:
    start, end = (_offsets(source[name]) for name in ("startOffset", "endOffset"))
    # A first micro-batch has no start, and a partition that is new begins at its first record.
    asked = sum(offset - start[place] for place, offset in end.items() if place in start)
    came = int(source["numInputRows"])
    return max(0, asked - came) if start.keys() == end.keys() else 0


def _offsets(text: str | None) -> dict[tuple[str, str], int]:
    """Offsets by topic and partition."""
    topics: Any = json.loads(text) if text and text.startswith("{") else {}
    return {
        (topic, partition): offset
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }
