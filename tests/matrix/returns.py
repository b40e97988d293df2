"""``python -m tests.matrix.returns``: how often consumers read records again, with no proxy.

Whatever else is wrong with what they read is printed.

librdkafka asks the leader of each new epoch where the epoch of its own position ended
(OffsetForLeaderEpoch, KIP-320). While it waits, a Fetch answer that was under way may move the
position into the next epoch, and Metadata may have it ask again, for that one. The first answer is
then compared with the second position, looks like a truncated log, and the consumer goes back to
the first record of the epoch (rd_kafka_toppar_handle_OffsetForLeaderEpoch in rdkafka_offset.c).
From librdkafka 2.8 on only one such question is under way at a time.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed
from tests.harness.clients import ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.python_client import CONFLUENT
from tests.matrix.roster import CLIENTS, newest

_TOPICS = 8
_LAYOUT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
_PARTITIONS = tuple(range(len(_LAYOUT)))
_OFTEN = {"metadata.max.age.ms": "2000"}


def main() -> None:
    """Move leaders under one client's consumers and count how often they go back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--broker", default="2.4.1", help="a version that runs with ZooKeeper")
    parser.add_argument("--seconds", type=float, default=240)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-returns-"))
    with ExitStack() as stack:
        cluster = stack.enter_context(
            RealCluster(options.broker, folder=folder / "cluster", apart=True)
        )
        admin = ClusterAdmin(cluster)
        processes = [
            client.start(folder) for client in (CLIENTS[options.client], newest(CONFLUENT))
        ]
        reader, writer = map(stack.enter_context, processes)
        topics = [f"returns-{number}" for number in range(_TOPICS)]
        admin.create_topics(dict.fromkeys(topics, _LAYOUT), {"min.insync.replicas": "2"})
        bootstrap = cluster.direct_bootstrap
        consumers = [
            reader.consume(ConsumerSpec(bootstrap, topic, _PARTITIONS, settings=_OFTEN))
            for topic in topics
        ]
        producers = [
            writer.produce(ProducerSpec(bootstrap, topic, _PARTITIONS, idempotent=True))
            for topic in topics
        ]
        moves, end = 0, time.monotonic() + options.seconds
        while time.monotonic() < end:
            where = [TopicPartition(topic, number) for topic in topics for number in _PARTITIONS]
            moves += len(admin.move_leaders(dict.fromkeys(where)))
        for producer in producers:
            producer.stop()
        back = 0
        for consumer in consumers:
            try:
                check_consumed(admin, consumer, returns=True)
            except AssertionError as error:
                print(error)
            before = dict.fromkeys(_PARTITIONS, -1)
            for record in consumer.consumed:
                back += record.offset <= before[record.partition]
                before[record.partition] = record.offset
        records = sum(len(consumer.consumed) for consumer in consumers)
        print(f"{options.client}: {moves} moves, {records} records, went back {back} times")


if __name__ == "__main__":
    main()
