"""What was seen between clients and a virtual cluster, message by message.

Tested in ``tests/conformance/test_traits.py``.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """A request, or the response to one.

    ``at``: seconds of a monotonic clock. ``route``: the route of its broker, such as broker-1.
    ``link``: a number that all messages of a connection have. ``partitions``: topics and
    partitions that a Produce or Fetch names. ``response``: of a response, its errors and hints;
    ``None`` of a request.
    """

    at: float
    route: str
    link: int
    client_id: str
    api: str
    version: int
    correlation_id: int
    partitions: tuple[tuple[str, int], ...]
    response: "Said | None" = None


@dataclass(frozen=True, slots=True)
class Said:
    """The errors and hints of a response to Produce or Fetch, by topic and partition.

    ``errors``: error codes. ``hints``: leader and epoch in CurrentLeader, where there is one.
    ``nodes``: the ids in NodeEndpoints.
    """

    errors: dict[tuple[str, int], int] = field(default_factory=dict)
    hints: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()
