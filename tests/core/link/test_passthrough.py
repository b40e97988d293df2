"""Every API and version that kio knows, through links in front of brokers of every kind."""

import random
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import HintMissed
from leader_hints.core.link.budget import Budget
from leader_hints.core.mode import Mode
from tests.apis import chance
from tests.apis.messages import (
    Entity,
    as_version,
    element,
    read_request_frame,
    read_response_frame,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.core.brokers import BROKERS, SYNTHETIC, F, M, P, V, names_before, route_before
from tests.core.links import Driven
from tests.core.samples import USES_HINTS, request, versions_answer

#: What the plan names, written down once more: version sent by key and version asked.
_SENT: Mapping[str, Mapping[tuple[int, int], int]] = {
    "2.4": {(P, 9): 8, (P, 10): 8, (F, 12): 10},
    "2.6": {(P, 9): 8, (P, 10): 8, (F, 12): 11},
    "2.8": {(P, 10): 9, (F, 13): 12, (F, 14): 12, (F, 15): 12, (F, 16): 12},
    "3.4": {(P, 10): 9, (F, 14): 13, (F, 15): 13, (F, 16): 13},
    "3.6": {(P, 10): 9, (F, 16): 15},
    "3.7": {},
    "2.4+": {
        **{(P, 9): 8, (P, 10): 8},
        **{(F, version): 10 for version in range(12, 17)},
        **{(M, version): 9 for version in (10, 11, 12)},
    },
    "2.6+": {
        **{(P, 9): 8, (P, 10): 8},
        **{(F, version): 11 for version in range(12, 17)},
        **{(M, version): 9 for version in (10, 11, 12)},
    },
    "2.8+": {
        **{(P, 10): 9, (M, 10): 10, (M, 11): 11, (M, 12): 11},
        **{(F, version): 12 for version in range(13, 17)},
    },
    "3.6+": {
        **{(P, 10): 9, (M, 10): 10, (M, 11): 11, (M, 12): 12},
        **{(F, version): 12 for version in range(13, 17)},
    },
}
#: What a client is offered of which nothing is known.
_OFFERED: Mapping[str, Mapping[int, int]] = {
    "2.4": {P: 10},
    "2.6": {P: 10},
    "2.8": {P: 10, F: 16},
    "3.4": {P: 10, F: 16},
    "3.6": {P: 10, F: 16},
    "3.7": {},
    "2.4+": {P: 10, F: 16, M: 10},
    "2.6+": {P: 10, F: 16, M: 10},
    "2.8+": {P: 10, F: 16, M: 12},
    "3.6+": {P: 10, F: 16, M: 12},
}
#: Cells whose bytes differ in more than the version number.
_REWRITTEN = {
    (release, cell)
    for release, cells in _SENT.items()
    for cell, sent in cells.items()
    if (cell[0], sent) not in {(P, 9), (F, 15)}
}
_ALL = list(chance.every_version())
_KINDS = [(release, Mode.ON) for release in BROKERS] + [("3.6", Mode.OBSERVE), ("3.6", Mode.OFF)]
_EACH = pytest.mark.parametrize(("release", "mode"), _KINDS)
_CLIENT = "a client"


def test_kio_knows_all_that_matters() -> None:
    assert len(_ALL) > 290
    assert {(P, 10), (P, 8), (F, 16), (F, 11), (F, 4), (V, 3), (3, 12), (0, 3)} <= set(_ALL)


def _driven(release: str, mode: Mode, seed: int) -> Driven:
    return Driven(
        route_before(release, mode),
        decide=lambda held: [None] * len(held.scanned.failures),
        budget=Budget(1 << 31, 1 << 40),
        buffer_size=random.Random(seed).choice((400, 1 << 16)),
    )


def _cuts(size: int, seed: int) -> list[int]:
    by_chance = random.Random(seed)
    return [by_chance.randrange(1, size) for _ in range(by_chance.choice((0, 1, 5)))]


def _sent(release: str, mode: Mode, key: int, version: int) -> int:
    return _SENT[release].get((key, version), version) if mode is Mode.ON else version


@_EACH
def test_every_request_and_response_passes_byte_for_byte(release: str, mode: Mode) -> None:
    judged = 0
    for seed, (key, version) in enumerate(_ALL):
        if key == V or (mode is Mode.ON and (release, (key, version)) in _REWRITTEN):
            continue
        by_chance = random.Random(seed)
        sent = _sent(release, mode, key, version)
        asked = _asked(release, request_type(key, version), by_chance)
        answered = chance.entity(response_type(key, sent), by_chance)
        up, down = request_frame(asked, seed, _CLIENT), response_frame(answered, seed)
        driven = _driven(release, mode, seed)
        driven.up(up, _cuts(len(up), seed))
        driven.down(down, _cuts(len(down), seed))
        assert driven.to_broker == up[:6] + sent.to_bytes(2) + up[8:], (key, version)
        assert driven.to_client == down, (key, version)
        _check_ended(driven)
        judged += 1
    assert judged > 280


@pytest.mark.parametrize("release", ["2.6", "3.6"])
@pytest.mark.parametrize("mode", [Mode.ON, Mode.OBSERVE])
def test_responses_that_are_only_counted_pass_byte_for_byte(release: str, mode: Mode) -> None:
    cells = [(P, version) for version in range(3, 9)] + [(F, version) for version in range(4, 12)]
    seen = 0
    for seed, (key, version) in enumerate(cells * 20):
        by_chance = random.Random(seed)
        asked = _asked(release, request_type(key, version), by_chance)
        answered = chance.entity(response_type(key, version), by_chance)
        up, down = request_frame(asked, seed, _CLIENT), response_frame(answered, seed)
        driven = _driven(release, mode, seed)
        # Successes are looked for too.
        driven.link.state.route.awaited = seed % 2 == 0
        driven.up(up, _cuts(len(up), seed))
        driven.down(down, _cuts(len(down), seed))
        assert driven.to_broker == up, (key, version)
        assert driven.to_client == down, (key, version)
        told = [event for event in driven.link.state.events if isinstance(event, HintMissed)]
        failed = [p.error_code for p in _partitions(answered) if p.error_code in (6, 74)]
        assert [event.answered.error for event in told] == failed
        seen += len(told)
        _check_ended(driven)
    assert seen > 100


def _partitions(answered: Entity) -> list[Entity]:
    topics = answered.responses or ()
    field = "partitions" if answered.__api_key__ == F else "partition_responses"
    return [partition for topic in topics for partition in getattr(topic, field) or ()]


@_EACH
def test_of_api_versions_only_the_maxima_differ(release: str, mode: Mode) -> None:
    offered = _OFFERED[release] if mode is Mode.ON else {}
    for version in (3, 4):
        asked = request(V, version, 1, **USES_HINTS)
        driven = _driven(release, mode, version)
        driven.up(asked)
        driven.down(versions_answer(version, 1, BROKERS[release]), [9])
        assert driven.to_broker == asked
        assert driven.to_client == versions_answer(version, 1, {**BROKERS[release], **offered})
        _check_ended(driven)


@pytest.mark.parametrize(("release", "cell"), sorted(_REWRITTEN))
def test_what_is_rewritten_means_the_same_to_kio(release: str, cell: tuple[int, int]) -> None:
    key, version = cell
    sent = _SENT[release][cell]
    for seed in range(30):
        by_chance = random.Random(seed)
        driven = _driven(release, Mode.ON, seed)
        entity = _asked(release, request_type(key, version), by_chance)
        up = request_frame(entity, seed, _CLIENT, unknown_tags=seed if seed % 2 else None)
        driven.up(up, _cuts(len(up), seed))
        header, read = read_request_frame(request_type(key, sent), bytes(driven.to_broker))
        assert (header.correlation_id, header.client_id) == (seed, _CLIENT)
        assert read == _as_sent(release, entity, request_type(key, sent))

        answered = chance.entity(response_type(key, sent), by_chance)
        if key == F:
            answered = _of_topics(release, answered, entity, sent)
        down = response_frame(answered, seed)
        driven.down(down, _cuts(len(down), seed))
        got = read_response_frame(response_type(key, version), bytes(driven.to_client))
        assert got == _as_got(release, answered, response_type(key, version))
        _check_ended(driven)


def _check_ended(driven: Driven) -> None:
    assert not driven.link.state.exchanges.waiting
    assert not driven.not_understood
    before = len(driven.to_broker), len(driven.to_client)
    driven.end()
    driven.link.close()
    assert before == (len(driven.to_broker), len(driven.to_client))
    assert driven.budget.used == 0


def _asked(release: str, kind: type[Entity], by_chance: random.Random) -> Entity:
    """Return a request that is answered; a Fetch is a full one, of topics that are known."""
    entity = chance.entity(kind, by_chance)
    if kind.__api_key__ == P:
        return replace(entity, acks=1)
    if kind.__api_key__ == M and kind.__version__ >= 10 and entity.topics is not None:
        # By id: see test_link_synthetic_ids.py.
        topics = tuple(replace(t, name=t.name or "", topic_id=None) for t in entity.topics)
        return replace(entity, topics=topics)
    if kind.__api_key__ != F or kind.__version__ < 12:
        return entity
    # A rack keeps a broker of 2.4 from being asked as _SENT has it.
    entity = replace(entity, rack_id="" if release.startswith("2.4") else "r")
    if kind.__version__ < 13:
        return entity
    ids = [UUID(bytes=known) for known in names_before(release)]
    topics = tuple(replace(t, topic_id=i) for t, i in zip(entity.topics, ids, strict=False))
    if release.endswith(SYNTHETIC):
        # What replicas ask by id goes by id.
        entity = _of_a_client(entity)
    return replace(entity, topics=topics, forgotten_topics_data=(), session_epoch=0)


def _of_a_client(entity: Entity) -> Entity:
    if entity.__version__ < 15:
        return replace(entity, replica_id=-1)
    return replace(entity, replica_state=replace(entity.replica_state, replica_id=-1))


def _of_topics(release: str, answered: Entity, asked: Entity, sent: int) -> Entity:
    """Return a Fetch response that has the topics asked for, as the broker names them."""
    if asked.__version__ < 13:
        return answered
    pairs = zip(answered.responses, asked.topics, strict=False)
    if sent < 13:
        names = names_before(release)
        topics = tuple(replace(a, topic=names[t.topic_id.bytes]) for a, t in pairs)
    else:
        topics = tuple(replace(a, topic_id=t.topic_id) for a, t in pairs)
    return replace(answered, responses=topics)


def _as_sent(release: str, entity: Entity, kind: type[Entity]) -> Entity:
    changes: dict[str, object] = {}
    if kind.__api_key__ == M:
        return _metadata_as_sent(entity, kind)
    if hasattr(entity, "replica_state") and kind.__version__ < 15:
        changes["replica_id"] = entity.replica_state.replica_id
    if kind.__api_key__ == F and entity.__version__ >= 13 > kind.__version__:
        topic = element(kind, "topics")
        names = names_before(release)
        changes["topics"] = tuple(
            as_version(asked, topic, topic=names[asked.topic_id.bytes]) for asked in entity.topics
        )
    return as_version(entity, kind, **changes)


def _metadata_as_sent(entity: Entity, kind: type[Entity]) -> Entity:
    changes: dict[str, object] = {}
    without_id = {"topic_id": None} if kind.__version__ >= 10 else {}
    if entity.topics is not None:
        topic = element(kind, "topics")
        changes["topics"] = tuple(as_version(t, topic, **without_id) for t in entity.topics)
    if entity.__version__ > 10 >= kind.__version__:
        changes["include_cluster_authorized_operations"] = False
    return as_version(entity, kind, **changes)


def _as_got(release: str, answered: Entity, kind: type[Entity]) -> Entity:
    if kind.__api_key__ == M:
        topic = element(kind, "topics")
        topics = tuple(as_version(t, topic, topic_id=_id(answered, t)) for t in answered.topics)
        return as_version(answered, kind, topics=topics)
    if kind.__api_key__ == P or answered.__version__ >= 13 or kind.__version__ < 13:
        return as_version(answered, kind)
    ids = {name: UUID(bytes=known) for known, name in names_before(release).items()}
    topic = element(kind, "responses")
    topics = tuple(as_version(a, topic, topic_id=ids[a.topic]) for a in answered.responses)
    return as_version(answered, kind, responses=topics)


def _id(answered: Entity, topic: Entity) -> UUID | None:
    """Return the id that a client gets of a topic."""
    if topic.error_code.value or topic.name is None:
        return getattr(topic, "topic_id", None)
    return UUID(bytes=synthetic_id(answered.cluster_id or "", topic.name))
