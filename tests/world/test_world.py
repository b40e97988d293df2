"""Worlds in which no rule may break, and what makes a broken one readable."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.core.rules import DEFAULT_RULES
from tests.world import product
from tests.world.happenings import SETTLING_FROM, Happening, profile
from tests.world.model.releases import FETCH, PRODUCE
from tests.world.rules import Lived, hint_is_news, hint_is_not_over, hint_was_true, views_go_forward
from tests.world.run import live
from tests.world.shrink import shrink
from tests.world.timeline import timeline
from tests.world.world import END, World

#: Worlds in all, and in each test.
_WORLDS = 300
#: More of them, in half of which errors that can carry no hint are held, too.
_SETTLING = range(SETTLING_FROM + 60, SETTLING_FROM + 100)
_IN_EACH = 10
_SEED = 11
_PRINT = f"from tests.world.run import live; print(live({_SEED}).trace)"


@pytest.mark.parametrize("first", [*range(0, _WORLDS, _IN_EACH), *_SETTLING[::_IN_EACH]])
def test_no_rule_breaks(first: int) -> None:
    for seed in range(first, first + _IN_EACH):
        life = live(seed)
        assert not life.broken, "\n".join(timeline(life))


@pytest.mark.parametrize("seed", range(2))
def test_a_broker_that_is_cut_off_for_ever_brings_no_former_leader_back(seed: int) -> None:
    """Without topic ids its lower epochs may be of a recreated topic, but the others disagree."""
    of = replace(
        profile(seed),
        kraft=False,
        ids=False,
        releases=("2.6",) * 3,
        lag=0.02,
        fronted=(1, 2, 3),
        sidecars=False,
        hidden=(),
        idle=0,
        clients=(("java", PRODUCE), ("franz-go", FETCH), ("librdkafka", PRODUCE), ("java", FETCH)),
    )
    moves = [Happening(3.1 + 0.9 * n, "move", n % 2, 1 + n // 2 % 2) for n in range(8)]
    world = World(seed, of, [Happening(3.0, "stale", 0, 3, END), *moves], proxied=True)
    world.run()
    lived = Lived(world, lambda luck, only: world, lambda luck, only: world)
    for rule in (views_go_forward, hint_was_true, hint_is_not_over, hint_is_news):
        assert not [*rule(lived)]
    assert sum(one.hint is not None for client in world.clients for one in client.seen) > 10


def test_a_client_that_asks_the_wrong_broker_all_the_time_meets_no_error_of_a_move() -> None:
    assert not live(372).broken


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(463, id="Java asks by an id that a broker has not learnt"),
        pytest.param(493, id="a broker is stopped while it is fenced"),
        pytest.param(1230, id="brokers with synthetic ids are upgraded to 3.7"),
        pytest.param(1300, id="a Fetch by id waits for its names"),
        pytest.param(1494, id="a leader does not know the topic yet"),
        pytest.param(1728, id="a client asks a broker that lags for Metadata"),
        pytest.param(1764, id="a Fetch by an unknown id does not wait"),
        pytest.param(10726, id="a link was made before synthetic ids were offered"),
        pytest.param(61708, id="a partition of a recreated topic is added later"),
        pytest.param(63998, id="Java gets a hint to a leader that has just been started"),
        pytest.param(100175, id="a fetch session is older than the process"),
        pytest.param(120136, id="a broker that is fenced goes on to serve a client"),
    ],
)
def test_what_once_broke_a_rule_breaks_none(seed: int) -> None:
    assert not live(seed).broken


def test_clients_meet_errors_and_get_hints() -> None:
    seen = [
        one for seed in range(4) for client in live(seed).lived.world.clients for one in client.seen
    ]
    assert sum(one.hint is not None for one in seen) > 10


def test_errors_that_can_carry_no_hint_are_settled_where_the_world_says_so() -> None:
    worlds = [live(SETTLING_FROM + number).lived.world for number in range(8)]
    settled = {
        of.profile.settle: sum(proxy.settled["settled"] for proxy in of.proxies) for of in worlds
    }
    assert settled[True] > 0
    assert not any(proxy.settled for of in worlds if not of.profile.settle for proxy in of.proxies)


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
