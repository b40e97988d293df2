"""The model's fast form of the hold rules gives what the proxy's own rules give."""

import numpy as np
import pytest

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.core_rules import compare, hold_by_core
from leader_hints_report.simulation.finding import held_until
from leader_hints_report.simulation.parameters import Parameters
from tests.pipeline.simulation.fleets import small

#: The proxy's rules are applied each millisecond.
_REVIEW_MS = 1.0


@pytest.mark.parametrize("kraft", [False, True])
@pytest.mark.parametrize("latest", [80, 300])
def test_the_fast_form_is_the_rules(kraft: bool, latest: float) -> None:
    table, random, many = Parameters(), np.random.default_rng(1), 60
    error, serves = random.uniform(0, 60, many), random.uniform(0, latest, many)
    shows, asked = random.uniform(5, 60, 3), random.uniform(3, 3 + table.ask_ms, many)
    uses = np.ones(many, dtype=np.bool_)
    fast = held_until(Mode.HINTS, error, serves, shows, uses, asked, table, kraft=kraft)
    core = hold_by_core(error, serves, shows, asked, table, kraft=kraft)
    # On the verge of a bound a millisecond decides.
    assert (core.hinted == fast.hinted).mean() > 0.95
    late = (core.until - fast.until)[core.hinted == fast.hinted]
    assert (late > -1e-6).all()
    assert (late < _REVIEW_MS + 1e-6).all()


def test_a_fleets_sample_is_compared() -> None:
    of = compare(small(), 1, 20)
    assert of.holds == 20
    assert of.apart_ms <= _REVIEW_MS
    assert of.differ <= 1
