"""Brokers with SASL and ACLs: clients authenticate through the proxy, and it authenticates itself.

Their sessions end every few seconds, so that all of them authenticate again (KIP-368).
"""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from leader_hints.cli.main import cli
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerRun, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyProcess
from tests.harness.secured import (
    CLIENT,
    CLIENT_PASSWORD,
    PROXY,
    PROXY_PASSWORD,
    USERS,
    java_sasl,
    librdkafka_sasl,
    proxy_sasl,
    token,
)
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA, SASL_24, SASL_36

pytestmark = pytest.mark.parametrize("cluster", [SASL_24, SASL_36], indirect=True)

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = {
    JAVA: ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"),
    CONFLUENT: ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"),
}


def allow(
    cluster: RealCluster,
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str = "*",
) -> None:
    """Let a user do something with all that there is of a kind."""
    binding = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": cluster.direct_bootstrap})
    admin.create_acls([binding])[binding].result(30)


def wait_allowed(cluster: RealCluster, user: str, topic: str) -> None:
    """Wait until each broker takes a user's SCRAM credentials, and shows the user a topic.

    What was allowed before that topic is known then too: brokers learn of it in the order of time.
    """
    for mechanism, broker in itertools.product(SCRAM, cluster.brokers.values()):
        host, port = broker.upstream
        client = AdminClient(
            {
                "bootstrap.servers": f"{host}:{port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": USERS[user],
                "log_level": 0,
            }
        )
        until(lambda c=client: _sees(c, topic), f"{broker.name} allows {user} {mechanism}")  # type: ignore[misc]


def _sees(client: AdminClient, topic: str) -> bool:
    with contextlib.suppress(KafkaException):
        return client.list_topics(topic, 10).topics[topic].error is None
    return False


def proxy_before(
    cluster: RealCluster, folder: Path, mechanisms: Sequence[str], *arguments: str
) -> ProxyProcess:
    """A proxy before all brokers; its route to each authenticates in another way."""
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    security = [{"sasl": proxy_sasl(mechanism, folder)} for mechanism in mechanisms]
    return ProxyProcess(routes, folder / "proxy.log", arguments=arguments, security=security)


def all_that_is_reported(proxy: ProxyProcess, journal: Path) -> str:
    """Log, metrics, status and journal of a proxy as one text."""
    told = [proxy.log.read_text(), proxy.get("/metrics"), proxy.get("/status"), proxy.get("/")]
    return "\n".join(told + [file.read_text() for file in journal.glob("*.jsonl*")])


def check(proxy: ProxyProcess) -> str:
    """All that `leader-hints check` prints about the routes of a proxy, for people and programs."""
    ran = [
        CliRunner().invoke(cli, ["check", *form], env=proxy.environment)
        for form in ([], ["--json"])
    ]
    return "\n".join(output for run in ran for output in (run.stdout, run.stderr))


def move(admin: ClusterAdmin, producers: Sequence[ProducerRun]) -> None:
    """Move the leaders of the producers' topics, while they write."""
    admin.move_leaders({TopicPartition(run.spec.topic, 0): None for run in producers})
    for producer in producers:
        producer.wait_acked(10)


def test_clients_and_the_proxy_authenticate_and_no_secret_is_reported(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    cluster.add_scram_users(USERS)
    # Idempotent producers need it before 2.8 (KIP-679).
    write = AclOperation.IDEMPOTENT_WRITE
    allow(cluster, CLIENT, write, ResourceType.BROKER, "kafka-cluster")
    for kind in (ResourceType.GROUP, ResourceType.TOPIC):
        allow(cluster, CLIENT, AclOperation.ALL, kind)
    (shown,) = new_topics("shown")
    wait_allowed(cluster, CLIENT, shown)
    settings: dict[str, Callable[[str], dict[str, str]]] = {
        JAVA: java_sasl,
        CONFLUENT: librdkafka_sasl,
    }
    journal = tmp_path / "journal"
    journal.mkdir()
    file = tmp_path / "settings.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "journal": {"kind": "files", "path": str(journal)},
                # A slow broker is not lost.
                "subscription": {"answer_timeout_ms": 30_000},
            }
        )
    )

    # The proxy may see nothing: clients are served, and the reason for no hints is logged.
    with proxy_before(cluster, tmp_path / "blind", ["SCRAM-SHA-512"] * 3) as blind:
        (topic,) = new_topics("blind")
        until(lambda: blind.events("topics_hidden"), "the proxy tells that it may see nothing")
        producer = clients(JAVA).produce(
            ProducerSpec(cluster.bootstrap, topic, settings=java_sasl("PLAIN"))
        )
        producer.wait_acked(10)
        for _ in range(2):
            move(admin, [producer])
        check_produced(admin, producer.stop())
        assert blind.metric("leader_hints_hints_given_total") == 0
        missed = {line["reason"] for line in blind.events("hint_missed")}
        # The first may end its hold before the broker has said that it hides the topic.
        assert {"not_authorized"} <= missed <= {"not_authorized", "hold_expired"}
        assert len(blind.events("topics_hidden")) == 1

    allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC)
    wait_allowed(cluster, PROXY, shown)
    with proxy_before(
        cluster,
        tmp_path / "seeing",
        ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"],
        *("--config", str(file)),
    ) as proxy:
        proxy.wait_plans(3)
        runs = []
        for library, made in settings.items():
            # Of what it sent twice librdkafka is not told the offset.
            idempotent = library == JAVA
            labels = [f"{library}-{mechanism.lower()}" for mechanism in MECHANISMS[library]]
            for mechanism, topic in zip(MECHANISMS[library], new_topics(*labels), strict=True):
                own = made(mechanism)
                consumer = clients(library).begin_to_consume(
                    ConsumerSpec(cluster.bootstrap, topic, settings=own)
                )
                producer = clients(library).begin_to_produce(
                    ProducerSpec(
                        cluster.bootstrap, topic, rate=20, settings=own, idempotent=idempotent
                    )
                )
                runs.append((producer, consumer))
        for producer, consumer in runs:
            producer.wait_started()
            consumer.wait_started()
            producer.wait_acked(5)
        producers = [producer for producer, _ in runs]
        for _ in range(2):
            move(admin, producers)
        # Sessions have ended by now, and were renewed on connections that stayed.
        until(
            lambda: (
                proxy.metric("leader_hints_requests_total", api="SaslHandshake")
                > proxy.metric("leader_hints_links_total")
            ),
            "clients authenticate again",
        )
        for producer, consumer in runs:
            producer.wait_acked(5)
            check_produced(admin, producer.stop())
            check_consumed(admin, consumer)
            consumer.stop()
        assert proxy.metric("leader_hints_hints_given_total", api="Produce") > 0
        assert not proxy.events("topics_hidden")
        assert not proxy.events("subscription_lost")
        told = all_that_is_reported(proxy, journal) + check(proxy)
    secrets = [CLIENT_PASSWORD, PROXY_PASSWORD, (tmp_path / "seeing" / "token").read_text().strip()]
    assert [secret for secret in secrets if secret in told] == []


def test_check_says_that_it_is_refused_and_not_with_which_secret(
    cluster: RealCluster, tmp_path: Path
) -> None:
    mechanisms = ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]
    proxy = proxy_before(cluster, tmp_path, mechanisms)
    wrong = {"password": "no-such-password", "token": token(PROXY, seconds=-60)}
    for name, secret in wrong.items():
        (tmp_path / name).write_text(f"{secret}\n")
    told = check(proxy)
    assert told.count("SASL") >= len(mechanisms)
    assert [secret for secret in (*wrong.values(), PROXY_PASSWORD) if secret in told] == []
