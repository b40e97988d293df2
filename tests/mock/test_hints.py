"""librdkafka uses the proxy's hints: it goes to the new leader while no Metadata reaches it.

Speed alone proves nothing, since a client without a hint asks for Metadata at once. So relays
between the clients and the proxy hold every Metadata response from before the move on. What shows
that a hint was used is a request at the new leader: its response may wait behind one that is held.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from leader_hints.mock.cluster import MockCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, LogLine, ProxyProcess
from tests.harness.relay import Gate, Relay, relays
from tests.harness.waiting import TimedOutError, until

_PRODUCE, _FETCH, _METADATA, _OFFSET_FOR_LEADER_EPOCH = 0, 1, 3, 23
_SECONDS = 60.0
_CONTROL_SECONDS = 1.5  # A client that uses a hint needs a tenth of it, back-off included.

# After a hint a consumer validates its position before it fetches.
_PRODUCER_MOVED = ("producer", {_PRODUCE})
_CONSUMER_MOVED = ("consumer", {_FETCH, _OFFSET_FOR_LEADER_EPOCH})


@dataclass
class Scene:
    """Clients, relays with a gate for Metadata, the proxy, and the mock cluster, in this order."""

    cluster: MockCluster
    proxy: ProxyProcess
    gate: Gate
    relays: dict[int, Relay]
    """By the node before which they stand."""
    producer: Producer
    consumer: Consumer
    delivered: list[bytes | None] = field(default_factory=list)
    read: list[bytes | None] = field(default_factory=list)

    def produce(self, value: bytes) -> None:
        """Hand a record to the producer."""
        self.producer.produce("t", value, partition=0, on_delivery=self._on_delivery)

    def await_arrival(self, value: bytes) -> None:
        """Wait until a broker has acknowledged the record and the consumer has it."""

        def arrived() -> bool:
            self._serve()
            return value in self.delivered and value in self.read

        until(arrived, f"{value!r} arrives", _SECONDS)

    def await_request(
        self, node: int, request: tuple[str, set[int]], seconds: float = _SECONDS
    ) -> None:
        """Wait until a client, by its id, has sent one of some APIs to a node."""
        client_id, apis = request

        def sent() -> bool:
            self._serve()
            return any(
                header.client_id == client_id and header.api_key in apis
                for header in self.relays[node].requests()
            )

        until(sent, f"{client_id} sends one of {apis} to node {node}", seconds)

    def asked_for_metadata(self, client_id: str) -> int:
        """How often a client has asked for Metadata so far."""
        return sum(
            header.client_id == client_id and header.api_key == _METADATA
            for relay in self.relays.values()
            for header in relay.requests()
        )

    def _serve(self) -> None:
        self.producer.poll(0)
        message = self.consumer.poll(0)
        if message is not None:
            assert message.error() is None
            self.read.append(message.value())

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
        # How fast the machine is is not what is tested.
        slow = folder / "slow.yaml"
        slow.write_text("hold: {deadline_ms: 5000, link_ms_per_second: 1000}\n")
        proxy = stack.enter_context(
            ProxyProcess(
                routes, folder / "proxy.log", hints=hints, arguments=["--config", str(slow)]
            )
        )
        before = dict(enumerate(relays(list(zip(outer, inner, strict=True)), gate), start=1))
        for relay in before.values():
            stack.enter_context(relay)
        settings = {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in outer),
            "log_level": 0,
        }
        producer = stack.enter_context(
            Producer({**settings, "client.id": "producer", "enable.idempotence": True})
        )
        consumer = stack.enter_context(
            Consumer(
                {**settings, "client.id": "consumer", "group.id": "g", "fetch.wait.max.ms": 10}
            )
        )
        stack.callback(gate.open)  # Before the clients close, which may wait for answers.
        scene = Scene(cluster, proxy, gate, before, producer, consumer)
        consumer.assign([TopicPartition("t", 0, 0)])
        scene.produce(b"before")
        scene.await_arrival(b"before")
        yield scene


def _await_recoveries(scene: Scene, *, hinted: bool) -> None:
    """Wait until the proxy has told that both clients are served again after their errors."""
    expected = {("producer", "Produce", hinted), ("consumer", "Fetch", hinted)}

    def recovered() -> list[LogLine]:
        lines = scene.proxy.events("recovered")
        return [line for line in lines if line["recovery_ms"] is not None]

    until(
        lambda: {(r["client_id"], r["api"], r["hinted"]) for r in recovered()} == expected,
        f"{expected} recover",
        _SECONDS,
    )
    for line in recovered():
        assert (line["topic"], line["partition"], line["epoch"]) == ("t", 0, 2)
        assert line["recovery_ms"] > 0
        assert line["software"].startswith("confluent-kafka-python/")


def test_with_hints_both_clients_move_without_metadata(tmp_path: Path) -> None:
    with open_scene(tmp_path, "on") as scene:
        scene.gate.shut()
        scene.cluster.set_leader("t", 0, 2)
        scene.produce(b"after")
        scene.await_request(2, _PRODUCER_MOVED)
        scene.await_request(2, _CONSUMER_MOVED)

        scene.gate.open()
        scene.await_arrival(b"after")
        hints = scene.proxy.events("hint_given")
        assert {hint["api"] for hint in hints} == {"Produce", "Fetch"}
        assert {(hint["topic"], hint["partition"]) for hint in hints} == {("t", 0)}
        assert {(hint["leader"], hint["epoch"]) for hint in hints} == {(2, 2)}
        assert scene.proxy.metric("leader_hints_hints_given_total") == len(hints)
        _await_recoveries(scene, hinted=True)


@pytest.mark.parametrize("client", [_PRODUCER_MOVED, _CONSUMER_MOVED], ids=lambda c: c[0])
@pytest.mark.parametrize("hints", ["off", "observe"])
def test_without_hints_no_client_moves_before_metadata(
    hints: Hints, client: tuple[str, set[int]], tmp_path: Path
) -> None:
    with open_scene(tmp_path, hints) as scene:
        scene.gate.shut()
        asked = scene.asked_for_metadata(client[0])
        scene.cluster.set_leader("t", 0, 2)
        scene.produce(b"after")
        until(
            lambda: scene.asked_for_metadata(client[0]) > asked,
            "the client notices, and asks for Metadata",
            _SECONDS,
        )
        with pytest.raises(TimedOutError):
            scene.await_request(2, client, _CONTROL_SECONDS)
        assert scene.gate.held > 0

        scene.gate.open()
        scene.await_request(2, client)
        scene.await_arrival(b"after")
        assert all(line["observed"] for line in scene.proxy.events("hint_given"))
        if hints == "observe":
            _await_recoveries(scene, hinted=False)
