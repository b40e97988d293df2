"""What lanes come to, without running them."""

import pytest

from tests.matrix.brokers import BROKERS
from tests.matrix.features import Feature
from tests.matrix.lanes import lanes_for, results_of
from tests.matrix.roster import CLIENTS, newest
from tests.matrix.watch import Used

JAVA = newest("java")


def test_a_lane_that_was_not_reached_has_not_passed() -> None:
    results = results_of(lanes_for(JAVA, 1))
    assert results
    assert all(results.values())


def test_a_failure_of_one_side_leaves_the_other_unknown() -> None:
    lanes = lanes_for(JAVA, 1)
    for lane in lanes:
        lane.ended = True
    (grouped,) = [lane for lane in lanes if lane.consumes is Feature.GROUP]
    grouped.results[Feature.ACKS_ALL] = "lost"
    failed = {feature: error for feature, error in results_of(lanes).items() if error}
    assert failed == {Feature.ACKS_ALL: "lost", Feature.GROUP: "not known: lost"}


def test_every_client_runs_all_that_it_has() -> None:
    around = {Feature.END_OFFSETS, Feature.ADMIN, Feature.HINTS, Feature.USE}
    for client in CLIENTS.values():
        lanes = lanes_for(client, 1)
        shown = {lane.kind.produces for lane in lanes} | {lane.consumes for lane in lanes}
        assert shown | around | client.lacks.keys() == set(Feature)


@pytest.mark.parametrize(
    ("family", "broker", "used"),
    [
        ("java", "3.6.2-zk", Used(produce=True, fetch=True)),
        ("java", "2.4.1-zk", Used(produce=True, fetch=True)),
        ("confluent-kafka", "2.4.1-zk", Used(produce=True, fetch=False)),
        ("kafka-python", "2.4.1-zk", Used(produce=False, fetch=True)),
        ("confluent-kafka", "2.8.2-zk", Used(produce=True, fetch=True)),
        ("kafka-python", "3.6.2-zk", Used(produce=False, fetch=True)),
        ("kafka-python", "3.7.2-zk", Used(produce=False, fetch=False)),
        ("franz-go", "3.7.2-zk", Used(produce=True, fetch=False)),
        ("aiokafka", "3.6.2-zk", Used(produce=False, fetch=False)),
    ],
)
def test_which_hints_are_used_where(family: str, broker: str, used: Used) -> None:
    assert Used.expected(newest(family), BROKERS[broker]) == used
