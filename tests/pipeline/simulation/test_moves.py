"""Events as batches of moves."""

from typing import Any

import numpy as np
import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import Batch, batches
from tests.pipeline.simulation.fleets import small


def _batches(event: dict[str, Any], **changed: Any) -> list[Batch]:
    fleet = small(event=event, **changed)
    random = np.random.default_rng(1)
    return [*batches(fleet, layout(fleet), fleet.event, fleet.parameters, random)]


def test_a_roll_moves_each_leader_away_and_back() -> None:
    moves = _batches({"kind": "rolling_restart", "pause_s": 120})
    assert [batch.at for batch in moves] == [0, 90_000, 120_000, 210_000, 240_000, 330_000]
    assert sum(len(batch.partitions) for batch in moves) == 2 * 42
    for away, back in zip(moves[::2], moves[1::2], strict=True):
        assert set(away.old.tolist()) == set(back.new.tolist())
        assert (away.new == back.old).all()
        # It has just been started.
        assert (away.started, {back.started}) == (-1, set(back.new.tolist()))
        assert (away.old != away.new).all()


def test_without_a_return_the_next_brokers_have_more_to_give_away() -> None:
    moves = _batches({"kind": "rolling_restart", "pause_s": 120, "return_s": None})
    assert [len(batch.partitions) for batch in moves] == [14, 28, 28]


def test_leaders_move_in_batches() -> None:
    moves = _batches({"kind": "rolling_restart", "pause_s": 120, "batch": 5, "batch_pause_s": 2})
    assert [len(batch.partitions) for batch in moves[:3]] == [5, 5, 4]
    assert [batch.at for batch in moves[:3]] == [0, 2000, 4000]


def test_a_broker_stops_when_its_last_batch_has_left_it() -> None:
    moves = _batches({"kind": "rolling_restart", "pause_s": 120, "batch": 5, "batch_pause_s": 2})
    # 4 s until all have left it, 30 s down, 60 s until they return.
    assert [batch.at for batch in moves[3:7]] == [94_000, 96_000, 98_000, 120_000]
    assert [len(batch.partitions) for batch in moves[3:6]] == [5, 5, 4]


def test_batches_that_take_longer_than_the_pause_are_refused() -> None:
    words = "pause_s 120: with batches of 1, 2 s apart, a broker takes 142 s"
    with pytest.raises(PipelineError, match=words):
        _batches({"kind": "rolling_restart", "pause_s": 120, "batch": 1, "batch_pause_s": 2})
    long = {"kind": "rolling_restart", "pause_s": 142, "batch": 1, "batch_pause_s": 2}
    assert len(_batches(long)) == 2 * 42


def test_a_reassignment_moves_as_many_as_it_says() -> None:
    moves = _batches({"kind": "reassignment", "partitions": 7, "batch": 3})
    assert [len(batch.partitions) for batch in moves] == [3, 3, 1]
    assert all(batch.epoch_before for batch in moves)
    with pytest.raises(PipelineError, match="the fleet has 42"):
        _batches({"kind": "reassignment", "partitions": 43})


def test_preferred_leaders_return() -> None:
    (batch,) = _batches({"kind": "preferred_election"})
    assert (batch.new == layout(small()).replicas[batch.partitions, 0]).all()


def test_a_lost_broker_has_its_leaders_elected_when_its_session_is_over() -> None:
    (batch,) = _batches({"kind": "broker_loss"})
    assert batch.at == small().parameters.session_ms
    assert not batch.alive
    assert set(batch.old.tolist()).isdisjoint(batch.new.tolist())


def test_the_controller_reads_its_state_first() -> None:
    (batch,) = _batches({"kind": "controller_failover"})
    table = small().parameters
    assert batch.at == pytest.approx(table.session_ms + 42 * table.reload_ms)
    (kraft,) = _batches({"kind": "controller_failover"}, cluster={"brokers": 3, "mode": "kraft"})
    assert kraft.at == table.session_ms


@pytest.mark.parametrize("seed", range(6))
def test_all_leaders_of_a_lost_rack_move(seed: int) -> None:
    topics = [{"name": "t", "partitions": 40, "replication": 2}]
    fleet = small(cluster={"brokers": 5, "racks": 2}, topics=topics, event={"kind": "rack_loss"})
    where, random = layout(fleet), np.random.default_rng(seed)
    (batch,) = batches(fleet, where, fleet.event, fleet.parameters, random)
    rack = where.racks[batch.old[0]]
    assert len(batch.partitions) == (where.racks[where.replicas[:, 0]] == rack).sum()


def test_a_rack_is_lost() -> None:
    (batch,) = _batches({"kind": "rack_loss"}, cluster={"brokers": 6, "racks": 3})
    assert len(set(batch.old.tolist())) == 2
    with pytest.raises(PipelineError, match="all brokers are in one rack"):
        _batches({"kind": "rack_loss"}, cluster={"brokers": 3, "racks": 1})
