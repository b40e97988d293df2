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


def _idempotent(client: Client) -> Client:
    """Its Produce errors wait where errors are settled, and those of other producers do not."""
    settings = {**client.settings, "acks": "all", "enable.idempotence": "true"}
    return Client(f"{client.name}-idempotent", client.start, settings)


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
_JAVA_2_8 = _listed("java-2.8", "java-2.8.2")
_JAVA_3_6 = _listed("java-3.6", "java-3.6.2")
_CONFLUENT = _listed("confluent-2.3", "confluent-kafka-2.3.0")
_AIOKAFKA = _listed("aiokafka", "aiokafka-0.14.0")
_SARAMA = Client("sarama", sarama_clients)
#: Those that use none, by the names that the command takes; kafka-python 2.0 and kafka-go have no
#: idempotent producers.
WITHOUT_HINTS = {
    client.name: client
    for client in (
        _JAVA_2_8,
        _JAVA_3_6,
        _CONFLUENT,
        _listed("kafka-python-2.0", "kafka-python-2.0.2"),
        _AIOKAFKA,
        _SARAMA,
        # Its writer keeps Metadata for six seconds, whatever a broker answers.
        Client("kafka-go", kafka_go_clients, {"metadata.max.age.ms": "500"}),
        *map(_idempotent, (_JAVA_2_8, _JAVA_3_6, _CONFLUENT, _AIOKAFKA, _SARAMA)),
    )
}
