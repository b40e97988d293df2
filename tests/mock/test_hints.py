"""librdkafka uses the proxy's hints: it goes to the new leader while no Metadata reaches it.

Speed alone proves nothing, since a client without a hint asks for Metadata at once. So relays
between the clients and the proxy hold every Metadata response from before the move on.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from proxy.mock.cluster import MockCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyProcess
from tests.harness.relay import Gate, relays
from tests.harness.waiting import TimedOutError, until

_METADATA = 3
_SECONDS = 20.0
_CONTROL_SECONDS = 1.5  # A client that uses a hint needs a tenth of it, back-off included.


@dataclass
class Scene:
    """Clients, relays with a gate for Metadata, the proxy, and the mock cluster, in this order."""

    cluster: MockCluster
    proxy: ProxyProcess
    gate: Gate
    producer: Producer
    consumer: Consumer
    delivered: list[bytes | None] = field(default_factory=list)
    read: list[bytes | None] = field(default_factory=list)

    def produce(self, value: bytes) -> None:
        """Hand a record to the producer."""
        self.producer.produce("t", value, partition=0, on_delivery=self._on_delivery)

    def await_delivery(self, value: bytes, seconds: float = _SECONDS) -> None:
        """Wait until a broker has taken the record."""

        def delivered() -> bool:
            self.producer.poll(0)
            return value in self.delivered

        until(delivered, f"{value!r} is delivered", seconds)

    def await_read(self, value: bytes, seconds: float = _SECONDS) -> None:
        """Wait until the consumer has the record."""

        def read() -> bool:
            message = self.consumer.poll(0)
            if message is not None:
                assert message.error() is None
                self.read.append(message.value())
            return value in self.read

        until(read, f"{value!r} is read", seconds)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        assert error is None
        self.delivered.append(message.value())


@contextmanager
def open_scene(folder: Path, hints: Hints) -> Iterator[Scene]:
    """A scene in which the first record has gone all the way, with partition 0 led by node 1."""
    ports = free_ports(6)
    outer = [("127.0.0.1", port) for port in ports[:3]]
    inner = [("127.0.0.1", port) for port in ports[3:]]
    gate = Gate(lambda request: request.api_key == _METADATA)
    caps = {"Produce": 9, "Fetch": 15}
    with ExitStack() as stack:
        cluster = stack.enter_context(
            MockCluster(3, {"t": 1}, caps, advertise=dict(enumerate(outer, start=1)))
        )
        routes = list(zip(inner, cluster.brokers.values(), strict=True))
        proxy = stack.enter_context(ProxyProcess(routes, folder / "proxy.log", hints=hints))
        for relay in relays(list(zip(outer, inner, strict=True)), gate):
            stack.enter_context(relay)
        settings = {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in outer),
            "log_level": 0,
        }
        producer = stack.enter_context(Producer({**settings, "enable.idempotence": True}))
        consumer = stack.enter_context(
            Consumer({**settings, "group.id": "g", "fetch.wait.max.ms": 10})
        )
        stack.callback(gate.open)  # Before the clients close, which may wait for answers.
        scene = Scene(cluster, proxy, gate, producer, consumer)
        consumer.assign([TopicPartition("t", 0, 0)])
        scene.produce(b"before")
        scene.await_delivery(b"before")
        scene.await_read(b"before")
        yield scene


def test_with_hints_both_clients_move_without_metadata(tmp_path: Path) -> None:
    with open_scene(tmp_path, "on") as scene:
        scene.gate.shut()
        scene.cluster.set_leader("t", 0, 2)
        scene.produce(b"after")
        scene.await_delivery(b"after")
        scene.await_read(b"after")
        assert scene.gate.held > 0  # They did ask for Metadata, and got none.

        hints = scene.proxy.events("hint_given")
        assert {hint["api"] for hint in hints} == {"Produce", "Fetch"}
        assert {(hint["topic"], hint["partition"]) for hint in hints} == {("t", 0)}
        assert {(hint["leader"], hint["epoch"]) for hint in hints} == {(2, 2)}
        counted = scene.proxy.metric("leader_hints_hints_given_total")
        assert counted == len(hints)


@pytest.mark.parametrize("hints", ["off", "observe"])
def test_without_hints_neither_client_moves_before_metadata(hints: Hints, tmp_path: Path) -> None:
    with open_scene(tmp_path, hints) as scene:
        scene.gate.shut()
        scene.cluster.set_leader("t", 0, 2)
        scene.produce(b"after")
        until(lambda: scene.gate.held > 0, "a client asks for Metadata", _SECONDS)
        with pytest.raises(TimedOutError):
            scene.await_delivery(b"after", _CONTROL_SECONDS)

        scene.gate.open()
        scene.await_delivery(b"after")
        scene.await_read(b"after")
        assert scene.proxy.metric("leader_hints_hints_given_total") == 0
