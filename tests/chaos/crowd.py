"""Producers and consumers of all client families, with records that must not be lost."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.franz_go import go_clients
from tests.harness.java import java_clients
from tests.harness.python_client import CONFLUENT, python_clients

_PARTITIONS = (0, 1)
_ASSIGNMENT = ((1, 2, 3), (2, 3, 1))
_RATE = 40
_TRANSACTION = 10
_KINDS: Mapping[str, Mapping[str, object]] = {
    "idempotent": {"idempotent": True},
    "transactional": {"transaction": _TRANSACTION},
}
_STARTS: Mapping[str, Callable[[Path], ClientProcess]] = {
    "java": java_clients,
    "librdkafka": lambda folder: python_clients(folder, CONFLUENT),
    "franz-go": go_clients,
}
#: A fault must not make a client give up, and one that hangs must be noticed within seconds.
_PRODUCER: Mapping[str, Mapping[str, str]] = {
    "java": {
        "delivery.timeout.ms": "600000",
        "max.block.ms": "600000",
        "request.timeout.ms": "8000",
        "transaction.timeout.ms": "600000",
    },
    "librdkafka": {
        "message.timeout.ms": "600000",
        "socket.timeout.ms": "8000",
        "transaction.timeout.ms": "600000",
    },
    "franz-go": {"retry.eof": "true"},
}
_CONSUMER: Mapping[str, Mapping[str, str]] = {
    "java": {"request.timeout.ms": "8000"},
    "librdkafka": {"socket.timeout.ms": "8000"},
    "franz-go": {"retry.eof": "true"},
}


class Crowd:
    """For each family an idempotent and a transactional producer, each with a consumer."""

    def __init__(self, bootstrap: str, folder: Path, label: str) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self.topics = {
            (family, kind): f"{label}-{family}-{kind}" for family in _STARTS for kind in _KINDS
        }
        self._producers: list[ProducerRun] = []
        self._consumers: list[ConsumerRun] = []

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that is written to."""
        return [
            TopicPartition(topic, partition)
            for topic in self.topics.values()
            for partition in _PARTITIONS
        ]

    def create_topics(self, admin: ClusterAdmin) -> None:
        """Make the topics; a record is acknowledged when two brokers have it."""
        assignments = dict.fromkeys(self.topics.values(), _ASSIGNMENT)
        admin.create_topics(assignments, {"min.insync.replicas": "2"})

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            for family, start in _STARTS.items():
                process = started.enter_context(start(self._folder))
                for kind, settings in _KINDS.items():
                    self._start(process, family, kind, settings)
            for consumer in self._consumers:
                consumer.wait_count(1)
            self._started = started.pop_all()
        return self

    def _start(
        self, process: ClientProcess, family: str, kind: str, settings: Mapping[str, object]
    ) -> None:
        topic = self.topics[family, kind]
        reads = ConsumerSpec(
            self._bootstrap,
            topic,
            _PARTITIONS,
            committed_only=kind == "transactional",
            settings=_CONSUMER[family],
        )
        writes = ProducerSpec(
            self._bootstrap,
            topic,
            _PARTITIONS,
            rate=_RATE,
            settings=_PRODUCER[family],
            **settings,  # type: ignore[arg-type]
        )
        self._consumers.append(process.consume(reads))
        self._producers.append(process.produce(writes))

    def progress(self) -> Sequence[int]:
        """How far each client has come."""
        produced = [len(run.acked) + len(run.aborted) for run in self._producers]
        return [*produced, *(len(run.consumed) for run in self._consumers)]

    def check_alive(self) -> None:
        """Raise where a client gave up or crashed."""
        for run in (*self._producers, *self._consumers):
            run.check()

    def laggards(self, before: Sequence[int]) -> list[str]:
        """Which clients have made no progress since ``before``."""
        runs: list[ProducerRun | ConsumerRun] = [*self._producers, *self._consumers]
        return [
            f"{run.spec.topic} {run.name}"
            for run, was, now in zip(runs, before, self.progress(), strict=True)
            if now <= was
        ]

    def stop_producing(self) -> None:
        """Have the producers bring to an end what they have begun."""
        for producer in self._producers:
            producer.stop()

    def check(self, admin: ClusterAdmin) -> int:
        """Hold all against what the brokers have; returns how many records that were."""
        for producer in self._producers:
            check_produced(admin, producer)
        for consumer in self._consumers:
            check_consumed(admin, consumer)
            consumer.stop()
        return sum(len(producer.acked) for producer in self._producers)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.__exit__(kind, error, trace)
