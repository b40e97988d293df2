"""Lines of the journal that wait to be written, in bounded memory."""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, islice, takewhile

#: What a line costs in memory besides its bytes.
_OVERHEAD = 64


class LineBuffer:
    """Lines in their order; ``capacity``: bytes that wait at most, but for one line."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lines: deque[bytes] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def full(self) -> bool:
        """Whether there is no room for another line."""
        return self._bytes >= self._capacity

    @property
    def half_full(self) -> bool:
        """Whether so much waits that lines must not gather any longer."""
        return self._bytes * 2 >= self._capacity

    def append(self, line: bytes) -> None:
        """Add a line at the end, even if the buffer is full."""
        self._lines.append(line)
        self._bytes += len(line) + _OVERHEAD

    def oldest(self, most_bytes: int) -> list[bytes]:
        """Return the oldest lines, of ``most_bytes`` together; they stay in the buffer."""
        sizes = accumulate(map(len, self._lines))
        count = sum(1 for _ in takewhile(lambda size: size <= most_bytes, sizes))
        return list(islice(self._lines, count))

    def remove(self, oldest: Sequence[bytes]) -> None:
        """Remove the oldest lines, which are written."""
        for _ in oldest:
            self._bytes -= len(self._lines.popleft()) + _OVERHEAD
