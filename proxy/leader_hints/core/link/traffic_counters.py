"""Counts of what passed on a route; metrics are made of them when they are asked for."""

from collections import Counter
from dataclasses import dataclass, field

from leader_hints.apis.keys import NEWEST

#: Cells of versions that no Kafka release has, so that nobody can fill memory. Others always have a
#: cell, or one client that asks what nobody does would keep them from being counted.
_MOST_ODD = 64
_OTHER = (-1, -1, -1)


class Cell:
    """Requests of one API, version asked and version sent, and their responses."""

    __slots__ = ("requests", "responses")

    def __init__(self) -> None:
        self.requests = 0
        self.responses = 0


@dataclass(slots=True)
class TrafficCounters:
    """``cells``: by (API key, version asked, version sent), -1 for what is beyond number. ``raw``:
    responses that passed without being looked at although they should have been, by reason.
    ``up`` and ``down``: bytes received from clients and from the broker. ``connecting``: clients
    whose connection to the broker is being made. ``odd``: cells of what no Kafka client asks."""

    links: int = 0
    connecting: int = 0
    links_open: int = 0
    up: int = 0
    down: int = 0
    cells: dict[tuple[int, int, int], Cell] = field(default_factory=dict)
    raw: Counter[str] = field(default_factory=Counter)
    odd: int = 0

    def cell(self, key: int, asked: int, sent: int) -> Cell:
        """Return where such requests are counted."""
        place = key, asked, sent
        if place not in self.cells and not 0 <= asked <= NEWEST.get(key, -1):
            if self.odd >= _MOST_ODD:
                place = _OTHER
            else:
                self.odd += 1
        return self.cells.setdefault(place, Cell())

    @property
    def requests(self) -> Counter[tuple[int, int, int]]:
        """Requests by (API key, version asked, version sent)."""
        return Counter({at: cell.requests for at, cell in self.cells.items() if cell.requests})

    @property
    def responses(self) -> Counter[tuple[int, int]]:
        """Responses by (API key, version asked), as far as they were distinguished."""
        responses: Counter[tuple[int, int]] = Counter()
        for (key, asked, _), cell in self.cells.items():
            if cell.responses:
                responses[key, asked] += cell.responses
        return responses
