"""Two worker processes before real brokers: leaders move, and a worker is killed."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.history import LeaderHistory
from tests.harness.judge import judge
from tests.harness.proxyproc import ProxyFleet, ProxyProcess
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA, KRAFT_36, ZK_28, ZK_36
from tests.real.test_leader_moves import BETWEEN_MOVES, MOVES, RATE, Traffic, check_hints

_PARTITIONS = (0, 1, 2)
_SECONDS = 60.0


@pytest.fixture
def two_workers(tmp_path: Path) -> tuple[str, ...]:
    """Arguments of a proxy that has two."""
    file = tmp_path / "workers.yaml"
    file.write_text("workers: 2\n")
    return ("--config", str(file))


@pytest.mark.parametrize(
    ("cluster", "library"),
    [(ZK_36, JAVA), (ZK_36, CONFLUENT), (KRAFT_36, JAVA), (ZK_28, CONFLUENT)],
    indirect=["cluster"],
)
def test_nothing_is_lost_or_doubled_by_two_workers(
    cluster: RealCluster,
    library: str,
    admin: ClusterAdmin,
    history: LeaderHistory,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    two_workers: tuple[str, ...],
    tmp_path: Path,
) -> None:
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with ProxyFleet.before(routes, tmp_path, arguments=two_workers) as fleet:
        traffic = Traffic(clients(library), cluster.bootstrap, new_topics)
        for _ in range(MOVES):
            traffic.flow()
            admin.move_leaders(dict.fromkeys(traffic.partitions))
        traffic.flow()
        traffic.stop_and_check(admin)
        check_hints(judge(fleet, history), expected=True)
        seen = Counter(line["worker"] for line in fleet.events("client_seen"))
        assert {*seen} == {1, 2}


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_clients_go_on_when_a_worker_is_killed(
    cluster: RealCluster,
    admin: ClusterAdmin,
    history: LeaderHistory,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    two_workers: tuple[str, ...],
    tmp_path: Path,
) -> None:
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    (topic,) = new_topics("killed", partitions=len(_PARTITIONS))
    with ProxyFleet.before(routes, tmp_path, arguments=two_workers) as fleet:
        (proxy,) = fleet.processes
        proxy.expect_errors()
        process = clients(JAVA)
        bootstrap = cluster.bootstrap
        consumer = process.consume(ConsumerSpec(bootstrap, topic, _PARTITIONS))
        producer = process.produce(
            ProducerSpec(bootstrap, topic, _PARTITIONS, rate=RATE, idempotent=True)
        )
        consumer.wait_count(1)
        for number in (1, 2):
            producer.wait_acked(BETWEEN_MOVES)
            began = [one for one in proxy.events("worker_began") if one["worker"] == number]
            os.kill(began[-1]["process"], signal.SIGKILL)
            until(partial(_have_ended, proxy, number), "it ends", _SECONDS)
            until(lambda: proxy.metric("leader_hints_workers") == 2, "it is back", _SECONDS)
            admin.move_leaders(dict.fromkeys(TopicPartition(topic, one) for one in _PARTITIONS))
        producer.wait_acked(BETWEEN_MOVES)
        producer.stop()
        check_produced(admin, producer)
        check_consumed(admin, consumer)
        consumer.stop()
        assert proxy.metric("leader_hints_worker_ends_total") == 2
        assert not judge(fleet, history).wrong


def _have_ended(proxy: ProxyProcess, workers: int) -> bool:
    return len(proxy.events("worker_ended")) == workers
