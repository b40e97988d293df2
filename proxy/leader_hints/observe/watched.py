"""The sources of metrics and status, read on each request.

Tested in ``tests/observe/test_metrics.py``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.route import Route
from leader_hints.observe.counts import Counts


class KnownCluster(NamedTuple):
    """A cluster's view, and how many seconds ago a poll last brought something into it."""

    view: LeaderView
    age: float


class Upstream(NamedTuple):
    """Whether a route's broker answers the proxy; ``None``: it is not asked, and nothing speaks
    against it. ``error``: why not."""

    answers: bool | None
    error: str = ""


class Load(NamedTuple):
    """The present load of the process.

    ``tasks`` of the event loop, requests that await their response (``exchanges``), error responses
    that are ``held``, bytes that are buffered (``kept_bytes``), and bytes that wait for slow
    readers (``queued_bytes``). ``exchanges`` comes in parts that add up, each a short step.
    """

    tasks: int
    exchanges: Iterable[int]
    held: int
    kept_bytes: int
    queued_bytes: int


@dataclass(frozen=True, slots=True)
class Watched:
    """``release``: the version of this program. ``clusters``, ``upstream``, ``load`` and
    ``certificates`` read the present: of these route, group of settings and when the newest that
    could be used expires, in seconds since 1970, ``None`` where there is none of the proxy's own.
    ``workers``: how many worker processes take clients, 0 if the process serves them itself.
    """

    release: str
    routes: Sequence[Route]
    counts: Counts
    clusters: Callable[[], Iterable[KnownCluster]]
    upstream: Callable[[Route], Upstream]
    load: Callable[[], Load]
    certificates: Callable[[], Iterable[tuple[str, str, float | None]]] = lambda: ()
    workers: Callable[[], int] = lambda: 0
