"""``python -m release``: build all that a release consists of from HEAD, into dist/."""

import shutil
import sys
import tempfile
from pathlib import Path

import click

from release.chart import build_chart
from release.checksums import CHECKSUMS, write_checksums
from release.errors import ReleaseError
from release.image import build_image, can_build_image
from release.package import build_package
from release.sbom import build_sbom
from release.source import Source, export

_ROOT = Path(__file__).parents[1]


@click.command("release")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=_ROOT / "dist",
    help="Where the files go, in place of an earlier release.  [default: dist]",
)
@click.option(
    "--image/--no-image", default=None, help="The image too.  [default: where buildah is installed]"
)
@click.option("--base", metavar="IMAGE", help="The image's base, in place of the Dockerfile's own.")
def main(out: Path, image: bool | None, base: str | None) -> None:
    """Build wheel, sdist, chart, SBOM, the image's archive and SHA256SUMS from the last commit."""
    try:
        with tempfile.TemporaryDirectory(prefix="leader-hints-release-") as folder:
            build(export(_ROOT, Path(folder)), out, image=image, base=base)
    except ReleaseError as error:
        click.echo(f"release: {error}", err=True)
        sys.exit(1)


def build(
    source: Source, out: Path, *, image: bool | None = False, base: str | None = None
) -> None:
    """Build everything into ``out``. ``image``: ``None`` where buildah is installed.

    :raises ReleaseError: a part cannot be built, or the folder holds something else.
    """
    _clear(out)
    build_package(source, out)
    build_chart(source, out)
    build_sbom(source, out)
    if image is None and not can_build_image():
        click.echo("no image: buildah is not installed", err=True)
    elif image is not False:
        build_image(source, out, base)
    write_checksums(out)
    for file in sorted(out.iterdir()):
        click.echo(f"{file.stat().st_size:>12,}  {file.name}")


def _clear(out: Path) -> None:
    """Make the folder empty; only an earlier release is removed."""
    if out.exists() and any(out.iterdir()) and not (out / CHECKSUMS).exists():
        raise ReleaseError(f"{out} is not empty and holds no release ({CHECKSUMS} is missing)")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


if __name__ == "__main__":
    main()
