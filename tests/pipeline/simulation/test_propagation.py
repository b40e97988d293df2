"""When brokers learn of a batch of moves."""

import itertools
from typing import Any

import numpy as np
import pytest

from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import Batch, batches
from leader_hints_report.simulation.propagation import Propagation, propagate
from tests.pipeline.simulation.fleets import small


def _spread(seed: int = 1, **changed: Any) -> tuple[Batch, Propagation]:
    fleet = small(**changed)
    where, random = layout(fleet), np.random.default_rng(seed)
    batch = next(batches(fleet, where, fleet.event, fleet.parameters, random))
    return batch, propagate(fleet.cluster, where, batch, fleet.parameters, random)


def test_nothing_is_announced_before_all_leaders_are_written() -> None:
    batch, spread = _spread(parameters={"elect_ms": 10})
    assert spread.stops.min() > 10 * len(batch.partitions)
    assert spread.serves.min() > 10 * len(batch.partitions)


def test_a_broker_takes_one_partition_after_the_other_and_longer_when_just_started() -> None:
    fleet = small(parameters={"become_ms": 5, "started_factor": 10, "act_spread": 0})
    where, random = layout(fleet), np.random.default_rng(1)
    away, back = itertools.islice(batches(fleet, where, fleet.event, fleet.parameters, random), 2)
    times = [
        np.ptp(propagate(fleet.cluster, where, batch, fleet.parameters, random).serves)
        for batch in (away, back)
    ]
    held = len(back.partitions)
    assert 0 < times[0] <= 5 * held
    assert 5 * held < times[1] <= 50 * held


def test_metadata_comes_after_the_replicas_with_zookeeper() -> None:
    batch, spread = _spread()
    assert (spread.shows[batch.new] > spread.serves).all()
    assert (spread.shows[batch.old] > spread.stops).all()


def test_metadata_comes_first_with_kraft() -> None:
    batch, spread = _spread(cluster={"brokers": 3, "mode": "kraft"})
    assert (spread.shows[batch.new] < spread.serves).all()
    assert spread.update_bytes == 0


def test_brokers_of_kraft_learn_of_it_together_but_for_the_controller() -> None:
    table = {"kraft_wait_low_ms": 400, "kraft_wait_high_ms": 400, "kraft_apply_ms": 0.1}
    cluster = {"brokers": 3, "mode": "kraft", "controllers": "brokers"}
    _, spread = _spread(cluster=cluster, parameters=table)
    assert sorted((spread.shows > 300).tolist()) == [False, True, True]


def test_update_metadata_has_all_moves_for_all_brokers() -> None:
    batch, spread = _spread(parameters={"update_bytes": 100})
    assert spread.update_bytes == 100 * len(batch.partitions) * 3


def test_followers_are_there_after_the_leader() -> None:
    _, spread = _spread()
    assert (spread.follows >= spread.serves).all()
    assert (spread.leaves <= spread.serves).all()


def test_a_follower_that_asks_too_early_comes_back_after_its_back_off() -> None:
    late = [
        _spread(seed, parameters={"refused_share": 1, "act_spread": 1.5})[1] for seed in range(9)
    ]
    assert max((one.follows - one.serves).max() for one in late) > 900


def test_a_dead_broker_stops_when_it_is_lost() -> None:
    batch, spread = _spread(event={"kind": "broker_loss"})
    assert spread.stops.tolist() == pytest.approx([-batch.at] * len(batch.partitions))
