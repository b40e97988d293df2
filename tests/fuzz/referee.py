"""What a link may do to what goes through it, written down once more.

Frames are walked on both sides of the link at once. One that differs must be of a version that
the plan raises, or a response to such a request, and must be one that can be read: what cannot
be read goes on byte for byte. What differs must say the same, but for the hints that were given.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from tests.apis.chance import flexible
from tests.apis.messages import Entity, request_type, response_type
from tests.core.brokers import NAMES, NAMES_SYNTHETIC, SYNTHETIC
from tests.fuzz.case import Case, Outcome
from tests.fuzz.reading import (
    TAGS,
    Head,
    Position,
    Unreadable,
    Values,
    read,
    response_body,
)
from tests.fuzz.way import Allowed, Way, rule

P, F, M, V = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS
#: Versions that may be sent for one that was asked, where the number alone changes, and where
#: the message is rewritten.
_RESTAMPED: Mapping[tuple[int, int], int] = {(P, 10): 9, (F, 16): 15}
_REWRITTEN: Mapping[tuple[int, int], Collection[int]] = {
    (P, 9): (8,),
    (P, 10): (8,),
    (F, 12): (11,),
    (F, 13): (12,),
    (F, 14): (12, 13),
    (F, 15): (12, 13, 14),
    (F, 16): (12, 13, 14),
}
#: The same where topic ids are synthetic.
_REWRITTEN_SYNTHETIC: Mapping[tuple[int, int], Collection[int]] = {
    **{cell: sent for cell, sent in _REWRITTEN.items() if cell[0] == P},
    # Clients that use no Fetch 16 are served as elsewhere.
    **{(F, asked): {11, 12, *_REWRITTEN.get((F, asked), ())} for asked in range(12, 17)},
    **{(M, asked): range(9, asked + 1) for asked in (10, 11, 12)},
}
#: Fetch, where a client names no rack, in front of brokers that forget the epochs of fetch
#: sessions.
_RACKLESS = 10
#: Up to this version of Fetch responses a name may be null, which says the same as an empty one.
_NAMED_BY_NULL = 11
#: From here on Fetch has topic ids.
_IDS_FROM = 13
#: What may be offered where a broker's maximum is so much.
_OFFERED: Mapping[tuple[int, int], Collection[int]] = {
    **{(P, takes): (10,) for takes in (8, 9)},
    (F, 11): (12,),
    **{(F, takes): (16,) for takes in range(12, 16)},
}
_OFFERED_SYNTHETIC: Mapping[tuple[int, int], Collection[int]] = {
    **_OFFERED,
    (F, 11): (12, 16),
    (M, 9): (10,),
    **{(M, takes): (12,) for takes in (10, 11)},
}
#: From here on the responses of ApiVersions are the same.
_FLEXIBLE_VERSIONS = 3
#: Kinds of links on which no byte changes.
_UNTOUCHED = {"3.7", "observe", "off"}
_UNKNOWN_TOPIC, _UNKNOWN_TOPIC_ID = (3).to_bytes(2), (100).to_bytes(2)
_TOPICS_OPERATIONS = "include_topic_authorized_operations"
#: Errors that hints answer: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH.
_FAILED = {(6).to_bytes(2), (74).to_bytes(2)}
#: The tag of each field of KIP-951, and the version from which on clients know it.
_CURRENT_LEADER: Mapping[int, tuple[int, int]] = {P: (0, 10), F: (1, 12)}
_NODE_ENDPOINTS: Mapping[int, tuple[int, int]] = {P: (0, 10), F: (0, 16)}
#: Topics that are answered without the broker: ids, and the numbers of the partitions.
_Refused = tuple[bytes, list[bytes]]
#: Fields of Fetch requests that stay, and those that stay unless a topic's name is not known.
_ALWAYS = ("min_bytes", "isolation_level")
_BUT_WHERE_LACKING = ("session_id", "session_epoch", "max_wait")
#: Tags behind the last records, which an older version does not have.
_TAGS_BEHIND = 3
#: What a flow may keep besides: the memory with which it begins, of two flows.
_FIRST = 2 * 65_536


class Rules(NamedTuple):
    """What is rewritten on links of a kind, and the topics that are known there, by id."""

    rewritten: Mapping[tuple[int, int], Collection[int]]
    names: Mapping[bytes, str]
    synthetic: bool

    @classmethod
    def of(cls, kind: str) -> Self:
        """Return those of a kind of links."""
        synthetic = kind.endswith(SYNTHETIC)
        rewritten = _REWRITTEN_SYNTHETIC if synthetic else _REWRITTEN
        if kind.startswith("2.4"):
            rewritten = {
                cell: (_RACKLESS, *sent) if cell[0] == F else sent
                for cell, sent in rewritten.items()
            }
        # Brokers below 2.8 have no ids, and of a new one nothing is known.
        real = {} if kind.startswith(("2.4", "2.6")) or kind == "new" else NAMES
        names = {**real, **(NAMES_SYNTHETIC if synthetic else {})}
        return cls(rewritten, names, synthetic)

    def offered(self, key: int, takes: int) -> Collection[int]:
        """Return what may be offered of an API in place of a broker's maximum."""
        if not self.synthetic:
            return _OFFERED.get((key, takes), ())
        # Fetch by topic ids is none of the broker's.
        takes = min(takes, _IDS_FROM - 1) if key == F else takes
        return _OFFERED_SYNTHETIC.get((key, takes), ())


def judge(case: Case, outcome: Outcome) -> None:
    """Look at all that came out.

    :raises BrokenRuleError: something did that must not.
    """
    driven = outcome.driven
    received = len(outcome.up) + len(outcome.down)
    rule(driven.budget.used == 0, f"{driven.budget.used} bytes stay reserved")
    # What cannot go on as it is is kept beyond the budget, as it comes.
    most = case.total + 2 * received + _FIRST
    rule(outcome.most_used <= most, f"{outcome.most_used} bytes kept of {received}")
    up = Way.of("upwards", outcome.up, driven, driven.link.requests, driven.to_broker)
    down = Way.of("downwards", outcome.down, driven, driven.link.responses, driven.to_client)
    if case.kind in _UNTOUCHED:
        up.is_untouched()
        down.is_untouched()
        return
    rules = Rules.of(case.kind)
    up.walk(_Requests(rules, case.per_link))
    down.walk(_Responses(rules, up.given, outcome.hints))


# Requests.


class _Requests(Allowed):
    """What may become of requests; ``most``: what one link may keep of a response."""

    restamped = _RESTAMPED

    def __init__(self, rules: Rules, most: int) -> None:
        self._rules = rules
        self._most = most

    def may(self, frame: bytes, out: bytes) -> bool:
        """See :class:`Allowed`."""
        return _may_send(self._rules, frame, out, self._most)

    def ends(self, frame: bytes, missing: int) -> Iterable[bytes]:
        """See :class:`Allowed`. Produce 8 has no tags."""
        return (bytes(max(missing - _TAGS_BEHIND, 0)),)


def _may_send(rules: Rules, frame: bytes, out: bytes, most: int) -> bool:
    if len(frame) < 14:
        return False
    key, asked = struct.unpack_from(">hh", frame, 4)
    sent = int.from_bytes(out[6:8], signed=True)
    if sent not in rules.rewritten.get((key, asked), ()):
        return False
    above, below = Head(frame, True), Head(out, flexible(key, sent))
    if (above.key, above.correlation_id) != (below.key, below.correlation_id):
        return False
    # Any negative size is null; it may go as it stands or not.
    if above.client_id != below.client_id:
        return False
    # What stands behind a Metadata request brokers do not look at, and librdkafka writes it.
    asked_values = read(request_type(key, asked), frame, above.body, more=key == M)
    sent_values = read(request_type(key, sent), out, below.body)
    if key == F:
        by_name = rules.names if asked >= 13 > sent else None
        # A broker whose ApiVersions came otherwise than 2.4 says them may be asked in 11 too.
        if sent == _RACKLESS and asked_values["rack_id"]:
            return False
        return _same_fetch(asked_values, sent_values, sent, by_name, most)
    if key == M:
        return _same_metadata(asked_values, sent_values, rules.names, by_id=asked >= 12)
    return _covers(sent_values, asked_values)


def _covers(part: Any, whole: Any) -> bool:
    """Whether every field of ``part`` stands in ``whole`` too, and arrays are as long."""
    if isinstance(part, dict):
        return all(_covers(value, whole[name]) for name, value in part.items() if name != TAGS)
    if not part and not whole:
        # Null and empty say the same where a schema has no null.
        return True
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_covers, part, whole))
    return bool(part == whole)


def _same_metadata(asked: Values, sent: Values, names: Mapping[bytes, str], *, by_id: bool) -> bool:
    """Whether the same topics are asked for, by name. ``by_id``: an id counts, if there is one, and
    then no topic is to be created."""
    if (asked["topics"] is None) != (sent["topics"] is None):
        return False
    named, creates = [], asked["allow_auto_topic_creation"]
    for topic in asked["topics"] or ():
        name = topic["name"]
        if name is None and not by_id:
            return False
        if name is None or (by_id and any(topic["topic_id"])):
            name = names.get(topic["topic_id"], "").encode() or None
            creates = b"\0"
        named.append(name)
    cluster = "include_cluster_authorized_operations"
    return (
        [topic["name"] for topic in sent["topics"] or ()] == [n for n in named if n is not None]
        and not any(any(topic.get("topic_id", b"")) for topic in sent["topics"] or ())
        and sent.get(cluster, b"\0") == (asked.get(cluster, b"\0") if cluster in sent else b"\0")
        and sent["allow_auto_topic_creation"] == creates
        and sent[_TOPICS_OPERATIONS] == asked[_TOPICS_OPERATIONS]
    )


def _same_fetch(
    asked: Values, sent: Values, version: int, by_name: Mapping[bytes, str] | None, most: int
) -> bool:
    """``by_name``: known topics by id, where ids become names. ``most``: what a broker is asked for
    of responses that may have to be kept."""
    if _int(sent["max_bytes"]) not in _may_ask(asked, version, most):
        return False
    # From 15 on it stands in a tag.
    if sent["replica_id"] != (asked.get("replica_id") or dict(asked[TAGS]).get(1, b"\xff" * 4)[:4]):
        return False
    if not all(_covers(sent[name], asked[name]) for name in _ALWAYS):
        return False
    if not _covers(sent.get("rack_id", b""), asked["rack_id"]):
        return False
    topics, forgotten = asked["topics"] or [], asked["forgotten_topics_data"] or []
    if by_name is not None:
        full = _int(asked["session_epoch"]) <= 0
        empty = not sent["topics"] and not sent["forgotten_topics_data"]
        named_so = _int(asked["session_id"]) == -1
        if not full and _int(sent["session_id"]) == -1 and (empty or not named_so):
            # Refused: the session, or what a topic of it is, is not known. (No broker gives a
            # session this id, but the answers here may.)
            return empty
        topics, forgotten = _named(topics, by_name), _named(forgotten, by_name)
        if full:
            forgotten = []
            known = [topic for topic in topics if topic["topic"] is not None]
            if len(known) < len(topics):
                # Without those that are not known, without a session, and at once.
                topics = known
                asked = {**asked, "session_epoch": b"\xff" * 4, "max_wait": bytes(4)}
    return (
        all(_covers(sent[name], asked[name]) for name in _BUT_WHERE_LACKING)
        and _covers(sent["topics"], topics)
        and _covers(sent["forgotten_topics_data"], forgotten)
    )


def _may_ask(asked: Values, version: int, most: int) -> Collection[int]:
    """Return which ``max_bytes`` may be sent. The records of a single partition are never kept; of
    a session that goes on this does not know how many it has."""
    all_of_it = _int(asked["max_bytes"])
    if version >= 13:
        return {all_of_it}
    # Brokers keep the last of several entries for a partition (FetchRequest.fetchData).
    places = {
        (topic.get("topic_id", topic.get("topic")), partition["partition"])
        for topic in asked["topics"] or []
        for partition in topic["partitions"] or []
    }
    single = len(places) <= 1
    alone = single and _int(asked["session_epoch"]) in (0, -1)
    bounded = min(all_of_it, most)
    return {all_of_it} if alone else {all_of_it, bounded} if single else {bounded}


def _named(topics: Sequence[Values], names: Mapping[bytes, str]) -> list[Values]:
    """Return topics with their names, null where one is not known."""
    return [
        {**topic, "topic": names[topic["topic_id"]].encode() if known else None}
        for topic in topics
        for known in [topic["topic_id"] in names]
    ]


def _int(raw: bytes) -> int:
    return int.from_bytes(raw, signed=True)


# Responses.


class _Asked(NamedTuple):
    """A request, as the client sent it."""

    key: int
    version: int
    frame: bytes

    def refused(self, names: Mapping[bytes, str]) -> Sequence[_Refused]:
        """Return the topics that are answered without the broker, where that is asked by name.

        They are those of a full fetch whose names are not known. An incremental one is refused as
        a whole.
        """
        try:
            head = Head(self.frame, True)
            values = read(request_type(self.key, self.version), self.frame, head.body)
        except Unreadable:
            return ()
        if _int(values["session_epoch"]) > 0:
            return ()
        return [
            (topic["topic_id"], [partition["partition"] for partition in topic["partitions"] or ()])
            for topic in values["topics"] or ()
            if topic["topic_id"] not in names
        ]


class _Responses(Allowed):
    """What may become of responses to the requests ``asked``, a stream, with ``hints``."""

    restamped: Mapping[tuple[int, int], int] = {}

    def __init__(self, rules: Rules, asked: bytes, hints: Sequence[LeaderHint]) -> None:
        self._rules = rules
        self._hints = hints
        self._asked: defaultdict[bytes, list[_Asked]] = defaultdict(list)
        at = 0
        while len(asked) - at >= 12:
            size, key, version = struct.unpack_from(">ihh", asked, at)
            frame = asked[at : at + 4 + size]
            self._asked[frame[8:12]].append(_Asked(key, version, frame))
            if size < 8:
                break
            at += 4 + size

    def may(self, frame: bytes, out: bytes) -> bool:
        """See :class:`Allowed`."""
        asked = self._asked.get(frame[4:8], ())
        return any(_may_get(self._rules, frame, out, one, self._hints) for one in asked)

    def ends(self, frame: bytes, missing: int) -> Iterable[bytes]:
        """See :class:`Allowed`. Fetch 11 has no tags."""
        behind = {b""}
        for asked in self._asked.get(frame[4:8], ()):
            if asked.key == F and asked.version >= _IDS_FROM:
                behind.add(b"".join(map(_written, asked.refused(self._rules.names))))
        for records in (missing, max(missing - _TAGS_BEHIND, 0)):
            for refused in behind:
                # The last partition's tags and its topic's, and at the end those of the body.
                yield bytes(records + 2) + refused + b"\0"


def _written(refused: _Refused) -> bytes:
    """Return a topic as a broker of 3.1 or newer refuses it; it has less than 127 partitions."""
    topic_id, partitions = refused
    # No offsets, null aborted transactions, no preferred replica, empty records, no tags.
    behind = struct.pack(">qqqBiBB", -1, -1, -1, 0, -1, 1, 0)
    every = (number + _UNKNOWN_TOPIC_ID + behind for number in partitions)
    return topic_id + bytes([len(partitions) + 1]) + b"".join(every) + b"\0"


def _may_get(
    rules: Rules, frame: bytes, out: bytes, asked: _Asked, hints: Sequence[LeaderHint]
) -> bool:
    key, version, _ = asked
    if key == V:
        # Whatever is asked, brokers answer in a version that they know.
        return _may_raise(rules, frame, out, min(max(version, 0), _FLEXIBLE_VERSIONS))
    if (key, version) not in rules.rewritten or frame[4:8] != out[4:8]:
        return False
    kind = response_type(key, version)
    try:
        got = read(kind, out, response_body(out, flexible(key, version)))
    except Unreadable:
        return False
    given = _Given(key, version, hints)
    if _only_hints(kind, frame, got, given):
        return True
    for sent in rules.rewritten[key, version]:
        older = response_type(key, sent)
        try:
            values = read(older, frame, response_body(frame, flexible(key, sent)))
        except (Unreadable, IndexError):
            continue
        if key == M:
            if _described(values, got, rules.names):
                return True
            continue
        if key == F and sent <= _NAMED_BY_NULL:
            values["responses"] = [
                {**topic, "topic": topic["topic"] or b""} for topic in values["responses"] or ()
            ]
        if key == F and sent == _RACKLESS:
            for topic in values["responses"]:
                for partition in topic["partitions"] or ():
                    partition["preferred_read_replica"] = b"\xff" * 4
        named: Values | None = got
        if key == F and sent < _IDS_FROM <= version:
            named = _by_name(values, got, rules.names, asked.refused(rules.names))
        if named is not None and _same_but_hints(
            {**values, "responses": values["responses"] or []},
            {**named, "responses": named["responses"] or []},
            given,
        ):
            return True
    return False


def _by_name(
    values: Values, got: Values, names: Mapping[bytes, str], refused: Sequence[_Refused]
) -> Values | None:
    """Return a response by ids as one by names; ``None`` where not just ``refused`` stands behind
    what the broker says."""
    count = len(values["responses"] or ())
    topics = got["responses"] or []
    behind = [
        (
            topic["topic_id"],
            [p["partition_index"] for p in topic["partitions"] or ()],
            {p["error_code"] for p in topic["partitions"] or ()} - {_UNKNOWN_TOPIC_ID},
        )
        for topic in topics[count:]
    ]
    if behind != [(topic_id, partitions, set()) for topic_id, partitions in refused]:
        return None
    return {
        **got,
        "responses": [
            {**topic, "topic": names.get(topic["topic_id"], "").encode()}
            for topic in topics[:count]
        ],
    }


class _Given(NamedTuple):
    """The hints that responses may have got, in a version that a client asked."""

    key: int
    version: int
    hints: Sequence[LeaderHint]


def _only_hints(kind: type[Entity], frame: bytes, got: Values, hinted: _Given) -> bool:
    try:
        body = response_body(frame, bool(kind.__flexible__))
        return _same_but_hints(read(kind, frame, body), got, hinted)
    except Unreadable:
        return False


def _same_but_hints(given: Any, got: Any, hinted: _Given) -> bool:
    if isinstance(given, dict):
        same = all(
            _same_but_hints(value, got[name], hinted)
            for name, value in given.items()
            if name != TAGS
        )
        return same and (given[TAGS] == got[TAGS] or _is_hinted(given, got, hinted))
    if isinstance(given, list):
        return (
            isinstance(got, list)
            and len(given) == len(got)
            and all(
                _same_but_hints(value, other, hinted)
                for value, other in zip(given, got, strict=True)
            )
        )
    return bool(given == got)


def _is_hinted(given: Values, got: Values, hinted: _Given) -> bool:
    """Whether the tags differ in a hint alone, it is one that was given, and it may stand there."""
    key, version, hints = hinted
    if "responses" in given:
        number, since = _NODE_ENDPOINTS[key]
    elif given.get("error_code") in _FAILED:
        number, since = _CURRENT_LEADER[key]
    else:
        return False
    payloads = [payload for tag, payload in got[TAGS] if tag == number]
    # It precedes those of larger numbers; all others as they came.
    lower = [field for field in given[TAGS] if field[0] < number]
    higher = [field for field in given[TAGS] if field[0] > number]
    if len(payloads) != 1 or got[TAGS] != [*lower, (number, payloads[0]), *higher]:
        return False
    if version < since:
        return False
    if "responses" in given:
        return _names_nodes(payloads[0], hints)
    return payloads[0] in {struct.pack(">iib", hint.leader, hint.epoch, 0) for hint in hints}


def _names_nodes(payload: bytes, hints: Sequence[LeaderHint]) -> bool:
    position = Position(payload, 0)
    nodes = []
    for _ in range(position.varint() - 1):
        node, host = position.number(4), position.take(position.varint() - 1).decode()
        port, rack = position.number(4), position.varint() - 1
        nodes.append((node, host, port, position.take(rack).decode() if rack >= 0 else None))
        position.tags()
    known = {(hint.leader, *hint.endpoint) for hint in hints}
    return len({node for node, *_ in nodes}) == len(nodes) > 0 and known.issuperset(nodes)


def _described(values: Values, got: Values, names: Mapping[bytes, str]) -> bool:
    """Whether Metadata says the same, but for ids and for topics that have no name."""
    topics, raised = values["topics"] or [], got["topics"] or []
    cluster = (values["cluster_id"] or b"").decode(errors="replace")
    for topic, other in zip(topics, raised, strict=False):
        allowed = {topic.get("topic_id", bytes(16))}
        if topic["name"] is not None:
            name = topic["name"].decode(errors="replace")
            ids = {synthetic_id(cluster, name), *(i for i, known in names.items() if known == name)}
            if topic["error_code"] == bytes(2):
                allowed = ids
            elif other["name"] is None:
                # It was asked for by its id.
                allowed, error = ids, topic["error_code"]
                error = _UNKNOWN_TOPIC_ID if error == _UNKNOWN_TOPIC else error
                topic = {**topic, "name": None, "error_code": error}
        if other["topic_id"] not in allowed or {**topic, "topic_id": 0} != {**other, "topic_id": 0}:
            return False
    for unknown in raised[len(topics) :]:
        if unknown["error_code"] != _UNKNOWN_TOPIC_ID or unknown["name"] or unknown["partitions"]:
            return False
    operations = "cluster_authorized_operations"
    left_out = {"topics": 0, operations: got.get(operations, 0)}
    return len(raised) >= len(topics) and {**values, **left_out} == {
        **got,
        "topics": 0,
        operations: got.get(operations, 0),
    }


def _may_raise(rules: Rules, frame: bytes, out: bytes, version: int) -> bool:
    if len(frame) != len(out) or frame[:8] != out[:8]:
        return False
    kind = response_type(V, version)
    try:
        given, got = read(kind, frame, 8), read(kind, out, 8)
    except Unreadable:
        return False
    if given["error_code"] != bytes(2):
        return False
    for offer, raised in zip(given["api_keys"], got["api_keys"], strict=True):
        key, takes = _int(offer["api_key"]), _int(offer["max_version"])
        if _int(raised["max_version"]) in rules.offered(key, takes):
            raised = raised | {"max_version": offer["max_version"]}
        if offer != raised:
            return False
    return {**given, "api_keys": 0} == {**got, "api_keys": 0}
