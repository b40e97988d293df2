"""What a partition holds, read from its leader itself."""

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from kio.records.readers import read_batch
from kio.records.schema import Record, RecordBatch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v11.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v11.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v5.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.list_offsets.v5.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from tests.harness.admin import ClusterAdmin
from tests.harness.connection import BrokerConnection
from tests.harness.waiting import until

_LATEST = i64(-1)
# Brokers tell a replica, and one that says it debugs, the end of their log and not its high
# watermark (ListOffsetsRequest.DEBUGGING_REPLICA_ID).
_DEBUGGING = BrokerId(-2)
_CONSUMER = BrokerId(-1)
_FETCH_WAIT = i32Timedelta.parse(timedelta(milliseconds=100))
_FETCH_BYTES = i32(1 << 20)

# Where a record batch has what it is asked for here (KIP-98).
_ATTRIBUTES_AT = 21
_LAST_DELTA_AT = 23
_SESSION = struct.Struct(">qh")
_SESSION_AT = 43
_CODEC = 0x07
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_COMMIT = 1


ProducerSession = tuple[int, int]
"""Producer id and producer epoch; -1 and -1 of what no idempotent producer wrote (KIP-98)."""
NO_SESSION: ProducerSession = (-1, -1)


@dataclass(frozen=True)
class Stored:
    """One record as the log has it; ``epoch`` is the leader epoch that appended it."""

    offset: int
    epoch: int
    producer: str
    seq: int
    session: ProducerSession = NO_SESSION


def read_partition(
    admin: ClusterAdmin, topic: str, partition: int = 0, *, committed_only: bool = False
) -> list[Stored]:
    """All records in the order of their offsets, up to where the log ends now.

    With ``committed_only`` those of aborted and of open transactions are left out.
    """
    raw = _read_batches(admin, topic, partition)
    if any(_codec(batch) for batch in raw):
        assert not committed_only, "compressed transactions are not read"
        return _decompressed(admin, topic, partition, raw)
    kept: list[Stored] = []
    undecided: dict[int, list[Stored]] = defaultdict(list)
    for batch in (read_batch(batch, 0)[0] for batch in raw):
        if batch.attributes & _CONTROL:
            finished = undecided.pop(batch.producer_id, [])
            kept += finished if _commits(batch.records[0]) else []
        elif batch.attributes & _TRANSACTIONAL and committed_only:
            undecided[batch.producer_id] += _stored(batch)
        else:
            kept += _stored(batch)
    return sorted(kept, key=lambda record: record.offset)


def read_codecs(admin: ClusterAdmin, topic: str, partition: int = 0) -> set[str]:
    """The codecs with which a partition's batches are compressed, "none" among them."""
    return {_CODECS[_codec(batch)] for batch in _read_batches(admin, topic, partition)}


def _read_batches(admin: ClusterAdmin, topic: str, partition: int) -> list[bytes]:
    batches: list[bytes] = []
    with admin.cluster.connect(admin.leader(topic, partition)) as connection:
        end = until(lambda: _end(connection, topic, partition), f"the end of {topic}-{partition}")
        position = 0

        def more() -> list[bytes]:
            return list(_cut(_fetch(connection, topic, partition, position)))

        while position < end:
            # What is not replicated yet comes a moment later.
            batches += until(more, f"{topic}-{partition} from {position} to {end}")
            position = _next_offset(batches[-1])
    return batches


def _codec(batch: bytes) -> int:
    (attributes,) = struct.unpack_from(">h", batch, _ATTRIBUTES_AT)
    return int(attributes) & _CODEC


def _first_offset(batch: bytes) -> int:
    (base,) = struct.unpack_from(">q", batch)
    return int(base)


def _next_offset(batch: bytes) -> int:
    (last_delta,) = struct.unpack_from(">i", batch, _LAST_DELTA_AT)
    return _first_offset(batch) + int(last_delta) + 1


def _decompressed(
    admin: ClusterAdmin, topic: str, partition: int, batches: Sequence[bytes]
) -> list[Stored]:
    """The records of batches by librdkafka, which brings all codecs with it; past every proxy."""
    end = _next_offset(batches[-1])
    sessions = {
        offset: _SESSION.unpack_from(batch, _SESSION_AT)
        for batch in batches
        for offset in range(_first_offset(batch), _next_offset(batch))
    }
    bootstrap = admin.cluster.direct_bootstrap
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    reader.assign([Position(topic, partition, 0)])
    found: list[Stored] = []
    try:

        def read() -> bool:
            for message in reader.consume(1000, 0.1):
                offset, value = message.offset(), message.value()
                if message.error() is None and offset is not None:
                    epoch = message.leader_epoch() or 0
                    found.append(_parse(value, offset, epoch, sessions[offset]))
            return bool(found) and found[-1].offset + 1 >= end

        until(read, f"{topic}-{partition} to {end}")
    finally:
        reader.close()
    return found


def _end(connection: BrokerConnection, topic: str, partition: int) -> int | None:
    request = ListOffsetsRequest(
        replica_id=_DEBUGGING,
        isolation_level=i8(0),
        topics=(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=(
                    ListOffsetsPartition(partition_index=i32(partition), timestamp=_LATEST),
                ),
            ),
        ),
    )
    answer = connection.ask(request, ListOffsetsResponse).topics[0].partitions[0]
    return answer.offset if answer.error_code is ErrorCode.none else None


def _fetch(
    connection: BrokerConnection, topic: str, partition: int, position: int
) -> PartitionData:
    request = FetchRequest(
        replica_id=_CONSUMER,
        max_wait=_FETCH_WAIT,
        min_bytes=i32(1),
        topics=(
            FetchTopic(
                topic=TopicName(topic),
                partitions=(
                    FetchPartition(
                        partition=i32(partition),
                        fetch_offset=i64(position),
                        partition_max_bytes=_FETCH_BYTES,
                    ),
                ),
            ),
        ),
        forgotten_topics_data=(),
    )
    return connection.ask(request, FetchResponse).responses[0].partitions[0]


def _cut(data: PartitionData) -> Iterator[bytes]:
    """The whole batches of a Fetch answer; the last one may be cut off."""
    raw = bytes(data.records or b"")
    start = 0
    while len(raw) - start >= 12:
        (length,) = struct.unpack_from(">i", raw, start + 8)
        if len(raw) - start < 12 + length:
            return
        yield raw[start : start + 12 + length]
        start += 12 + length


def _stored(batch: RecordBatch) -> Sequence[Stored]:
    session = batch.producer_id, batch.producer_epoch
    return [
        _parse(record.value, int(record.offset), batch.partition_leader_epoch, session)
        for record in batch.records
    ]


def _parse(value: bytes | None, offset: int, epoch: int, session: ProducerSession) -> Stored:
    assert value is not None
    producer, _, seq, _ = value.decode().split("|", 3)
    return Stored(offset, epoch, producer, int(seq), session)


def _commits(marker: Record) -> bool:
    assert marker.key is not None
    _, kind = struct.unpack(">hh", marker.key)
    return bool(kind == _COMMIT)
