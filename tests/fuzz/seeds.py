"""Exchanges that cases begin with: conversations of the tests, kio's messages, recordings."""

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from leader_hints.core.mode import Mode
from tests.apis import chance
from tests.apis.messages import (
    element,
    plain,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.core.brokers import BROKERS, NAMES, F, M, P, V, names_before
from tests.core.samples import (
    FENCED,
    NOT_LEADER,
    fetch_answer,
    fetch_request,
    metadata_answer,
    produce_answer,
    produce_request,
    request,
    versions_answer,
)
from tests.fuzz.case import KINDS

_SOFTWARE = (
    ("apache-kafka-java", "3.9.1"),
    ("librdkafka", "2.14.0"),
    ("kafka-python", "3.0.1"),
    ("sarama", "1.43"),
)
#: What is sent where the newest of KIP-951 is asked.
_SENT: Mapping[str, Mapping[tuple[int, int], int]] = {
    # Of clients that name no rack.
    "2.4": {(P, 9): 8, (P, 10): 8, (F, 12): 10},
    "2.6": {(P, 9): 8, (P, 10): 8, (F, 12): 11},
    "2.8": {(P, 10): 9, (F, 13): 12, (F, 14): 12, (F, 15): 12, (F, 16): 12},
    "3.4": {(P, 10): 9, (F, 14): 13, (F, 15): 13, (F, 16): 13},
    "3.6": {(P, 10): 9, (F, 16): 15},
    "3.7": {},
    "2.6+": {
        **{(P, 9): 8, (P, 10): 8},
        **{(F, version): 11 for version in range(12, 17)},
        **{(M, version): 9 for version in (10, 11, 12)},
    },
    "2.8+": {
        **{(P, 10): 9, (M, 12): 11},
        **{(F, version): 12 for version in range(13, 17)},
    },
}
_BY_CHANCE = 400


class Exchanged(NamedTuple):
    """A request, and the broker's response to it; empty where none comes.

    Both begin with their size prefix; the correlation id is to be set.
    """

    asked: bytes
    answered: bytes


def numbered(exchanged: Exchanged, number: int) -> Exchanged:
    """Return an exchange with a correlation id."""
    raw = struct.pack(">i", number)
    asked, answered = exchanged
    return Exchanged(
        asked[:8] + raw + asked[12:],
        answered[:4] + raw + answered[8:] if answered else b"",
    )


def hello(kind: str, by_chance: random.Random) -> Exchanged:
    """Return the ApiVersions exchange with which clients begin."""
    release, _ = KINDS[kind]
    name, version = by_chance.choice(_SOFTWARE)
    return Exchanged(
        request(18, 3, 1, client_software_name=name, client_software_version=version),
        versions_answer(by_chance.choice((3,) * 9 + (0,)), 1, BROKERS[release]),
    )


def written(kind: str) -> list[Exchanged]:
    """Return exchanges such as a link of this kind is there for."""
    sent = _sent(kind)
    ids = [*names_before(KINDS[kind][0])]
    return [*_produced(sent), *_fetched(sent, ids), *_described(sent, ids), *_others()]


def by_kio(kind: str, by_chance: random.Random) -> list[Exchanged]:
    """Return exchanges of all APIs with values by chance."""
    sent = _sent(kind)
    ids = [*names_before(KINDS[kind][0])]
    return [_by_chance(key, version, sent, ids, by_chance) for key, version in _cells(by_chance)]


def _sent(kind: str) -> Mapping[tuple[int, int], int]:
    release, mode = KINDS[kind]
    return _SENT[release] if mode is Mode.ON and kind != "new" else {}


def _produced(sent: Mapping[tuple[int, int], int]) -> list[Exchanged]:
    made = []
    for version in (3, 5, 7, 8, 9, 10):
        down = sent.get((P, version), version)
        for errors in ({0: 0}, {0: NOT_LEADER}, {0: NOT_LEADER, 1: 0, 2: NOT_LEADER}):
            asked = produce_request(version, 1, transactional_id="tx" if len(errors) > 1 else None)
            made.append(Exchanged(asked, produce_answer(down, 1, errors)))
        made.append(Exchanged(produce_request(version, 1, acks=0, client_id=None), b""))
        large = produce_request(version, 1, records=bytes(3000))
        made.append(Exchanged(large, produce_answer(down, 1, {1: NOT_LEADER})))
    return made


def _fetched(sent: Mapping[tuple[int, int], int], ids: Sequence[bytes]) -> list[Exchanged]:
    made = []
    names = [*NAMES.values()]
    for version in (4, 6, 8, 10, 11, 12, 13, 15, 16):
        down = sent.get((F, version), version)
        above: Sequence[str | bytes] = ids if version >= 13 else names
        below: Sequence[str | bytes] = ids if down >= 13 else names
        for session, error, answered in (
            ((0, -1), 0, [(below[0], 0, 0, bytes(200))]),
            ((0, 0), 0, [(below[0], 0, FENCED, b""), (below[1], 1, 0, bytes(300))]),
            ((4, 1), 0, [(below[1], 1, NOT_LEADER, b"")]),
            ((4, 2), 0, []),
            ((4, 3), 70, []),
        ):
            partitions = {(above[0], 0): 5, (above[1], 1): 6} if session[1] < 2 else {}
            made.append(
                Exchanged(
                    fetch_request(version, 1, partitions, session=session),
                    fetch_answer(down, 1, answered, session_id=4, error=error),
                )
            )
    return made


def _described(sent: Mapping[tuple[int, int], int], ids: Sequence[bytes]) -> list[Exchanged]:
    """Return Metadata exchanges, by name, by id, and of all topics."""
    led = {name: {0: (1, 5), 1: (2, 6)} for name in (*NAMES.values(), "t")}
    made = []
    for version in (9, 10, 11, 12):
        topic = element(request_type(M, version), "topics")
        by_name = [plain(topic, name=name) for name in led]
        asked = [None, tuple(by_name)]
        if version >= 12:
            known = [UUID(bytes=one) for one in (*ids, bytes(15) + b"\7")]
            asked.append(tuple(plain(topic, name=None, topic_id=one) for one in known))
        answer = metadata_answer(sent.get((M, version), version), 1, led)
        made += [Exchanged(request(M, version, 1, topics=topics), answer) for topics in asked]
    return made


def _others() -> list[Exchanged]:
    endless = {"client_software_name": "librdkafka", "client_software_version": "9" * 5000}
    answer = metadata_answer(12, 1, {"one": {0: (1, 5), 1: (2, 6)}, "t": {0: (3, 1)}})
    return [
        Exchanged(request(3, 12, 1, topics=None), answer),
        Exchanged(b"\0\0\0\x0b\x27\x10\0\x63\0\0\0\x0b\xff\xffx", b"\0\0\0\x07\0\0\0\x0babc"),
        Exchanged(request(17, 1, 1, mechanism="PLAIN"), b"\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0"),
        Exchanged(request(17, 0, 1, mechanism="PLAIN"), b"\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0"),
        Exchanged(request(18, 3, 1), versions_answer(0, 1, {V: 3}, error=35)),
        # A version that is no number, and a name that the older encoding cannot say.
        Exchanged(request(18, 3, 1, **endless), versions_answer(3, 1, BROKERS["3.6"])),
        Exchanged(fetch_request(12, 1, {("x" * 40_000, 0): 5}), fetch_answer(11, 1, [])),
    ]


def _cells(by_chance: random.Random) -> list[tuple[int, int]]:
    """Return APIs and versions by chance, those that are read foremost."""
    every = list(chance.every_version())
    read = [cell for cell in every if cell[0] in (P, F, M, V)]
    return by_chance.choices(read, k=_BY_CHANCE) + by_chance.sample(every, k=60)


def _by_chance(
    key: int,
    version: int,
    sent: Mapping[tuple[int, int], int],
    ids: Sequence[bytes],
    by_chance: random.Random,
) -> Exchanged:
    asked = chance.entity(request_type(key, version), by_chance)
    answered = chance.entity(response_type(key, sent.get((key, version), version)), by_chance)
    if key == F and version >= 13:
        topics = zip(asked.topics, [UUID(bytes=known) for known in ids], strict=False)
        asked = replace(
            asked,
            topics=tuple(replace(topic, topic_id=known) for topic, known in topics),
            session_epoch=by_chance.choice((-1, 0, 1)),
        )
    tags = by_chance.choice((None, by_chance.randrange(99)))
    above, below = chance.flexible(key, version), chance.flexible(key, answered.__version__)
    return Exchanged(
        request_frame(asked, 1, "c", tags if above else None),
        response_frame(answered, 1, tags if below else None),
    )


def metadata_bodies(by_chance: random.Random) -> Sequence[tuple[int, bytes]]:
    """Return Metadata responses as (version, payload behind the size prefix)."""
    made = [
        (
            version,
            metadata_answer(version, 1, {"one": {0: (1, 5)}, "t": {0: (3, 1), 1: (3, 1)}}),
        )
        for version in range(9, 13)
    ]
    for _ in range(60):
        version = by_chance.randrange(9, 13)
        made.append(
            (version, response_frame(chance.entity(response_type(3, version), by_chance), 1))
        )
    return [(version, frame[4:]) for version, frame in made]
