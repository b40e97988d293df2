"""A producer before a cluster whose leaders a test moves, with the proxy between them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from proxy.mock.cluster import MockCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyProcess
from tests.harness.waiting import until

#: No topic of Kafka has such a name, but a broker that is not what it seems might send it.
TOPIC = "<img src=x onerror=alert(1)>"
_SECONDS = 20.0
_MOVES = 6


@dataclass
class Scene:
    """The cluster, the proxy and the producer."""

    cluster: MockCluster
    proxy: ProxyProcess
    producer: Producer
    bootstrap: str

    def produce_on_the_move(self) -> None:
        """Move the leader of each partition once, and have a record arrive at the new one."""
        for number in range(_MOVES):
            partition = number % 2
            leader, _ = self.cluster.leaders[TOPIC, partition]
            self.cluster.set_leader(TOPIC, partition, leader % 3 + 1)
            self.produce(partition)

    @contextmanager
    def another_producer(self) -> Iterator[None]:
        """Use a producer with connections of its own until the end of the block."""
        first = self.producer
        with _producer(self.bootstrap) as self.producer:
            yield
        self.producer = first

    def produce(self, partition: int) -> None:
        """Have a record arrive."""
        arrived: list[Any] = []
        self.producer.produce(
            TOPIC, b"x", partition=partition, on_delivery=lambda e, m: arrived.append(e)
        )

        def delivered() -> bool:
            self.producer.poll(0)
            return bool(arrived)

        until(delivered, "the record arrives", _SECONDS)
        assert arrived == [None]


@contextmanager
def open_scene(folder: Path, hints: Hints = "on", arguments: Sequence[str] = ()) -> Iterator[Scene]:
    """A scene in which the first records have gone all the way; ``arguments`` are the proxy's."""
    outer = [("127.0.0.1", port) for port in free_ports(3)]
    with ExitStack() as stack:
        cluster = stack.enter_context(
            MockCluster(3, {TOPIC: 2}, {"Produce": 9, "Fetch": 15}, dict(enumerate(outer, start=1)))
        )
        routes = list(zip(outer, cluster.brokers.values(), strict=True))
        proxy = stack.enter_context(
            ProxyProcess(routes, folder / "proxy.log", hints=hints, arguments=arguments)
        )
        bootstrap = ",".join(f"{host}:{port}" for host, port in outer)
        producer = stack.enter_context(_producer(bootstrap))
        made = Scene(cluster, proxy, producer, bootstrap)
        for partition in (0, 1):
            made.produce(partition)
        yield made


def _producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0})
