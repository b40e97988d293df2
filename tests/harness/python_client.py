"""What the producers and consumers of the Python client libraries have in common."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from tests.harness.clients import ClientProcess
from tests.harness.maven import ROOT

Library = str
CONFLUENT: Library = "confluent-kafka"
KAFKA_PYTHON: Library = "kafka-python"

POLL_S = 0.1
CLOSE_S = 60.0

Record = tuple[int, int, bytes]
"""Partition, offset and value of a record that was read."""
Delivered = Callable[[int, str | None], None]
"""Called with the offset (-1 where none is told), or with the error, of a record that was sent."""


class ProducerClient(Protocol):
    """What the two libraries' producers have in common; they raise ``error``."""

    error: ClassVar[type[Exception]]

    def send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        """Send one record and return at once."""

    def flush(self) -> None:
        """Wait until the outcome of everything sent is known."""

    def wait(self, seconds: float) -> None:
        """Pass the time until the next record."""

    def begin_transaction(self) -> None:
        """Begin a transaction."""

    def commit_transaction(self) -> None:
        """Commit the transaction."""

    def abort_transaction(self) -> None:
        """Abort the transaction, also after most errors."""

    def close(self) -> None:
        """Close the producer."""


class ConsumerClient(Protocol):
    """What the two libraries' consumers have in common."""

    def start(self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]) -> None:
        """Assign or subscribe; ``ready`` is called when partitions and positions are known."""

    def poll(self) -> Iterable[Record]:
        """Wait a little for records."""

    def close(self) -> None:
        """Close the consumer."""


def python_clients(folder: Path, library: Library) -> ClientProcess:
    """Start a process with the clients of a Python library; its log goes to ``folder``."""
    argv = [sys.executable, "-m", "tests.harness.worker", library]
    return ClientProcess(argv, folder / f"{library}.log", {"PYTHONPATH": str(ROOT)})
