"""Whether one more client may be let in."""

from collections.abc import Sequence

from leader_hints.core.route import Route


class Admission:
    """Bounds the connections of each of ``routes`` and of all together.

    ``per_route`` and ``total`` count those with a link and those whose link is being made.
    """

    def __init__(self, routes: Sequence[Route], per_route: int, total: int) -> None:
        self._routes = routes
        self._per_route = per_route
        self.total = total

    def refusal(self, route: Route) -> str | None:
        """Return the name of the limit that forbids one more on ``route``, ``None``: none does."""
        if _open(route) >= self._per_route:
            return "connections_per_route"
        if sum(map(_open, self._routes)) >= self.total:
            return "connections"
        return None


def _open(route: Route) -> int:
    return route.traffic.links_open + route.traffic.connecting
