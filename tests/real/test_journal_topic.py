"""The journal in a topic that takes less at once than librdkafka sends."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from leader_hints.net.journal.journal_topic import KafkaSink
from leader_hints.net.journal.sink import LinesLostError
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.waiting import until
from tests.real.names import ZK_36

_MOST_BYTES = 8192
_LINES = [b"%0100d" % number for number in range(3000)]


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_a_storm_of_lines_is_written_whatever_the_topic_takes_at_once(
    cluster: RealCluster, admin: ClusterAdmin
) -> None:
    """Nothing was written any more: librdkafka sent the same again, which the broker refused."""
    node = next(iter(cluster.brokers))
    settings = {"max.message.bytes": str(_MOST_BYTES)}
    admin.create_topic("small-journal", [[node]], settings)
    properties = {"compression.type": "none"}
    sink = KafkaSink(cluster.direct_bootstrap, "small-journal", "c", "car", properties)
    sink.write(_LINES)
    large = b"x" * _MOST_BYTES
    with pytest.raises(LinesLostError, match="Message size too large") as lost:
        sink.write([large, b"last"])
    assert lost.value.first == large
    sink.write([large, b"last"])
    sink.close()

    assert _read(cluster, b"last") == [*_LINES, b"last"]


def _read(cluster: RealCluster, last: bytes) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": cluster.direct_bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("small-journal", 0, 0)])
    read: list[bytes | None] = []

    def arrived() -> bool:
        messages = consumer.consume(2000, timeout=0.5)
        read.extend(message.value() for message in messages if message.error() is None)
        return last in read

    until(arrived, "all lines arrive", 60.0)
    consumer.close()
    return read
