"""What metrics and the status are made of, when somebody asks for them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proxy.core.route import Route
from proxy.core.view import LeaderView
from proxy.observe.counts import Counts


class KnownCluster(NamedTuple):
    """A cluster's view, and how many seconds ago a poll last brought something into it."""

    view: LeaderView
    age: float


class Upstream(NamedTuple):
    """Whether a route's broker answers the proxy; ``None``: it is not asked. ``error``: why not."""

    answers: bool | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """``release``: the version of this program. ``clusters`` and ``upstream`` read the present."""

    release: str
    routes: Sequence[Route]
    counts: Counts
    clusters: Callable[[], Iterable[KnownCluster]]
    upstream: Callable[[Route], Upstream]
