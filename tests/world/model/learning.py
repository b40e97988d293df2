"""In which order a broker learns of what the controller has decided: by its replicas, its Metadata.

Each record is learnt by the one and then by the other, and the next record after that. Positions
are counts of records of the controller's log that were learnt. Recordings of real brokers show
these orders (:mod:`tests.world.recorded`).
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from tests.world.model.truth import Alive, Record, Topic

#: Nothing was learnt since the start.
NOTHING = -1


class Made(IntEnum):
    """How far a replica is that the next record gives the broker."""

    DONE = 0
    WITHOUT_EPOCH = 1
    WITHOUT_LOG = 2


class Known(NamedTuple):
    """How many records replicas and Metadata have learnt."""

    replicas: int
    metadata: int
    made: Made = Made.DONE


def metadata_first(record: Record, node: int, *, kraft: bool) -> bool:
    """Whether a broker's Metadata learns of a record before its replicas do.

    With KRaft always: the image is set first (BrokerMetadataPublisher). With ZooKeeper the
    controller has one queue for each broker, with LeaderAndIsr before UpdateMetadata
    (ControllerChannelManager); but Metadata forgets a topic, or a replica, before the replica
    is stopped: the recordings show that.
    """
    return kraft or not isinstance(record, Topic) or not _has_replica(record, node)


def _has_replica(topic: Topic, node: int) -> bool:
    return any(node in replicas for replicas in topic.replicas)


def next_known(log: Sequence[Record], known: Known, node: int, *, kraft: bool) -> Iterator[Known]:
    """Iterate over what a running broker may know next."""
    replicas, metadata, made = known
    if not kraft and replicas != NOTHING and (count := _told_all(log, metadata, node)):
        yield Known(replicas, count)
    if made:
        yield Known(metadata + 1, metadata) if replicas == metadata else Known(metadata, metadata)
        if made is Made.WITHOUT_EPOCH:
            yield Known(replicas, metadata, Made.WITHOUT_LOG)
    elif replicas == NOTHING:
        yield from _started(log, known, node)
    elif replicas > metadata:
        yield Known(replicas, replicas)
    elif replicas < metadata:
        yield Known(metadata, metadata)
        if _becomes_replica(log, metadata - 1, node):
            yield Known(replicas, metadata, Made.WITHOUT_EPOCH)
            yield Known(replicas, metadata, Made.WITHOUT_LOG)
        if not kraft and metadata < len(log) and _stops_later(log[replicas : metadata + 1], node):
            yield Known(replicas, metadata + 1)
    elif metadata < len(log):
        if metadata_first(log[metadata], node, kraft=kraft):
            yield Known(replicas, metadata + 1)
        else:
            yield Known(replicas + 1, metadata)
            if _becomes_replica(log, metadata, node):
                yield Known(replicas, metadata, Made.WITHOUT_EPOCH)
            yield Known(replicas, metadata, Made.WITHOUT_LOG)
        if not kraft and (count := _passed_over(log, metadata, node)):
            yield Known(metadata + count, metadata)


def _started(log: Sequence[Record], known: Known, node: int) -> Iterator[Known]:
    """With ZooKeeper the controller sends a new broker all: Metadata first, then its replicas
    (KafkaController.onBrokerStartup).
    """
    if known.metadata == NOTHING:
        yield from (Known(NOTHING, count) for count in range(len(log) + 1))
        return
    yield from (Known(count, count) for count in range(known.metadata, len(log) + 1))
    shown = _topic_before(log, known.metadata)
    if shown is not None and _has_replica(shown, node):
        yield Known(NOTHING, known.metadata, Made.WITHOUT_EPOCH)
        yield Known(NOTHING, known.metadata, Made.WITHOUT_LOG)


def _told_all(log: Sequence[Record], begin: int, node: int) -> int:
    """Return how many records Metadata knows when the controller takes the broker for a new one.

    It was there all the time, but its session had ended: see :func:`_started`.
    """
    there = True
    for number, record in enumerate(log):
        if isinstance(record, Alive):
            if number >= begin and node in record.addresses and not there:
                return number + 1
            there = node in record.addresses
    return 0


def _topic_before(log: Sequence[Record], number: int) -> Topic | None:
    before = next((one for one in reversed(log[:number]) if not isinstance(one, Alive)), None)
    return before if isinstance(before, Topic) else None


def _passed_over(log: Sequence[Record], begin: int, node: int) -> int:
    """Return how many records replicas may learn at once: of brokers they learn nothing, so a
    leader that was elected because another was gone may come before Metadata shows that.
    """
    for count, record in enumerate(log[begin:]):
        if not isinstance(record, Alive):
            return count + 1 if count and not metadata_first(record, node, kraft=False) else 0
    return 0


def _becomes_replica(log: Sequence[Record], number: int, node: int) -> bool:
    record = log[number]
    if not isinstance(record, Topic) or not _has_replica(record, node):
        return False
    before = _topic_before(log, number)
    return before is None or not _has_replica(before, node)


def _stops_later(records: Sequence[Record], node: int) -> bool:
    """Whether a replica that is to be stopped may be left behind by all of these records."""
    return all(
        isinstance(record, Alive) or (isinstance(record, Topic) and not _has_replica(record, node))
        for record in records
    )
