"""Connections that are no ordinary clients, and brokers that are not there."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.sasl_handshake.v0.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v0.response import SaslHandshakeResponse

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import HOST, SASL_PASSWORD, SASL_USER, RealCluster
from tests.harness.connection import Address, BrokerConnection
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until
from tests.real.names import JAVA, ZK_36

PRODUCE = 0
#: As a client that uses hints.
ASK_VERSIONS = ApiVersionsRequest(
    client_software_name="librdkafka", client_software_version="2.5.0"
)
ASK_METADATA = MetadataRequest(
    topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
)

pytestmark = pytest.mark.parametrize("cluster", [ZK_36], indirect=True)


@pytest.fixture
def proxy(cluster: RealCluster, admin: ClusterAdmin, tmp_path: Path) -> Iterator[ProxyProcess]:
    """A proxy in front of every broker, at the addresses that they advertise."""
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with ProxyProcess(routes, tmp_path / "proxy.log") as running:
        yield running


def produce_maximum(connection: BrokerConnection) -> int:
    """The newest Produce that the other side of a connection says it takes."""
    answer = connection.ask(ASK_VERSIONS, ApiVersionsResponse)
    return next(int(api.max_version) for api in answer.api_keys if api.api_key == PRODUCE)


def serves(address: Address) -> bool:
    """Whether a broker answers at an address."""
    with contextlib.suppress(OSError), BrokerConnection(address) as connection:
        return len(connection.ask(ASK_METADATA, MetadataResponse).brokers) > 0
    return False


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other side has closed; False if it sends something instead."""
    with contextlib.suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


def is_sent_away(address: Address) -> bool:
    """Wait until who connects there is closed; that may come before connecting is over."""
    try:
        with socket.create_connection(address, 30) as connection:
            return is_closed(connection)
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "first_bytes",
    [
        pytest.param(bytes.fromhex("16030100c8010000c4"), id="tls-client-hello"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="http"),
        pytest.param(struct.pack(">i", -1), id="negative-size"),
        pytest.param(struct.pack(">i", 0x7FFFFFFF), id="oversize"),
    ],
)
def test_bytes_that_are_no_kafka_end_their_connection_only(
    cluster: RealCluster, proxy: ProxyProcess, first_bytes: bytes
) -> None:
    address = cluster.brokers[1].advertised
    with BrokerConnection(address) as healthy, socket.create_connection(address, 30) as odd:
        odd.sendall(first_bytes)
        assert is_closed(odd)
        (line,) = until(lambda: proxy.events("bad_client_bytes"), "a log line says so")
        assert line["level"] == "warning"
        assert line["reason"]
        assert healthy.ask(ASK_METADATA, MetadataResponse).brokers


def test_too_new_api_versions_is_refused_by_the_broker_itself(
    cluster: RealCluster, proxy: ProxyProcess
) -> None:
    """Java 3.9 asks version 4 first; the answer has the body of version 0 and error 35."""
    client_id = b"\x00\x05tests"
    frame = struct.pack(">hhi", 18, 4, 7) + client_id + b"\x00" + b"\x06tests" + b"\x021" + b"\x00"
    answers = []
    for address in (cluster.brokers[1].upstream, cluster.brokers[1].advertised):
        with BrokerConnection(address) as connection:
            connection.send_frame(frame)
            answers.append(connection.read_frame())
            assert connection.ask(ASK_METADATA, MetadataResponse).brokers
    assert answers[0] == answers[1]
    assert struct.unpack_from(">ih", answers[1]) == (7, ErrorCode.unsupported_version)


def test_after_sasl_handshake_0_the_link_is_opaque(
    cluster: RealCluster, admin: ClusterAdmin, tmp_path: Path
) -> None:
    """Its tokens are no Kafka requests; and what follows them is not looked at either."""
    (port,) = free_ports(1)
    upstream = cluster.brokers[1].sasl
    assert upstream is not None
    route = ((HOST, port), upstream)
    with (
        ProxyProcess([route], tmp_path / "proxy.log"),
        BrokerConnection((HOST, port)) as connection,
    ):
        answer = connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        assert answer.error_code is ErrorCode.none
        connection.send_frame(f"\0{SASL_USER}\0{SASL_PASSWORD}".encode())
        assert connection.read_frame() == b""
        assert produce_maximum(connection) == 9


def test_a_broker_that_is_down_costs_only_its_own_clients(
    cluster: RealCluster, proxy: ProxyProcess
) -> None:
    down, up = cluster.brokers[2], cluster.brokers[1]
    with BrokerConnection(down.advertised) as cut:
        assert cut.ask(ASK_METADATA, MetadataResponse).brokers
        with cluster.without(down.node_id):
            assert is_closed(cut.socket)
            assert is_sent_away(down.advertised)
            line = until(lambda: proxy.events("upstream_unreachable"), "a log line says so")[0]
            assert line["level"] == "warning"
            assert serves(up.advertised)
    until(lambda: serves(down.advertised), "the route serves again")


def test_clients_survive_a_broker_that_goes_and_comes_back(
    cluster: RealCluster,
    proxy: ProxyProcess,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
) -> None:
    topic = new_topic("restart")
    java = clients(JAVA)
    consumer = java.consume(ConsumerSpec(cluster.bootstrap, topic))
    producer = java.produce(ProducerSpec(cluster.bootstrap, topic, idempotent=True))
    producer.wait_acked(10)
    leader = admin.leader(topic)
    with cluster.without(leader):
        producer.wait_acked(10)
    admin.wait_in_sync(topic)
    admin.move_leader(topic, to=leader)
    producer.wait_acked(10)
    check_produced(admin, producer.stop())
    check_consumed(admin, consumer)
    consumer.stop()
