"""Virtual environments with one Python client library each, so that versions stand side by side."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.harness.clients import ClientProcess
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, LibraryError
from tests.harness.python_client import Library, python_clients

_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@dataclass(frozen=True)
class Environment:
    """One version of a client library; ``also`` pins all that it needs, its codecs included."""

    library: Library
    version: str
    also: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is, or will be once ``make`` has run."""
        return BUILD / "clients" / f"{self.library}-{self.version}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def make(self) -> "Environment":
        """Make it unless it is there with just these pins; several processes may do so at once.

        :raises LibraryError: pip failed; its output is in the message.
        """
        pins = "\n".join((f"{self.library}=={self.version}", *self.also))
        done = self.folder / "complete"
        with exclusively(self.folder.parent / f"{self.folder.name}.lock"):
            if not done.exists() or done.read_text() != pins:
                shutil.rmtree(self.folder, ignore_errors=True)
                self._install(pins.split())
                done.write_text(pins)
        return self

    def clients(self, folder: Path) -> ClientProcess:
        """Start a process with the library's clients; its log goes to ``folder``."""
        return python_clients(folder, self.library, self.make().python)

    def _install(self, pins: list[str]) -> None:
        for command in (
            [sys.executable, "-m", "venv", "--without-pip", str(self.folder)],
            [*_PIP, "--python", str(self.python), "install", "--quiet", *pins],
        ):
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise LibraryError(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
