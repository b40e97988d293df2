"""A client that the proxy does not know as a user of hints is served as by its broker.

@platformatic/kafka 1.35 takes Fetch 16 but misreads its tagged fields. When it was offered that
version, its consumer ended at the first hint.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import maven, node
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet
from tests.real.names import CONFLUENT, ZK_36

PARTITIONS = range(12)
RECORDS = 2000
RATE = 200
#: Records that are acknowledged between two moves of all leaders.
BETWEEN_MOVES = 200
NAME = "platformatic-kafka"


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_its_consumer_reads_all_records_while_leaders_move(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    need_npm()
    (topic,) = new_topics("node", partitions=len(PARTITIONS))
    partitions = [TopicPartition(topic, partition) for partition in PARTITIONS]
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with (
        ProxyFleet.before(routes, tmp_path) as fleet,
        node.node_clients(tmp_path) as process,
    ):
        wanted = ProducerSpec(cluster.bootstrap, topic, PARTITIONS, rate=RATE, count=RECORDS)
        consumer = process.consume(
            ConsumerSpec(cluster.bootstrap, topic, PARTITIONS, group=f"group-{topic}")
        )
        producer = clients(CONFLUENT).produce(wanted)
        for moves in range(1, RECORDS // BETWEEN_MOVES):
            producer.wait_acked_in_all(moves * BETWEEN_MOVES)
            admin.move_leaders(dict.fromkeys(partitions))
        producer.wait_done()
        sent = {(outcome.partition, outcome.seq) for outcome in producer.acked}
        try:
            consumer.wait_consumed(
                lambda records: {(r.partition, r.seq) for r in records} >= sent,
                f"all {len(sent)} records",
            )
        finally:
            read = {(r.partition, r.seq) for r in consumer.consumed}
            print(f"{len(read)} of {len(sent)} records read", file=sys.stderr)
        consumer.stop()

        assert len(sent) == RECORDS
        (seen,) = [
            client
            for proxy in fleet.processes
            for client in proxy.status()["clients"]
            if client["software"] == NAME
        ]
        assert (seen["version"], seen["uses"]) == (node.version(), None)


def need_npm() -> None:
    """Skip without npm, but fail in CI."""
    missing = node.missing_npm()
    if missing is not None:
        if maven.in_ci():
            pytest.fail(missing)
        pytest.skip(missing)
