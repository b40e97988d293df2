"""`leader-hints-report` in processes of their own: one that is killed, one that runs many commands.

As a module it is the latter's process: a command in a line of JSON, what it printed in another.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from click.testing import CliRunner

from leader_hints_report.cli import cli
from tests.harness import processes
from tests.harness.maven import PYTHONPATH, ROOT

#: Bounds a broken test; machines are shared, and Java may take its time to start.
_COMMAND_S: Final = 600
#: For small data nothing is worth being split or compiled, and Java's optimizing compiler gains
#: nothing; without it Java has room for a fifth of the code unless told otherwise.
SMALL: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
}


class ReportProcess:
    """Runs commands one after the other, all of them with one Spark session.

    ``log``: takes what the process has to say for itself.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process = processes.start(
            [sys.executable, "-m", __name__], talk=True, errors=log, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        processes.end(self._process)

    def run(self, command: str, out: Path, *arguments: str) -> str:
        """Run a command to its good end; return what it printed."""
        asked, told = self._process.stdin, self._process.stdout
        assert asked is not None
        assert told is not None
        asked.write(json.dumps(_arguments(command, out, arguments)) + "\n")
        asked.flush()
        ready, _, _ = select.select([told], [], [], _COMMAND_S)
        line = told.readline() if ready else ""
        assert line, self._log.read_text(errors="replace")[-3000:]
        printed: str = json.loads(line)
        return printed


@contextmanager
def report_running(
    command: str, out: Path, *arguments: str, master: str = "local[1]", log: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Have a command run meanwhile; end it and all of its processes."""
    process = processes.start(
        [
            sys.executable,
            "-m",
            "leader_hints_report.cli",
            *_arguments(command, out, arguments, master),
        ],
        output=log or Path(os.devnull),
        environment={"PYTHONPATH": PYTHONPATH},
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        processes.end(process)


def report_killed(command: str, out: Path, files: int, *arguments: str) -> None:
    """Run a command; kill it and all of its processes once so many files are in ``out``."""
    until = time.monotonic() + _COMMAND_S
    with report_running(command, out, *arguments) as process:
        while process.poll() is None:
            if sum(len(names) for _, _, names in os.walk(out)) >= files:
                return
            assert time.monotonic() < until, "the command does not end"
            time.sleep(0.01)


def _arguments(
    command: str, out: Path, more: tuple[str, ...], master: str = "local[1]"
) -> list[str]:
    settings = [f"--conf={name}={value}" for name, value in SMALL.items()]
    return [command, f"--out={out}", f"--master={master}", *settings, *more]


def _serve() -> None:
    """Run what is asked for, until nothing is."""
    told = os.fdopen(os.dup(1), "w")
    # Spark's own messages go to the log.
    os.dup2(2, 1)
    for line in sys.stdin:
        result = CliRunner().invoke(cli, json.loads(line), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        print(json.dumps(result.output), file=told, flush=True)


if __name__ == "__main__":
    _serve()
