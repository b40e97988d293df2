"""Counts of what passed on a route; metrics are made of them when they are asked for."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """``requests``: by (API key, version asked, version sent). ``raw``: responses that passed
    without being looked at although they should have been, by reason. ``up`` and ``down``:
    bytes received from clients and from the broker."""

    links: int = 0
    links_open: int = 0
    up: int = 0
    down: int = 0
    requests: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    raw: Counter[str] = field(default_factory=Counter)
