"""The clients of the harness: `python -m tests.conformance.harness java-3.9.1`, or franz-go."""

import os
import sys
import tempfile
import threading
from pathlib import Path

from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.franz_go import go_clients
from tests.harness.java import java_clients

_RATE = 10.0


def main() -> None:
    """Produce ten records a second, and consume them, until killed."""
    bootstrap, topic = os.environ["KAFKA_BOOTSTRAP"], os.environ["KAFKA_TOPIC"]
    with tempfile.TemporaryDirectory() as folder:
        process = _process(sys.argv[1], Path(folder))
        # The mock brokers know no transactions; a producer that is not idempotent needs none.
        process.produce(ProducerSpec(bootstrap, topic, rate=_RATE, acks="1"))
        process.consume(ConsumerSpec(bootstrap, topic))
        threading.Event().wait()


def _process(client: str, folder: Path) -> ClientProcess:
    name, _, version = client.partition("-")
    return java_clients(folder, version) if name == "java" else go_clients(folder)


if __name__ == "__main__":
    main()
