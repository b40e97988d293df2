"""Faults of connections: where one that is made now may go."""

from leader_hints.core.events import Event
from leader_hints.faults.chosen_faults import ChosenFaults
from leader_hints.faults.fault import Fault, Faults


def _refuse(faults: Faults, **values: object) -> None:
    faults.begin(Fault.model_validate({"action": "refuse", **values}))


def test_a_connection_is_refused_once_where_no_broker_is_left_for_it() -> None:
    faults = Faults()
    done: list[Event] = []
    chosen = ChosenFaults(faults, done.append)
    _refuse(faults, times=1)
    assert not chosen.admits(["a", "b", "c"])
    assert len(done) == 1
    assert chosen.admits(["a", "b", "c"]) == ["a", "b", "c"]


def test_a_broker_that_refuses_costs_the_others_nothing_and_its_fault_is_kept() -> None:
    faults = Faults()
    done: list[Event] = []
    chosen = ChosenFaults(faults, done.append)
    _refuse(faults, routes=["a"], times=1)
    assert chosen.admits(["a", "b"]) == ["b"]
    assert not done
    assert not chosen.admits(["a"])
    assert len(done) == 1
    assert chosen.admits(["a"]) == ["a"]
