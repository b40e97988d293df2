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
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

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
#: The same for each second of a consumer that is fed.
MOST_FETCHES_FED = 150
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


@contextlib.contextmanager
def seeing_all_but(cluster: RealCluster, denied: str, shown: str) -> Iterator[None]:
    """Let the proxy's user see all topics meanwhile but one that is denied to it alone."""
    binding = AclBinding(
        ResourceType.TOPIC,
        denied,
        ResourcePatternType.LITERAL,
        f"User:{PROXY}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.DENY,
    )
    admin = AdminClient({"bootstrap.servers": cluster.direct_bootstrap})
    admin.create_acls([binding])[binding].result(30)
    allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC)
    wait_allowed(cluster, PROXY, shown)
    try:
        yield
    finally:
        remove_acls(cluster, "*")


def remove_acls(cluster: RealCluster, topic: str) -> None:
    """Take back what the proxy's user may do with a topic."""
    admin = AdminClient({"bootstrap.servers": cluster.direct_bootstrap})
    which = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{PROXY}",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
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
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
    partitions: int,
) -> None:
    """Metadata about 2,700 partitions is larger than what is read in passing."""
    (shown,) = new_topics("shown")
    topic = f"hidden-{partitions}"
    create(cluster, topic, partitions)
    fill(cluster, clients, topic, partitions)
    direct, direct_s = consume(clients, cluster.direct_bootstrap, topic, partitions, {})
    direct.stop()

    def check(fleet: ProxyFleet) -> None:
        own = java_sasl("PLAIN")
        consumer, proxied_s = consume(clients, cluster.bootstrap, topic, partitions, own)
        before = fleet.metric(REQUESTS, api="Fetch")
        watch()
        fetches = fleet.metric(REQUESTS, api="Fetch") - before
        consumer.stop()
        assert fetches < MOST_FETCHES
        assert proxied_s < direct_s + LATER_S

    # Denied alone: brokers answer that the proxy may see all topics, so ids are offered at first.
    with (
        seeing_all_but(cluster, topic, shown),
        sidecars(cluster, tmp_path / "denied") as fleet,
    ):
        for process in fleet.processes:
            until(lambda p=process: p.metric(PARTITIONS), "the proxy knows topics")  # type: ignore[misc]
        check(fleet)
        assert fleet.metric(REQUESTS, api="Fetch", asked="16") > 0
    allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC, shown)
    with sidecars(cluster, tmp_path / "hidden") as fleet:
        for process in fleet.processes:
            until(lambda p=process: p.events("topics_hidden"), "hidden topics are reported")  # type: ignore[misc]
        check(fleet)
        assert fleet.metric(REQUESTS, api="Fetch", asked="16") == 0


def test_a_topic_that_becomes_hidden_is_consumed_on(
    cluster: RealCluster,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    """Links on which Fetch 16 was offered do not stay in a loop of UNKNOWN_TOPIC_ID."""
    topic, shown = new_topics("first-seen", "shown", partitions=3)
    with contextlib.ExitStack() as allowed:
        allowed.enter_context(seeing_all_but(cluster, "no-topic", shown))
        fleet = allowed.enter_context(sidecars(cluster, tmp_path / "proxies"))
        for process in fleet.processes:
            until(lambda p=process: p.metric(PARTITIONS) >= 6, "the proxy knows all topics")  # type: ignore[misc]
        spec = ProducerSpec(cluster.direct_bootstrap, topic, partitions=(0, 1, 2), rate=30)
        feed = clients(JAVA).produce(spec)
        consumer = clients(JAVA).consume(
            ConsumerSpec(
                cluster.bootstrap, topic, partitions=(0, 1, 2), settings=java_sasl("PLAIN")
            )
        )
        consumer.wait_count(30)
        assert fleet.metric(REQUESTS, api="Fetch", asked="16") > 0
        allow(cluster, PROXY, AclOperation.DESCRIBE, ResourceType.TOPIC, shown)
        remove_acls(cluster, "*")
        for process in fleet.processes:
            until(lambda p=process: p.events("topics_hidden"), "hidden topics are reported")  # type: ignore[misc]
        before = fleet.metric(REQUESTS, api="Fetch")
        # Some polls of everything, so that the topic is forgotten.
        for _ in range(3):
            watch()
        fetches = fleet.metric(REQUESTS, api="Fetch") - before
        last = feed.acked[-1].at
        feed.stop()
        for partition in range(3):
            consumer.wait_consumed(
                lambda got, p=partition: any(  # type: ignore[misc]
                    one.partition == p and one.at > last - 1 for one in got[-300:]
                ),
                f"the last records of partition {partition}",
            )
        consumer.stop()
        assert fetches < 3 * WATCHED_S * MOST_FETCHES_FED
        assert longest_pause(consumer) < LATER_S


def watch() -> None:
    """Let a while pass."""
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > WATCHED_S, "a while has passed")


def longest_pause(consumer: ConsumerRun) -> float:
    """The longest time between two records of a partition, in seconds."""
    at: dict[int, list[float]] = {}
    for one in consumer.consumed:
        at.setdefault(one.partition, []).append(one.at)
    return max(after - before for times in at.values() for before, after in pairwise(times))
