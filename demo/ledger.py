"""Ledger: which records were produced, acknowledged and read. Pure; its owner serialises access.

Each partition's records carry a sequence number of their own, from 0 on.
"""

from collections import Counter
from dataclasses import dataclass


@dataclass
class Watch:
    """The wait for the first record of a partition with the sequence number `first` or above."""

    partition: int
    first: int
    acknowledged_at: float | None = None
    read_at: float | None = None

    @property
    def done(self) -> bool:
        """Whether such a record was both acknowledged and read."""
        return self.acknowledged_at is not None and self.read_at is not None


class Ledger:
    """The records of one topic. Times are seconds of a monotonic clock."""

    def __init__(self, partitions: int) -> None:
        self.disordered = 0
        """Records read after one with a higher sequence number of the same partition."""
        self._produced = [0] * partitions
        self._acknowledged: list[set[int]] = [set() for _ in range(partitions)]
        self._reads: list[Counter[int]] = [Counter() for _ in range(partitions)]
        self._highest_read = [-1] * partitions
        self._watches: list[Watch] = []

    def next_sequence(self, partition: int) -> int:
        """The sequence number for the record that is produced next."""
        sequence = self._produced[partition]
        self._produced[partition] += 1
        return sequence

    def acknowledge(self, partition: int, sequence: int, now: float) -> None:
        """A broker took a record."""
        self._acknowledged[partition].add(sequence)
        for watch in self._watches:
            if watch.partition == partition and sequence >= watch.first:
                watch.acknowledged_at = watch.acknowledged_at or now

    def read(self, partition: int, sequence: int, now: float) -> None:
        """The consumer got a record."""
        self._reads[partition][sequence] += 1
        self.disordered += sequence < self._highest_read[partition]
        self._highest_read[partition] = max(sequence, self._highest_read[partition])
        for watch in self._watches:
            if watch.partition == partition and sequence >= watch.first:
                watch.read_at = watch.read_at or now

    def watch(self, partition: int) -> Watch:
        """Watch for the records of a partition that are produced from now on."""
        self._watches = [watch for watch in self._watches if not watch.done]
        watch = Watch(partition, self._produced[partition])
        self._watches.append(watch)
        return watch

    @property
    def acknowledged(self) -> int:
        """How many records brokers took."""
        return sum(map(len, self._acknowledged))

    @property
    def lost(self) -> int:
        """How many records were acknowledged but not read (so far)."""
        pairs = zip(self._acknowledged, self._reads, strict=True)
        return sum(len(acknowledged - reads.keys()) for acknowledged, reads in pairs)

    @property
    def doubled(self) -> int:
        """How many reads repeated a record."""
        return sum(reads.total() - len(reads) for reads in self._reads)

    def flowing(self, records: int) -> bool:
        """Whether at least `records` records of every partition were read."""
        return all(len(reads) >= records for reads in self._reads)
