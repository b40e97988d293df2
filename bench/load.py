"""Work that a compiled client does through one address: the Java client, 3.9, or franz-go."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.harness import franz_go
from tests.harness.java import compile_java
from tests.harness.maven import ROOT, client_library

_CLIENT = "3.9.1"
_SOURCES = ROOT / "bench" / "java"


@dataclass(frozen=True)
class Work:
    """What a client does; see bench/java/Load.java, and for franz-go tests/go/read.go.

    ``amount`` in bytes, for "single" in records; ``size`` in bytes of a batch, of a response, or
    of a record. Works that name the same ``topic`` find there what those before them wrote. Each
    of the ``connections`` has so many ``partitions`` of its own. ``rack``: which the Java client
    names.
    """

    label: str
    kind: str
    amount: int
    size: int
    topic: str
    connections: int = 1
    partitions: int = 1
    rack: str = ""
    client: Literal["Java", "franz-go"] = "Java"


def do(work: Work, bootstrap: str, topic: str) -> Mapping[str, float]:
    """Do ``work``; return seconds, CPU seconds of the client, and latencies in microseconds.

    franz-go only consumes, with its own limits, and measures no latencies.
    """
    done = subprocess.run(
        _command(work, bootstrap, topic), capture_output=True, text=True, timeout=300, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _command(work: Work, bootstrap: str, topic: str) -> list[str]:
    if work.client == "franz-go":
        program = str(franz_go.build())
        return [program, "read", bootstrap, topic, str(work.amount), str(work.partitions)]
    library = client_library(_CLIENT)
    classpath = f"{compile_java(_SOURCES, library)}:{library.classpath}"
    return [
        *["java", "-Xmx512m", "-XX:+UseSerialGC", f"-Dclient.rack={work.rack}"],
        *["-cp", classpath, "Load"],
        *[work.kind, bootstrap, topic],
        *map(str, (work.amount, work.size, work.connections, work.partitions)),
    ]
