"""The Pythons of this machine that the package promises to run on."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_MINORS = range(11, 15)
_ASKED = "import sys, venv; print(*sys.version_info[:2], sep='.')"


def pythons() -> dict[str, Path]:
    """An interpreter for each minor version from 3.11 to 3.14 that is found, this one's always.

    Looked for on the PATH and among pyenv's; what cannot make environments is none.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {here: Path(sys.executable)}
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None:
            found.setdefault(version, candidate)
    return dict(sorted(found.items(), key=lambda one: [int(part) for part in one[0].split(".")]))


def _candidates() -> Iterator[Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for minor in _MINORS:
        on_path = shutil.which(f"python3.{minor}")
        if on_path is not None:
            yield Path(on_path)
        pattern = re.compile(rf"3\.{minor}\.\d+")
        if pyenv.is_dir():
            for folder in sorted(pyenv.iterdir()):
                if pattern.fullmatch(folder.name):
                    yield folder / "bin" / "python3"


def _version(python: Path) -> str | None:
    """The version, if it is one of those; ``None`` for what does not run, such as an idle shim."""
    try:
        asked = subprocess.run(
            [str(python), "-c", _ASKED], capture_output=True, text=True, timeout=30, check=False
        )
    except OSError:
        return None
    version = asked.stdout.strip()
    return version if version in {f"3.{minor}" for minor in _MINORS} else None
