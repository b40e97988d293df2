"""actionlint, which reads workflows as GitHub does. PyPI's package of it downloads a binary from
elsewhere at its installation, so it is built."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, in_ci

_MODULE = "github.com/rhysd/actionlint/cmd/actionlint"
_VERSION = "v1.7.12"


def actionlint() -> Path:
    """Build it unless it was. Skips the test where Go is missing, but never in CI."""
    folder = BUILD / "actionlint" / _VERSION
    program = folder / "actionlint"
    folder.mkdir(parents=True, exist_ok=True)
    with exclusively(folder.with_suffix(".lock")):
        if program.exists():
            return program
        if shutil.which("go") is None:
            (pytest.fail if in_ci() else pytest.skip)("needs go")
        built = subprocess.run(
            ["go", "install", f"{_MODULE}@{_VERSION}"],
            env=os.environ | {"GOBIN": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
    return program
