"""Metadata that tells a former state: leaders as they were, and brokers left out.

Tested in ``tests/faults/test_response_faults.py``.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import NamedTuple

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.kio_messages import Message, read_response, write_response

#: Leader and epoch by topic and partition.
Leaders = Mapping[tuple[str, int], tuple[int, int]]


class Told(NamedTuple):
    """The leaders in a response. ``leaders``: with the epoch -1 in versions that have none."""

    leaders: Leaders
    nodes: frozenset[int]


def read_told(response: memoryview, version: int) -> Told:
    """Return the leaders in a whole response.

    :raises WireError: the response is not well formed.
    """
    message = read_response(ApiKey.METADATA, version, response)
    leaders = {
        (topic.name or "", part.partition_index): (
            int(part.leader_id),
            int(getattr(part, "leader_epoch", -1)),
        )
        for topic in message.topics
        for part in topic.partitions
    }
    return Told(leaders, frozenset(int(broker.node_id) for broker in message.brokers))


def restage(
    response: memoryview,
    version: int,
    correlation_id: int,
    leaders: Leaders,
    hidden: Collection[int],
) -> bytes:
    """Return a whole response with ``leaders`` where it has others, without ``hidden`` brokers.

    :raises WireError: the response is not well formed.
    """
    message = read_response(ApiKey.METADATA, version, response)
    topics = tuple(
        dataclasses.replace(
            topic,
            partitions=tuple(
                _restaged(part, leaders.get((topic.name or "", part.partition_index)))
                for part in topic.partitions
            ),
        )
        for topic in message.topics
    )
    brokers = tuple(broker for broker in message.brokers if broker.node_id not in hidden)
    return write_response(
        correlation_id, dataclasses.replace(message, topics=topics, brokers=brokers)
    )


def _restaged(part: Message, leader: tuple[int, int] | None) -> Message:
    if leader is None:
        return part
    values: dict[str, object] = {"leader_id": leader[0]}
    if hasattr(part, "leader_epoch"):
        values["leader_epoch"] = leader[1]
    return dataclasses.replace(part, **values)
