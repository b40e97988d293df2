"""The Helm chart, as `helm package` would pack it, but with the same bytes each time."""

import gzip
import io
import tarfile
from pathlib import Path

import yaml

from release.errors import ReleaseError
from release.source import Source

_CHART = Path("deploy/helm/leader-hints")


def build_chart(source: Source, out: Path) -> None:
    """Pack the chart into ``out``.

    :raises ReleaseError: its version or its image's is not the release's.
    """
    folder = source.folder / _CHART
    described = yaml.safe_load((folder / "Chart.yaml").read_text(encoding="utf-8"))
    for key in ("version", "appVersion"):
        if described[key] != source.version:
            raise ReleaseError(
                f"{_CHART}/Chart.yaml: {key} is {described[key]}, the release is {source.version}"
            )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = file.read_bytes()
            entry = tarfile.TarInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}")
            entry.size, entry.mtime = len(content), source.epoch
            archive.addfile(entry, io.BytesIO(content))
    target = out / f"{described['name']}-{source.version}.tgz"
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=source.epoch))
