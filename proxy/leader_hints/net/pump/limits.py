"""What links may take up, and what they take up now.

Tested in ``tests/net/pump/test_link_times.py``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class PumpLimits:
    """See the settings of these names. Times in seconds, inf: no limit."""

    request_bytes: int
    requests_in_flight: int
    queued_bytes: int
    first_bytes: float = math.inf
    idle: float = math.inf
    linger: float = math.inf


class Load(NamedTuple):
    """What all links have now: requests that await a response, bytes that wait to be sent.

    ``exchanges``: in parts that add up, each of which is a short step: there may be many links.
    """

    exchanges: Iterator[int]
    queued_bytes: int
