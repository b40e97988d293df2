"""What a worker's routes have counted since the last report.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from leader_hints.core.link.traffic_counters import TrafficCounters
from leader_hints.core.route import Route
from leader_hints.core.workers.messages import CellCount, TrafficCounted


class _Told:
    """What was reported of one route."""

    def __init__(self) -> None:
        self.links = self.up = self.down = 0
        self.cells: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.raw: Counter[str] = Counter()

    def gained(self, route: str, traffic: TrafficCounters) -> TrafficCounted | None:
        """Return what was counted since, ``None`` if nothing was."""
        cells = []
        for place, cell in traffic.cells.items():
            requests, responses = self.cells.get(place, (0, 0))
            if (cell.requests, cell.responses) != (requests, responses):
                self.cells[place] = cell.requests, cell.responses
                gained = cell.requests - requests, cell.responses - responses
                cells.append(CellCount(*place, *gained))
        raw = dict(traffic.raw - self.raw)
        links, up, down = (
            traffic.links - self.links,
            traffic.up - self.up,
            traffic.down - self.down,
        )
        if not (cells or raw or links or up or down):
            return None
        self.links, self.up, self.down = traffic.links, traffic.up, traffic.down
        self.raw = Counter(traffic.raw)
        return TrafficCounted(route, links, up, down, tuple(cells), raw)


class TrafficReports:
    """Of all ``routes``."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(route, _Told()) for route in routes]

    def gained(self) -> Iterator[TrafficCounted | None]:
        """Iterate over what each route has gained since the last call, ``None`` if nothing.

        Each is a short step.
        """
        for route, told in self._routes:
            yield told.gained(route.name, route.traffic)


def add(traffic: TrafficCounters, gained: TrafficCounted) -> None:
    """Add what a worker has counted."""
    traffic.links += gained.links
    traffic.up += gained.up
    traffic.down += gained.down
    for key, asked, sent, requests, responses in gained.cells:
        cell = traffic.cell(key, asked, sent)
        cell.requests += requests
        cell.responses += responses
    traffic.raw.update(gained.raw)
