"""Fetch requests: what is asked of leaders (or of a near replica, KIP-392).

Request v7: fetch sessions (KIP-227). v9: leader epochs (KIP-320). v11: rack id (KIP-392). v12:
flexible, LastFetchedEpoch, tag 0 ClusterId. v13: topic ids for names (KIP-516). v15: ReplicaId
moves from the first field into the tagged ReplicaState (tag 1, KIP-903). v16 (KIP-951): the body
of v15. v17: a tagged directory id in each partition (KIP-853).
"""

import struct
from typing import NamedTuple

from leader_hints.apis.fetch_response import TOPIC_IDS_FROM, Topic
from leader_hints.apis.header import header_as, plain_body, read_request_header
from leader_hints.apis.metadata import ZERO_ID
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import LONGEST_TEXT, Reader
from leader_hints.wire.steps import ENTRIES_AT_ONCE, Steps, at_once
from leader_hints.wire.varint import write_uvarint
from leader_hints.wire.writer import compact_string, string

#: From here on there are sessions.
_SESSIONS_FROM = 7
#: The newest version with the old encoding.
_OLD = 11
#: From this version on a client names its rack, and a follower may answer it (KIP-392).
RACK_FROM = 11
#: From here on the replica id stands in a tag.
_REPLICA_STATE_FROM = 15
_CLUSTER_ID_TAG, _REPLICA_STATE_TAG = 0, 1
#: Bytes of a field that stands in a tag: the cluster's id, with its size.
_LONGEST_TAG = LONGEST_TEXT + 3
#: The tags that end a replica's request: count, tag, size, replica id, replica epoch, no tags.
_STATE = struct.Struct(">BBBi8xB")
_STATE_SIZE = 13

#: The version's second byte: those that are read here have no more.
_VERSION_AT = 7
#: Max wait, min bytes, max bytes, isolation level, session id, session epoch.
_FIXED = struct.Struct(">iiibii")
#: Partition, leader epoch, fetch offset, last fetched epoch, log start offset, max bytes.
_ASKED = struct.Struct(">iiqiqi")
#: Where the last fetched epoch stands, which v11 does not have.
_LAST_FETCHED_EPOCH = slice(16, 20)
_EPOCH = struct.Struct(">ii")
_INT32 = struct.Struct(">i")

#: Partitions of a topic up to which it costs less to read them one by one.
_FEW = 4
#: A request of which the reading takes no more than a millisecond.
SMALL = 8192
#: Partitions of a topic that are read in one step, and how many of them cost what a topic does.
_MANY = 4096
_TOPIC = 4
#: Of one request, and as many again that leave its session. A broker leads some thousands of
#: partitions; a request of a million topics, which are three bytes each, would stop the event loop
#: for seconds, and anybody can send one.
_MOST_TOPICS = 20_000
#: Topics that are passed over in one step, of a microsecond or two each, and partitions of topics
#: in which some have tagged fields: no client sends any.
_MOST_PASSED = 1000
#: Of v11: the size of its name, and the count of its partitions.
_SMALLEST_TOPIC = 6
_MOST_PARTITIONS = 100_000

#: Session epochs with a meaning of their own (KIP-227): a full fetch that wants a session,
#: and one that wants none (or the end of one).
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

#: Leader epochs (-1: not known) by partition, by topic.
Asked = dict[Topic, dict[int, int]]


class Asker(NamedTuple):
    """``replica``: a follower asks. ``full``: for all partitions that it wants, in no session or
    in a new one.
    """

    replica: bool
    full: bool


class Changes(NamedTuple):
    """What a request changes in its session: leader epochs of partitions, and what leaves it."""

    asked: Asked
    forgotten: tuple[tuple[Topic, tuple[int, ...]], ...]


class FetchRequest(NamedTuple):
    """The content of a request of v12 to v17.

    ``max_wait`` in milliseconds. ``topics``: in full for a full fetch, what changed for an
    incremental one; each partition as its 32 bytes stand in the request. ``forgotten``: what
    leaves the session. ``cluster_id``: the tag's payload.
    """

    replica_id: int
    max_wait: int
    min_bytes: int
    max_bytes: int
    isolation: int
    session_id: int
    session_epoch: int
    topics: tuple[tuple[Topic, tuple[bytes, ...]], ...]
    forgotten: tuple[tuple[Topic, tuple[int, ...]], ...]
    rack: str | None
    cluster_id: bytes | None

    @property
    def lacks_id(self) -> bool:
        """Whether a topic has an id of all zeros."""
        return any(topic == ZERO_ID for topic, _ in (*self.topics, *self.forgotten))

    @property
    def few_places(self) -> set[tuple[Topic, int]] | None:
        """Its partitions with their topics; ``None`` where it names more than a few of either."""
        if len(self.topics) > _FEW or any(len(asked) > _FEW for _, asked in self.topics):
            return None
        return {
            (topic, _INT32.unpack_from(raw)[0])
            for topic, partitions in self.topics
            for raw in partitions
        }

    def asked(self) -> Steps[Asked]:
        """Return its leader epochs, in steps."""
        asked: Asked = {}
        done = 0
        for topic, partitions in self.topics:
            epochs = asked.setdefault(topic, {})
            for begin in range(0, len(partitions), _MANY):
                some = partitions[begin : begin + _MANY]
                epochs.update(map(_EPOCH.unpack_from, some))
                done += _TOPIC + len(some)
                if done >= _MANY:
                    done = 0
                    yield
        return asked


def read_request(frame: memoryview) -> FetchRequest:
    """Read a whole request of v12 to v17; ``frame`` begins with the size prefix.

    :raises WireError: the request is not well formed.
    """
    return at_once(read_in_steps(frame))


def read_in_steps(frame: memoryview) -> Steps[FetchRequest]:
    """Do as :func:`read_request`, in steps."""
    reader = Reader(frame, plain_body(frame) or read_request_header(frame).body)
    version = frame[_VERSION_AT]
    replica_id = reader.int32() if version < _REPLICA_STATE_FROM else -1
    at = reader.at
    reader.skip(_FIXED.size)
    max_wait, min_bytes, max_bytes, isolation, session_id, epoch = _FIXED.unpack_from(frame, at)
    topics = yield from _read_topics(reader, version)
    forgotten = yield from _read_forgotten(reader, version)
    rack = reader.clients_string()
    tags = _read_tags(reader)
    reader.done()
    if _REPLICA_STATE_TAG in tags and version >= _REPLICA_STATE_FROM:
        replica_id = Reader(tags[_REPLICA_STATE_TAG]).int32()
    return FetchRequest(
        replica_id,
        max_wait,
        min_bytes,
        max_bytes,
        isolation,
        session_id,
        epoch,
        topics,
        forgotten,
        rack,
        tags.get(_CLUSTER_ID_TAG),
    )


def read_session(frame: memoryview) -> tuple[int, int, bool]:
    """Return session id, session epoch, and whether a request names no partition at all.

    Cheaper than :func:`read_request`: an idle session's requests name none.

    :raises WireError: the request is not well formed.
    """
    at = plain_body(frame) or read_request_header(frame).body
    if frame[_VERSION_AT] < _REPLICA_STATE_FROM:
        at += 4
    reader = Reader(frame, at)
    reader.skip(_FIXED.size + 2)
    *_, session_id, session_epoch = _FIXED.unpack_from(frame, at)
    # Two empty arrays take a byte each; whatever else stands there names something.
    empty = frame[reader.at - 2] <= 1 and frame[reader.at - 1] <= 1
    return session_id, session_epoch, empty


def read_changes(frame: memoryview) -> Changes:
    """Read the partitions of a request of v12 to v17, and nothing else.

    Cheaper than :func:`read_request`: a session's request names each partition of which something
    came, so nearly each response has it read.

    :raises WireError: the request is not well formed up to there.
    """
    reader = Reader(frame, plain_body(frame) or read_request_header(frame).body)
    version = frame[_VERSION_AT]
    reader.skip(_FIXED.size if version >= _REPLICA_STATE_FROM else _FIXED.size + 4)
    asked: Asked = {}
    left = _MOST_PARTITIONS
    for _ in range(_topics(reader)):
        topic = _read_topic(reader, version)
        epochs = asked.get(topic)
        if epochs is None:
            epochs = asked[topic] = {}
        count, left = _partitions(reader, _ASKED.size + 1, left)
        if count > _FEW:
            epochs.update(map(_EPOCH.unpack_from, at_once(_read_many(reader, count))))
        else:
            for _ in range(count):
                at = reader.at
                reader.skip(_ASKED.size)
                partition, epoch = _EPOCH.unpack_from(frame, at)
                epochs[partition] = epoch
                reader.skip_tags()
        reader.skip_tags()
    return Changes(asked, at_once(_read_forgotten(reader, version)))


def read_asked(frame: memoryview) -> tuple[int, Asked]:
    """Return the session of a request of v11 to v17, and the leader epochs that it names.

    :raises WireError: the request is not well formed up to there, or has very many topics.
    """
    if frame[_VERSION_AT] > _OLD:
        return read_session(frame)[0], read_changes(frame).asked
    reader = Reader(frame, read_request_header(frame).body + _INT32.size)
    at = reader.at
    reader.skip(_FIXED.size)
    *_, session_id, _ = _FIXED.unpack_from(frame, at)
    asked: Asked = {}
    width = _ASKED.size - _INT32.size
    for _ in range(_few_topics(reader.array(_SMALLEST_TOPIC))):
        epochs = asked.setdefault(reader.string() or "", {})
        count, at = reader.array(width), reader.at
        reader.skip(width * count)
        epochs.update(_EPOCH.unpack_from(frame, at + width * number) for number in range(count))
    return session_id, asked


def read_asker(frame: memoryview) -> Asker:
    """Return the replica id and session of a request of v4 to v17; ``frame`` may end there.

    :raises WireError: the request is not well formed, or too little of it is there.
    """
    header = read_request_header(frame)
    reader = Reader(frame, header.body)
    if header.version < _REPLICA_STATE_FROM:
        replica_id = reader.int32()
    elif len(frame) > SMALL:
        replica_id = _replica_at_the_end(frame)
    else:
        replica_id = read_request(frame).replica_id
    if header.version < _SESSIONS_FROM:
        return Asker(replica_id >= 0, full=True)
    at = reader.at
    reader.skip(_FIXED.size)
    return Asker(replica_id >= 0, _FIXED.unpack_from(frame, at)[-1] <= INITIAL_EPOCH)


def ask_at_once(frame: memoryview) -> None:
    """Have a request, which has begun, answered at once, with what there is, or with nothing.

    :raises WireError: too little of it is there, or its header is not well formed.
    """
    _INT32.pack_into(frame, _fixed_at(frame), 0)


def ask_for_all(frame: memoryview) -> None:
    """Have a request of a session, which has begun, answered with INVALID_FETCH_SESSION_EPOCH.

    Its client then asks for all its partitions at once. Others stay as they are.

    :raises WireError: too little of it is there, or its header is not well formed.
    """
    at = _fixed_at(frame) + _FIXED.size - _INT32.size
    (epoch,) = _INT32.unpack_from(frame, at)
    if epoch > INITIAL_EPOCH:
        _INT32.pack_into(frame, at, epoch - 1 or epoch + 1)


def _fixed_at(frame: memoryview) -> int:
    """Return where the fields of fixed sizes begin, all of which are there."""
    header = read_request_header(frame)
    reader = Reader(frame, header.body)
    if header.version < _REPLICA_STATE_FROM:
        reader.skip(_INT32.size)
    at = reader.at
    reader.skip(_FIXED.size)
    return at


def read_rack(frame: memoryview) -> str:
    """Return the rack that a whole request of v11 to v17 names; "": none, or a replica asks.

    Cheap where there are few topics: partitions are passed over.

    :raises WireError: the request is not well formed, or has very many topics or tagged fields.
    """
    version = frame[_VERSION_AT]
    reader = Reader(frame, read_request_header(frame).body)
    replica_id = reader.int32() if version < _REPLICA_STATE_FROM else -1
    reader.skip(_FIXED.size)
    if version <= _OLD:
        _pass_old(reader, _ASKED.size - _INT32.size)
        _pass_old(reader, _INT32.size)
        rack = reader.string()
    else:
        _pass_flexible(reader, version)
        _pass_forgotten(reader, version)
        rack = reader.clients_string()
        if _REPLICA_STATE_TAG in _read_tags(reader) and version >= _REPLICA_STATE_FROM:
            return ""
    return "" if replica_id >= 0 else rack or ""


def _pass_old(reader: Reader, width: int) -> None:
    """Pass over topics of v11, whose partitions take ``width`` bytes each."""
    for _ in range(_few_topics(reader.array(_SMALLEST_TOPIC))):
        reader.skip(max(reader.int16(), 0))
        reader.skip(width * reader.array(width))


def _pass_flexible(reader: Reader, version: int) -> None:
    """Pass over the topics of v12 or above."""
    width, tagged = _ASKED.size + 1, 0
    for _ in range(_few_topics(reader.compact_array(3))):
        _pass_topic(reader, version)
        left = reader.compact_array(width)
        block = reader.buffer[reader.at : reader.at + left * width]
        if any(block[_ASKED.size :: width]):
            tagged += left
            if tagged > _MOST_PASSED:
                raise Malformed(f"{tagged} partitions with tagged fields")
            for _ in range(left):
                reader.skip(_ASKED.size)
                reader.skip_tags()
        else:
            reader.skip(left * width)
        reader.skip_tags()


def _pass_forgotten(reader: Reader, version: int) -> None:
    """Pass over what leaves a session of v12 or above."""
    for _ in range(_few_topics(reader.compact_array(3))):
        _pass_topic(reader, version)
        reader.skip(4 * reader.compact_array(4))
        reader.skip_tags()


def _pass_topic(reader: Reader, version: int) -> None:
    if version >= TOPIC_IDS_FROM:
        reader.skip(16)
    else:
        reader.skip_compact()


def _few_topics(count: int) -> int:
    if count > _MOST_PASSED:
        raise Malformed(f"{count} topics")
    return count


def _replica_at_the_end(frame: memoryview) -> int:
    """Return the replica id of a large request of v15 to v17; -1: it has none.

    A replica's ends with its state as brokers write it. Where a small one ends so, that may also be
    the rack of a consumer; in front of that, a large one has the empty tags of a topic.
    """
    if len(frame) != _INT32.unpack_from(frame)[0] + _INT32.size:
        raise Truncated("the end of a Fetch request")
    count, tag, size, replica_id, no_tags = _STATE.unpack_from(frame, len(frame) - _STATE.size)
    is_state = count and tag == _REPLICA_STATE_TAG and size == _STATE_SIZE and not no_tags
    return replica_id if is_state else -1


def write_request(original: memoryview, request: FetchRequest, version: int) -> Steps[bytes]:
    """Return ``request`` as a whole frame of v10 to v14, with the header of ``original``.

    Topics are named as the version wants it: by name up to v12, by id from v13 on.

    :raises WireError: the original's header is not well formed, or a name is longer than the
        version can say.
    """
    header, _ = header_as(original, version)
    fixed = _INT32.pack(request.replica_id) + _FIXED.pack(*request[1:7])
    body = yield from (
        _write_old(request, version) if version <= _OLD else _write_flexible(request)
    )
    pieces: list[bytes | bytearray] = [header, fixed, *body]
    return b"".join((_INT32.pack(sum(map(len, pieces))), *pieces))


def _write_old(request: FetchRequest, version: int) -> Steps[list[bytes]]:
    joined: list[bytes] = []
    out = [_INT32.pack(len(request.topics))]
    written = 0
    for topic, partitions in request.topics:
        assert isinstance(topic, str)
        out += [string(topic), _INT32.pack(len(partitions))]
        written += 1
        if not written % ENTRIES_AT_ONCE:
            _join(joined, out)
            yield
        for raw in partitions:
            written += 1
            if not written % ENTRIES_AT_ONCE:
                _join(joined, out)
                yield
            out += [raw[: _LAST_FETCHED_EPOCH.start], raw[_LAST_FETCHED_EPOCH.stop :]]
    out.append(_INT32.pack(len(request.forgotten)))
    for topic, numbers in request.forgotten:
        written += 1
        if not written % ENTRIES_AT_ONCE:
            _join(joined, out)
            yield
        assert isinstance(topic, str)
        out += [string(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if version >= RACK_FROM:
        out.append(string(request.rack))
    return joined + out


def _write_flexible(request: FetchRequest) -> Steps[list[bytes]]:
    joined: list[bytes] = []
    out = [write_uvarint(len(request.topics) + 1)]
    written = 0
    for topic, partitions in request.topics:
        out += [_named(topic), write_uvarint(len(partitions) + 1)]
        written += 1
        if not written % ENTRIES_AT_ONCE:
            _join(joined, out)
            yield
        for raw in partitions:
            written += 1
            if not written % ENTRIES_AT_ONCE:
                _join(joined, out)
                yield
            out += [raw, b"\0"]
        out.append(b"\0")
    out.append(write_uvarint(len(request.forgotten) + 1))
    for topic, numbers in request.forgotten:
        written += 1
        if not written % ENTRIES_AT_ONCE:
            _join(joined, out)
            yield
        out += [_named(topic), write_uvarint(len(numbers) + 1)]
        out += [struct.pack(f">{len(numbers)}i", *numbers), b"\0"]
    out.append(compact_string(request.rack))
    if request.cluster_id is None:
        out.append(b"\0")
    else:
        size = write_uvarint(len(request.cluster_id))
        out += [b"\x01", bytes([_CLUSTER_ID_TAG]), size, request.cluster_id]
    return joined + out


def _join(joined: list[bytes], out: list[bytes]) -> None:
    """Join what was written in a step: to join 200,000 pieces at the end, and to free them, took
    twenty milliseconds.
    """
    joined.append(b"".join(out))
    out.clear()


def _named(topic: Topic) -> bytes:
    return topic if isinstance(topic, bytes) else compact_string(topic)


def _read_topic(reader: Reader, version: int) -> Topic:
    return reader.uuid() if version >= TOPIC_IDS_FROM else reader.clients_string() or ""


def _topics(reader: Reader) -> int:
    count = reader.compact_array(3)
    if count > _MOST_TOPICS:
        raise Malformed(f"{count} topics")
    return count


def _partitions(reader: Reader, smallest: int, left: int) -> tuple[int, int]:
    """Return how many partitions a topic has, and how many others may have then."""
    count = reader.compact_array(smallest)
    if count > left:
        raise Malformed(f"more than {_MOST_PARTITIONS} partitions")
    return count, left - count


def _read_topics(
    reader: Reader, version: int
) -> Steps[tuple[tuple[Topic, tuple[bytes, ...]], ...]]:
    topics = []
    left, done = _MOST_PARTITIONS, 0
    for _ in range(_topics(reader)):
        topic = _read_topic(reader, version)
        count, left = _partitions(reader, _ASKED.size + 1, left)
        if count > _FEW:
            partitions = yield from _read_many(reader, count)
        else:
            partitions = _read_few(reader, count)
        topics.append((topic, tuple(partitions)))
        reader.skip_tags()
        done += 1 + count
        if done >= ENTRIES_AT_ONCE:
            done = 0
            yield
    return tuple(topics)


def _read_few(reader: Reader, count: int) -> list[bytes]:
    partitions = []
    for _ in range(count):
        partitions.append(reader.take(_ASKED.size))
        reader.skip_tags()
    return partitions


def _read_many(reader: Reader, count: int) -> Steps[list[bytes]]:
    partitions: list[bytes] = []
    width = _ASKED.size + 1
    while count:
        some = min(count, _MANY)
        block = bytes(reader.buffer[reader.at : reader.at + some * width])
        if any(block[_ASKED.size :: width]):
            some = min(count, ENTRIES_AT_ONCE)
            partitions += _read_few(reader, some)
        else:
            # None has tags, as with nearly all requests: there may be thousands.
            reader.skip(some * width)
            partitions += (block[at : at + _ASKED.size] for at in range(0, some * width, width))
        count -= some
        if count:
            yield
    return partitions


def _read_forgotten(
    reader: Reader, version: int
) -> Steps[tuple[tuple[Topic, tuple[int, ...]], ...]]:
    forgotten = []
    left = _MOST_PARTITIONS
    for number in range(1, _topics(reader) + 1):
        topic = _read_topic(reader, version)
        count, left = _partitions(reader, 4, left)
        numbers = struct.unpack(f">{count}i", reader.take(4 * count))
        reader.skip_tags()
        forgotten.append((topic, numbers))
        if not number % ENTRIES_AT_ONCE:
            yield
    return tuple(forgotten)


def _read_tags(reader: Reader) -> dict[int, bytes]:
    tags = {}
    for _ in range(reader.tag_count()):
        tag, size = reader.uvarint(), reader.uvarint()
        if size > _LONGEST_TAG:
            raise Malformed(f"tagged field of {size} bytes")
        tags[tag] = reader.take(size)
    return tags
