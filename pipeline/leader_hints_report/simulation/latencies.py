"""Latencies of all records in closed form, from stalls and a base.

A stall of length d has one record that waits for d, the first one, and those that come while it
lasts: ``rate`` a millisecond. One that comes t before the end waits t. So ``1 + rate * (d - x)``
records of a stall wait for more than x. All other records have the latency of the base.
"""

import math
from copy import copy
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from leader_hints_report.simulation.arrays import Floats

#: Shares of the records whose latency is reported.
SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
_P99: Final = NormalDist().inv_cdf(0.99)
#: Halvings of the range in which a percentile is sought.
_STEPS: Final = 60


class Base(NamedTuple):
    """Latencies while no leader moves: lognormal up to p99, beyond it a power of ``tail``."""

    p50: float
    p99: float
    tail: float

    def beyond(self, x: float) -> float:
        """Return the share of records that wait for more than ``x`` milliseconds."""
        if x <= 0:
            return 1.0
        if x >= self.p99:
            return float(0.01 * (self.p99 / x) ** self.tail)
        spread = math.log(self.p99 / self.p50) / _P99
        if not spread:
            return 1.0
        return 1 - NormalDist().cdf(math.log(x / self.p50) / spread)


class Latencies:
    """All records of a simulation. ``first``: whether a stall has a record that waits for all of
    it, or only those that come by its rate."""

    def __init__(
        self, records: float, base: Base, lengths: Floats, rates: Floats, first: Floats
    ) -> None:
        order = np.argsort(lengths)
        self.lengths = lengths[order]
        rates, first = rates[order], first[order]
        self.stalled = float((first + rates * self.lengths).sum())
        self.records = max(records, self.stalled)
        self.base = base
        # Sums over all stalls from each one on, the longest last.
        self._rates = np.append(np.cumsum(rates[::-1])[::-1], 0.0)
        whole = first + rates * self.lengths
        self._whole = np.append(np.cumsum(whole[::-1])[::-1], 0.0)

    def of_records(self, records: float) -> "Latencies":
        """Return the same stalls among so many records."""
        other = copy(self)
        other.records = max(records, self.stalled)
        return other

    def late_by_stall(self, x: float) -> float:
        """Return how many records of stalls wait for more than ``x``."""
        place = int(np.searchsorted(self.lengths, x, side="right"))
        return float(self._whole[place] - x * self._rates[place])

    def late(self, x: float) -> float:
        """Return how many records wait for more than ``x``."""
        return self.late_by_stall(x) + (self.records - self.stalled) * self.base.beyond(x)

    def percentile(self, share: float) -> float:
        """Return what that share of the records does not exceed; of none, 0."""
        if not self.records:
            return 0.0
        most = self.records * (1 - share)
        low, high = 0.0, 1.0
        while self.late(high) > most and high < 1e12:
            low, high = high, high * 2
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.late(middle) > most else (low, middle)
        return high
