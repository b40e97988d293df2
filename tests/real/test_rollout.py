"""The way in and the way out, broker by broker under load, as docs/deploy/rollout.md says."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints, ProxyError, ProxyFleet, ProxyProcess
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA

PARTITIONS = (0, 1, 2)
LAYOUT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
_GIVEN = "leader_hints_hints_given_total"


class Rollout:
    """A cluster without proxies at first, and clients that run from the first step to the last."""

    def __init__(self, cluster: RealCluster, clients: Callable[[str], ClientProcess]) -> None:
        self._cluster = cluster
        self._clients = clients
        self._admin = ClusterAdmin(cluster)
        self._producers: list[ProducerRun] = []
        self._consumers: list[ConsumerRun] = []

    def start(self) -> None:
        """Start an idempotent producer and a group for each client library."""
        # What clients were given before there was any proxy; nobody changes that.
        bootstrap = ",".join(
            f"{host}:{port}" for host, port in (b.upstream for b in self._cluster.brokers.values())
        )
        for library in (JAVA, CONFLUENT):
            topic = f"rollout-{library}"
            self._admin.create_topic(topic, LAYOUT, {"min.insync.replicas": "2"})
            process = self._clients(library)
            self._consumers.append(
                process.consume(ConsumerSpec(bootstrap, topic, PARTITIONS, group=topic))
            )
            self._producers.append(
                process.produce(ProducerSpec(bootstrap, topic, PARTITIONS, idempotent=True))
            )

    def flow(self) -> None:
        """Wait until every client has done more of its work."""
        for producer in self._producers:
            producer.wait_acked(10)
        for consumer in self._consumers:
            consumer.wait_count(len(consumer.consumed) + 10)

    def move(self) -> None:
        """Move all leaders; clients have found the new ones when it returns."""
        self._admin.move_leaders(
            {TopicPartition(p.spec.topic, n): None for p in self._producers for n in PARTITIONS}
        )
        self.flow()

    def move_until_hinted(self, fleet: ProxyFleet) -> None:
        """Move all leaders until an error gets a hint.

        A producer learns of all its partitions by one error, which gets none where the new leader
        is not ready within the hold.
        """

        def hinted() -> bool:
            self.move()
            return fleet.metric(_GIVEN, mode="on") > 0

        until(hinted, "an error gets a hint")

    def restart(self, node: int, *, behind_proxy: bool) -> None:
        """Change what a broker advertises, by a restart; return when it leads what it led."""
        broker = self._cluster.brokers[node]
        self._cluster.advertise(node, broker.advertised if behind_proxy else broker.upstream)
        broker.stop()
        self._cluster.restart(node)
        topics = [producer.spec.topic for producer in self._producers]
        self.wait_in_sync()
        led = [number for number, replicas in enumerate(LAYOUT) if replicas[0] == node]
        self._admin.move_leaders({TopicPartition(t, n): node for t in topics for n in led})
        self.flow()

    def readvertise(self, node: int, *, behind_proxy: bool) -> None:
        """Change what a broker advertises while it runs; return when all brokers know of it."""
        broker = self._cluster.brokers[node]
        self._admin.advertise(node, broker.advertised if behind_proxy else broker.upstream)

    def wait_in_sync(self) -> None:
        """Wait until all replicas are in sync."""
        for producer in self._producers:
            self._admin.wait_in_sync(producer.spec.topic)

    def finish(self) -> None:
        """Stop; nothing may be lost or doubled, and nothing be out of order."""
        for producer in self._producers:
            check_produced(self._admin, producer.stop())
        for consumer in self._consumers:
            check_consumed(self._admin, consumer)
            consumer.stop()
        self._cluster.check()


def test_in_and_out_again_under_load(
    clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    cluster = RealCluster("3.6.2", folder=tmp_path / "cluster")
    for node, broker in cluster.brokers.items():
        cluster.advertise(node, broker.upstream)

    def proxies(hints: Hints) -> list[ProxyProcess]:
        return [
            ProxyProcess(
                [(broker.advertised, broker.upstream)],
                tmp_path / f"{hints}-{node}.log",
                hints=hints,
            )
            for node, broker in cluster.brokers.items()
        ]

    with cluster, contextlib.ExitStack() as stack:
        rollout = Rollout(cluster, clients)
        rollout.start()
        rollout.flow()

        observing = ProxyFleet(proxies("observe"))
        places = [stack.enter_context(contextlib.ExitStack()) for _ in observing.processes]
        for place, process in zip(places, observing.processes, strict=True):
            place.enter_context(process)
        rollout.flow()
        assert requests(observing) == 0, "nobody knows of them yet"

        for number, node in enumerate(cluster.brokers):
            rollout.restart(node, behind_proxy=True)
            until(
                lambda process=observing.processes[number]: requests(ProxyFleet([process])) > 0,  # type: ignore[misc]
                f"clients come to broker {node} through its proxy",
            )
        rollout.move()
        assert observing.metric("leader_hints_errors_seen_total") > 0
        assert observing.metric(_GIVEN, mode="on") == 0
        assert observing.metric("leader_hints_requests_total", asked="10") == 0

        giving = ProxyFleet(proxies("on"))
        for place, process in zip(places, giving.processes, strict=True):
            place.close()
            place.enter_context(process)
            rollout.flow()
        rollout.move_until_hinted(giving)

        switch(giving, "off")
        given = giving.metric(_GIVEN, mode="on")
        rollout.move()
        assert giving.metric(_GIVEN, mode="on") == given
        switch(giving, "on")
        rollout.move()

        for node in cluster.brokers:
            rollout.restart(node, behind_proxy=False)
        until(
            lambda: giving.metric("leader_hints_links_open") == 0,
            "the last client has left the proxies",
        )
        for place in places:
            place.close()
        rollout.flow()
        rollout.finish()


@pytest.mark.parametrize("version", ["2.4.1", "3.6.2"])
def test_readvertised_without_a_restart(
    version: str, clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    """With ZooKeeper brokers change what they advertise while they run (KIP-226).

    So a proxy that is down for good keeps nobody out for long: docs/availability.md.
    """
    cluster = RealCluster(version, folder=tmp_path / "cluster")
    for node, broker in cluster.brokers.items():
        cluster.advertise(node, broker.upstream)
    proxies = {
        node: ProxyProcess([(broker.advertised, broker.upstream)], tmp_path / f"{node}.log")
        for node, broker in cluster.brokers.items()
    }
    fleet = ProxyFleet(list(proxies.values()))
    with cluster, contextlib.ExitStack() as stack:
        rollout = Rollout(cluster, clients)
        rollout.start()
        rollout.flow()
        places = {node: stack.enter_context(contextlib.ExitStack()) for node in proxies}
        for node, proxy in proxies.items():
            places[node].enter_context(proxy)
        started = [broker.pid for broker in cluster.brokers.values()]

        for node in cluster.brokers:
            rollout.readvertise(node, behind_proxy=True)
        rollout.move()
        for proxy in proxies.values():
            assert requests(ProxyFleet([proxy])) > 0
        rollout.move_until_hinted(fleet)

        down, *others = proxies
        proxies[down].kill()
        with pytest.raises(ProxyError, match="ended with -9"):
            places[down].close()
        rollout.readvertise(down, behind_proxy=False)
        rollout.flow()
        for node in others:
            rollout.readvertise(node, behind_proxy=False)
        rollout.move()
        remaining = ProxyFleet([proxies[node] for node in others])
        until(
            lambda: remaining.metric("leader_hints_links_open") == 0,
            "the last client has left the proxies",
        )
        assert [broker.pid for broker in cluster.brokers.values()] == started
        rollout.wait_in_sync()
        rollout.finish()


def requests(fleet: ProxyFleet) -> float:
    """How many Produce and Fetch requests came."""
    return sum(fleet.metric("leader_hints_requests_total", api=api) for api in ("Produce", "Fetch"))


def switch(fleet: ProxyFleet, hints: Hints) -> None:
    """Use the kill switch of every route."""
    for process in fleet.processes:
        for route in process.status()["routes"]:
            process.switch_hints(route["name"], hints)
