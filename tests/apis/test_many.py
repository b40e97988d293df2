"""What is put together from encoded parts is what kio writes of all of it."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from leader_hints.apis.keys import ApiKey
from tests.apis import many
from tests.apis.messages import (
    Entity,
    element,
    encode,
    plain,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.core.samples import topic_id

#: The array of topics in a message, that of partitions in a topic, and a partition's number.
_NAMES = {
    (ApiKey.PRODUCE, False): ("topic_data", "partition_data", "index"),
    (ApiKey.PRODUCE, True): ("responses", "partition_responses", "index"),
    (ApiKey.FETCH, False): ("topics", "partitions", "partition"),
    (ApiKey.FETCH, True): ("responses", "partitions", "partition_index"),
}
_VERSIONS = {ApiKey.PRODUCE: range(3, 11), ApiKey.FETCH: range(4, 18)}


@pytest.mark.parametrize(("key", "answers"), _NAMES)
def test_topics_and_partitions_are_as_kio_writes_them(key: ApiKey, answers: bool) -> None:
    for version in _VERSIONS[key]:
        kind = (response_type if answers else request_type)(key, version)
        for topics in range(3):
            for partitions in range(3):
                _check(kind, _NAMES[key, answers], topics, partitions)


def _check(kind: type[Entity], names: tuple[str, str, str], topics: int, partitions: int) -> None:
    of_topics, of_partitions, number = names
    kind_of_topic = element(kind, of_topics)
    part = element(kind_of_topic, of_partitions)
    values = {"error_code": ErrorCode(6)} if number == "partition_index" else {}
    written = tuple(plain(part, **{number: n}, **values) for n in range(partitions))
    parts = [*map(many.numbered(plain(part, **values)), range(partitions))]
    known = [field for field in ("topic_id", "topic", "name") if field in kind_of_topic.__slots__]
    named = [topic_id(n) if known[0] == "topic_id" else f"topic-{n}" for n in range(topics)]
    whole = tuple(
        plain(
            kind_of_topic,
            **{known[0]: UUID(bytes=name) if isinstance(name, bytes) else name},
            **{of_partitions: written},
        )
        for name in named
    )
    flexible = kind.__flexible__
    encoded = [many.topic(name, parts, flexible=flexible) for name in named]
    make = response_frame if "response" in kind.__module__ else request_frame
    message = plain(kind)
    expected = make(replace(message, **{of_topics: whole}))
    assert many.with_arrays(make, message, **{of_topics: encoded}) == expected


@pytest.mark.parametrize("version", range(7, 18))
def test_so_are_two_arrays_of_a_message(version: int) -> None:
    kind = request_type(ApiKey.FETCH, version)
    named = {"topic": "t"} if version < 13 else {"topic_id": UUID(bytes=topic_id(1))}
    asked = plain(element(kind, "topics"), **named)
    gone = plain(element(kind, "forgotten_topics_data"), partitions=(1,), **named)
    message = plain(kind, session_id=7)
    for count in range(3):
        arrays = {"topics": (asked,) * count, "forgotten_topics_data": (gone,) * (2 - count)}
        encoded = {name: [encode(one) for one in elements] for name, elements in arrays.items()}
        expected = request_frame(replace(message, **arrays))
        assert many.with_arrays(request_frame, message, **encoded) == expected
