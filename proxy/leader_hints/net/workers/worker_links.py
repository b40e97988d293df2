"""Which worker has which link, and which gets the next one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from leader_hints.core.route import Route


class HasLinks(Protocol):
    """A worker, by its number from 1 on; ``links``: how many it has, or is to make."""

    number: int
    links: int


_W = TypeVar("_W", bound=HasLinks)


class _Link(NamedTuple):
    route: Route
    worker: HasLinks


class WorkerLinks:
    """The links of all workers, by number. ``workers``: how many there are.

    Counts links that are open, or being made, in the traffic of their ``routes``.
    """

    def __init__(self, routes: Mapping[str, Route], workers: int) -> None:
        self._routes = routes
        self._workers = workers
        self._numbers = 0
        self._making: dict[int, _Link] = {}
        self._open: dict[int, _Link] = {}

    def begin(self, route: Route, worker: HasLinks) -> int:
        """Give a client to a worker; return the number of its link.

        From that the worker's number follows, so that a line of the log can say it.
        """
        self._numbers += 1
        number = self._numbers * self._workers + worker.number - 1
        self._making[number] = _Link(route, worker)
        worker.links += 1
        route.traffic.connecting += 1
        return number

    def began(self, number: int) -> None:
        """Take it that a client was joined to its broker."""
        link = self._making.pop(number, None)
        if link is not None:
            link.route.traffic.connecting -= 1
            link.route.traffic.links_open += 1
            self._open[number] = link

    def ended(self, number: int) -> None:
        """Take it that a link has ended, or was never made."""
        if (link := self._making.pop(number, None)) is not None:
            link.route.traffic.connecting -= 1
            link.worker.links -= 1
        elif (link := self._open.pop(number, None)) is not None:
            link.route.traffic.links_open -= 1
            link.worker.links -= 1

    def of(self, worker: HasLinks) -> list[int]:
        """Return the numbers of all links that a worker has, or is to make."""
        every = [*self._making.items(), *self._open.items()]
        return [number for number, link in every if link.worker is worker]

    def worker_of(self, number: int) -> int:
        """Return the number of the worker that has, or had, a link."""
        return number % self._workers + 1


def next_worker(workers: Sequence[_W]) -> _W | None:
    """Return the worker that gets the next client: the one with the fewest links."""
    return min(workers, key=lambda worker: worker.links, default=None)
