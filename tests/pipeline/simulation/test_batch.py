"""What a batch costs."""

from typing import Any

import numpy as np
import pytest

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.batch import Cost, Course, Met, Stalls, cost
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import batches
from leader_hints_report.simulation.propagation import propagate
from tests.pipeline.simulation.fleets import small


def _drawn(mode: Mode, **changed: object) -> tuple[Course, Cost, Met]:
    fleet = small(**changed)
    where, random = layout(fleet), np.random.default_rng(1)
    batch = next(batches(fleet, where, fleet.event, fleet.parameters, random))
    spread = propagate(fleet.cluster, where, batch, fleet.parameters, random)
    course = Course(fleet.cluster, where, batch, spread, mode, fleet.parameters)
    return course, *cost(course, np.random.default_rng(2))


def _cost(mode: Mode = Mode.NO_PROXY, **changed: object) -> tuple[Course, Cost]:
    return _drawn(mode, **changed)[:2]


def test_no_pair_has_two_stalls() -> None:
    # So many records that each client meets each of its partitions.
    clients = [{"name": "p", "role": "producer", "count": 2, "records_per_second": 1e6}]
    course, of = _cost(clients=clients)
    assert len(of.produce.lengths) == 2 * len(course.batch.partitions)


@pytest.mark.parametrize("idempotent", [True, False])
def test_produce_errors_of_idempotent_producers_alone_are_settled(idempotent: bool) -> None:
    client = {"name": "p", "role": "producer", "count": 2, "records_per_second": 1e6}
    clients = [{**client, "version": "3.6.2", "idempotent": idempotent}]
    held = {
        mode: _drawn(mode, clients=clients)[2].counts.held_ms for mode in (Mode.HINTS, Mode.SETTLED)
    }
    assert held[Mode.HINTS] < 1e-9
    assert (held[Mode.SETTLED] > 1) is idempotent


def test_a_client_that_sends_little_meets_few_partitions() -> None:
    clients = [{"name": "p", "role": "producer", "records_per_second": 0.1}]
    _, of = _cost(clients=clients)
    # Its first record tells it of all of its topic's moves.
    assert len(of.produce.lengths) == 3


def test_a_client_without_a_record_before_it_asks_anyway_meets_nothing() -> None:
    # Each sends a record an hour.
    clients = [{"name": "p", "role": "producer", "count": 200, "records_per_second": 200 / 3600}]
    course, of, met = _drawn(Mode.NO_PROXY, clients=clients)
    topics = [30, 6, 6]
    moved = np.bincount(course.layout.topic[course.batch.partitions])
    # Five minutes of its records to partitions that moved.
    expected = 200 * sum(moved / topics) * 300 / 3600
    assert len(of.produce.lengths) == pytest.approx(expected, rel=0.5)
    assert met.counts.errors == pytest.approx(len(of.produce.lengths), rel=0.5)
    assert len(met.asks.many) == len(of.produce.lengths)


@pytest.mark.parametrize("linger_ms", [0, 200, 1000])
def test_a_client_that_lingers_sends_to_some_moved_partition_all_the_time(linger_ms: float) -> None:
    clients = [
        {
            "name": "p",
            "role": "producer",
            "count": 100,
            "records_per_second": 30_000,
            "linger_ms": linger_ms,
            "topics": ["t"],
        }
    ]
    course, _, met = _drawn(Mode.NO_PROXY, clients=clients, parameters={"busy_ms": 0})
    # One of them sends a batch to each of 30 partitions every 100 ms and its linger, and 10 of
    # these move: it meets the move within a tenth of that.
    moved = course.batch.partitions[course.batch.partitions < 30]
    assert len(moved) == 10
    met_at = np.median(met.asks.first) - np.median(course.spread.refuses)
    assert met_at < (100 + linger_ms) / 10 + 10


def test_all_records_that_gathered_wait_for_a_stall() -> None:
    client = {"name": "p", "role": "producer", "records_per_second": 3000, "topics": ["t"]}
    _, of = _cost(clients=[{**client, "linger_ms": 500}])
    # 100 a second in each of 30 partitions.
    assert of.produce.first.tolist() == pytest.approx([51] * len(of.produce.first))
    refused = of.consume.first[: len(of.produce.first)]
    assert refused.tolist() == of.produce.first.tolist()


def test_clients_of_topics_without_moves_have_no_stall() -> None:
    clients = [{"name": "p", "role": "producer", "records_per_second": 5, "topics": ["u"]}]
    event = {"kind": "reassignment", "partitions": 1, "batch": 1}
    course, of = _cost(clients=clients, event=event)
    (topic,) = course.layout.topic[course.batch.partitions]
    assert len(of.produce.lengths) == (1 if topic else 0)


def test_records_wait_at_least_until_they_are_acknowledged() -> None:
    course, of = _cost()
    pairs = len(of.produce.lengths)
    assert len(of.consume.lengths) == pairs + len(course.batch.partitions)
    assert (of.consume.lengths[:pairs] >= of.produce.lengths - 1e-9).all()


def test_no_record_is_counted_both_as_refused_and_as_unread() -> None:
    course, of = _cost()
    pairs = len(of.produce.lengths)
    window = of.consume.lengths[pairs:]
    rates = course.layout.rate[course.layout.topic[course.batch.partitions]]
    unread = of.consume.rates[pairs:] * window
    assert (unread <= rates * window + 1e-9).all()


def test_only_proxies_hold_and_only_clients_that_use_hints_get_them() -> None:
    _, of, without = _drawn(Mode.NO_PROXY)
    assert (without.counts.held_ms, without.counts.hinted, len(of.behind.lengths)) == (0, 0, 0)
    _, _, hints = _drawn(Mode.HINTS)
    assert hints.counts.hinted > 0
    assert hints.counts.held_ms > 0
    assert len(hints.holds.move) > 0
    assert len(without.holds.move) == 0
    java = [{"name": "p", "role": "producer", "version": "3.6.2", "records_per_second": 100}]
    _, _, old = _drawn(Mode.HINTS, clients=java)
    assert old.counts.hinted == 0


def test_no_dead_broker_gives_a_hint() -> None:
    _, of, met = _drawn(Mode.HINTS, event={"kind": "broker_loss"})
    assert met.counts.hinted == 0
    assert of.produce.lengths.min() > 10_000


def test_records_of_partitions_that_stay_wait_behind_a_held_response() -> None:
    event = {"kind": "reassignment", "partitions": 12, "batch": 12}
    clients = [{"name": "q", "role": "producer", "version": "3.9", "records_per_second": 1e5}]
    late = {"late_metadata_ms": 50}
    _, of = _cost(Mode.HINTS, event=event, clients=clients, parameters=late)
    assert len(of.behind.lengths) > 0
    assert not of.behind.first.any()


@pytest.mark.parametrize(
    ("software", "version"),
    [("librdkafka", "2.3"), ("kafka-python", "2.0"), ("apache-kafka-java", "3.6.2")],
)
def test_consumers_that_use_no_hints_are_served_no_sooner_with_them(
    software: str, version: str
) -> None:
    consumer = {"name": "c", "role": "consumer", "software": software, "version": version}
    changed: dict[str, Any] = {
        "clients": [consumer],
        # The epoch rises before, so they have asked for Metadata when the leader moves.
        "event": {"kind": "reassignment", "batch": 42},
        "parameters": {"proxy_ms": 0},
    }
    (_, without), (_, hints) = (_cost(mode, **changed) for mode in (Mode.NO_PROXY, Mode.HINTS))
    assert hints.recoveries.tolist() == without.recoveries.tolist()


@pytest.mark.parametrize("version", ["2.4", "v2.4.1", "2.0", "1.1", "0.11.0"])
def test_brokers_up_to_2_4_keep_long_polls(version: str) -> None:
    _, old = _cost(cluster={"brokers": 3, "version": version})
    _, new = _cost(cluster={"brokers": 3, "version": "2.8"})
    assert old.consume.lengths.max() > 400 > new.consume.lengths.max()


def test_without_a_back_off_newer_producers_wait_no_longer() -> None:
    client = {"name": "p", "role": "producer", "records_per_second": 3000, "count": 10}
    late = {"act_spread": 2}
    (_, old), (_, new) = (
        _cost(Mode.NO_BACKOFF, clients=[{**client, "version": version}], parameters=late)
        for version in ("3.6", "3.9")
    )
    assert new.produce.lengths.tolist() == old.produce.lengths.tolist()


def test_no_stalls_are_joined_to_none() -> None:
    assert len(Stalls.joined([]).lengths) == 0


def test_what_a_lost_broker_followed_waits_for_acks_all_and_for_consumers() -> None:
    loss = {"kind": "broker_loss"}
    clients: list[dict[str, Any]] = [
        {"name": "p", "role": "producer", "count": 2, "records_per_second": 1e4, "acks": "all"},
        {"name": "c", "role": "consumer", "topics": ["t"]},
    ]
    one = [clients[0] | {"acks": "1"}, clients[1]]
    course, of = _cost(clients=clients, event=loss)
    _, alone = _cost(clients=one, event=loss)

    # Three replicas on three brokers: it has one of each partition, and leads a third of them.
    led, followed = len(course.batch.partitions), len(course.batch.followed)
    assert (led, followed) == (14, 28)
    assert len(alone.produce.lengths) == 2 * led
    assert len(of.produce.lengths) == 2 * (led + followed)
    session = course.table.session_ms
    assert of.produce.lengths[2 * led :] == pytest.approx(session, rel=0.1)

    # Readers wait there for records of either: those of their topic.
    topic = course.layout.topic[course.batch.followed]
    assert len(alone.consume.lengths) - len(alone.produce.lengths) == led + sum(topic == 0)
    assert alone.consume.lengths[-sum(topic == 0) :] == pytest.approx(session, rel=0.1)


def test_a_move_has_nothing_wait_at_other_partitions() -> None:
    course, _ = _cost(event={"kind": "reassignment"})
    assert len(course.batch.followed) == 0
