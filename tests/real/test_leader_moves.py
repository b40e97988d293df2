"""Clients produce and consume through the proxies while leaders move: nothing lost or doubled."""

from collections.abc import Callable, Mapping
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
from tests.harness.history import LeaderHistory
from tests.harness.judge import REASONS, Judgement, judge
from tests.harness.proxyproc import Hints, ProxyFleet
from tests.real.names import (
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    KRAFT_36,
    ZK_28,
    ZK_35,
    ZK_36,
    ZK_37,
)

PARTITIONS = (0, 1)
MOVES = 3
RATE = 20
BETWEEN_MOVES = 10

PRODUCERS: Mapping[str, Mapping[str, object]] = {
    "acks0": {"acks": "0"},
    "acks1": {"acks": "1"},
    "acks-all": {"acks": "all"},
    "idempotent": {"idempotent": True},
    "transactional": {"transaction": 10},
}
GROUPED = ("acks-all", "idempotent")


class Traffic:
    """A producer of every kind, each with a topic and a consumer of its own."""

    def __init__(
        self, process: ClientProcess, bootstrap: str, new_topics: Callable[..., list[str]]
    ) -> None:
        """Start all, and wait until every consumer reads what its producer writes."""
        self.producers: list[ProducerRun] = []
        self.consumers: list[ConsumerRun] = []
        topics = new_topics(*PRODUCERS, partitions=len(PARTITIONS))
        for (kind, settings), topic in zip(PRODUCERS.items(), topics, strict=True):
            consumer = ConsumerSpec(
                bootstrap,
                topic,
                PARTITIONS,
                group=f"group-{topic}" if kind in GROUPED else None,
                committed_only=kind == "transactional",
            )
            producer = ProducerSpec(bootstrap, topic, PARTITIONS, rate=RATE, **settings)  # type: ignore[arg-type]
            self.consumers.append(process.consume(consumer))
            self.producers.append(process.produce(producer))
        for run in self.consumers:
            run.wait_count(1)

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that is produced to."""
        return [
            TopicPartition(run.spec.topic, partition)
            for run in self.producers
            for partition in run.spec.partitions
        ]

    def flow(self) -> None:
        """Wait until every producer has had some more acknowledged."""
        for run in self.producers:
            run.wait_acked(BETWEEN_MOVES)

    def stop_and_check(self, admin: ClusterAdmin) -> None:
        """Stop, and hold what the clients reported against what the brokers have."""
        for producer in self.producers:
            producer.stop()
        for producer in self.producers:
            check_produced(admin, producer)
        for consumer in self.consumers:
            check_consumed(admin, consumer)
            consumer.stop()


#: They give hints themselves.
NATIVE = {ZK_37}


def check_hints(judgement: Judgement, expected: bool) -> None:
    """No hint is wrong, no miss unexplained, and there are hints where there can be."""
    assert not judgement.wrong
    assert judgement.missed.keys() <= REASONS
    assert (judgement.given > 0) == expected, str(judgement)


# Older brokers have the same, and more features at once, in test_client_families.
@pytest.mark.parametrize("library", [JAVA, CONFLUENT, KAFKA_PYTHON])
@pytest.mark.parametrize(
    ("cluster", "sidecars"),
    [
        (ZK_36, True),
        (KRAFT_36, False),
        (ZK_35, False),
        (ZK_37, False),
    ],
    indirect=["cluster"],
    scope="session",  # or pytest would start the cluster again for each test
)
def test_nothing_lost_or_doubled(
    request: pytest.FixtureRequest,
    cluster: RealCluster,
    sidecars: bool,
    library: str,
    admin: ClusterAdmin,
    history: LeaderHistory,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    note_hints: Callable[[Judgement], None],
    tmp_path: Path,
) -> None:
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with ProxyFleet.before(routes, tmp_path, sidecars=sidecars) as fleet:
        traffic = Traffic(clients(library), cluster.bootstrap, new_topics)
        for _ in range(MOVES):
            traffic.flow()
            admin.move_leaders(dict.fromkeys(traffic.partitions))
        traffic.flow()
        traffic.stop_and_check(admin)
        judgement = judge(fleet, history)
        note_hints(judgement)
        check_hints(judgement, request.node.callspec.params["cluster"] not in NATIVE)


@pytest.mark.parametrize("library", [JAVA, CONFLUENT])
@pytest.mark.parametrize("cluster", [ZK_36, ZK_28], indirect=True, scope="session")
def test_nothing_lost_or_doubled_while_hints_are_switched(
    cluster: RealCluster,
    library: str,
    admin: ClusterAdmin,
    history: LeaderHistory,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    """Clients keep the versions that they were offered, and their sessions; on 2.8 both recoded."""
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    modes: list[Hints] = ["off", "on", "observe", "on"]
    with ProxyFleet.before(routes, tmp_path) as fleet:
        (proxy,) = fleet.processes
        traffic = Traffic(clients(library), cluster.bootstrap, new_topics)
        given = []
        for mode in modes:
            for route in proxy.status()["routes"]:
                proxy.switch_hints(route["name"], mode)
            before = proxy.metric("leader_hints_hints_given_total", mode="on")
            traffic.flow()
            admin.move_leaders(dict.fromkeys(traffic.partitions))
            traffic.flow()
            given.append(proxy.metric("leader_hints_hints_given_total", mode="on") > before)
        traffic.stop_and_check(admin)
        assert given == [mode == "on" for mode in modes]
        assert not judge(fleet, history).wrong
