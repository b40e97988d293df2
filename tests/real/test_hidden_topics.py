"""Topics that ACLs hide from the proxy, in front of brokers that take Fetch by name only.

Clients use Fetch 13 and newer, which name topics by id, only where the proxy can name each id.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerRun, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet, ProxyProcess
from tests.harness.secured import CLIENT, PROXY, USERS, java_sasl, proxy_sasl
from tests.harness.waiting import patience, until
from tests.real.names import JAVA, SASL_28
from tests.real.test_sasl import allow, wait_allowed

pytestmark = pytest.mark.parametrize("cluster", [SASL_28], indirect=True)

#: Records in all, spread over the partitions.
RECORDS = 300
#: Seconds by which a proxied consumer may be later than a direct one, on a busy machine.
LATER_S = 5.0
#: A consumer without a hot loop asks each broker some times a second.
MOST_FETCHES = 400
REQUESTS = "leader_hints_requests_total"
PARTITIONS = "leader_hints_partitions"
#: Seconds for which a consumer that has read everything is watched.
WATCHED_S = 5.0


@contextlib.contextmanager
def sidecars(cluster: RealCluster, folder: Path) -> Iterator[ProxyFleet]:
    """A proxy for each broker, which authenticates as a user of its own."""
    folder.mkdir()
    (folder / "settings.yaml").write_text(
        "subscription: {poll_interval_ms: 500, answer_timeout_ms: 30000}\n"
    )
    arguments = ("--config", str(folder / "settings.yaml"))
    with ProxyFleet(
        [
            ProxyProcess(
                [(broker.advertised, broker.upstream)],
                folder / f"proxy-{node}.log",
                arguments=arguments,
                security=[{"sasl": proxy_sasl("PLAIN", folder)}],
            )
            for node, broker in cluster.brokers.items()
        ]
    ) as fleet:
        for process in fleet.processes:
            process.wait_plans(1)
        yield fleet


def fill(
    cluster: RealCluster, clients: Callable[[str], ClientProcess], topic: str, partitions: int
) -> None:
    """Write to all partitions, past the proxies."""
    some = range(0, partitions, max(1, partitions // RECORDS))
    spec = ProducerSpec(
        cluster.direct_bootstrap, topic, partitions=tuple(some), rate=0, count=RECORDS
    )
    clients(JAVA).produce(spec).wait_done()


def consume(
    clients: Callable[[str], ClientProcess],
    bootstrap: str,
    topic: str,
    partitions: int,
    settings: Mapping[str, str],
) -> tuple[ConsumerRun, float]:
    """Begin to consume a topic; return the consumer, and how many seconds all records took."""
    begun = time.monotonic()
    spec = ConsumerSpec(bootstrap, topic, partitions=tuple(range(partitions)), settings=settings)
    consumer = clients(JAVA).begin_to_consume(spec)
    consumer.wait_count(RECORDS)
    return consumer, time.monotonic() - begun


def create(cluster: RealCluster, topic: str, partitions: int) -> None:
    """Make a topic; one of thousands of partitions takes a busy machine minutes."""
    layout = [[1 + number % 3] for number in range(partitions)]
    admin = AdminClient({"bootstrap.servers": cluster.direct_bootstrap})
    new = NewTopic(topic, partitions, replica_assignment=layout)
    admin.create_topics([new], request_timeout=300)[topic].result(300)
    with patience(300):
        until(
            lambda: len(admin.list_topics(topic, 30).topics[topic].partitions) == partitions,
            f"{topic} is there",
        )


def forbid(cluster: RealCluster, user: str, topic: str) -> None:
    """Take back that a user may see a topic."""
    admin = AdminClient({"bootstrap.servers": cluster.direct_bootstrap})
    which = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    admin.delete_acls([which])[which].result(30)


@pytest.fixture(autouse=True)
def _users(cluster: RealCluster) -> None:
    cluster.add_scram_users(USERS)
    for kind in (ResourceType.GROUP, ResourceType.TOPIC):
        allow(cluster, CLIENT, AclOperation.ALL, kind)


@pytest.mark.parametrize("partitions", [3, 2700])
def test_topics_hidden_from_the_proxy_are_consumed_as_without_it(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
    partitions: int,
) -> None:
    (shown,) = new_topics("shown")
    hidden = f"hidden-{partitions}"
    allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC, shown)
    wait_allowed(cluster, PROXY, shown)
    create(cluster, hidden, partitions)
    fill(cluster, clients, hidden, partitions)
    direct, direct_s = consume(clients, cluster.direct_bootstrap, hidden, partitions, {})
    direct.stop()
    with sidecars(cluster, tmp_path / "proxies") as fleet:
        for process in fleet.processes:
            until(lambda p=process: p.events("topics_hidden"), "hidden topics are told")  # type: ignore[misc]
        consumer, proxied_s = consume(
            clients, cluster.bootstrap, hidden, partitions, java_sasl("PLAIN")
        )
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > WATCHED_S, "the consumer goes on for a while")
        fetches = fleet.metric(REQUESTS, api="Fetch")
        consumer.stop()
        assert fetches < MOST_FETCHES
        assert proxied_s < direct_s + LATER_S


def test_a_topic_that_becomes_hidden_is_consumed_on(
    cluster: RealCluster,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    """Links on which Fetch 16 was offered do not stay in a loop of UNKNOWN_TOPIC_ID."""
    topic, shown = new_topics("first-seen", "shown", partitions=3)
    allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC)
    wait_allowed(cluster, PROXY, shown)
    with sidecars(cluster, tmp_path / "proxies") as fleet:
        until(
            lambda: all(p.metric(PARTITIONS) >= 6 for p in fleet.processes),
            "the proxies know all topics",
        )
        process = clients(JAVA)
        feed = process.produce(
            ProducerSpec(cluster.direct_bootstrap, topic, partitions=(0, 1, 2), rate=30)
        )
        consumer = process.consume(
            ConsumerSpec(
                cluster.bootstrap, topic, partitions=(0, 1, 2), settings=java_sasl("PLAIN")
            )
        )
        consumer.wait_count(30)
        assert fleet.metric(REQUESTS, api="Fetch", asked="16") > 0
        allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC, shown)
        forbid(cluster, PROXY, "*")
        until(
            lambda: all(p.metric(REQUESTS, api="Fetch", asked="12") for p in fleet.processes),
            "the consumer asks each broker by name",
        )
        before = fleet.metric(REQUESTS, api="Fetch", asked="16")
        for partition in range(3):
            sought = feed.acked[-1].seq
            consumer.wait_consumed(
                lambda got, p=partition, s=sought: any(  # type: ignore[misc]
                    one.partition == p and one.seq > s for one in got[-300:]
                ),
                f"records of partition {partition} that were written since",
            )
        assert fleet.metric(REQUESTS, api="Fetch", asked="16") == before
        feed.stop()
        consumer.stop()
        assert longest_pause(consumer) < LATER_S


def longest_pause(consumer: ConsumerRun) -> float:
    """The longest time between two records of a partition, in seconds."""
    at: dict[int, list[float]] = {}
    for one in consumer.consumed:
        at.setdefault(one.partition, []).append(one.at)
    return max(after - before for times in at.values() for before, after in pairwise(times))
