"""A cluster with one listener: the brokers' own requests pass through the proxies too."""

from collections.abc import Callable
from pathlib import Path

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.relay import Conversation
from tests.real.names import JAVA
from tests.real.sandwich import API_VERSIONS, Sandwich

MOVES = 3
PARTITIONS = (0, 1, 2)


def of_broker(talk: Conversation) -> bool:
    """Chooses the connections of replica fetchers and of controller and brokers.

    Not those without an answer: while the cluster starts some call a broker that is not up yet.
    """
    names = {request.client_id or "" for request in talk.requests()}
    return bool(talk.down) and any(name.startswith("broker-") or name.isdecimal() for name in names)


def test_replicas_are_left_alone(clients: Callable[[str], ClientProcess], tmp_path: Path) -> None:
    cluster = RealCluster("3.6.2", folder=tmp_path / "cluster", listeners="single")
    with Sandwich(cluster, tmp_path) as sandwich, cluster:
        admin = ClusterAdmin(cluster)
        topic = "alone"
        admin.create_topic(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "3"})
        java = clients(JAVA)
        consumer = java.consume(ConsumerSpec(cluster.bootstrap, topic, PARTITIONS))
        producer = java.produce(ProducerSpec(cluster.bootstrap, topic, PARTITIONS, idempotent=True))
        for _ in range(MOVES):
            producer.wait_acked(10)
            admin.move_leaders({TopicPartition(topic, number): None for number in PARTITIONS})
        producer.wait_acked(10)
        check_produced(admin, producer.stop())
        check_consumed(admin, consumer)
        consumer.stop()

        assert sandwich.fleet.events("hint_given")
        assert sandwich.wait_unchanged(of_broker, API_VERSIONS) >= len(cluster.brokers)
        for broker in cluster.brokers.values():
            assert "Shrinking ISR" not in broker.log.read_text()
