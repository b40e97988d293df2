"""What was seen between clients and a virtual cluster, message by message.

Tested in ``tests/conformance/test_traits.py``.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Seen:
    """A request, or the response to one.

    ``at``: seconds of a clock that never goes back. ``route``: whose broker it was for. ``link``:
    the same for all messages of a connection. ``partitions``: topic and partition of what a
    Produce or Fetch names. ``response``: of a response, what it said; ``None`` of a request.
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
    """What a response to Produce or Fetch says of its partitions, by topic and number.

    ``errors``: error codes. ``hints``: leader and epoch in CurrentLeader, where there is one.
    ``nodes``: the ids in NodeEndpoints.
    """

    errors: dict[tuple[str, int], int] = field(default_factory=dict)
    hints: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    nodes: tuple[int, ...] = ()
