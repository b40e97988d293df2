"""What is built of sources once, also by several processes, and kept until they change."""

import hashlib
import platform
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.harness.locks import exclusively


def system() -> str:
    """Return what names the system for which something is compiled, with its libraries."""
    release = platform.freedesktop_os_release()
    return f"{release['ID']}-{release.get('VERSION_ID', 'rolling')}-{platform.machine()}"


def built(
    place: Path, sources: Sequence[Path], build: Callable[[Path], object], *, also: str = ""
) -> Path:
    """Return the folder below ``place`` with what ``build`` has made of sources.

    ``build`` gets that folder, empty, unless it was built; if it fails, it is called again next
    time. ``also``: what else another folder is taken for, such as a version.
    """
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    folder = place / "-".join(filter(None, (digest[:16], also)))
    with exclusively(place / "lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            build(folder)
            (folder / "complete").touch()
    return folder
