"""The clients whose stalls are measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness import franz_go
from tests.harness.clients import ClientProcess
from tests.harness.franz_go import kafka_go_clients, sarama_clients
from tests.harness.java import java_clients
from tests.matrix.roster import CLIENTS as ROSTER


@dataclass(frozen=True)
class Client:
    """``start``: begins its process, whose log goes to a folder. ``settings``: of its producers,
    without which they give up at a leader move, or find the leader after the next one.
    """

    name: str
    start: Callable[[Path], ClientProcess]
    settings: Mapping[str, str] = field(default_factory=dict)


def _listed(name: str, listed: str) -> Client:
    return Client(name, ROSTER[listed].start, ROSTER[listed].producer_settings)


#: The newest, which uses hints.
JAVA = Client("java", java_clients)
#: Those that use hints, by the names that the command takes.
BY_NAME = {
    client.name: client
    for client in (
        JAVA,
        _listed("confluent", "confluent-kafka-2.16.1"),
        _listed("franz-go", f"franz-go-{franz_go.version()}"),
    )
}
#: Those that use none, by the names that the command takes.
WITHOUT_HINTS = {
    client.name: client
    for client in (
        _listed("java-2.8", "java-2.8.2"),
        _listed("java-3.6", "java-3.6.2"),
        _listed("confluent-2.3", "confluent-kafka-2.3.0"),
        _listed("kafka-python-2.0", "kafka-python-2.0.2"),
        _listed("aiokafka", "aiokafka-0.14.0"),
        Client("sarama", sarama_clients),
        # Its writer keeps Metadata for six seconds, whatever a broker answers.
        Client("kafka-go", kafka_go_clients, {"metadata.max.age.ms": "500"}),
    )
}
