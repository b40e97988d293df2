"""The layout: where replicas are, and which clients are in which topic."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints_report.simulation.clients import NAMES
from leader_hints_report.simulation.layout import layout
from tests.pipeline.simulation.fleets import small


@settings(max_examples=40, deadline=None)
@given(
    brokers=st.integers(3, 12),
    racks=st.integers(1, 6),
    partitions=st.integers(1, 50),
    replication=st.integers(2, 3),
)
def test_replicas_are_on_different_brokers(
    brokers: int, racks: int, partitions: int, replication: int
) -> None:
    topics = [{"name": "t", "partitions": partitions, "replication": replication}]
    where = layout(small(cluster={"brokers": brokers, "racks": racks}, topics=topics))
    assert where.replicas.shape == (partitions, replication)
    assert all(len(set(row)) == replication for row in where.replicas.tolist())
    assert where.replicas.max() < brokers


def test_replicas_are_in_different_racks() -> None:
    where = layout(small(cluster={"brokers": 9, "racks": 3}))
    racks = where.racks[where.replicas]
    assert all(len(set(row)) == 3 for row in racks.tolist())


@pytest.mark.parametrize(
    ("brokers", "racks", "replication"), [(4, 3, 2), (5, 2, 2), (5, 3, 3), (7, 3, 3), (5, 2, 4)]
)
def test_replicas_are_in_as_many_racks_as_can_be(
    brokers: int, racks: int, replication: int
) -> None:
    topics = [{"name": "t", "partitions": 6 * brokers, "replication": replication}]
    where = layout(small(cluster={"brokers": brokers, "racks": racks}, topics=topics))
    assert all(len(set(row)) == replication for row in where.replicas.tolist())
    for row in where.racks[where.replicas].tolist():
        assert len(set(row)) == min(racks, replication)


def test_leaders_are_spread_evenly() -> None:
    where = layout(small(cluster={"brokers": 6, "racks": 3}))
    led = np.bincount(where.replicas[:, 0], minlength=6)
    assert led.max() - led.min() <= 1


def test_all_records_are_sent_to_some_partition() -> None:
    where = layout(small())
    # Two groups of producers in each of three topics: t, u-0 and u-1.
    assert where.records_per_ms * 1000 == pytest.approx(3 * 550)
    assert where.producers.topic.tolist() == [0, 1, 2, 0, 1, 2]
    assert where.producers.members.tolist() == [2, 2, 2, 1, 1, 1]


def test_clients_are_in_the_topics_that_they_name() -> None:
    clients = [{"name": "c", "role": "consumer", "topics": ["u"]}]
    assert layout(small(clients=clients)).consumers.topic.tolist() == [1, 2]


def test_a_back_off_that_is_set_counts() -> None:
    clients = [{"name": "c", "role": "consumer", "retry_backoff_ms": 7}]
    of = layout(small(clients=clients)).consumers
    assert of.backoff.tolist() == [7, 7, 7]
    # Java asks for Metadata no sooner after its last time than this.
    assert of.fetch_refresh.tolist() == of.refresh.tolist() == [7, 7, 7]


@pytest.mark.parametrize("software", ["franz-go", "librdkafka", "sarama"])
def test_a_back_off_is_no_pause_of_metadata_where_that_is_another_setting(software: str) -> None:
    client = {"name": "c", "role": "consumer", "software": software, "version": "1.17"}
    own = layout(small(clients=[client])).consumers
    of = layout(small(clients=[{**client, "retry_backoff_ms": 7}])).consumers
    assert of.backoff.tolist() == [7, 7, 7]
    assert of.refresh.tolist() == own.refresh.tolist()
    assert of.fetch_refresh.tolist() == own.fetch_refresh.tolist()


@pytest.mark.parametrize("software", NAMES)
def test_a_clients_own_back_off_changes_nothing(software: str) -> None:
    client = {"name": "c", "role": "consumer", "software": software, "version": "1.17"}
    own = layout(small(clients=[client])).consumers
    of = layout(small(clients=[{**client, "retry_backoff_ms": own.backoff[0]}])).consumers
    for column in fields(own):
        assert (getattr(of, column.name) == getattr(own, column.name)).all(), column.name
