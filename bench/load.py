"""Work that a compiled client does through one address: the Java client, 3.9."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from tests.harness.java import compile_java
from tests.harness.maven import ROOT, client_library

_CLIENT = "3.9.1"
_SOURCES = ROOT / "bench" / "java"


@dataclass(frozen=True)
class Work:
    """What a client does; see bench/java/Load.java.

    ``amount`` in bytes, for "single" in records; ``size`` in bytes of a batch, of a response, or
    of a record. Works that name the same ``topic`` find there what those before them wrote.
    """

    label: str
    kind: str
    amount: int
    size: int
    topic: str
    connections: int = 1


def do(work: Work, bootstrap: str, topic: str) -> Mapping[str, float]:
    """Do ``work``; return seconds, CPU seconds of the client, and latencies in microseconds."""
    library = client_library(_CLIENT)
    classpath = f"{compile_java(_SOURCES, library)}:{library.classpath}"
    arguments = [work.kind, bootstrap, topic, work.amount, work.size, work.connections]
    done = subprocess.run(
        ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", classpath, "Load", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result
