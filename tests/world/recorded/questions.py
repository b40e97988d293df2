"""What each broker is asked in each round: a table; and the bytes of that."""

import struct
import time
from enum import Enum
from typing import Final, NamedTuple

from kafka.record.memory_records import MemoryRecordsBuilder

from tests.world import wire
from tests.world.model.releases import FETCH, LIST_OFFSETS, METADATA, PRODUCE
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
    """A question about one partition; the answer to Metadata is about all of them."""

    name: str
    key: int
    version: int
    epoch: Epoch = Epoch.NONE
    partition: int = 0


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
PARTITIONS: Final = (0, 1)


def _records() -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 10)
    # Not an old one: the records must outlive the recording.
    builder.append(timestamp=int(time.time() * 1000), key=None, value=b"recorded")
    builder.close()
    return bytes(builder.buffer())


_BATCH: Final = _records()


def request(question: Question, version: int, correlation: int, topic: str, epoch: int) -> bytes:
    """Return a request's bytes. ``version``: of Metadata."""
    if question.key == METADATA:
        return wire.metadata_request(version, correlation, _CLIENT_ID, [topic])
    body = _BODIES[question.key](question, epoch)
    if question.key == FETCH:
        head, partition = body
        rest = _PLAIN.array(()) + (_PLAIN.text("") if question.version >= 11 else b"")
    else:
        (head, partition), rest = body, b""
    topics = _PLAIN.array([_PLAIN.text(topic) + _PLAIN.array([partition])])
    frame = struct.pack(">hhi", question.key, question.version, correlation)
    frame += _PLAIN.text(_CLIENT_ID) + head + topics + rest
    return struct.pack(">i", len(frame)) + frame


def _produce(question: Question, epoch: int) -> tuple[bytes, bytes]:
    head = _PLAIN.text(None) + struct.pack(">hi", 1, 1000)
    return head, struct.pack(">i", question.partition) + _PLAIN.data(_BATCH)


def _fetch(question: Question, epoch: int) -> tuple[bytes, bytes]:
    # It waits for nothing, and takes no session.
    head = struct.pack(">iiiibii", -1, 0, 0, 1, 0, 0, -1)
    return head, struct.pack(">iiqqi", question.partition, epoch, 0, -1, 1)


def _offsets(question: Question, epoch: int) -> tuple[bytes, bytes]:
    return struct.pack(">ib", -1, 0), struct.pack(">iiq", question.partition, epoch, _EARLIEST)


_BODIES: Final = {PRODUCE: _produce, FETCH: _fetch, LIST_OFFSETS: _offsets}


def read_error(question: Question, payload: bytes) -> int:
    """Return the error code of the partition that was asked about."""
    if question.key == LIST_OFFSETS:
        reader = wire.Reader(payload)
        reader.unpack("iii")
        reader.text()
        _, _, error = reader.unpack("iih")
        return error
    answer = wire.read_answer(question.key, question.version, payload)
    (result,) = answer.results
    return answer.error or result.error
