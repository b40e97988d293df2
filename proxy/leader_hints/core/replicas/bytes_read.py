"""What the consumer of one link has read, by topic, since that was reported."""

from collections import Counter
from collections.abc import Iterator

from leader_hints.apis.fetch_response import Topic

#: Seconds after which it is reported.
EVERY = 300.0
#: Topics that are distinguished until then; the bytes of others count as theirs.
_MOST = 200


class BytesRead:
    """``size``: bytes of all responses. Only some are looked at; their topics' shares of the
    records are taken for all.
    """

    __slots__ = ("_avoidable", "_began", "_records", "size")

    def __init__(self) -> None:
        self.size = 0
        self._records: Counter[Topic] = Counter()
        self._avoidable: Counter[Topic] = Counter()
        self._began: float | None = None

    def add(self, topic: Topic, size: int, *, avoidable: bool) -> None:
        """Take note of records of a topic; ``avoidable``: a replica in the rack has them, too."""
        if topic not in self._records and len(self._records) >= _MOST:
            return
        self._records[topic] += size
        if avoidable:
            self._avoidable[topic] += size

    def due(self, now: float) -> bool:
        """Whether it is to be reported now; time begins at the first call."""
        if self._began is None:
            self._began = now
        return now - self._began >= EVERY

    def take(self) -> Iterator[tuple[Topic, int, int]]:
        """Return of each topic its bytes, and how many were avoidable; begin again.

        Without records nothing is returned: empty responses count with the next ones.
        """
        self._began = None
        records, avoidable = +self._records, self._avoidable
        whole = sum(records.values())
        if not whole:
            return
        size, self.size = self.size, 0
        self._records, self._avoidable = Counter(), Counter()
        seen = given = 0
        for topic, part in records.items():
            seen += part
            # Rounded so that the sum is right.
            upto = size * seen // whole
            yield topic, upto - given, avoidable[topic]
            given = upto
