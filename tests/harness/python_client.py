"""What the producers and consumers of the Python client libraries have in common."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from tests.harness.clients import ClientProcess
from tests.harness.maven import PYTHONPATH

Library = str
CONFLUENT: Library = "confluent-kafka"
KAFKA_PYTHON: Library = "kafka-python"
AIOKAFKA: Library = "aiokafka"

POLL_S = 0.1
CLOSE_S = 60.0

Record = tuple[int, int, bytes]
"""Partition, offset and value of a record that was read."""
Delivered = Callable[[int, str | None], None]
"""Called with the offset (-1: none is reported), or with the error, of a record that was sent."""


class ProducerClient(Protocol):
    """What the libraries' producers have in common; they raise ``error``."""

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
    """What the libraries' consumers have in common."""

    def start(self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]) -> None:
        """Assign or subscribe; ``ready`` is called when partitions and positions are known."""

    def poll(self) -> Iterable[Record]:
        """Wait a little for records."""

    def close(self) -> None:
        """Close the consumer."""


class OffsetsClient(Protocol):
    """Asks where partitions end."""

    error: ClassVar[type[Exception]]

    def ends(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """The ends of partitions by ListOffsets; raises ``error`` for what it does not retry."""

    def close(self) -> None:
        """Close the client."""


class AdminClient(Protocol):
    """What the libraries' admin clients have in common."""

    def create(self, topic: str, replicas: int) -> None:
        """Make a topic of one partition."""

    def topics(self) -> Collection[str]:
        """The names of all topics."""

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""

    def settings(self, topic: str) -> Collection[str]:
        """The names of a topic's settings."""

    def delete(self, topic: str) -> None:
        """Remove a topic."""

    def close(self) -> None:
        """Close the client."""


class Clients(NamedTuple):
    """How a library's clients are made, of a topic (but for admin) and of dotted settings."""

    producer: Callable[[str, dict[str, str]], ProducerClient]
    consumer: Callable[[str, dict[str, str]], ConsumerClient]
    offsets: Callable[[str, dict[str, str]], OffsetsClient]
    admin: Callable[[dict[str, str]], AdminClient]


def python_clients(
    folder: Path, library: Library, python: str | Path = sys.executable
) -> ClientProcess:
    """Start a process with the clients of a Python library; its log goes to ``folder``.

    ``python`` is the interpreter whose environment has the library.
    """
    argv = [str(python), "-m", "tests.harness.worker", library]
    return ClientProcess(
        argv,
        folder / f"{library}.log",
        {"PYTHONPATH": PYTHONPATH},
        writes_again=library == CONFLUENT,
    )
