"""`leader-hints-report` in a process of its own, which may be killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.harness.maven import ROOT

_COMMAND_S: Final = 300
#: For small data nothing is worth being split or compiled.
_SMALL: Final = (
    "--master=local[1]",
    "--conf=spark.sql.shuffle.partitions=1",
    "--conf=spark.sql.codegen.wholeStage=false",
    "--conf=spark.sql.codegen.factoryMode=NO_CODEGEN",
    "--conf=spark.driver.memory=1g",
    "--conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


def report(command: str, out: Path, *arguments: str) -> str:
    """Run a command to its good end; return what it printed."""
    run = subprocess.run(
        [*_command(command, out), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def report_killed(command: str, out: Path, files: int, *arguments: str) -> bool:
    """Run a command; kill it and all of its processes once so many files are in ``out``.

    Returns whether it had to be killed: it may end before.
    """
    process = subprocess.Popen(
        [*_command(command, out), *arguments],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + _COMMAND_S
    try:
        while process.poll() is None:
            if sum(len(names) for _, _, names in os.walk(out)) >= files:
                return True
            assert time.monotonic() < until, "the command does not end"
            time.sleep(0.01)
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _command(command: str, out: Path) -> list[str]:
    return [sys.executable, "-m", "pipeline.cli", command, f"--out={out}", *_SMALL]
