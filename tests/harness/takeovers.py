"""One proxy after the other takes over, while producers and consumers of several libraries work."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyProcess
from tests.harness.python_client import KAFKA_PYTHON
from tests.harness.waiting import until

_PARTITIONS = (0, 1, 2)
_RATE = 40.0


class Takeovers:
    """A proxy before all brokers of a cluster, and a producer and a group for each library.

    ``topics``: one of three partitions for each library; ``producers``: by library.
    """

    def __init__(
        self,
        cluster: RealCluster,
        clients: Callable[[str], ClientProcess],
        topics: Mapping[str, str],
        folder: Path,
    ) -> None:
        routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
        self._bootstrap = cluster.bootstrap
        self._clients = clients
        self._topics = topics
        self._folder = folder
        self._processes = contextlib.ExitStack()
        self._number = 0
        self.serving = ProxyProcess(routes, folder / "proxy-0.log")
        self.serving.environment["LEADER_HINTS_TAKEOVER"] = str(folder / "takeover")
        self.producers: dict[str, ProducerRun] = {}
        self._consumers: list[ConsumerRun] = []

    def __enter__(self) -> Self:
        self._processes.enter_context(self.serving)
        for library, topic in self._topics.items():
            process = self._clients(library)
            group = ConsumerSpec(self._bootstrap, topic, _PARTITIONS, group=topic)
            self._consumers.append(process.consume(group))
            # kafka-python's producer is not idempotent by itself.
            idempotent = library != KAFKA_PYTHON
            produced = ProducerSpec(
                self._bootstrap, topic, _PARTITIONS, rate=_RATE, idempotent=idempotent
            )
            self.producers[library] = process.produce(produced)
        self.flow()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def flow(self) -> None:
        """Wait until every client has done more of its work."""
        for producer in self.producers.values():
            producer.wait_acked(12)
        for consumer in self._consumers:
            consumer.wait_count(len(consumer.consumed) + 12)

    def take_over(self) -> None:
        """Have a new process take over, and wait until the former one has ended.

        :raises AssertionError: it ended badly, or with requests under way.
        """
        self._number += 1
        former = self.serving
        successor = former.successor(self._folder / f"proxy-{self._number}.log")
        self._processes.enter_context(successor)
        until(lambda: former.exit_code() is not None, "the former process ends")
        assert successor.events("taken_over"), successor.log_tail()
        assert [line["links"] for line in former.events("stopped")] == [0], former.log_tail()
        self.serving = successor

    def finish(self, admin: ClusterAdmin) -> None:
        """Stop; nothing may be lost or doubled, and nothing be out of order."""
        for producer in self.producers.values():
            check_produced(admin, producer.stop())
        for consumer in self._consumers:
            check_consumed(admin, consumer)
            consumer.stop()
