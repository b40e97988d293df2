"""One log line for each minute in which something happened."""

from collections import Counter
from typing import Any

from leader_hints.observe.watched import Watched


class Summary:
    """What was added since the last line."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._before: Counter[str] = Counter()

    def take(self) -> dict[str, Any] | None:
        """Return the fields of the next line, ``None`` if nothing happened since the last."""
        now = self._totals()
        added = now - self._before
        self._before = now
        if not added:
            return None
        missed, settled = "hints_missed ", "settled "
        summary: dict[str, Any] = {
            "links_open": sum(route.traffic.links_open for route in self._watched.routes),
            **{name: added[name] for name in ("links", "requests", "errors", "hints_given")},
            "hints_missed": {
                name.removeprefix(missed): n for name, n in added.items() if name.startswith(missed)
            },
            "leader_moves": added["leader_moves"],
        }
        outcomes = {
            name.removeprefix(settled): n for name, n in added.items() if name.startswith(settled)
        }
        return summary | {"errors_settled": outcomes} if outcomes else summary

    def _totals(self) -> Counter[str]:
        counts = self._watched.counts
        traffic_by_route = [route.traffic for route in self._watched.routes]
        totals = Counter(
            links=sum(traffic.links for traffic in traffic_by_route),
            requests=sum(traffic.requests.total() for traffic in traffic_by_route),
            errors=counts.errors.total(),
            hints_given=counts.given.total(),
            leader_moves=counts.moves.total(),
        )
        for (*_, reason), n in counts.missed.items():
            totals[f"hints_missed {reason}"] += n
        for (*_, outcome), n in counts.settled.items():
            totals[f"settled {outcome}"] += n
        return totals
