import random

import pytest

from bench.statistics import quantile, quantile_interval

_DRAWN = random.Random(5)
_VALUES = [_DRAWN.expovariate(1.0) for _ in range(500)]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_interval_of_a_quantile_is_that_of_resamples(share: float) -> None:
    figures = sorted(quantile(_DRAWN.choices(_VALUES, k=500), share) for _ in range(4000))
    ordered = sorted(_VALUES)
    expected = [ordered.index(figures[at]) for at in (100, 3899)]
    found = [ordered.index(end) for end in quantile_interval(_VALUES, share)]
    assert found == pytest.approx(expected, abs=3)
    assert found[0] < found[1]


def test_a_quantile_of_few_values_is_one_of_them() -> None:
    assert quantile_interval([7.0], 0.99) == (7.0, 7.0)
    assert quantile([1.0, 2.0, 3.0], 0.99) == 3.0
    assert quantile([1.0, 2.0, 3.0], 0.0) == 1.0
