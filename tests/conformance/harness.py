"""The clients of the harness: `python -m tests.conformance.harness java-3.9.1`, or any other."""

import os
import sys
import tempfile
import threading
from pathlib import Path

from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON, python_clients
from tests.matrix.roster import CLIENTS

_RATE = 10.0


def main() -> None:
    """Produce ten records a second, and consume them, until killed."""
    bootstrap, topic = os.environ["KAFKA_BOOTSTRAP"], os.environ["KAFKA_TOPIC"]
    with tempfile.TemporaryDirectory() as folder:
        process = _process(sys.argv[1], Path(folder))
        own = {"retry.backoff.ms": os.environ["KAFKA_BACKOFF_MS"]}
        # An idempotent producer needs what the mock brokers do not have.
        process.produce(ProducerSpec(bootstrap, topic, rate=_RATE, acks="1", settings=own))
        process.consume(ConsumerSpec(bootstrap, topic, settings=own))
        threading.Event().wait()


def _process(client: str, folder: Path) -> ClientProcess:
    if client in (CONFLUENT, KAFKA_PYTHON):
        return python_clients(folder, client)
    return CLIENTS[client].start(folder)


if __name__ == "__main__":
    main()
