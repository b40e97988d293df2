"""Brokers that are upgraded one by one, while clients run through the proxies."""

import itertools
from collections.abc import Callable
from pathlib import Path

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet, ProxyProcess
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA

PARTITIONS = (0, 1, 2)
UPGRADED = 1
BEFORE = {"inter.broker.protocol.version": "2.8", "log.message.format.version": "2.8"}


def _plans(proxy: ProxyProcess) -> list[dict[str, list[int]]]:
    """A route's plans, one after the other: it is logged at each new connection to its broker."""
    told = (line["raised"] for line in proxy.events("route_plan"))
    return [plan for plan, _ in itertools.groupby(told)]


def test_a_broker_goes_from_2_8_to_3_6_and_to_3_7(
    clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    """Meanwhile the cluster is mixed: each route does what its own broker needs."""
    cluster = RealCluster("2.8.2", folder=tmp_path / "cluster", overrides=BEFORE)
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with cluster, ProxyFleet.before(routes, tmp_path, sidecars=True) as fleet:
        admin = ClusterAdmin(cluster)
        topics = {library: f"upgrade-{library}" for library in (JAVA, CONFLUENT)}
        layout = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        admin.create_topics(dict.fromkeys(topics.values(), layout), {"min.insync.replicas": "2"})
        producers, consumers = [], []
        for library, topic in topics.items():
            process = clients(library)
            consumers.append(process.consume(ConsumerSpec(cluster.bootstrap, topic, PARTITIONS)))
            producers.append(
                process.produce(ProducerSpec(cluster.bootstrap, topic, PARTITIONS, idempotent=True))
            )
        proxy = fleet.processes[UPGRADED - 1]
        plans = [{"Produce": [9, 10], "Fetch": [12, 16]}]
        for version, plan in (("3.6.2", {"Produce": [9, 10], "Fetch": [15, 16]}), ("3.7.2", {})):
            for producer in producers:
                producer.wait_acked(10)
            cluster.upgrade(UPGRADED, version)
            plans.append(plan)
            until(
                lambda wanted=plans: _plans(proxy) == wanted,  # type: ignore[misc]
                f"the route's plan is that of {version}",
            )
            # The old brokers' leaders never take a replica back into the ISR that catches up
            # while their partition is being reassigned; operators wait as well.
            for topic in topics.values():
                admin.wait_in_sync(topic)
            admin.move_leaders(
                {TopicPartition(topic, n): None for topic in topics.values() for n in PARTITIONS}
            )
        for producer in producers:
            producer.wait_acked(10)
            check_produced(admin, producer.stop())
        for consumer in consumers:
            check_consumed(admin, consumer)
            consumer.stop()
        assert fleet.events("hint_given")
        cluster.check()


def test_before_ids_fetch_stays_at_12(
    clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    """Brokers of 2.8 whose protocol among themselves is older have no topic ids."""
    overrides = {"inter.broker.protocol.version": "2.7"}
    cluster = RealCluster("2.8.2", folder=tmp_path / "cluster", overrides=overrides)
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with cluster, ProxyFleet.before(routes, tmp_path) as fleet:
        admin = ClusterAdmin(cluster)
        for library in (JAVA, CONFLUENT):
            topic = f"without-ids-{library}"
            admin.create_topic(topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
            process = clients(library)
            consumer = process.consume(ConsumerSpec(cluster.bootstrap, topic))
            producer = process.produce(ProducerSpec(cluster.bootstrap, topic, idempotent=True))
            for _ in range(2):
                producer.wait_acked(10)
                admin.move_leader(topic)
            producer.wait_acked(10)
            check_produced(admin, producer.stop())
            check_consumed(admin, consumer)
            consumer.stop()
        asked = "leader_hints_requests_total"
        assert fleet.metric(asked, api="Fetch", asked="12") > 0
        for version in range(13, 17):
            assert fleet.metric(asked, api="Fetch", asked=str(version)) == 0
        assert fleet.events("hint_given")
