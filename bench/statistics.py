"""Figures from samples, without any assumption of how they are distributed."""

import random
from collections.abc import Iterable, Sequence
from statistics import median

_RESAMPLES = 2000
_SEED = 951


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed."""
    return sorted(values)[_rank(len(values), share) - 1]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median by the bootstrap (percentile method).

    The resamples are drawn from a fixed seed: the same samples give the same interval.
    """
    drawn = random.Random(_SEED)
    return _middle(median(drawn.choices(values, k=len(values))) for _ in range(_RESAMPLES))


def quantile_interval(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return the 95 % interval of :func:`quantile` by the bootstrap, without drawing each value.

    The value that a resample has at rank k is found in the sorted values where the k-th smallest of
    n uniform draws is, which has the distribution Beta(k, n - k + 1): one draw in place of n.
    """
    ordered, n = sorted(values), len(values)
    rank = _rank(n, share)
    drawn = random.Random(_SEED)
    places = (n * drawn.betavariate(rank, n - rank + 1) for _ in range(_RESAMPLES))
    return _middle(ordered[min(int(place), n - 1)] for place in places)


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two medians, resampled independently."""
    drawn = random.Random(_SEED)
    return _middle(
        median(drawn.choices(above, k=len(above))) / median(drawn.choices(below, k=len(below)))
        for _ in range(_RESAMPLES)
    )


def _middle(figures: Iterable[float]) -> tuple[float, float]:
    """Return between which of the resamples' figures 95 % of them lie."""
    ordered = sorted(figures)
    return ordered[int(0.025 * _RESAMPLES)], ordered[int(0.975 * _RESAMPLES) - 1]


def _rank(n: int, share: float) -> int:
    """Return which of ``n`` values, from 1 on, at least ``share`` of them do not exceed."""
    return max(1, min(n, -int(-share * n // 1)))
