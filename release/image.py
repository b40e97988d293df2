"""The container image as an archive, where buildah is installed."""

import shutil
from pathlib import Path

from release.process import output_of
from release.source import Source

_NAME = "localhost/leader-hints"


def can_build_image() -> bool:
    """Whether this machine has buildah."""
    return shutil.which("buildah") is not None


def build_image(source: Source, out: Path, base: str | None) -> None:
    """Build the image of the Dockerfile on ``base``, by default the Dockerfile's own, and write it
    into ``out`` as `docker load` and `podman load` take it.

    :raises ReleaseError: buildah refused; where no registry can be asked, give a ``base``.
    """
    tag = f"{_NAME}:{source.version}"
    based = () if base is None else ("--build-arg", f"BASE={base}")
    # HEALTHCHECK is in Docker's format alone. The time makes the layers' files the commit's age.
    output_of(
        [
            *("buildah", "build", "--format=docker", "--layers=false"),
            *(f"--timestamp={source.epoch}", *based, f"--tag={tag}", "."),
        ],
        source.folder,
    )
    archive = out / f"leader-hints-image-{source.version}.tar"
    output_of(["buildah", "push", "--quiet", tag, f"docker-archive:{archive}:{tag}"], source.folder)
