"""Child processes that never outlive the tests."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    # Runs in the child before exec: even a killed test session leaves no broker behind.
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(
    argv: Sequence[str],
    *,
    output: Path | None = None,
    errors: Path | None = None,
    talk: bool = False,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a child in a process group of its own.

    ``output`` and ``errors`` name the files that get its standard streams; without ``errors``
    both go to ``output``. With ``talk`` its standard input and output are pipes instead.
    Call it from the main thread: the child is killed when the thread that started it ends.
    """
    with contextlib.ExitStack() as files:

        def opened(path: Path | None) -> IO[bytes] | None:
            return files.enter_context(path.open("ab")) if path is not None else None

        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talk else opened(output),
            stderr=opened(errors) or subprocess.STDOUT,
            cwd=cwd,
            env=os.environ | (environment or {}),
            text=True,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )


@contextlib.contextmanager
def frozen(child: subprocess.Popen[str]) -> Iterator[None]:
    """Have a child stand still meanwhile (SIGSTOP)."""
    child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        child.send_signal(signal.SIGCONT)


def end(child: subprocess.Popen[str], grace_s: float = 0.0) -> int:
    """End a child and its group: SIGTERM and ``grace_s`` seconds if those are given, then SIGKILL.

    Returns its exit code as Popen tells it (negative: the signal that ended it).
    """
    if grace_s > 0 and child.poll() is None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    return child.wait()


def cpu_seconds(pid: int) -> float:
    """Return how much CPU time a process has used, in hundredths of a second."""
    # Behind the name, which may have blanks: the 14th and 15th field of all (proc(5)).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
