"""A producer before a cluster whose leaders a test moves, with the proxy between them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from leader_hints.mock.cluster import MockCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyProcess
from tests.harness.waiting import until

#: No topic of Kafka has such a name, but a broker that is not what it seems might send it.
TOPIC = "<img src=x onerror=alert(1)>"
_SECONDS = 60.0
_MOVES = 6


@dataclass
class Scene:
    """The cluster, the proxy and the producer."""

    cluster: MockCluster
    proxy: ProxyProcess
    producer: Producer
    bootstrap: str

    def produce_on_the_move(self) -> None:
        """Move the leader of each partition, and have a record arrive at the new one."""
        produce_on_the_move(self.cluster, self.producer)

    @contextmanager
    def another_producer(self, **settings: str) -> Iterator[None]:
        """Use a producer with connections of its own until the end of the block.

        ``settings``: of the producer, with underscores for points.
        """
        first = self.producer
        with producing(self.bootstrap, **settings) as self.producer:
            yield
        self.producer = first

    def produce(self, partition: int) -> None:
        """Have a record arrive."""
        _produce(self.producer, partition)


def produce_on_the_move(cluster: MockCluster, producer: Producer) -> None:
    """Move the leaders of ``TOPIC``, and have a record arrive at each new one."""
    for number in range(_MOVES):
        partition = number % 2
        leader, _ = cluster.leaders[TOPIC, partition]
        cluster.set_leader(TOPIC, partition, leader % 3 + 1)
        _produce(producer, partition)


def _produce(producer: Producer, partition: int) -> None:
    arrived: list[Any] = []
    producer.produce(TOPIC, b"x", partition=partition, on_delivery=lambda e, m: arrived.append(e))

    def delivered() -> bool:
        producer.poll(0)
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
        producer = stack.enter_context(producing(bootstrap))
        made = Scene(cluster, proxy, producer, bootstrap)
        for partition in (0, 1):
            made.produce(partition)
        yield made


def producing(bootstrap: str, **settings: str) -> Producer:
    """A producer, as a context manager; ``settings`` have underscores for points."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0, **given})
