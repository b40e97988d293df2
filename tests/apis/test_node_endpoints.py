import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis import node_endpoints
from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import at_once
from tests.apis import readdressing
from tests.apis.messages import Entity, decode, entities, response_type
from tests.core.samples import NOT_LEADER, fetch_answer, produce_answer, topic_id

_NODES = {2: Endpoint("two.example", 9092, "rack-b"), 3: Endpoint("three.example", 9093, None)}
_LEADERS = {0: (2, 5), 1: (3, 6)}
_SPLICES = {
    ApiKey.PRODUCE: (node_endpoints.produce_splices, node_endpoints.PRODUCE_VERSIONS),
    ApiKey.FETCH: (node_endpoints.fetch_splices, node_endpoints.FETCH_VERSIONS),
}
_CASES = [(key, version) for key, (_, versions) in _SPLICES.items() for version in versions]


def _refused(key: ApiKey, version: int) -> bytes:
    if key is ApiKey.PRODUCE:
        return produce_answer(
            version, 7, {0: NOT_LEADER, 1: NOT_LEADER}, leaders=_LEADERS, nodes=_NODES
        )
    refused = [(topic_id(1), partition, NOT_LEADER, b"") for partition in _LEADERS]
    return fetch_answer(version, 7, refused, leaders=_LEADERS, nodes=_NODES)


@pytest.mark.parametrize(("key", "version"), _CASES)
def test_the_endpoints_of_a_refusal_change_and_nothing_else(key: ApiKey, version: int) -> None:
    frame = _refused(key, version)
    answer: Entity = decode(response_type(key, version), frame[9:])
    assert len(list(readdressing.addresses(answer))) == 2
    readdressing.check_kio_reads(_SPLICES[key][0], answer)


@pytest.mark.parametrize(("key", "version"), _CASES)
@settings(max_examples=20)
@given(data=st.data())
def test_any_bytes_give_splices_or_a_wire_error(
    key: ApiKey, version: int, data: st.DataObject
) -> None:
    raw = data.draw(st.binary(max_size=80))
    with contextlib.suppress(WireError):
        at_once(_SPLICES[key][0](memoryview(bytes(9) + raw), version, readdressing.readdress))


@pytest.mark.parametrize(("key", "version"), _CASES)
@settings(max_examples=12)
@given(data=st.data(), seed=st.integers(0, 99))
def test_only_endpoints_change(key: ApiKey, version: int, data: st.DataObject, seed: int) -> None:
    answer = data.draw(entities(response_type(key, version)).filter(_may_have_endpoints))
    readdressing.check(_SPLICES[key][0], answer, seed)


def _may_have_endpoints(answer: Entity) -> bool:
    """Brokers give endpoints only where a partition failed so that a hint answers it."""
    name = "partition_responses" if answer.__api_key__ == ApiKey.PRODUCE else "partitions"
    partitions = [
        partition for topic in answer.responses or () for partition in getattr(topic, name)
    ]
    refused = any(partition.error_code.value in HINTABLE for partition in partitions)
    return refused or not answer.node_endpoints
