"""Reads journals of proxies that run before the mock cluster."""

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.observe.journal_lines import Line, checked

_SECONDS = 1.0


def file_lines(folder: Path) -> list[Line]:
    """All lines of all finished files."""
    return [
        checked(line)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
    ]


class TopicReader:
    """Reads a journal topic of one partition from its beginning; a context manager."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.lines: list[Line] = []
        self.keys: set[bytes | None] = set()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0}
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> "TopicReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self) -> None:
        """Take what there is."""
        for message in self._consumer.consume(1000, timeout=_SECONDS):
            value = message.value()
            if message.error() is None and value is not None:
                self.lines.append(checked(value))
                self.keys.add(message.key())

    def until(self, condition: Callable[[list[Line]], bool]) -> bool:
        """Read on; whether the lines so far satisfy a condition."""
        self.read()
        return condition(self.lines)
