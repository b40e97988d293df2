"""The tools that the checks need, and how they are run."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.harness.maven import BUILD, ROOT, in_ci

FOLDER = BUILD / "deploy"
"""What the checks keep from one run to the next."""

_DEADLINE_S = 300.0
_GO = {
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5@v5.8.2",
    "helm": "helm.sh/helm/v3/cmd/helm@v3.19.0",
}
_IN_ENVIRONMENT = ("hadolint", "kubernetes-validate", "podman-compose")
_BESIDE_THE_PACKAGE = {"docker-compose": "compose"}  # the wheel's wrapper hides exit codes


def need(*names: str, root: bool = False) -> None:
    """Skip the test where a tool or the right to use it is missing; in CI that is a failure."""
    missing = [name for name in names if _found(name) is None]
    if root and os.geteuid() != 0:
        missing.append("root")
    if not missing:
        return
    reason = f"needs {', '.join(missing)}"
    if in_ci():
        pytest.fail(reason)
    pytest.skip(reason)


def run(
    *argv: str | Path,
    variables: Mapping[str, str] | None = None,
    text: str | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end in the repository's root; its output is in a failure's message."""
    name, *arguments = (str(part) for part in argv)
    done = subprocess.run(
        [_found(name) or name, *arguments],
        cwd=ROOT,
        env=os.environ | (variables or {}),
        input=text or "",
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(
            f"{name} {' '.join(arguments)} ended with {done.returncode}:\n"
            f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done


def install() -> None:
    """Build the tools that are neither Debian's nor PyPI's, unless they are there."""
    folder = FOLDER / "bin"
    for name, package in _GO.items():
        if _found(name) is None:
            run("go", "install", package, variables={"GOBIN": str(folder)})


def _found(name: str) -> str | None:
    beside = Path(sys.executable).parent
    if name in _IN_ENVIRONMENT:
        return shutil.which(name, path=beside)
    if name in _BESIDE_THE_PACKAGE:
        folder = Path(sysconfig.get_path("purelib")) / _BESIDE_THE_PACKAGE[name]
        return shutil.which(name, path=folder)
    return shutil.which(name, path=f"{FOLDER / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin")


if __name__ == "__main__":
    install()
