"""Clients of Go libraries: built once, run in a process for each library that serves many of them.

franz-go is tested like Java's; sarama and segmentio's kafka-go only produce and consume.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tests.harness.built import built
from tests.harness.clients import ClientProcess
from tests.harness.maven import BUILD, ROOT

_SOURCES = ROOT / "tests" / "go"
_PROGRAM = "clients"


def go_clients(folder: Path) -> ClientProcess:
    """Start a process with franz-go's clients; its log goes to ``folder``."""
    return _clients("franz-go", folder)


def sarama_clients(folder: Path) -> ClientProcess:
    """As :func:`go_clients`, of sarama: they can produce and consume without a group."""
    return _clients("sarama", folder)


def kafka_go_clients(folder: Path) -> ClientProcess:
    """As :func:`sarama_clients`, of segmentio's kafka-go."""
    return _clients("kafka-go", folder)


def _clients(library: str, folder: Path) -> ClientProcess:
    return ClientProcess([str(build()), library], folder / f"{library}.log")


def version() -> str:
    """The version of franz-go that is used, as tests/go/go.mod pins it."""
    pinned = re.search(r"github\.com/twmb/franz-go v(\S+)", (_SOURCES / "go.mod").read_text())
    assert pinned is not None, "go.mod does not name franz-go"
    return pinned[1]


def missing_go() -> str | None:
    """Say that Go is missing if it is; None where it is there."""
    return "clients of Go need go on the PATH" if shutil.which("go") is None else None


def build() -> Path:
    """Build ``tests/go`` unless it was; returns the program."""
    sources = sorted([*_SOURCES.glob("*.go"), *_SOURCES.glob("go.*")])
    command = ["go", "build", "-mod=readonly", "-o"]

    def compile_them(folder: Path) -> None:
        subprocess.run([*command, str(folder / _PROGRAM), "."], cwd=_SOURCES, check=True)

    return built(BUILD / "go", sources, compile_them) / _PROGRAM
