"""Metadata that tells a former state: leaders as they were, and brokers left out."""

import dataclasses
from collections.abc import Callable, Collection

from proxy.apis.keys import ApiKey
from proxy.apis.kio_messages import Message, read_response, write_response

#: Returns leader and epoch that are to be told of a partition; ``None``: as they are.
Told = Callable[[str, int], tuple[int, int] | None]


def restage(
    response: memoryview, version: int, correlation_id: int, told: Told, hidden: Collection[int]
) -> bytes:
    """Return a whole response with the leaders that ``told`` says, without ``hidden`` brokers.

    :raises WireError: the response is not well formed.
    """
    message = read_response(ApiKey.METADATA, version, response)
    topics = tuple(
        dataclasses.replace(
            topic,
            partitions=tuple(
                _restaged(part, told(topic.name or "", part.partition_index))
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
