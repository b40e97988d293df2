"""An environment into which the wheel was installed, as a user's is."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_DEADLINE_S = 500.0


@dataclass(frozen=True)
class Installed:
    """A virtual environment; ``python`` made it."""

    folder: Path

    @classmethod
    def make(cls, python: Path, folder: Path, wheel: Path, constraints: Path) -> "Installed":
        """Make it, with the wheel, what the wheel needs, pytest, and PyPI's proxy.py."""
        environment = cls(folder)
        _done([python, "-m", "venv", "--without-pip", folder])
        _done(
            [
                *(sys.executable, "-m", "pip", "--python", folder / "bin" / "python"),
                *("--disable-pip-version-check", "install", "--quiet", "--no-compile"),
                "--only-binary=:all:",
                *("--constraint", constraints, wheel, "pytest", "proxy.py==2.4.10"),
            ]
        )
        return environment

    def run(
        self,
        name: str,
        *arguments: str | Path,
        cwd: Path,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its commands to its end, with nothing set that leads to this repository."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "LEADER_HINTS", "PYTEST"))
        }
        return subprocess.run(
            [self.folder / "bin" / name, *arguments],
            cwd=cwd,
            env={**kept, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )


def _done(argv: list[str | Path]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
