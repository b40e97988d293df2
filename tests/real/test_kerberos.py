"""Brokers with Kerberos and tokens: clients and the proxy authenticate, and hints are given.

Each route of the proxy authenticates in another way. Sessions end every few seconds, so that all
authenticate again (KIP-368), for a while without a KDC.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from leader_hints.cli.main import cli
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.java import java_clients
from tests.harness.kerberos import OTHER, KerberosCluster, kcat, missing_kcat
from tests.harness.maven import in_ci
from tests.harness.proxyproc import ProxyProcess
from tests.harness.secured import PROXY
from tests.harness.token_server import CLIENT_ID, CLIENT_SECRET, SCOPE
from tests.harness.waiting import until
from tests.real.names import KERBEROS_24, KERBEROS_36

pytestmark = pytest.mark.parametrize("cluster", [KERBEROS_24, KERBEROS_36], indirect=True)


@pytest.fixture
def java(cluster: KerberosCluster, tmp_path: Path) -> Iterator[ClientProcess]:
    """Java clients that find the KDC."""
    process = java_clients(tmp_path, options=(cluster.java_option,))
    yield process
    process.close()


def ways(cluster: KerberosCluster, folder: Path) -> list[dict[str, str]]:
    """How the routes authenticate: by a keytab, a ticket cache, and fetched tokens."""
    folder.mkdir(exist_ok=True)
    cache = cluster.kdc.ticket(PROXY, cluster.proxy_keytab, "proxy-cache")
    (folder / "secret").write_text(f"{CLIENT_SECRET}\n", encoding="utf-8")
    # Routes lead to IP addresses, which no principal has.
    server = {"mechanism": "GSSAPI", "server_name": "localhost"}
    return [
        {**server, "principal": PROXY, "keytab": str(cluster.proxy_keytab)},
        {**server, "ticket_cache": str(cache)},
        {
            "mechanism": "OAUTHBEARER",
            "token_endpoint": cluster.tokens.url,
            "token_endpoint_ca": cluster.authority.ca,
            "client_id": CLIENT_ID,
            "client_secret": f"file:{folder / 'secret'}",
            "scope": SCOPE,
        },
    ]


def proxy_before(
    cluster: KerberosCluster, folder: Path, ways: list[dict[str, str]]
) -> ProxyProcess:
    """A proxy before all brokers."""
    routes = [
        (broker.advertised, ("127.0.0.1", broker.upstream[1]))
        for broker in cluster.brokers.values()
    ]
    security = [{"sasl": sasl} for sasl in ways]
    proxy = ProxyProcess(routes, folder / "proxy.log", security=security)
    proxy.environment["KRB5_CONFIG"] = str(cluster.kdc.config)
    # A slow broker is not lost.
    proxy.environment["LEADER_HINTS_SUBSCRIPTION__ANSWER_TIMEOUT_MS"] = "30000"
    return proxy


def check(proxy: ProxyProcess, *arguments: str) -> str:
    """All that `leader-hints check` prints about the routes of a proxy."""
    ran = CliRunner().invoke(cli, ["check", *arguments], env=proxy.environment)
    return ran.stdout + ran.stderr


def use_librdkafka(cluster: KerberosCluster, topic: str, folder: Path) -> None:
    """Write and read records by librdkafka."""
    missing = missing_kcat()
    assert missing is None or not in_ci(), missing
    if missing is None:
        kcat(cluster, folder, "-P", "-t", topic, input="one\ntwo\n")
        assert kcat(cluster, folder, "-C", "-t", topic, "-e") == "one\ntwo\n"


def wait_sessions(proxy: ProxyProcess) -> None:
    """Wait until clients have authenticated again, so that every session has ended."""

    def again() -> float:
        handshakes = proxy.metric("leader_hints_requests_total", api="SaslHandshake")
        return handshakes - proxy.metric("leader_hints_links_total")

    before = again()
    until(lambda: again() > before, "clients authenticate again")


def test_clients_and_the_proxy_authenticate_and_hints_are_given(
    cluster: KerberosCluster,
    admin: ClusterAdmin,
    java: ClientProcess,
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    topic, other = new_topics("kerberos", "kcat")
    own = cluster.java_client()
    with proxy_before(cluster, tmp_path, ways(cluster, tmp_path)) as proxy:
        proxy.wait_plans(3)
        spec = ProducerSpec(cluster.bootstrap, topic, settings=own)
        consumer = java.begin_to_consume(ConsumerSpec(cluster.bootstrap, topic, settings=own))
        producer = java.produce(spec)
        consumer.wait_started()

        def move() -> None:
            before = proxy.metric("leader_hints_hints_given_total")
            for _ in range(2):
                admin.move_leaders({TopicPartition(topic, 0): None})
                producer.wait_acked(10)
            assert proxy.metric("leader_hints_hints_given_total") > before

        move()
        use_librdkafka(cluster, other, tmp_path)
        fetched = cluster.tokens.issued
        cluster.kdc.close()
        try:
            # Tickets are still valid.
            wait_sessions(proxy)
            move()
        finally:
            cluster.kdc.start()
        until(lambda: cluster.tokens.issued > fetched, "a token was renewed")
        assert "SASL" not in (told := check(proxy)), told
        check_produced(admin, producer.stop())
        check_consumed(admin, consumer)
        consumer.stop()
        assert not proxy.events("subscription_lost")
        assert not proxy.events("topics_hidden")
        assert CLIENT_SECRET not in proxy.log.read_text() + told


def test_check_says_what_is_wrong_with_tickets_and_tokens(
    cluster: KerberosCluster, tmp_path: Path
) -> None:
    cluster.kdc.add("changed")
    changed = cluster.kdc.keytab("changed", "changed")
    cluster.kdc.change_keys("changed")
    keytab, cache, token = ways(cluster, tmp_path)
    (tmp_path / "secret").write_text("no-such-secret\n")
    wrong = [
        {**keytab, "principal": "changed", "keytab": str(changed)},
        {**cache, "server_name": OTHER.removeprefix("kafka/")},
        token,
    ]
    told = check(proxy_before(cluster, tmp_path, wrong))
    for said in (
        f"the key in {changed} is not the present one of changed",
        f"the broker refuses the ticket for {OTHER}",
        "it refuses (HTTP 401): invalid_client: who is that",
    ):
        assert said in " ".join(told.split()), told
    assert "no-such-secret" not in told
    with cluster.kdc.frozen():
        told = check(proxy_before(cluster, tmp_path, [keytab, cache, token]))
    assert told.count("the KDC or the broker does not answer within 3 s") == 2, told
