"""Fetch: records from leaders (or from a near replica, KIP-392).

Request v7: fetch sessions (KIP-227). v9: leader epochs (KIP-320). v12: flexible,
LastFetchedEpoch, tag 0 ClusterId. v13: topic ids for names (KIP-516). v15: ReplicaId moves
from the first field into the tagged ReplicaState (tag 1, KIP-903). v16 (KIP-951): the body of
v15. v17: a tagged directory id in each partition (KIP-853).
Response v12: flexible; partition tags 0 DivergingEpoch, 1 CurrentLeader, 2 SnapshotId. v13:
topic ids. v16: top-level tag 0 NodeEndpoints.
"""

import struct
from typing import NamedTuple

from proxy.apis.error_codes import HINTABLE
from proxy.apis.header import plain_body, read_request_header
from proxy.apis.leader_hint import Failure, Scanned
from proxy.wire.errors import Malformed, Truncated
from proxy.wire.reader import Reader
from proxy.wire.varint import read_uvarint

#: From here on topics are named by their id.
TOPIC_IDS_FROM = 13
#: From here on the replica id stands in a tag.
_REPLICA_STATE_FROM = 15
_REPLICA_STATE_TAG = 1

#: Max wait, min bytes, max bytes, isolation level, session id, session epoch.
_REQUEST = struct.Struct(">iiibii")
#: Partition, leader epoch, fetch offset, last fetched epoch, log start offset, max bytes.
_ASKED = struct.Struct(">iiqiqi")
#: Throttle time, error code, session id.
_RESPONSE = struct.Struct(">ihi")
#: Partition, error code, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_SMALLEST_ABORTED = 17
_INT16 = struct.Struct(">h")
#: Where the count of topics stands in a response whose header has no tags.
_TOPICS_AT = 4 + 4 + 1 + _RESPONSE.size
#: A frame shorter than this holds no partition's error code.
_SMALLEST_GLANCE = _TOPICS_AT + 2
#: The fixed part; aborted transactions, preferred replica, records and tags at their shortest.
_SMALLEST_PARTITION = _PARTITION.size + 1 + 4 + 1 + 1

#: Behind the fixed part, an empty array of aborted transactions, and the preferred replica.
_RECORDS_AT = _PARTITION.size + 1 + 4

#: Session epochs with a meaning of their own (KIP-227): a full fetch that wants a session,
#: and one that wants none (or the end of one).
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

Topic = str | bytes
Asked = dict[tuple[Topic, int], int]


class FetchRequest(NamedTuple):
    """What a request says, as far as hints need it.

    ``asked``: leader epoch (-1: not known) by topic and partition, in full for a full fetch,
    what changed for an incremental one. ``forgotten``: what leaves the session.
    """

    replica_id: int
    session_id: int
    session_epoch: int
    asked: Asked
    forgotten: tuple[tuple[Topic, int], ...]


def read_request(frame: memoryview) -> FetchRequest:
    """Read a whole request of v12 to v17; ``frame`` begins with the size prefix.

    :raises WireError: the request is not well formed.
    """
    header = read_request_header(frame)
    reader = Reader(frame, header.body)
    replica_id = reader.int32() if header.version < _REPLICA_STATE_FROM else -1
    at = reader.at
    reader.skip(_REQUEST.size)
    session_id, session_epoch = _REQUEST.unpack_from(frame, at)[-2:]
    asked = _read_asked(reader, header.version)
    forgotten = _read_forgotten(reader, header.version)
    if header.version >= _REPLICA_STATE_FROM:
        reader.skip_compact()
        replica_id = _read_replica_state(reader)
    return FetchRequest(replica_id, session_id, session_epoch, asked, forgotten)


def read_session(frame: memoryview) -> tuple[int, int, bool]:
    """Return session id, session epoch, and whether a request names no partition at all.

    Cheaper than :func:`read_request`: an idle session's requests name none.

    :raises WireError: the request is not well formed.
    """
    at = plain_body(frame) or read_request_header(frame).body
    if frame[7] < _REPLICA_STATE_FROM:
        at += 4
    reader = Reader(frame, at)
    reader.skip(_REQUEST.size + 2)
    *_, session_id, session_epoch = _REQUEST.unpack_from(frame, at)
    # Two empty arrays take a byte each; whatever else stands there names something.
    empty = frame[reader.at - 2] <= 1 and frame[reader.at - 1] <= 1
    return session_id, session_epoch, empty


def _read_topic(reader: Reader, version: int) -> Topic:
    return reader.uuid() if version >= TOPIC_IDS_FROM else reader.compact_string() or ""


def _read_asked(reader: Reader, version: int) -> Asked:
    asked: Asked = {}
    for _ in range(reader.compact_array(3)):
        topic = _read_topic(reader, version)
        for _ in range(reader.compact_array(_ASKED.size + 1)):
            at = reader.at
            reader.skip(_ASKED.size)
            partition, epoch = _ASKED.unpack_from(reader.buffer, at)[:2]
            asked[topic, partition] = epoch
            reader.skip_tags()
        reader.skip_tags()
    return asked


def _read_forgotten(reader: Reader, version: int) -> tuple[tuple[Topic, int], ...]:
    forgotten = []
    for _ in range(reader.compact_array(3)):
        topic = _read_topic(reader, version)
        forgotten += [(topic, reader.int32()) for _ in range(reader.compact_array(4))]
        reader.skip_tags()
    return tuple(forgotten)


def _read_replica_state(reader: Reader) -> int:
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        at = reader.at
        reader.skip(size)
        if tag == _REPLICA_STATE_TAG:
            return Reader(reader.buffer, at, reader.at).int32()
    return -1


def glance(frame: memoryview, version: int) -> tuple[int, int] | None:
    """Return session id and top-level error where one look shows that no hint is needed.

    So it is where the begun response of v12 or above holds no partition, or one whose error no
    hint can answer; that is what most responses are, and a scan costs several times as much.
    ``None`` says nothing.
    """
    if len(frame) <= _TOPICS_AT or frame[8]:
        return None
    _, error, session_id = _RESPONSE.unpack_from(frame, _TOPICS_AT - _RESPONSE.size)
    topics = frame[_TOPICS_AT]
    if topics <= 1:
        return session_id, error
    if topics > 2 or len(frame) < _SMALLEST_GLANCE:
        return None
    if version >= TOPIC_IDS_FROM:
        partitions = _TOPICS_AT + 1 + 16
    else:
        partitions = _TOPICS_AT + 1 + frame[_TOPICS_AT + 1]
        if not 0 < frame[_TOPICS_AT + 1] < 0x80:
            return None
    error_at = partitions + 1 + 4
    if len(frame) < error_at + 2 or frame[partitions] != 2:
        return None
    failed: int = _INT16.unpack_from(frame, error_at)[0]
    return None if failed in HINTABLE else (session_id, error)


class FetchScan:
    """Looks for failures in a response of v12 or above while its bytes still arrive.

    The size prefix stands first and hints stand last, so every partition's error must be seen
    before the first byte goes on. :meth:`advance` is called with more and more of one frame.

    ``clean``: the last partition's header has been seen and none failed: no need to wait for
    the records behind it. ``scanned``: at least one failed, and the whole frame has been seen.
    """

    __slots__ = (
        "_at",
        "_carries",
        "_failures",
        "_open",
        "_partitions",
        "_started",
        "_topic",
        "_topics",
        "_version",
        "clean",
        "error",
        "scanned",
        "session_id",
    )

    def __init__(self, version: int) -> None:
        self._version = version
        self._at = 8
        self._started = False
        self._topics = 0
        self._partitions = 0
        self._topic: Topic = ""
        self._open: tuple[int, int] | None = None
        self._failures: list[Failure] = []
        self._carries = False
        self.clean = False
        self.scanned: Scanned | None = None
        self.error = 0
        self.session_id = 0

    def advance(self, frame: memoryview, have: int, size: int) -> None:
        """Go on with the first ``have`` bytes of ``frame``, which will have ``size`` in all.

        The frame begins with its size prefix. Does nothing once ``clean`` or ``scanned``.

        :raises Malformed: the bytes cannot be a response of this version.
        :raises Truncated: the whole frame is at hand and yet too short.
        """
        try:
            self._advance(Reader(frame, self._at, have), size)
        except Truncated:
            if have == size or self._at > size:
                raise

    def _advance(self, reader: Reader, size: int) -> None:
        if not self._started:
            self._start(reader)
        while not self.clean:
            if self._open is not None:
                self._close_partition(reader)
            elif self._partitions:
                self._pass_plain(reader)
                self._open_partition(reader)
            elif self._topics:
                self._open_topic(reader)
            else:
                self._finish(reader, size)
                return

    def _start(self, reader: Reader) -> None:
        reader.skip_tags()
        at = reader.at
        reader.skip(_RESPONSE.size)
        _, self.error, self.session_id = _RESPONSE.unpack_from(reader.buffer, at)
        self._topics = self._count(reader)
        self._started = True
        self._at = reader.at
        self.clean = self._topics == 0

    def _open_topic(self, reader: Reader) -> None:
        topic = _read_topic(reader, self._version)
        partitions = self._count(reader)
        if not partitions:
            reader.skip_tags()
            self._topics -= 1
        self._topic, self._partitions = topic, partitions
        self._at = reader.at

    def _count(self, reader: Reader) -> int:
        # Not compact_array: that refuses what the bytes at hand cannot hold, and here more
        # may come. Nothing is allocated for the count.
        return max(reader.uvarint() - 1, 0)

    def _pass_plain(self, reader: Reader) -> None:
        """Pass over partitions as nearly all are, up to the topic's last, at less cost.

        Those are wholly at hand, without error, aborted transactions and tags.
        """
        frame, at, end = reader.buffer, reader.at, reader.end
        while self._partitions > 1 and at + _SMALLEST_PARTITION <= end:
            _, error, _, _, _ = _PARTITION.unpack_from(frame, at)
            if error in HINTABLE or frame[at + _PARTITION.size] > 1:
                break
            try:
                length, records = read_uvarint(frame, at + _RECORDS_AT, end)
            except Truncated:
                break
            tags = records + max(length - 1, 0)
            if tags >= end or frame[tags]:
                break
            self._carries |= length > 1
            self._partitions -= 1
            at = tags + 1
        self._at = reader.at = at

    def _open_partition(self, reader: Reader) -> None:
        """Read a partition up to its records, and pass over those: they need not be here."""
        at = reader.at
        reader.skip(_PARTITION.size)
        partition, error, _, _, _ = _PARTITION.unpack_from(reader.buffer, at)
        for _ in range(max(reader.uvarint() - 1, 0)):
            reader.skip(_SMALLEST_ABORTED - 1)
            reader.skip_tags()
        reader.skip(4)
        length, records = read_uvarint(reader.buffer, reader.at, reader.end)
        if length > 1:
            self._carries = True
        self._open = (partition, error)
        self._at = reader.at = records + max(length - 1, 0)
        if error not in HINTABLE and not self._failures:
            self.clean = self._topics == 1 and self._partitions == 1

    def _close_partition(self, reader: Reader) -> None:
        assert self._open is not None
        tags = reader.at
        reader.skip_tags()
        partition, error = self._open
        at = reader.at
        if self._partitions == 1:
            reader.skip_tags()
        if error in HINTABLE:
            self._failures.append(Failure(self._topic, partition, error, tags, at))
        if self._partitions == 1:
            self._topics -= 1
        self._open = None
        self._partitions -= 1
        self._at = reader.at

    def _finish(self, reader: Reader, size: int) -> None:
        if not self._failures:
            # The last topics had no partitions: nothing is left that could fail.
            self.clean = True
            return
        tags = reader.at
        reader.skip_tags()
        if reader.at != size:
            raise Malformed(f"{size - reader.at} bytes behind the response")
        self.scanned = Scanned(tuple(self._failures), self._carries, tags, reader.at)
