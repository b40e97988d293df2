"""`leader-hints local` in front of brokers with TLS, client certificates, and SASL."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kio.schema.sasl_authenticate.v1 import request as authenticate
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from tests.cli.commands import leader_hints
from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.connection import BrokerConnection
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.secured import (
    CLIENT,
    PROXY,
    PROXY_PASSWORD,
    Authority,
    java_sasl,
    librdkafka_sasl,
    proxy_sasl,
)
from tests.harness.waiting import until
from tests.real.names import APART_SECURED, CONFLUENT, JAVA

pytestmark = pytest.mark.parametrize("cluster", [APART_SECURED], indirect=True)

_BROKERS = 3
_REFUSED = 58  # SASL_AUTHENTICATION_FAILED
_SETTINGS = {JAVA: java_sasl("PLAIN"), CONFLUENT: librdkafka_sasl("PLAIN")}


def _tls(authority: Authority) -> list[str]:
    return ["--tls-ca", authority.ca, "--tls-certificate", authority.pem("proxy")]


def _sasl(folder: Path) -> list[str]:
    password = proxy_sasl("PLAIN", folder)["password"]
    return ["--sasl", "PLAIN", "--sasl-username", PROXY, "--sasl-password", password]


def test_clients_authenticate_through_it_and_it_does_so_itself(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    authority = Authority(cluster.folder / "tls")
    base, log = free_range(2 + _BROKERS), tmp_path / "local.log"
    slow = tmp_path / "slow.yaml"
    slow.write_text("subscription: {answer_timeout_ms: 30000}\n")  # A slow broker is not lost.
    arguments = [*_tls(authority), *_sasl(tmp_path), "--allow-faults", "--config", str(slow)]
    with LocalProcess(cluster.bootstrap, base, log, brokers=_BROKERS, arguments=arguments) as local:
        local.wait_plans(_BROKERS)
        for library, topic in zip(_SETTINGS, new_topics(*_SETTINGS), strict=True):
            own, process = _SETTINGS[library], clients(library)
            consumer = process.consume(ConsumerSpec(local.bootstrap, topic, settings=own))
            producer = process.produce(
                ProducerSpec(local.bootstrap, topic, idempotent=True, settings=own)
            )
            producer.wait_acked(10)
            fault = local.begin_fault("error", apis=["Produce"], topics=[topic], times=2)
            until(lambda f=fault: len(local.faults_done(f)) == 2, "it is refused")  # type: ignore[misc]
            producer.wait_acked(10)
            admin.move_leader(topic)
            producer.wait_acked(10)
            check_produced(admin, producer.stop())
            check_consumed(admin, consumer)
            consumer.stop()
        assert local.metric("leader_hints_hints_given_total") > 0
        assert not local.events("subscription_lost")
        assert _authenticate(("127.0.0.1", base), b"wrong") == _REFUSED
        assert PROXY_PASSWORD not in local.log.read_text()


def _authenticate(address: tuple[str, int], password: bytes) -> int:
    """Authenticate through the proxy as a client does; return the brokers' error."""
    with BrokerConnection(address) as connection:
        connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = b"\0" + CLIENT.encode() + b"\0" + password
        asked = authenticate.SaslAuthenticateRequest(auth_bytes=token)
        code: int = connection.ask(asked, SaslAuthenticateResponse).error_code.value
        return code


def _local(cluster: RealCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    host, port = cluster.brokers[1].upstream
    base = free_range(2 + _BROKERS)
    listen = ("--listen", f"127.0.0.1:{base}")
    return leader_hints("local", "--bootstrap", f"{host}:{port}", *listen, *arguments)


def test_what_it_lacks_is_reported(cluster: RealCluster, tmp_path: Path) -> None:
    authority = Authority(cluster.folder / "tls")
    other = Authority(tmp_path / "other")
    host, port = cluster.brokers[1].upstream
    for arguments, told in (
        ([], "perhaps its listener needs --tls or --sasl"),
        (["--tls-ca", other.ca], "TLS: the broker "),
        (
            [*_tls(authority), "--sasl", "SCRAM-SHA-256", *_sasl(tmp_path)[2:]],
            "the listener does not take SCRAM-SHA-256; it takes PLAIN",
        ),
    ):
        ended = _local(cluster, *arguments)
        assert ended.returncode == 1, ended.stderr
        assert ended.stderr.startswith(f"leader-hints: no cluster at {host}:{port}: ")
        assert told in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
