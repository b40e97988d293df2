"""Brokers that ask for certificates: TLS ends at the proxy, or passes through unread."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.maven import PYTHONPATH
from tests.harness.proxyproc import ProxyProcess
from tests.harness.secured import Authority
from tests.real.names import CONFLUENT, JAVA, TLS_36

pytestmark = pytest.mark.parametrize("cluster", [TLS_36], indirect=True)


@pytest.fixture
def authority(cluster: RealCluster) -> Authority:
    """The authority that the brokers trust."""
    return Authority(cluster.folder / "tls")


@pytest.fixture
def settings(authority: Authority) -> dict[str, dict[str, str]]:
    """Settings of clients that show certificates, by library."""
    return {
        JAVA: {"security.protocol": "SSL", **authority.java("java-client")},
        CONFLUENT: authority.librdkafka("librdkafka-client"),
    }


def proxy_before(cluster: RealCluster, log: Path, settings: dict[str, Any]) -> ProxyProcess:
    """A proxy before all brokers, with the same settings for each route."""
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    return ProxyProcess(routes, log, security=[settings] * len(routes))


def doctor(proxy: ProxyProcess) -> dict[str, Any]:
    """What `check` finds of a proxy's routes."""
    done = subprocess.run(
        [sys.executable, "-m", "leader_hints.cli.main", "check", "--json"],
        env=os.environ | proxy.environment | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def doctor_answered(proxy: ProxyProcess) -> dict[str, Any]:
    """What `check` finds once every kind of client is answered, as it advises on a busy machine."""
    for _ in range(3):
        found = doctor(proxy)
        codes = {finding["code"] for route in found["routes"] for finding in route["findings"]}
        if "listen_unanswered" not in codes:
            break
    return found


def test_hints_are_given_where_tls_ends_at_the_proxy(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    authority: Authority,
    settings: dict[str, dict[str, str]],
    tmp_path: Path,
) -> None:
    own = {"certificate": authority.pem("proxy"), "ca": authority.ca}
    secured = {
        "client_tls": {"mode": "terminate", **own},
        "upstream_tls": {"enabled": True, **own},
        "peer_tls": {"enabled": True, **own},
    }
    with proxy_before(cluster, tmp_path / "proxy.log", secured) as proxy:
        proxy.wait_plans(3)
        runs = []
        for library, topic in zip(settings, new_topics(*settings), strict=True):
            client, of_it = clients(library), settings[library]
            consumer = client.consume(ConsumerSpec(cluster.bootstrap, topic, settings=of_it))
            producer = client.produce(
                ProducerSpec(cluster.bootstrap, topic, idempotent=True, settings=of_it)
            )
            runs.append((producer, consumer))
        for _ in range(3):
            for producer, _ in runs:
                producer.wait_acked(10)
            admin.move_leaders({TopicPartition(run.spec.topic, 0): None for run, _ in runs})
        for producer, consumer in runs:
            producer.wait_acked(10)
            check_produced(admin, producer.stop())
            check_consumed(admin, consumer)
            consumer.stop()
        for api in ("Produce", "Fetch"):
            assert proxy.metric("leader_hints_hints_given_total", api=api) > 0
        for route in doctor_answered(proxy)["routes"]:
            findings = route["findings"]
            assert [finding for finding in findings if finding["severity"] == "mend"] == []
            codes = {finding["code"] for finding in findings}
            assert {"versions_raised", "listen_proxy", "advertised_right"} <= codes


def test_tls_passes_unread(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    settings: dict[str, dict[str, str]],
    tmp_path: Path,
) -> None:
    passing = {"client_tls": {"mode": "pass"}}
    with proxy_before(cluster, tmp_path / "proxy.log", passing) as proxy:
        topic = new_topic("unread")
        spec = ProducerSpec(cluster.bootstrap, topic, settings=settings[CONFLUENT])
        producer = clients(CONFLUENT).produce(spec)
        producer.wait_acked(10)
        admin.move_leader(topic)
        producer.wait_acked(10)
        check_produced(admin, producer.stop())
        assert proxy.metric("leader_hints_bytes_total") > 0
        assert not proxy.events("bad_client_bytes")
