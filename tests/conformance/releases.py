"""Releases of clients since KIP-951 (Kafka 3.7), of which docs/clients.md has an index."""

import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.conformance.observed import Start
from tests.harness.clients import ClientProcess
from tests.harness.environments import Environment
from tests.harness.java import java_clients
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, ROOT
from tests.harness.python_client import CONFLUENT, KAFKA_PYTHON
from tests.matrix.roster import CLIENTS

JAVA: Final = "Java"
LIBRDKAFKA: Final = "librdkafka"
FRANZ_GO: Final = "franz-go"
PYTHON: Final = "kafka-python"
_SOURCES: Final = ROOT / "tests" / "go"
#: An option that franz-go has from 1.21 on. What it is for does not happen here.
_NEW: Final = ", kgo.AlwaysRetryEOF()"


@dataclass(frozen=True)
class Release:
    """One release of a family. ``start``: starts its clients."""

    family: str
    version: str
    start: Start

    @property
    def name(self) -> str:
        """As options and stored results have it."""
        return f"{self.family}-{self.version}"


def _java(version: str) -> Release:
    return Release(JAVA, version, partial(java_clients, version=version))


def _librdkafka(version: str) -> Release:
    """By confluent-kafka of the same version, which brings it."""
    return Release(LIBRDKAFKA, version, Environment(CONFLUENT, version).clients)


def _franz_go(version: str) -> Release:
    return Release(FRANZ_GO, version, partial(franz_go_clients, version=version))


def _kafka_python(version: str) -> Release:
    start = Environment(KAFKA_PYTHON, version, _codecs()).clients
    return Release(PYTHON, version, start)


def _codecs() -> tuple[str, ...]:
    """What kafka-python needs besides, as the matrix pins it."""
    start = CLIENTS["kafka-python-3.0.12"].start
    environment = getattr(start, "__self__", None)
    assert isinstance(environment, Environment)
    return environment.also


def franz_go_clients(folder: Path, version: str) -> ClientProcess:
    """Start the clients of ``tests/go`` with another release of franz-go than it pins."""
    sources = sorted([*_SOURCES.glob("*.go"), *_SOURCES.glob("go.*")])
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    place = BUILD / "go" / f"franz-go-{version}-{digest[:16]}"
    program = place / "clients"
    with exclusively(place.parent / f"{place.name}.lock"):
        if not program.exists():
            place.mkdir(parents=True, exist_ok=True)
            for source in sources:
                text = source.read_text(encoding="utf-8")
                (place / source.name).write_text(text.replace(_NEW, ""), encoding="utf-8")
            for command in (
                ["go", "get", f"github.com/twmb/franz-go@v{version}"],
                ["go", "mod", "tidy"],
                ["go", "build", "-o", str(program), "."],
            ):
                subprocess.run(command, cwd=place, check=True, capture_output=True)
    return ClientProcess([str(program), "franz-go"], folder / "franz-go.log")


_ALL: Final = (
    *map(_java, ("3.7.0", "3.7.2", "3.8.1", "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.0")),
    *map(_librdkafka, ("2.5.0", "2.5.3", "2.6.0", "2.6.1", "2.8.0", "2.10.0", "2.10.1")),
    *map(_librdkafka, ("2.11.1", "2.12.2", "2.13.2", "2.14.2", "2.15.1", "2.16.1")),
    *map(_franz_go, ("1.17.1", "1.18.1", "1.19.5", "1.20.7", "1.21.7", "1.22.2")),
    *map(_kafka_python, ("3.0.0", "3.0.12")),
)
RELEASES: Final[Mapping[str, Release]] = {release.name: release for release in _ALL}
