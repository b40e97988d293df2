"""Counts of what passed on a route; metrics are made of them when they are asked for."""

from collections import Counter
from dataclasses import dataclass, field

#: Cells counted apart: more than any client asks that speaks Kafka, so that none can fill memory.
_MOST_CELLS = 4096
_OTHER = (-1, -1, -1)
_OTHER_RESPONSE = (-1, -1)


@dataclass(slots=True)
class Tally:
    """``requests``: by (API key, version asked, version sent), -1 for what is beyond number;
    ``responses``: by (API key, version asked), as far as they were told apart. ``raw``:
    responses that passed without being looked at although they should have been, by reason.
    ``up`` and ``down``: bytes received from clients and from the broker."""

    links: int = 0
    links_open: int = 0
    up: int = 0
    down: int = 0
    requests: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    responses: Counter[tuple[int, int]] = field(default_factory=Counter)
    raw: Counter[str] = field(default_factory=Counter)

    def request(self, key: int, asked: int, sent: int) -> None:
        """Count a request."""
        cell = key, asked, sent
        if cell not in self.requests and len(self.requests) >= _MOST_CELLS:
            cell = _OTHER
        self.requests[cell] += 1

    def response(self, key: int, asked: int) -> None:
        """Count a response."""
        cell = key, asked
        if cell not in self.responses and len(self.responses) >= _MOST_CELLS:
            cell = _OTHER_RESPONSE
        self.responses[cell] += 1
