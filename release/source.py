"""The files of a commit, its time and its version."""

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
    folder.mkdir(parents=True, exist_ok=True)
    # Python's own tarfile differs between the patch releases of 3.11.
    archive = folder.resolve() / "files.tar"
    try:
        epoch = int(output_of(["git", "log", "-1", "--format=%ct"], repository))
        output_of(["git", "archive", f"--output={archive}", "HEAD"], repository)
    except FileNotFoundError as error:
        raise ReleaseError("git is not installed") from error
    output_of(["tar", "-xf", archive.name], folder)
    archive.unlink()
    return Source(folder, epoch)
