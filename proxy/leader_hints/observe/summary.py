"""One log line for each minute in which something happened."""

from collections import Counter
from typing import Any

from leader_hints.core.mode import Mode
from leader_hints.observe.watched import Watched
from leader_hints.wire.steps import Steps

#: Cells of routes that one step adds up: there may be hundreds of routes, and hundreds of cells of
#: each.
_CELLS_AT_ONCE = 2000


class Summary:
    """What was added since the last line."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._before: Counter[str] = Counter()

    def take(self) -> Steps[dict[str, Any] | None]:
        """Return the fields of the next line, ``None`` if nothing happened since the last; in
        steps."""
        now = yield from self._totals()
        added = now - self._before
        self._before = now
        if not added:
            return None
        summary: dict[str, Any] = {
            "links_open": sum(route.traffic.links_open for route in self._watched.routes),
            **{name: added[name] for name in ("links", "requests", "errors", "hints_given")},
            "hints_missed": _named(added, "hints_missed"),
            **{name: added[name] for name in ("leader_moves", "epoch_rises")},
        }
        if outcomes := _named(added, "errors_settled"):
            summary["errors_settled"] = outcomes
        observed_missed = _named(added, "observed_missed")
        if added["observed_given"] or observed_missed:
            # What hints would have done is not among what they did.
            summary["observed_given"] = added["observed_given"]
            summary["observed_missed"] = observed_missed
        if outcomes := _named(added, "observed_settled"):
            summary["observed_settled"] = outcomes
        return summary

    def _totals(self) -> Steps[Counter[str]]:
        counts = self._watched.counts
        links = requests = 0
        left = _CELLS_AT_ONCE
        for route in [*self._watched.routes]:
            if left <= 0:
                yield
                left = _CELLS_AT_ONCE
            traffic = route.traffic
            links += traffic.links
            requests += sum(cell.requests for cell in traffic.cells.values())
            left -= 1 + len(traffic.cells)
        totals = Counter(
            links=links,
            requests=requests,
            errors=counts.errors.total(),
            leader_moves=counts.moves.total(),
            epoch_rises=counts.epoch_rises.total(),
        )
        for (*_, mode), n in counts.given.items():
            totals["observed_given" if mode == Mode.OBSERVE else "hints_given"] += n
        for (*_, mode, reason), n in counts.missed.items():
            totals[f"{'observed' if mode == Mode.OBSERVE else 'hints'}_missed {reason}"] += n
        for (*_, mode, outcome), n in counts.settled.items():
            totals[f"{'observed' if mode == Mode.OBSERVE else 'errors'}_settled {outcome}"] += n
        return totals


def _named(added: Counter[str], kind: str) -> dict[str, int]:
    """Return what was added of a kind, by its reasons or outcomes."""
    return {
        name.removeprefix(f"{kind} "): n for name, n in added.items() if name.startswith(f"{kind} ")
    }
