"""Sets of a topic's partitions that take a bit each, since hundreds of routes may each have one.

Tested in ``tests/core/test_partition_bits.py``.
"""


class PartitionBits:
    """Numbers of partitions: 10,000 in some 1300 bytes, where a set of Python's has 1 MB."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits = bytearray()

    def __bool__(self) -> bool:
        # Those that are taken out leave zeros.
        return any(self._bits)

    def __contains__(self, partition: object) -> bool:
        if not isinstance(partition, int):
            return False
        at = partition >> 3
        return at < len(self._bits) and bool(self._bits[at] >> (partition & 7) & 1)

    def __and__(self, other: "PartitionBits") -> "PartitionBits":
        both = PartitionBits()
        size = min(len(self._bits), len(other._bits))
        mine, its = (int.from_bytes(one._bits[:size], "little") for one in (self, other))
        both._bits = bytearray((mine & its).to_bytes(size, "little"))
        return both

    def add(self, partition: int) -> None:
        """Have a partition in the set."""
        at = partition >> 3
        if at >= len(self._bits):
            self._bits.extend(bytes(at + 1 - len(self._bits)))
        self._bits[at] |= 1 << (partition & 7)

    def discard(self, partition: int) -> None:
        """Have a partition in it no more."""
        if partition in self:
            self._bits[partition >> 3] &= ~(1 << (partition & 7))
