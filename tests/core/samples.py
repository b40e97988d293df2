"""Requests and responses as real ones look, made by kio."""

import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from kio.schema.errors import ErrorCode

from leader_hints.apis.fetch_response import TOPIC_IDS_FROM, Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint
from tests.apis.messages import (
    Entity,
    element,
    plain,
    request_frame,
    request_type,
    response_frame,
    response_type,
)

#: Maxima of a broker of 3.5 or 3.6, as its ApiVersions says them.
BROKER_3_6: dict[int, int] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 15,
    ApiKey.LIST_OFFSETS: 8,
    ApiKey.METADATA: 12,
    ApiKey.SASL_HANDSHAKE: 1,
    ApiKey.API_VERSIONS: 3,
}
#: What a client says in ApiVersions that uses hints as KIP-951 has them.
USES_HINTS = {"client_software_name": "librdkafka", "client_software_version": "2.5.0"}
NOT_LEADER, FENCED, UNKNOWN_EPOCH = 6, 74, 75
#: The head of a record batch: of a producer with an id, and of one without.
NUMBERED, UNNUMBERED = (
    struct.pack(">qiibIhiqqqhii", 0, 49, -1, 2, 0, 0, 0, 0, 0, producer, 0, 0, 0)
    for producer in (7, -1)
)
#: Leader and epoch.
Led = tuple[int, int]


def topic_id(number: int) -> bytes:
    """Return the id of a topic."""
    return uuid.UUID(int=number, version=4).bytes


def request(
    key: int, version: int, correlation_id: int, client_id: str | None = "c", **values: object
) -> bytes:
    """Return a request with ``values``, and nothing in its other fields."""
    entity = plain(request_type(key, version), **values)
    return request_frame(entity, correlation_id, client_id)


def answer(key: int, version: int, correlation_id: int, **values: object) -> bytes:
    """Return a response with ``values``, and nothing in its other fields."""
    return response_frame(plain(response_type(key, version), **values), correlation_id)


def produce_request(
    version: int,
    correlation_id: int,
    *,
    acks: int = 1,
    records: bytes | None = b"records",
    client_id: str | None = "c",
    transactional_id: str | None = None,
    partitions: int = 1,
) -> bytes:
    """Return a Produce request with the same records for each partition."""
    topic = element(request_type(ApiKey.PRODUCE, version), "topic_data")
    kind = element(topic, "partition_data")
    data = tuple(plain(kind, index=n, records=records) for n in range(partitions))
    return request(
        ApiKey.PRODUCE,
        version,
        correlation_id,
        client_id,
        acks=acks,
        transactional_id=transactional_id,
        topic_data=(plain(topic, name="t", partition_data=data),),
    )


def produce_answer(
    version: int,
    correlation_id: int,
    errors: Mapping[int, int],
    *,
    topic: str = "t",
    leaders: Mapping[int, Led] | None = None,
    nodes: Mapping[int, Endpoint] | None = None,
) -> bytes:
    """Return a Produce response: error by partition, with hints where ``leaders`` has one."""
    kind = response_type(ApiKey.PRODUCE, version)
    topic_kind = element(kind, "responses")
    partition_kind = element(topic_kind, "partition_responses")
    partitions = tuple(
        plain(
            partition_kind, index=p, error_code=ErrorCode(e), **_leader(partition_kind, p, leaders)
        )
        for p, e in errors.items()
    )
    return answer(
        ApiKey.PRODUCE,
        version,
        correlation_id,
        responses=(plain(topic_kind, name=topic, partition_responses=partitions),),
        **_endpoints(kind, nodes),
    )


def fetch_request(
    version: int,
    correlation_id: int,
    asked: Mapping[tuple[Topic, int], int],
    *,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[tuple[Topic, int]] = (),
    replica_id: int = -1,
    client_id: str | None = "c",
    rack: str = "",
    wait: int = 0,
) -> bytes:
    """Return a Fetch request: leader epoch by topic and partition; ``wait``: in milliseconds."""
    kind = request_type(ApiKey.FETCH, version)
    topic_kind = element(kind, "topics")
    partition_kind = element(topic_kind, "partitions")
    topics = tuple(
        plain(
            topic_kind,
            **_named(topic, version),
            partitions=(
                plain(
                    partition_kind,
                    partition=partition,
                    **_since(9, version, current_leader_epoch=epoch),
                ),
            ),
        )
        for (topic, partition), epoch in asked.items()
    )
    values: dict[str, object] = {"max_wait": timedelta(milliseconds=wait)}
    if version < 15:
        values["replica_id"] = replica_id
    else:
        state = type(plain(kind).replica_state)
        values |= {"replica_state": plain(state, replica_id=replica_id)}
    if version >= 7:
        forgotten_kind = element(kind, "forgotten_topics_data")
        values |= {"session_id": session[0], "session_epoch": session[1]}
        values["forgotten_topics_data"] = tuple(
            plain(forgotten_kind, **_named(topic, version), partitions=(partition,))
            for topic, partition in forgotten
        )
    values |= _since(11, version, rack_id=rack)
    return request(ApiKey.FETCH, version, correlation_id, client_id, topics=topics, **values)


def fetch_answer(
    version: int,
    correlation_id: int,
    partitions: Sequence[tuple[Topic, int, int, bytes]],
    *,
    session_id: int = 0,
    error: int = 0,
    leaders: Mapping[int, Led] | None = None,
    nodes: Mapping[int, Endpoint] | None = None,
    preferred: Mapping[int, int] | None = None,
    offsets: tuple[int, int] = (0, 0),
) -> bytes:
    """Return a Fetch response of (topic, partition, error, records).

    ``preferred``: preferred read replica by partition, where that is another than none is by kio's
    own default; ``offsets``: where logs begin, and their high watermark.
    """
    kind = response_type(ApiKey.FETCH, version)
    topic_kind = element(kind, "responses")
    partition_kind = element(topic_kind, "partitions")
    topics = tuple(
        plain(
            topic_kind,
            **_named(topic, version),
            partitions=(
                plain(
                    partition_kind,
                    partition_index=partition,
                    error_code=ErrorCode(failed),
                    records=records,
                    **_since(5, version, log_start_offset=offsets[0]),
                    high_watermark=offsets[1],
                    **_preferred(version, partition, preferred),
                    **_leader(partition_kind, partition, leaders),
                ),
            ),
        )
        for topic, partition, failed, records in partitions
    )
    return answer(
        ApiKey.FETCH,
        version,
        correlation_id,
        responses=topics,
        **_since(7, version, session_id=session_id, error_code=ErrorCode(error)),
        **_endpoints(kind, nodes),
    )


def versions_answer(
    version: int, correlation_id: int, maxima: Mapping[int, int], error: int = 0
) -> bytes:
    """Return an ApiVersions response that offers ``maxima``."""
    offer = element(response_type(ApiKey.API_VERSIONS, version), "api_keys")
    return answer(
        ApiKey.API_VERSIONS,
        version,
        correlation_id,
        error_code=ErrorCode(error),
        api_keys=tuple(
            plain(offer, api_key=key, max_version=maximum) for key, maximum in maxima.items()
        ),
    )


def metadata_answer(
    version: int, correlation_id: int, topics: Mapping[str, Mapping[int, Led]]
) -> bytes:
    """Return a Metadata response: leader and epoch by topic and partition."""
    topic_kind = element(response_type(ApiKey.METADATA, version), "topics")
    partition_kind = element(topic_kind, "partitions")
    return answer(
        ApiKey.METADATA,
        version,
        correlation_id,
        topics=tuple(
            plain(
                topic_kind,
                name=name,
                partitions=tuple(
                    plain(partition_kind, partition_index=p, leader_id=node, leader_epoch=epoch)
                    for p, (node, epoch) in partitions.items()
                ),
            )
            for name, partitions in topics.items()
        ),
    )


def _since(first: int, version: int, **values: object) -> dict[str, object]:
    """Return ``values`` where ``version`` has such fields."""
    return values if version >= first else {}


def _preferred(
    version: int, partition: int, preferred: Mapping[int, int] | None
) -> dict[str, object]:
    if preferred is None:
        return {}
    return _since(11, version, preferred_read_replica=preferred.get(partition, -1))


def _named(topic: Topic, version: int) -> dict[str, object]:
    if version < TOPIC_IDS_FROM:
        return {"topic": topic}
    assert isinstance(topic, bytes)
    return {"topic_id": uuid.UUID(bytes=topic)}


def _leader(
    kind: type[Entity], partition: int, leaders: Mapping[int, Led] | None
) -> dict[str, object]:
    if leaders is None or partition not in leaders:
        return {}
    node, epoch = leaders[partition]
    current_leader = type(plain(kind).current_leader)
    return {"current_leader": current_leader(leader_id=node, leader_epoch=epoch)}


def _endpoints(kind: type[Entity], nodes: Mapping[int, Endpoint] | None) -> dict[str, object]:
    if nodes is None:
        return {}
    node_kind = element(kind, "node_endpoints")
    return {
        "node_endpoints": tuple(
            node_kind(node_id=node, **endpoint._asdict()) for node, endpoint in nodes.items()
        )
    }
