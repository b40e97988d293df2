"""Archives of the classes that a broker has loaded, one for each version of Kafka.

A broker that starts with one is there in two thirds of the CPU time. Java writes it from a process
that runs (JEP 350), and goes on without it where it does not fit, as after an update of Java.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from tests.harness.maven import Library

_TIMEOUT_S = 60


def options(library: Library) -> list[str]:
    """The options of a JVM that uses the archive, or from which it can be written."""
    archive = _archive(library)
    return [
        f"-XX:SharedArchiveFile={archive}" if archive.exists() else "-XX:+RecordDynamicDumpInfo"
    ]


def write(library: Library, pid: int) -> None:
    """Have the JVM ``pid``, a broker of ``library``, write the archive unless it is there.

    It must have been started with :func:`options`. A JVM that does not write it is no failure.
    """
    archive = _archive(library)
    if archive.exists():
        return
    unfinished = archive.with_suffix(f".{pid}")
    command = ["jcmd", str(pid), "VM.cds", "dynamic_dump", str(unfinished)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, capture_output=True, check=True, timeout=_TIMEOUT_S)
        os.replace(unfinished, archive)


def _archive(library: Library) -> Path:
    return library.folder / "classes.jsa"
