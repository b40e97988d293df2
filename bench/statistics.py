"""Figures from samples, without any assumption of how they are distributed."""

import random
from collections.abc import Callable, Sequence
from statistics import median

_RESAMPLES = 2000
_SEED = 951

Figure = Callable[[Sequence[float]], float]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def interval(values: Sequence[float], figure: Figure = median) -> tuple[float, float]:
    """Return the 95 % interval of a figure by the bootstrap (percentile method).

    The resamples are drawn from a fixed seed: the same samples give the same interval.
    """
    drawn = random.Random(_SEED)
    figures = sorted(figure(drawn.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return figures[int(0.025 * _RESAMPLES)], figures[int(0.975 * _RESAMPLES) - 1]


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two medians, resampled independently."""
    drawn = random.Random(_SEED)
    ratios = sorted(
        median(drawn.choices(above, k=len(above))) / median(drawn.choices(below, k=len(below)))
        for _ in range(_RESAMPLES)
    )
    return ratios[int(0.025 * _RESAMPLES)], ratios[int(0.975 * _RESAMPLES) - 1]
