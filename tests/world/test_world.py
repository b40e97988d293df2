"""Worlds in which no rule may break, and what makes a broken one readable."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.core.rules import DEFAULT_RULES
from tests.world import product
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


def test_a_failing_world_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    unbound = replace(DEFAULT_RULES, deadline=1.0, link_second=10.0, shared=1.0, grace=1.0)
    monkeypatch.setattr(product, "_RULES", unbound)
    life = next(life for seed in range(10) if (life := live(seed)).broken)
    smaller = shrink(life)
    assert len(smaller.happenings) < len(life.happenings)
    assert smaller.broken[0].rule == life.broken[0].rule
    assert any("BROKEN" in line for line in timeline(smaller))
