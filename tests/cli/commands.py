"""The command as a user starts it: a process of its own with nothing set in its environment."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.harness.maven import PYTHONPATH

COMMAND = str(Path(sys.executable).with_name("leader-hints"))
_DEADLINE_S = 30


def clean_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without settings of the proxy, and with `variables`.

    The command runs the code of this checkout, wherever the package is installed from.
    """
    kept = {name: value for name, value in os.environ.items() if "LEADER_HINTS" not in name}
    return {**kept, "PYTHONPATH": PYTHONPATH, **(variables or {})}


def leader_hints(
    *arguments: str, variables: Mapping[str, str] | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. ``given``: what it reads from its standard input."""
    return subprocess.run(
        [COMMAND, *arguments],
        env=clean_environment(variables),
        input=given,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
