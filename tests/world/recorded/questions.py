"""What each broker is asked in each round: a table; and the bytes of that."""

import struct
import time
from enum import Enum
from typing import Final, NamedTuple

from kafka.record.memory_records import MemoryRecordsBuilder

from tests.world import wire
from tests.world.model.releases import FETCH, LIST_OFFSETS, METADATA, PRODUCE
from tests.world.recorded.recording import Answer
from tests.world.wire import Writer

_PLAIN: Final = Writer(flexible=False)
_CLIENT_ID: Final = "recorder"
#: The proxy asks for the same (ListOffsets of the earliest offset).
_EARLIEST: Final = -2


class Epoch(Enum):
    """Which epoch is sent: the newest that any broker's Metadata has shown, the one before it."""

    NONE = "none"
    NEWEST = "newest"
    FORMER = "former"


class Question(NamedTuple):
    """A question about one partition; the answer to Metadata is about all of them.

    ``id``: the topic is given by its newest id (1), or by the id before that (2); 0: by name.
    """

    name: str
    key: int
    version: int
    epoch: Epoch = Epoch.NONE
    partition: int = 0
    id: int = 0


METADATA_NAME: Final = "metadata"
CONNECTION: Final = "connection"
QUESTIONS: Final = (
    Question(METADATA_NAME, METADATA, 0),
    Question("offsets", LIST_OFFSETS, 4),
    Question("offsets at", LIST_OFFSETS, 4, Epoch.NEWEST),
    Question("produce", PRODUCE, 8),
    Question("fetch 10", FETCH, 10),
    Question("fetch 11", FETCH, 11),
    Question("fetch 11 at", FETCH, 11, Epoch.NEWEST),
    Question("fetch 11 before", FETCH, 11, Epoch.FORMER),
    Question("offsets", LIST_OFFSETS, 4, partition=1),
)
#: To brokers that take topic ids in Fetch.
BY_ID: Final = (
    Question("fetch 15 of", FETCH, 15, id=1),
    Question("fetch 15 of", FETCH, 15, id=2),
)
#: To brokers that give hints.
HINTED: Final = (
    Question("produce 10", PRODUCE, 10),
    Question("fetch 16 before of", FETCH, 16, Epoch.FORMER, id=1),
    Question("fetch 16 at of", FETCH, 16, Epoch.NEWEST, id=1),
)
PARTITIONS: Final = (0, 1)


def _records() -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 10)
    # Not an old one: the records must outlive the recording.
    builder.append(timestamp=int(time.time() * 1000), key=None, value=b"recorded")
    builder.close()
    return bytes(builder.buffer())


_BATCH: Final = _records()


def request(
    question: Question, version: int, correlation: int, topic: str | bytes, epoch: int
) -> bytes:
    """Return a request's bytes. ``version``: of Metadata; ``topic``: its name or id."""
    place = topic, question.partition
    if question.key == METADATA:
        return wire.metadata_request(version, correlation, _CLIENT_ID, [str(topic)])
    if question.key == PRODUCE:
        return wire.produce_request(question.version, correlation, _CLIENT_ID, [place], _BATCH)
    if question.key == FETCH:
        return wire.fetch_request(
            question.version, correlation, _CLIENT_ID, {place: epoch}, wait=0, size=1
        )
    partition = struct.pack(">iiq", question.partition, epoch, _EARLIEST)
    topics = _PLAIN.array([_PLAIN.text(str(topic)) + _PLAIN.array([partition])])
    frame = struct.pack(">hhi", question.key, question.version, correlation)
    frame += _PLAIN.text(_CLIENT_ID) + struct.pack(">ib", -1, 0) + topics
    return struct.pack(">i", len(frame)) + frame


def read(question: Question, payload: bytes) -> Answer:
    """Return what came of the partition that was asked about, with the hint where one came."""
    if question.key == LIST_OFFSETS:
        reader = wire.Reader(payload)
        reader.unpack("iii")
        reader.text()
        _, _, error = reader.unpack("iih")
        return Answer(error)
    answer = wire.read_answer(question.key, question.version, payload)
    if answer.error:
        return Answer(answer.error)
    (result,) = answer.results
    return Answer(result.error, *(result.hint or ()))
