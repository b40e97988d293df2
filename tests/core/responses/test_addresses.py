"""Links of a virtual cluster: no address of a broker goes on, and none that could not be seen."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.address_rewriting import NEWEST, AddressRewriting
from leader_hints.core.versions.broker_ports import BrokerPorts
from leader_hints.core.versions.plan import PASS, plan_for
from tests.apis.messages import decode, element, plain, response_type
from tests.core.links import Driven
from tests.core.samples import (
    BROKER_3_6,
    NOT_LEADER,
    answer,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)

_NATIVE = {**BROKER_3_6, ApiKey.PRODUCE: 11, ApiKey.FETCH: 17}
_NODES = {2: Endpoint("secret.example", 9092, "rack-b")}
_SECRET = b"secret.example"


def _route(maxima: dict[int, int] = BROKER_3_6, mode: Mode = Mode.ON) -> Route:
    rewriting = AddressRewriting("here", BrokerPorts(19092, {}), lambda node, host, port: None)
    return Route(
        "route",
        mode,
        broker=BrokerState(plan=plan_for(maxima)),
        config=RouteConfig(address_rewriting=rewriting),
    )


def _brokers(key: int, version: int) -> bytes:
    kind = response_type(key, version)
    if key == ApiKey.METADATA:
        broker = plain(element(kind, "brokers"), node_id=2, host="secret.example", port=9092)
        return answer(key, version, 1, brokers=(broker,))
    if key == ApiKey.DESCRIBE_CLUSTER:
        broker = plain(element(kind, "brokers"), broker_id=2, host="secret.example", port=9092)
        return answer(key, version, 1, brokers=(broker,))
    if version < 4:
        return answer(key, version, 1, node_id=2, host="secret.example", port=9092)
    node = plain(element(kind, "coordinators"), node_id=2, host="secret.example", port=9092)
    return answer(key, version, 1, coordinators=(node,))


_KEYS = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("key", "version"), [(key, version) for key in _KEYS for version in range(NEWEST[key] + 1)]
)
@settings(max_examples=5)
@given(cuts=st.lists(st.integers(0, 90)))
def test_addresses_are_rewritten_in_every_version_however_the_bytes_come(
    key: ApiKey, version: int, mode: Mode, cuts: list[int]
) -> None:
    link = Driven(_route(mode=mode))
    asked = request(key, version, 1)
    link.up(asked)
    link.down(_brokers(key, version) + b"", cuts)
    assert bytes(link.to_broker) == asked
    assert _SECRET not in link.to_client
    assert b"here" in link.to_client


@pytest.mark.parametrize("version", [10, 11, 12])
def test_the_hints_of_a_native_broker_lead_here(version: int) -> None:
    link = Driven(_route(_NATIVE))
    link.up(produce_request(version, 1))
    link.down(produce_answer(version, 1, {0: NOT_LEADER}, leaders={0: (2, 5)}, nodes=_NODES))
    got = decode(response_type(ApiKey.PRODUCE, version), bytes(link.to_client)[9:])
    assert [(n.node_id, n.host, n.port) for n in got.node_endpoints] == [(2, "here", 19095)]
    (topic,) = got.responses
    (partition,) = topic.partition_responses
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 5)


@pytest.mark.parametrize("version", [16, 17])
@given(cuts=st.lists(st.integers(0, 300)))
@settings(max_examples=20)
def test_records_of_a_native_broker_pass_beside_its_hints(version: int, cuts: list[int]) -> None:
    link = Driven(_route(_NATIVE))
    link.up(fetch_request(version, 1, {(topic_id(1), 0): 1, (topic_id(1), 1): 1}))
    records = bytes(range(200))
    link.down(
        fetch_answer(
            version,
            1,
            [(topic_id(1), 0, 0, records), (topic_id(1), 1, NOT_LEADER, b"")],
            leaders={1: (2, 5)},
            nodes=_NODES,
        ),
        cuts,
    )
    assert _SECRET not in link.to_client
    got = decode(response_type(ApiKey.FETCH, version), bytes(link.to_client)[9:])
    assert got.responses[0].partitions[0].records == records
    assert [(n.host, n.port, n.rack) for n in got.node_endpoints] == [("here", 19095, "rack-b")]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("mode", Mode)
def test_clients_are_offered_no_version_that_is_not_known(version: int, mode: Mode) -> None:
    link = Driven(_route(_NATIVE, mode))
    offered = {
        ApiKey.PRODUCE: 13,
        ApiKey.METADATA: 14,
        55: 2,
        78: 1,
        999: 0,
        ApiKey.API_VERSIONS: 4,
    }
    link.up(request(ApiKey.API_VERSIONS, version, 1))
    link.down(versions_answer(version, 1, offered))
    got = decode(response_type(ApiKey.API_VERSIONS, version), bytes(link.to_client)[8:])
    assert {entry.api_key: entry.max_version for entry in got.api_keys} == {
        ApiKey.PRODUCE: 12,
        ApiKey.METADATA: 13,
        55: 1,
        ApiKey.API_VERSIONS: 4,
    }


def test_a_refusal_of_api_versions_that_no_client_could_read_is_fixed() -> None:
    """librdkafka's mock cluster: UNSUPPORTED_VERSION with a body that is neither v0 nor v3."""
    link = Driven(_route())
    link.up(request(ApiKey.API_VERSIONS, 3, 1))
    link.down(bytes([0, 0, 0, 12, 0, 0, 0, 1, 0, 35, 0, 0, 0, 0, 0, 1]))
    got = decode(response_type(ApiKey.API_VERSIONS, 0), bytes(link.to_client)[8:])
    assert got.error_code.value == 35
    assert [(e.api_key, e.min_version, e.max_version) for e in got.api_keys] == [(18, 0, 0)]


def test_a_well_formed_refusal_of_api_versions_stays() -> None:
    link = Driven(_route())
    refusal = versions_answer(0, 1, {ApiKey.API_VERSIONS: 2}, error=35)
    link.up(request(ApiKey.API_VERSIONS, 4, 1))
    link.down(refusal)
    assert bytes(link.to_client) == refusal


@pytest.mark.parametrize(("key", "version"), [(78, 1), (55, 2), (3, 14), (17, 0), (-3, 0)])
def test_a_request_that_is_not_offered_ends_the_link_and_reaches_no_broker(
    key: int, version: int
) -> None:
    link = Driven(_route())
    first = produce_request(9, 1)
    other = (
        bytes([0, 0, 0, 10]) + key.to_bytes(2, "big", signed=True) + bytes([0, version]) + bytes(6)
    )
    link.up(first + other)
    assert bytes(link.to_broker) == first
    assert link.link.requests.fault is not None
    assert "is not offered here" in link.link.requests.fault


def test_an_answer_that_cannot_be_read_goes_no_further() -> None:
    link = Driven(_route())
    link.up(request(ApiKey.METADATA, 9, 1))
    link.down(bytes([0, 0, 0, 20, 0, 0, 0, 1]) + b"\xff" * 16)
    assert not link.to_client
    assert link.link.responses.fault is not None


def test_bytes_that_answer_nothing_go_no_further() -> None:
    link = Driven(_route())
    link.up(request(ApiKey.METADATA, 9, 1))
    link.down(_brokers(ApiKey.METADATA, 9).replace(bytes([0, 0, 0, 1]), bytes([0, 0, 0, 9]), 1))
    assert not link.to_client
    assert link.link.responses.fault == "response that answers no request"


def test_a_link_is_never_a_plain_relay() -> None:
    route = _route()
    for plan in (PASS, plan_for(_NATIVE)):
        route.broker.plan = plan
        assert route.link_plan.reads
