"""Tells workers which of their responses go on.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.workers.messages import MOST_ENTRIES, HintsDecided, ToWorker

Send = Callable[[ToWorker], None]


class Decisions:
    """Hints of a large response are sent in parts: thousands of them take long to encode.

    ``waits``: called when :meth:`send_some` has something to send.
    """

    def __init__(self, waits: Callable[[], None]) -> None:
        self._waits = waits
        #: What is still to be sent of each response.
        self._rest: deque[tuple[Send, Iterator[ToWorker]]] = deque()

    def take(self, send: Send, response: int, hints: Sequence[LeaderHint | None]) -> None:
        """Send the hints of a response to its worker: the first ones now."""
        some = hints if any(hints) else ()
        parts = _parts(response, some)
        send(next(parts))
        if len(some) > MOST_ENTRIES:
            self._rest.append((send, parts))
            self._waits()

    def send_some(self) -> bool:
        """Send one more part; return whether there may be more of them."""
        if self._rest:
            send, parts = self._rest.popleft()
            for some in parts:
                send(some)
                self._rest.append((send, parts))
                break
        return bool(self._rest)


def _parts(response: int, hints: Sequence[LeaderHint | None]) -> Iterator[HintsDecided]:
    begins = range(0, max(len(hints), 1), MOST_ENTRIES)
    for begin in begins:
        some, last = tuple(hints[begin : begin + MOST_ENTRIES]), begin == begins[-1]
        yield HintsDecided(response, some, last)
