"""The wheel and the sdist."""

import sys
from pathlib import Path

from release.process import output_of
from release.source import Source


def build_package(source: Source, out: Path) -> None:
    """Build both into ``out`` with the hatchling that is installed, so nothing is downloaded.

    :raises ReleaseError: hatchling refused.
    """
    output_of(
        [sys.executable, "-m", "hatchling", "build", "--directory", out],
        source.folder,
        # What the user has on his path is no part of the build.
        {"SOURCE_DATE_EPOCH": str(source.epoch), "PYTHONPATH": ""},
    )
