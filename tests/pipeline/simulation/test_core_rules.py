"""The model's fast form of the hold rules gives what the proxy's own rules give."""

import numpy as np
import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.core_rules import compare, hold_by_core
from leader_hints_report.simulation.finding import held_until
from leader_hints_report.simulation.parameters import Parameters
from tests.pipeline.simulation.fleets import small

#: The proxy's rules are applied each millisecond.
_REVIEW_MS = 1.0


def _columns(latest: float) -> tuple[Floats, Floats, Floats, Floats]:
    table, random, many = Parameters(), np.random.default_rng(1), 60
    error, serves = random.uniform(0, 60, many), random.uniform(0, latest, many)
    shows, asked = random.uniform(5, 60, 3), random.uniform(3, 3 + table.ask_ms, many)
    return error, serves, shows, asked


@pytest.mark.parametrize("kraft", [False, True])
@pytest.mark.parametrize("latest", [80, 300])
@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH])
@pytest.mark.parametrize("settles", [False, True])
def test_the_fast_form_is_the_rules(kraft: bool, latest: float, key: ApiKey, settles: bool) -> None:
    error, serves, shows, asked = _columns(latest)
    table, settled = Parameters(), np.full(len(error), settles)
    mode = Mode.SETTLED if settles else Mode.HINTS
    fast = held_until(mode, error, serves, shows, ~settled, settled, asked, table, kraft=kraft)
    core = hold_by_core(error, serves, shows, asked, table, kraft=kraft, key=key, settles=settles)
    # On the verge of a bound a millisecond decides.
    assert (core.hinted == fast.hinted).mean() > 0.95
    late = (core.until - fast.until)[core.hinted == fast.hinted]
    assert (late > -1e-6).all()
    assert (late < _REVIEW_MS + 1e-6).all()


@pytest.mark.parametrize(
    "bounds",
    [
        {"deadline_ms": 500},
        {"deadline_ms": 300, "link_hold_ms": 250},
        {"deadline_ms": 100, "link_hold_ms": 40},
        {"deadline_ms": 100, "link_hold_ms": 0},
        {"deadline_ms": 0, "link_hold_ms": 100},
    ],
    ids=str,
)
@pytest.mark.parametrize("kraft", [False, True])
@pytest.mark.parametrize("settles", [False, True])
def test_the_bounds_are_those_of_the_rules(
    bounds: dict[str, float], kraft: bool, settles: bool
) -> None:
    error, serves, shows, asked = _columns(900)
    table, settled = Parameters(**bounds), np.full(len(error), settles)
    mode = Mode.SETTLED if settles else Mode.HINTS
    fast = held_until(mode, error, serves, shows, ~settled, settled, asked, table, kraft=kraft)
    core = hold_by_core(error, serves, shows, asked, table, kraft=kraft, settles=settles)
    same = core.hinted == fast.hinted
    assert same.mean() > 0.95
    assert np.abs(core.until - fast.until)[same].max() < _REVIEW_MS + 1e-6


def test_a_settled_error_waits_for_the_last_of_many_brokers() -> None:
    one, shows = np.zeros(1), np.linspace(5, 60, 200)
    of = hold_by_core(one, one, shows, one, Parameters(), kraft=False, settles=True)
    assert 60 <= of.until[0] - 0.3 <= 60 + _REVIEW_MS + 1e-6
    assert not of.hinted.any()


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
def test_a_fleets_sample_is_compared(mode: str) -> None:
    fleet = small(cluster={"brokers": 3, "mode": mode})
    compared = compare(fleet, 1, 20, [Mode.HINTS, Mode.SETTLED])
    assert [of.kind for of in compared] == [
        "Produce with hints",
        "Fetch with hints",
        "Produce settled",
        "Fetch settled",
    ]
    for of in compared:
        assert of.holds == 20
        assert of.apart_ms <= _REVIEW_MS
        assert of.differ <= 1


def test_errors_are_settled_only_in_that_mode() -> None:
    assert [of.kind for of in compare(small(), 1, 5, [Mode.HINTS])] == [
        "Produce with hints",
        "Fetch with hints",
    ]
