"""A leader that comes back and goes again, of which a sidecar hears nothing but the errors."""

import io
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.errors import ErrorCode
from kio.schema.produce.v10.request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kio.schema.produce.v10.response import PartitionProduceResponse, ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, TZAwareMicros, i8, i16, i32, i32Timedelta, i64

from leader_hints.core.hints.hold_rules import RECENT
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.connection import BrokerConnection
from tests.harness.proxyproc import ProxyFleet
from tests.harness.waiting import until
from tests.real.names import KRAFT_36, ZK_24, ZK_36

HERE, THERE = 1, 2


@pytest.mark.parametrize("cluster", [ZK_24, ZK_36, KRAFT_36], indirect=True)
def test_a_hint_is_of_the_move_that_the_error_is_of(
    cluster: RealCluster,
    admin: ClusterAdmin,
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """A producer that met the second move knows a newer epoch than the first move's."""
    topic = new_topic("there-and-back")
    admin.move_leader(topic, to=HERE)
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with (
        ProxyFleet.before(routes, tmp_path, sidecars=True),
        BrokerConnection(cluster.brokers[HERE].advertised) as producer,
    ):
        until(lambda: _taken(producer, topic), "the broker takes a record")
        _move_there(admin, producer, topic)
        told = time.monotonic()
        # Past the proxies, and no client asks for Metadata.
        admin.move_leader(topic, to=HERE)
        until(lambda: _taken(producer, topic), "the broker takes a record again")
        until(lambda: time.monotonic() - told > RECENT, "that move is long past")
        _move_there(admin, producer, topic)


def _move_there(admin: ClusterAdmin, producer: BrokerConnection, topic: str) -> None:
    """Move the leader, and wait for the hint of that move."""
    admin.move_leader(topic, to=THERE)
    wanted = (THERE, admin.partitions(topic)[0].epoch)
    until(lambda: _hinted(producer, topic) == wanted, f"a hint of leader and epoch {wanted}", 5.0)


def _taken(producer: BrokerConnection, topic: str) -> bool:
    return _produced(producer, topic).error_code == ErrorCode.none


def _hinted(producer: BrokerConnection, topic: str) -> tuple[int, int]:
    answer = _produced(producer, topic)
    assert answer.error_code == ErrorCode.not_leader_or_follower
    return int(answer.current_leader.leader_id), int(answer.current_leader.leader_epoch)


def _produced(producer: BrokerConnection, topic: str) -> PartitionProduceResponse:
    """What becomes of one record for the topic's only partition."""
    data = PartitionProduceData(index=i32(0), records=_records())
    request = ProduceRequest(
        acks=i16(1),
        timeout=i32Timedelta.parse(timedelta(seconds=10)),
        topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
    )
    return producer.ask(request, ProduceResponse).responses[0].partition_responses[0]


def _records() -> Records:
    record = Record(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(datetime.now(UTC)),
        offset=i64(0),
        key=None,
        value=b"value",
        headers=(),
    )
    batch = io.BytesIO()
    write_new_batch(
        batch,
        NewRecordBatch(
            producer_id=i64(-1),
            producer_epoch=i16(-1),
            base_sequence=i32(-1),
            records=(record,),
            attributes=i16(0),
        ),
    )
    return Records(batch.getvalue())
