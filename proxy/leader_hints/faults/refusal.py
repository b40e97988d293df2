"""Refusals of Produce and Fetch that no broker gave: a leadership error for chosen partitions.

Written in the version that the client asked: Produce 3 to 12, Fetch 4 to 18. Of other versions
acks alone is read. CurrentLeader and NodeEndpoints stand where the version has them (KIP-951). A
Fetch in an incremental session does not say all its partitions, so it is answered
FETCH_SESSION_ID_NOT_FOUND (KIP-227): clients ask in full then.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from leader_hints.apis.fetch_response import TOPIC_IDS_FROM, Topic
from leader_hints.apis.header import FLEXIBLE_FROM, read_request_header
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.kio_messages import Message, parts, read_request, write_response
from leader_hints.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM, LeaderHint
from leader_hints.apis.produce import read_acks
from leader_hints.wire.reader import Reader

#: The versions whose partitions are read, by API key.
_VERSIONS: Mapping[int, range] = {ApiKey.PRODUCE: range(3, 13), ApiKey.FETCH: range(4, 19)}
#: Of what kio has no default for.
_NOTHING: Mapping[str, object] = {
    "throttle_time": timedelta(),
    "error_code": ErrorCode.none,
    "record_errors": (),
}


class Asked(NamedTuple):
    """What a Produce or Fetch request names.

    ``incremental``: it is of the fetch session ``session``, and names only what changed;
    ``forgotten``: what leaves that. ``opens``: it asks for a session. ``silent``: it wants no
    response (acks=0).
    """

    partitions: tuple[tuple[Topic, int], ...]
    incremental: bool = False
    silent: bool = False
    session: int = 0
    forgotten: tuple[tuple[Topic, int], ...] = ()
    opens: bool = False


#: Says of a partition which hint its error carries, ``None`` for none.
Hinted = Callable[[Topic, int], LeaderHint | None]
#: Says whether a partition is refused.
Chosen = Callable[[Topic, int], bool]


def read_asked(request: memoryview) -> Asked:
    """Return what a whole Produce or Fetch request names; of an unknown version no partitions.

    :raises WireError: it is not well formed.
    """
    header = read_request_header(request)
    # A client that waits for a response that never comes takes the next one for it, so acks counts.
    silent = header.key == ApiKey.PRODUCE and read_acks(request) == 0
    if header.version not in _VERSIONS[header.key]:
        return Asked((), silent=silent)
    message = read_request(request)
    if header.key == ApiKey.PRODUCE:
        produced = tuple(
            (topic.name, part.index)
            for topic in message.topic_data
            for part in topic.partition_data
        )
        return Asked(produced, silent=silent)
    fetched = tuple(
        (_topic(message, topic), part.partition)
        for topic in message.topics
        for part in topic.partitions
    )
    epoch = getattr(message, "session_epoch", -1)
    forgotten = tuple(
        (_topic(message, topic), partition)
        for topic in getattr(message, "forgotten_topics_data", ())
        for partition in topic.partitions
    )
    return Asked(
        fetched,
        incremental=epoch > 0,
        session=getattr(message, "session_id", 0),
        forgotten=forgotten,
        opens=epoch == 0,
    )


def read_session_id(response: memoryview, version: int) -> int:
    """Return the fetch session that a whole Fetch response is of, 0 for none.

    :raises WireError: it is not well formed.
    """
    reader = Reader(response, 8)
    if version >= FLEXIBLE_FROM[ApiKey.FETCH]:
        reader.skip_tags()
    # Throttle time and error.
    reader.skip(6)
    return reader.int32()


def refuse(
    request: memoryview, correlation_id: int, error: int, chosen: Chosen, hinted: Hinted
) -> bytes:
    """Return the response that refuses the chosen partitions of a whole request.

    The others of a Produce request are refused too, without a hint: none of it reaches a broker.
    Those of a Fetch request get no records.

    :raises WireError: the request is not well formed.
    """
    message = read_request(request)
    key, version = message.__api_key__, message.__version__
    if key == ApiKey.PRODUCE:
        return write_response(correlation_id, _produce(message, version, error, chosen, hinted))
    if getattr(message, "session_epoch", -1) > 0:
        return write_response(correlation_id, _lost_session(version))
    return write_response(correlation_id, _fetch(message, version, error, chosen, hinted))


def _topic(message: Message, topic: Message) -> Topic:
    if message.__version__ < TOPIC_IDS_FROM:
        name: str = topic.topic
        return name
    return topic.topic_id.bytes if topic.topic_id is not None else bytes(16)


def _produce(message: Message, version: int, error: int, chosen: Chosen, hinted: Hinted) -> Message:
    made = parts(ApiKey.PRODUCE, version)
    given: list[LeaderHint] = []
    topics = []
    for topic in message.topic_data:
        answers = []
        for part in topic.partition_data:
            hint = hinted(topic.name, part.index) if chosen(topic.name, part.index) else None
            values = {"index": part.index, "error_code": ErrorCode(error), "base_offset": -1}
            answers.append(
                _answer(made.PartitionProduceResponse, values, made, ApiKey.PRODUCE, version, hint)
            )
            given += [hint] if hint is not None else []
        topics.append(
            made.TopicProduceResponse(name=topic.name, partition_responses=tuple(answers))
        )
    values = {"responses": tuple(topics)}
    return _whole(made.ProduceResponse, values, made, ApiKey.PRODUCE, version, given)


def _fetch(message: Message, version: int, error: int, chosen: Chosen, hinted: Hinted) -> Message:
    made = parts(ApiKey.FETCH, version)
    given: list[LeaderHint] = []
    topics = []
    for topic in message.topics:
        name, answers = _topic(message, topic), []
        for part in topic.partitions:
            refused = chosen(name, part.partition)
            hint = hinted(name, part.partition) if refused else None
            values = {
                "partition_index": part.partition,
                "error_code": ErrorCode(error if refused else 0),
                "high_watermark": -1,
                "aborted_transactions": (),
                "records": b"",
            }
            answers.append(_answer(made.PartitionData, values, made, ApiKey.FETCH, version, hint))
            given += [hint] if hint is not None else []
        by = {"topic": topic.topic} if version < TOPIC_IDS_FROM else {"topic_id": topic.topic_id}
        topics.append(made.FetchableTopicResponse(**by, partitions=tuple(answers)))
    values = {"responses": tuple(topics)}
    return _whole(made.FetchResponse, values, made, ApiKey.FETCH, version, given)


def _lost_session(version: int) -> Message:
    made = parts(ApiKey.FETCH, version)
    values = {"responses": (), "error_code": ErrorCode.fetch_session_id_not_found}
    return _whole(made.FetchResponse, values, made, ApiKey.FETCH, version, [])


def _answer(
    kind: Message,
    values: dict[str, object],
    made: Message,
    key: ApiKey,
    version: int,
    hint: LeaderHint | None,
) -> Message:
    if hint is not None and version >= CURRENT_LEADER_FROM[key]:
        values["current_leader"] = made.LeaderIdAndEpoch(
            leader_id=hint.leader, leader_epoch=hint.epoch
        )
    return _filled(kind, values)


def _whole(
    kind: Message,
    values: dict[str, object],
    made: Message,
    key: ApiKey,
    version: int,
    given: list[LeaderHint],
) -> Message:
    if given and version >= NODE_ENDPOINTS_FROM[key]:
        endpoints = {hint.leader: hint.endpoint for hint in given}
        values["node_endpoints"] = tuple(
            made.NodeEndpoint(node_id=node, host=at.host, port=at.port, rack=at.rack)
            for node, at in endpoints.items()
        )
    return _filled(kind, values)


def _filled(kind: Message, values: dict[str, object]) -> Message:
    """Return an instance of ``kind`` with those of ``values`` that it has, and nothing else."""
    names = {field.name for field in dataclasses.fields(kind)}
    plain = {name: value for name, value in _NOTHING.items() if name in names}
    return kind(**plain | {name: value for name, value in values.items() if name in names})
