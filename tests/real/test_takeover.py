"""One proxy after the other takes over, under load of three families of clients."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA, KAFKA_PYTHON, ZK_36

_TAKEOVERS = 5
_PARTITIONS = (0, 1, 2)


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_clients_notice_nothing_while_proxies_take_over(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    bootstrap = cluster.bootstrap
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    libraries = (JAVA, CONFLUENT, KAFKA_PYTHON)
    topics = new_topics(*(f"takeover-{one}" for one in libraries), partitions=len(_PARTITIONS))
    serving = ProxyProcess(routes, tmp_path / "proxy-0.log")
    serving.environment["LEADER_HINTS_TAKEOVER"] = str(tmp_path / "takeover")
    with contextlib.ExitStack() as processes:
        processes.enter_context(serving)
        consumers, producers = [], []
        for library, topic in zip(libraries, topics, strict=True):
            process = clients(library)
            consumers.append(
                process.consume(ConsumerSpec(bootstrap, topic, _PARTITIONS, group=topic))
            )
            producers.append(
                process.produce(
                    ProducerSpec(
                        bootstrap, topic, _PARTITIONS, rate=100, idempotent=library != KAFKA_PYTHON
                    )
                )
            )
        for number in range(1, _TAKEOVERS + 1):
            for producer in producers:
                producer.wait_acked(30)
            successor = serving.successor(tmp_path / f"proxy-{number}.log")
            processes.enter_context(successor)
            until(lambda former=serving: former.exit_code() is not None, "the former one ends")  # type: ignore[misc]
            assert successor.events("taken_over")
            # All links were at rest when they ended.
            assert [line["links"] for line in serving.events("stopped")] == [0]
            serving = successor
        for producer in producers:
            producer.wait_acked(30)
            check_produced(admin, producer.stop())
        for consumer in consumers:
            check_consumed(admin, consumer)
            consumer.stop()
