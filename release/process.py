"""A tool that is run to its end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.errors import ReleaseError

_DEADLINE_S = 1800.0


def output_of(
    argv: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> bytes:
    """Return what a tool writes to its standard output.

    :raises ReleaseError: it ended with another code than 0; its last output is in the message.
    """
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=folder,
        env=os.environ | dict(variables or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")[-3000:]
        raise ReleaseError(f"{argv[0]} ended with {done.returncode}:\n{said}")
    return done.stdout
