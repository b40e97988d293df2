"""Record real clients again; needs Java and Maven as the tests on real brokers do."""

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.java import java_clients
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON, python_clients
from tests.harness.relay import Relay
from tests.recordings import Recorded, save

_BROKER = "3.6.2"
_CLIENTS: Mapping[str, Callable[[Path], ClientProcess]] = {
    "java-3.9.1": lambda folder: java_clients(folder, "3.9.1"),
    "java-3.5.2": lambda folder: java_clients(folder, "3.5.2"),
    "confluent-kafka": lambda folder: python_clients(folder, CONFLUENT),
    "kafka-python": lambda folder: python_clients(folder, KAFKA_PYTHON),
}
_PARTITIONS = (0, 1)
_SOME = 10


def main() -> None:
    """Run the command."""
    with tempfile.TemporaryDirectory(prefix="leader-hints-recordings-") as made:
        folder = Path(made)
        with RealCluster(_BROKER, "kraft", folder=folder, brokers=2) as cluster:
            for client, start in _CLIENTS.items():
                connections = _record(cluster, client, start, folder)
                save(client, connections)
                print(f"{client}: {len(connections)} connections")


def _record(
    cluster: RealCluster, client: str, start: Callable[[Path], ClientProcess], folder: Path
) -> list[Recorded]:
    relays = [Relay(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with contextlib.ExitStack() as stack:
        for relay in relays:
            stack.enter_context(relay)
        with start(folder) as process:
            _work(cluster, f"of-{client}", process)
    talks = [talk for relay in relays for talk in relay.conversations]
    return [Recorded(bytes(talk.up), bytes(talk.down)) for talk in talks]


def _work(cluster: RealCluster, topic: str, process: ClientProcess) -> None:
    admin = ClusterAdmin(cluster)
    admin.create_topic(topic, [[1, 2], [2, 1]])
    where = cluster.bootstrap
    producer = process.produce(ProducerSpec(where, topic, _PARTITIONS, rate=50))
    consumer = process.consume(ConsumerSpec(where, topic, _PARTITIONS))
    producer.wait_acked(_SOME)
    consumer.wait_count(_SOME)
    admin.move_leader(topic)
    producer.wait_acked(_SOME)
    producer.stop()
    consumer.wait_count(len(producer.acked))
    consumer.stop()
    process.produce(ProducerSpec(where, topic, acks="0", count=3)).wait_done()
    process.produce(ProducerSpec(where, topic, transaction=2, count=6)).wait_done()
    member = process.consume(
        ConsumerSpec(where, topic, _PARTITIONS, group="group", committed_only=True)
    )
    member.wait_count(_SOME)
    member.stop()


if __name__ == "__main__":
    main()
