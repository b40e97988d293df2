"""The hints in the bytes: true leaders at the clients' own addresses, nothing else."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from kio.schema.fetch.v16.response import FetchResponse
from kio.schema.fetch.v16.response import NodeEndpoint as FetchEndpoint
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseBroker
from kio.schema.produce.v10.response import NodeEndpoint as ProduceEndpoint
from kio.schema.produce.v10.response import ProduceResponse

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.connection import BrokerConnection, decode_response
from tests.harness.history import LeaderHistory
from tests.real.names import JAVA, KRAFT_36, ZK_35, ZK_36
from tests.real.sandwich import Sandwich, stream_of, whole_responses

PRODUCE, FETCH = (0, 10), (1, 16)
MOVES = 4


class Endpoint(NamedTuple):
    """A broker as clients get it."""

    node: int
    host: str
    port: int
    rack: str | None


class Told(NamedTuple):
    """The hints of one response: leaders and epochs of its one topic, and where brokers are."""

    leaders: list[tuple[int, int]]
    endpoints: list[Endpoint]


def told(api: tuple[int, int], frame: bytes) -> Told | None:
    """The leaders in a response to Produce 10 or Fetch 16; None for all others."""
    if api == PRODUCE:
        return told_by_produce(decode_response(frame, ProduceResponse))
    if api == FETCH:
        return told_by_fetch(decode_response(frame, FetchResponse))
    return None


def told_by_produce(response: ProduceResponse) -> Told:
    """What a Produce response tells."""
    leaders = [
        (int(part.current_leader.leader_id), int(part.current_leader.leader_epoch))
        for topic in response.responses
        for part in topic.partition_responses
        if part.current_leader.leader_epoch != -1
    ]
    return Told(leaders, [endpoint(it) for it in response.node_endpoints])


def told_by_fetch(response: FetchResponse) -> Told:
    """What a Fetch response tells."""
    leaders = [
        (int(part.current_leader.leader_id), int(part.current_leader.leader_epoch))
        for topic in response.responses
        for part in topic.partitions
        if part.current_leader.leader_epoch != -1
    ]
    return Told(leaders, [endpoint(it) for it in response.node_endpoints])


def endpoint(
    told: ProduceEndpoint | FetchEndpoint | MetadataResponseBroker,
) -> Endpoint:
    """A broker's entry in any of the responses that have one."""
    return Endpoint(int(told.node_id), told.host, int(told.port), told.rack)


def told_by_metadata(cluster: RealCluster) -> set[Endpoint]:
    """The endpoints as the Metadata of the clients' listener says."""
    request = MetadataRequest(
        topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    with BrokerConnection(cluster.brokers[1].upstream) as connection:
        answer = connection.ask(request, MetadataResponse)
    return {endpoint(broker) for broker in answer.brokers}


def hints_in(sandwich: Sandwich) -> Iterator[Told]:
    """Everything that any response told."""
    for relay in sandwich.before.values():
        for request, frame in whole_responses(relay):
            found = told((request.api_key, request.api_version), frame)
            if found is not None and (found.leaders or found.endpoints):
                yield found


@pytest.mark.parametrize("cluster", [ZK_36, KRAFT_36, ZK_35], indirect=True)
def test_hints_name_true_leaders_at_the_clients_addresses(
    cluster: RealCluster,
    admin: ClusterAdmin,
    history: LeaderHistory,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_topic("told")
    with Sandwich(cluster, tmp_path) as sandwich:
        java = clients(JAVA)
        consumer = java.consume(ConsumerSpec(cluster.bootstrap, topic))
        producer = java.produce(ProducerSpec(cluster.bootstrap, topic, idempotent=True))
        for _ in range(MOVES):
            producer.wait_acked(10)
            admin.move_leader(topic)
        producer.wait_acked(10)
        check_produced(admin, producer.stop())
        check_consumed(admin, consumer)
        consumer.stop()

        hints = list(hints_in(sandwich))
        terms = history.terms()[topic, 0]
        known = told_by_metadata(cluster)
        assert any(hint.endpoints for hint in hints)
        for hint in hints:
            nodes = [endpoint.node for endpoint in hint.endpoints]
            assert len(set(nodes)) == len(nodes)
            assert {leader for leader, _ in hint.leaders} == set(nodes)
            assert set(hint.endpoints) <= known
            for leader, epoch in hint.leaders:
                assert terms[epoch].leader == leader
        assert no_internal_address_in(cluster, sandwich)


def no_internal_address_in(cluster: RealCluster, sandwich: Sandwich) -> bool:
    """Whether no byte towards clients names a listener of the brokers' own.

    In every message of the protocol a port stands right behind its host.
    """
    talks = [talk for relay in sandwich.before.values() for talk in relay.conversations]
    stream = stream_of(talks)
    advertised = [broker.advertised for broker in cluster.brokers.values()]
    assert all(_encoded(address) in stream for address in advertised)
    return not any(_encoded(broker.direct) in stream for broker in cluster.brokers.values())


def _encoded(address: tuple[str, int]) -> bytes:
    host, port = address
    return host.encode() + struct.pack(">i", port)
