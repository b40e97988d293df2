"""Producers, and consumers of each library in some racks, of every kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import quantiles

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_ends, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    OffsetsRun,
    OffsetsSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.franz_go import go_clients, sarama_clients
from tests.harness.java import java_clients
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON, python_clients
from tests.harness.rack_fleet import GROUP_SETTINGS

JAVA, FRANZ_GO, SARAMA = "java", "franz-go", "sarama"
#: Java's consumers say there why they go to another offset.
_INFO = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.consumer=info"
#: Those that can name a rack.
LIBRARIES: Mapping[str, Callable[[Path], ClientProcess]] = {
    JAVA: lambda folder: java_clients(folder, options=[_INFO]),
    CONFLUENT: lambda folder: python_clients(folder, CONFLUENT),
    FRANZ_GO: go_clients,
    KAFKA_PYTHON: lambda folder: python_clients(folder, KAFKA_PYTHON),
    SARAMA: sarama_clients,
}
#: In the tests it reads without a group, and uncommitted records.
_ONLY_ASSIGNED = (SARAMA,)
#: It stays at a follower that is gone until that is back, or its own interval of half an hour is
#: over, also with a selector (docs/closest-replica.md).
STAYS = (FRANZ_GO,)
PLAIN, TRANSACTIONS = "closest-plain", "closest-transactions"
TOPICS = (PLAIN, TRANSACTIONS)
#: Racks of consumers; the third broker's and the second's: the first one never stops.
_RACKS = ("rack-3", "rack-2")
RATE = 60.0
_SIZE = 500
#: Records of a transaction: to commit one takes its time.
_TRANSACTION = 20


@dataclass
class Crowd:
    """All at work. ``consumers``: by library."""

    plain: ProducerRun
    transactional: ProducerRun
    ends: OffsetsRun
    consumers: dict[str, list[ConsumerRun]] = field(default_factory=dict)

    def flow(self, seconds: float, *, but: Sequence[str] = ()) -> None:
        """Wait until all consumers have what is written in so many seconds; some need not."""
        goals = [
            (run, len(run.consumed) + int(seconds * RATE * _share(run)))
            for library, runs in self.consumers.items()
            if library not in but
            for run in runs
        ]
        for run, goal in goals:
            run.wait_count(goal)

    def finish(self, admin: ClusterAdmin) -> int:
        """Stop; return how many records were read.

        :raises AssertionError: one was lost, doubled or reordered, or an end went back.
        """
        for producer in (self.plain, self.transactional):
            producer.stop()
            check_produced(admin, producer)
        check_ends(self.ends.stop())
        for runs in self.consumers.values():
            for run in runs:
                check_consumed(admin, run)
                run.stop()
        return sum(len(run.consumed) for runs in self.consumers.values() for run in runs)

    def lags(self) -> Iterator[tuple[str, float, float]]:
        """Of each library's records, from their sending on: median and p99, in milliseconds."""
        for library, runs in self.consumers.items():
            found = [record.latency_ms for run in runs for record in run.consumed]
            hundredths = quantiles(found, n=100)
            yield library, hundredths[49], hundredths[98]


def _share(run: ConsumerRun) -> float:
    """Return which share of the written records it reads: two of three transactions commit."""
    return 2 / 3 if run.spec.committed_only else 1.0


def begin(
    processes: ExitStack,
    folder: Path,
    bootstrap: str,
    libraries: Sequence[str],
    partitions: Sequence[int],
) -> Crowd:
    """Start everything; returns when all consumers have read something."""

    def started(library: str) -> ClientProcess:
        process = LIBRARIES[library](folder / library)
        processes.callback(process.close)
        return process

    java = started(JAVA)
    plain = ProducerSpec(bootstrap, PLAIN, partitions, rate=RATE, size=_SIZE, idempotent=True)
    crowd = Crowd(
        java.produce(plain),
        java.produce(
            replace(plain, topic=TRANSACTIONS, idempotent=False, transaction=_TRANSACTION)
        ),
        java.ask_offsets(OffsetsSpec(bootstrap, PLAIN, partitions)),
    )
    for number, library in enumerate(libraries):
        process = java if library == JAVA else started(library)
        crowd.consumers[library] = [
            process.begin_to_consume(spec)
            for spec in _specs(library, number, bootstrap, partitions)
        ]
    for runs in crowd.consumers.values():
        for run in runs:
            run.wait_started().wait_count(1)
    return crowd


def _specs(
    library: str, number: int, bootstrap: str, partitions: Sequence[int]
) -> Iterator[ConsumerSpec]:
    kinds = ((PLAIN, False, False), (PLAIN, True, False), (TRANSACTIONS, False, True))
    for at, (topic, grouped, committed) in enumerate(kinds):
        if library in _ONLY_ASSIGNED and (grouped or committed):
            continue
        yield ConsumerSpec(
            bootstrap,
            topic,
            partitions,
            group=f"group-{library}" if grouped else None,
            committed_only=committed,
            settings={
                "client.rack": _RACKS[(number + at) % len(_RACKS)],
                **(GROUP_SETTINGS.get(library, {}) if grouped else {}),
            },
        )
