"""Figures over seeds."""

from statistics import mean, stdev

import pytest

from leader_hints_report.simulation.arms import Arm, Mode
from leader_hints_report.simulation.figures import interval, over_seeds, percent_name, run
from tests.pipeline.simulation.fleets import small


def test_intervals_are_those_of_student() -> None:
    of = interval([1.0, 2.0, 3.0])
    assert of.mean == 2
    assert of.high - of.mean == pytest.approx(4.30 / 3**0.5)
    assert of.low == 0, "no figure is below 0"
    assert interval([50.0, 51.0, 52.0]).low == pytest.approx(51 - 4.30 / 3**0.5)
    assert interval([5.0]).low == interval([5.0]).high == 5


@pytest.mark.parametrize(("seeds", "t"), [(11, 2.23), (12, 2.201), (20, 2.093), (61, 2.000)])
def test_intervals_of_many_seeds_are_no_narrower_than_students(seeds: int, t: float) -> None:
    values = [1000.0 + seed for seed in range(seeds)]
    around = interval(values).high - mean(values)
    assert around == pytest.approx(t * stdev(values) / seeds**0.5, rel=2e-3)


def test_percentiles_are_named_as_people_do() -> None:
    assert [percent_name(share) for share in (0.5, 0.99, 0.999, 0.9999)] == [
        "p50",
        "p99",
        "p99.9",
        "p99.99",
    ]


def test_an_arm_has_its_figures_over_seeds() -> None:
    arm = Arm(Mode.HINTS, "", small())
    figures = over_seeds(arm, [run(arm, seed) for seed in (1, 2)]).figures
    assert figures["moves"].low == figures["moves"].high == 84
    assert figures["produce p99.9 ms"].low <= figures["produce p99.9 ms"].mean
    assert figures["produce late by 100 ms"].mean >= figures["produce late by 1000 ms"].mean
