"""Programs of Java that run while records are written."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.harness import processes
from tests.harness.clients import ProducerRun, ProducerSpec
from tests.runs.place import PARTITIONS, RATE, Place

#: Of Kafka Streams, and of MirrorMaker 2 and its Connect.
VERSION: Final = "3.9.1"
#: Until a program does its work.
STARTS_S: Final = 120.0
_ENDS_S = 30.0
_JVM = (
    "java",
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


@contextlib.contextmanager
def running(classpath: str, main: str, arguments: Sequence[str], log: Path) -> Iterator[None]:
    """Run a program meanwhile, and end it as an operator does; ``log`` gets what it writes.

    :raises AssertionError: it ended by itself.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    process = processes.start([*_JVM, "-cp", classpath, main, *arguments], output=log)
    try:
        yield
        assert process.poll() is None, f"it ended by itself: {log.read_text()[-2000:]}"
    finally:
        processes.end(process, _ENDS_S)


def write(place: Place, topic: str) -> ProducerRun:
    """Start an idempotent producer that writes to a topic until it is stopped."""
    writes = ProducerSpec(place.bootstrap, topic, range(PARTITIONS), rate=RATE, idempotent=True)
    return place.java().produce(writes)
