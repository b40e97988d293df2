"""Worlds in which no rule may break, and defects that they must find."""

import os
import subprocess
import sys

import pytest

from tests.world.mutants import MUTANTS, planted
from tests.world.run import live
from tests.world.shrink import shrink
from tests.world.timeline import timeline

#: Worlds in all, and in each test.
_WORLDS = 50
_IN_EACH = 5
_SEED = 11
_PRINT = f"from tests.world.run import live; print(live({_SEED}).trace)"


@pytest.mark.parametrize("first", range(0, _WORLDS, _IN_EACH))
def test_no_rule_breaks(first: int) -> None:
    for seed in range(first, first + _IN_EACH):
        life = live(seed)
        assert not life.broken, "\n".join(timeline(life))


def test_clients_meet_errors_and_get_hints() -> None:
    seen = [
        one for seed in range(4) for client in live(seed).lived.world.clients for one in client.seen
    ]
    assert sum(one.hint is not None for one in seen) > 10


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.worlds])
def test_a_defect_is_found(name: str) -> None:
    with planted(name):
        assert any(live(seed).broken for seed in range(MUTANTS[name].worlds))


def test_the_same_seed_lives_the_same_world() -> None:
    assert live(_SEED).trace == live(_SEED).trace
    assert live(_SEED).trace != live(_SEED + 1).trace


def test_a_world_does_not_depend_on_the_process() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hashing in ("1", "2")
    }
    assert traces == {live(_SEED).trace + "\n"}


def test_a_failing_world_is_made_smaller() -> None:
    with planted("holds without bound"):
        life = next(life for seed in range(10) if (life := live(seed)).broken)
        smaller = shrink(life)
    assert len(smaller.happenings) < len(life.happenings)
    assert smaller.broken[0].rule == life.broken[0].rule
    assert any("BROKEN" in line for line in timeline(smaller))
