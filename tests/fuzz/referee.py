"""What a link may do to what goes through it, written down once more.

Frames are walked on both sides of the link at once. One that differs must be of a version that
the plan raises, or a response to such a request, and must be one that can be read: what cannot
be read goes on byte for byte. What differs must say the same, but for the hints that were given.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

from proxy.apis.keys import ApiKey
from proxy.apis.leader_hint import LeaderHint
from proxy.core.made_up_ids import made_up_id
from tests.apis.chance import flexible
from tests.apis.messages import Entity, request_type, response_type
from tests.core.brokers import MADE_UP, NAMES, NAMES_MADE_UP
from tests.fuzz.case import Case, Outcome
from tests.fuzz.reading import (
    TAGS,
    Head,
    Position,
    Unreadable,
    Values,
    frame_at,
    read,
    response_body,
)

P, F, M, V = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS
#: Versions that may be sent for one that was asked, where the number alone changes, and where
#: the message is written anew.
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
#: The same where topic ids are made up.
_REWRITTEN_MADE_UP: Mapping[tuple[int, int], Collection[int]] = {
    **{cell: sent for cell, sent in _REWRITTEN.items() if cell[0] == P},
    **{(F, asked): (11, 12) for asked in range(12, 17)},
    **{(M, asked): range(9, asked + 1) for asked in (10, 11, 12)},
}
#: From here on the responses of ApiVersions are the same.
_FLEXIBLE_VERSIONS = 3
#: Kinds of links on which no byte changes.
_UNTOUCHED = {"3.7", "observe", "off"}
_UNKNOWN_TOPIC_ID = (100).to_bytes(2)
_CURRENT_LEADER = {P: 0, F: 1}
#: Fields of Fetch requests that stay, and those that stay unless a topic's name is not known.
_ALWAYS = ("min_bytes", "isolation_level", "rack_id")
_BUT_WHERE_LACKING = ("session_id", "session_epoch", "max_wait")
#: Tags behind the last records, which an older version does not have.
_TAGS_BEHIND = 3
_MOST_MISSING = 1 << 22
#: So many of the last bytes of an unfinished frame tell where the other one stood.
_ALIKE = 16
#: What a flow may keep besides: the memory with which it begins, of two flows.
_FIRST = 2 * 65_536


class Rules(NamedTuple):
    """What is written anew on links of a kind, and the topics that are known there, by id."""

    rewritten: Mapping[tuple[int, int], Collection[int]]
    names: Mapping[bytes, str]

    @classmethod
    def of(cls, kind: str) -> Self:
        """Return those of a kind of links."""
        rewritten = _REWRITTEN_MADE_UP if kind.endswith(MADE_UP) else _REWRITTEN
        real = {} if kind.startswith("2.4") else NAMES
        return cls(rewritten, {**NAMES_MADE_UP, **real})


class BrokenRuleError(AssertionError):
    """The link did what it must not."""


def judge(case: Case, outcome: Outcome) -> None:
    """Look at all that came out.

    :raises BrokenRuleError: something did that must not.
    """
    driven = outcome.driven
    received = len(outcome.up) + len(outcome.down)
    _rule(driven.budget.used == 0, f"{driven.budget.used} bytes stay reserved")
    # What cannot go on as it is is kept beyond the budget, as it comes.
    allowed = case.total + 2 * received + _FIRST
    _rule(outcome.most_used <= allowed, f"{outcome.most_used} bytes kept of {received}")
    sent, got = bytes(driven.to_broker), bytes(driven.to_client)
    up, down = bytes(outcome.up), bytes(outcome.down)
    if case.kind in _UNTOUCHED:
        fault = driven.link.requests.fault is not None
        _rule(sent == up or (fault and up.startswith(sent)), "a byte changed upwards")
        _rule(got == down or (fault and down.startswith(got)), "a byte changed downwards")
        return
    ended = driven.link.requests.fault is not None
    rules = Rules.of(case.kind)
    _walk(up, sent, lambda a, b: _may_send(rules, a, b, case.per_link), ended, "upwards")
    asked = _asked(up)
    hints = outcome.hints

    def may_get(frame: bytes, other: bytes) -> bool:
        return any(
            _may_get(rules, frame, other, key, version, hints)
            for key, version in asked.get(frame[4:8], ())
        )

    _walk(down, got, may_get, driven.link.responses.fault is not None, "downwards")


def _rule(kept: bool, text: str) -> None:
    if not kept:
        raise BrokenRuleError(text)


def _walk(
    given: bytes, out: bytes, may: Callable[[bytes, bytes], bool], ended: bool, way: str
) -> None:
    """Compare frame by frame; ``ended``: what cannot go on ended the stream."""
    at = come = 0
    while given[at:] != out[come:]:
        frame = frame_at(given, at)
        if ended and come == len(out):
            return
        if frame is None:
            # The version number of a request, or the beginning of a frame that is written anew.
            restamped = way == "upwards" and _restamped(given[at:], out[come:])
            _rule(
                restamped or _begins(given[at:], out[come:], may),
                f"{way}: bytes changed behind {at}",
            )
            return
        same = out[come : come + len(frame)]
        if same == frame or (way == "upwards" and _restamped(frame, same)):
            come += len(frame)
        else:
            other = frame_at(out, come)
            if other is None:
                broken = ended and _broke_off(frame, out[come:], may)
                _rule(broken, f"{way}: no frame for the one at {at}")
                return
            try:
                _rule(may(frame, other), f"{way}: frame at {at} changed")
            except Unreadable:
                _rule(False, f"{way}: frame at {at} cannot be read and changed")
            come += len(other)
        at += len(frame)


def _begins(given: bytes, out: bytes, may: Callable[[bytes, bytes], bool]) -> bool:
    """Whether unfinished frames say the same: were records of zeros to follow, and no tags."""
    if min(len(given), len(out)) < 8:
        return False
    missing, lacking = (
        4 + struct.unpack_from(">i", stream)[0] - len(stream) for stream in (given, out)
    )
    if not 0 < missing < _MOST_MISSING or lacking < 0:
        return False
    if lacking - missing > _TAGS_BEHIND:
        # What is answered for topics that the broker was not asked for is still to come.
        return True
    try:
        return may(given + bytes(missing), out + bytes(lacking))
    except Unreadable:
        return False


def _broke_off(frame: bytes, out: bytes, may: Callable[[bytes, bytes], bool]) -> bool:
    """Whether an unfinished frame says the same as one that does not end in empty tag sections.

    Such a frame ends the link when its last bytes come, and its records may have passed by then.
    """
    if len(frame) < _TAGS_BEHIND or len(out) < 4:
        return False
    lacking = 4 + struct.unpack_from(">i", out)[0] - len(out)
    end = len(frame) - _TAGS_BEHIND
    come = frame.find(out[-_ALIKE:])
    if come >= 0 and lacking - (len(frame) - come - _ALIKE) > _TAGS_BEHIND:
        # As in _begins: what is answered for topics that the broker was not asked for.
        return True
    for tags in (b"", bytes(_TAGS_BEHIND)):
        records = lacking - len(tags)
        try:
            if 0 <= records <= end and may(
                frame[:end] + bytes(_TAGS_BEHIND), out + frame[end - records : end] + tags
            ):
                return True
        except Unreadable:
            continue
    return False


def _restamped(frame: bytes, out: bytes) -> bool:
    if len(frame) < 12 or len(out) != len(frame):
        return False
    key, asked = struct.unpack_from(">hh", frame, 4)
    sent = _RESTAMPED.get((key, asked))
    return sent is not None and out == frame[:6] + sent.to_bytes(2) + frame[8:]


def _asked(up: bytes) -> Mapping[bytes, Collection[tuple[int, int]]]:
    """Return key and version of the requests by correlation id."""
    asked: defaultdict[bytes, set[tuple[int, int]]] = defaultdict(set)
    at = 0
    while len(up) - at >= 12:
        size, key, version = struct.unpack_from(">ihh", up, at)
        asked[up[at + 8 : at + 12]].add((key, version))
        if size < 8:
            break
        at += 4 + size
    return asked


# Requests.


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
    """Whether the same topics are asked for, by name. ``by_id``: a name may be missing."""
    if (asked["topics"] is None) != (sent["topics"] is None):
        return False
    named = []
    for topic in asked["topics"] or ():
        name = topic["name"]
        if name is None:
            if not by_id:
                return False
            name = names.get(topic["topic_id"], "").encode() or None
        named.append(name)
    cluster = "include_cluster_authorized_operations"
    return (
        [topic["name"] for topic in sent["topics"] or ()] == [n for n in named if n is not None]
        and not any(any(topic.get("topic_id", b"")) for topic in sent["topics"] or ())
        and sent.get(cluster, b"\0") == (asked.get(cluster, b"\0") if cluster in sent else b"\0")
        and all(
            sent[flag] == asked[flag]
            for flag in ("allow_auto_topic_creation", "include_topic_authorized_operations")
        )
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
    topics, forgotten = asked["topics"] or [], asked["forgotten_topics_data"] or []
    if by_name is not None:
        full = _int(asked["session_epoch"]) <= 0
        if not full and _int(sent["session_id"]) == -1:
            # Refused: the session, or what a topic of it is, is not known.
            return not sent["topics"] and not sent["forgotten_topics_data"]
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
    single = sum(len(topic["partitions"] or []) for topic in asked["topics"] or []) <= 1
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


def _may_get(
    rules: Rules,
    frame: bytes,
    out: bytes,
    key: int,
    version: int,
    hints: Sequence[LeaderHint],
) -> bool:
    if key == V:
        # Whatever is asked, brokers answer in a version that they know.
        return _may_raise(frame, out, min(max(version, 0), _FLEXIBLE_VERSIONS))
    if (key, version) not in rules.rewritten or frame[4:8] != out[4:8]:
        return False
    kind = response_type(key, version)
    try:
        got = read(kind, out, response_body(out, flexible(key, version)))
    except Unreadable:
        return False
    if _only_hints(kind, frame, got, key, hints):
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
        by_id = rules.names if key == F and sent < 13 <= version else None
        if _raised(values, got, key, hints, by_id):
            return True
    return False


def _only_hints(
    kind: type[Entity], frame: bytes, got: Values, key: int, hints: Sequence[LeaderHint]
) -> bool:
    try:
        body = response_body(frame, bool(kind.__flexible__))
        return _same_but_hints(read(kind, frame, body), got, key, hints)
    except Unreadable:
        return False


def _same_but_hints(given: Any, got: Any, key: int, hints: Sequence[LeaderHint]) -> bool:
    if isinstance(given, dict):
        tags = given[TAGS]
        same = all(
            _same_but_hints(value, got[name], key, hints)
            for name, value in given.items()
            if name != TAGS
        )
        return same and (tags == got[TAGS] or _hinted(given, got, key, hints))
    if isinstance(given, list):
        return (
            isinstance(got, list)
            and len(given) == len(got)
            and all(
                _same_but_hints(value, other, key, hints)
                for value, other in zip(given, got, strict=True)
            )
        )
    return bool(given == got)


def _hinted(given: Values, got: Values, key: int, hints: Sequence[LeaderHint]) -> bool:
    """Whether the tags differ in a hint alone, and it is one that was given."""
    number = 0 if "responses" in given else _CURRENT_LEADER[ApiKey(key)]
    payloads = [payload for tag, payload in got[TAGS] if tag == number]
    rest = [field for field in got[TAGS] if field[0] != number]
    if len(payloads) != 1 or rest != [f for f in given[TAGS] if f[0] != number]:
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
        if topic["error_code"] == bytes(2) and topic["name"] is not None:
            name = topic["name"].decode(errors="replace")
            allowed = {
                made_up_id(cluster, name),
                *(i for i, known in names.items() if known == name),
            }
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


def _raised(
    values: Values,
    got: Values,
    key: int,
    hints: Sequence[LeaderHint],
    by_id: Mapping[bytes, str] | None,
) -> bool:
    topics, raised = values["responses"] or [], got["responses"] or []
    if by_id is not None:
        # Behind them those that the broker was not asked for.
        for refused in raised[len(topics) :]:
            if not all(p["error_code"] == _UNKNOWN_TOPIC_ID for p in refused["partitions"] or ()):
                return False
        raised = [
            {**topic, "topic": by_id.get(topic["topic_id"], "").encode()}
            for topic in raised[: len(topics)]
        ]
    older, newer = {**values, "responses": topics}, {**got, "responses": raised}
    return _same_but_hints(older, newer, key, hints)


def _may_raise(frame: bytes, out: bytes, version: int) -> bool:
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
        key = _int(offer["api_key"])
        if key in (P, F, M) and _int(raised["max_version"]) in (10, 12, 16):
            raised = raised | {"max_version": offer["max_version"]}
        if offer != raised:
            return False
    return {**given, "api_keys": 0} == {**got, "api_keys": 0}
