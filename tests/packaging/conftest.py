"""The release that the tests look at, built from the files as they are."""

import shutil
import subprocess
from pathlib import Path

import pytest

from release.__main__ import build
from release.source import Source
from tests.harness.maven import ROOT
from tests.packaging.installed import Installed
from tests.packaging.pythons import pythons

EPOCH = 1_700_000_000


def copied(folder: Path) -> Source:
    """A copy of the repository's files, without what git does not know or ignores."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.split("\0"):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    return Source(folder, EPOCH)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The files."""
    return copied(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def dist(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make release` writes, without the image."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    build(source, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """The wheel."""
    (file,) = dist.glob("*.whl")
    return file


@pytest.fixture(scope="session", params=pythons().items(), ids=lambda one: f"Python {one[0]}")
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """The wheel in an environment, on each Python that is here."""
    _, python = request.param
    folder = tmp_path_factory.mktemp("installed")
    return Installed.make(python, folder / "environment", wheel, ROOT / "constraints.txt")
