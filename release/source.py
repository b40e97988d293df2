"""The files of a commit, its time and its version."""

import io
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.errors import ReleaseError
from release.process import output_of


@dataclass(frozen=True)
class Source:
    """A folder with a release's files. ``epoch``: seconds since 1970 that all its files get."""

    folder: Path
    epoch: int

    @property
    def project(self) -> dict[str, Any]:
        """The table [project] of pyproject.toml."""
        text = (self.folder / "pyproject.toml").read_text(encoding="utf-8")
        project: dict[str, Any] = tomllib.loads(text)["project"]
        return project

    @property
    def version(self) -> str:
        """The release's version."""
        return str(self.project["version"])


def export(repository: Path, folder: Path) -> Source:
    """Write the files of the repository's HEAD into ``folder``; changes that are not committed stay
    out.

    :raises ReleaseError: it is no git repository, or git is missing.
    """
    try:
        epoch = int(output_of(["git", "log", "-1", "--format=%ct"], repository))
        files = output_of(["git", "archive", "--format=tar", "HEAD"], repository)
    except FileNotFoundError as error:
        raise ReleaseError("git is not installed") from error
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return Source(folder, epoch)
