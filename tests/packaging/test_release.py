"""What `make release` writes."""

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cyclonedx import schema
from referencing import Registry, Resource

from release.__main__ import build
from release.errors import ReleaseError
from release.sbom import build_sbom
from release.source import Source, export
from tests.harness.maven import ROOT
from tests.packaging.conftest import EPOCH, copied

pytestmark = pytest.mark.timeout(600)


def _contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_built_twice_it_has_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """In another folder, at another time, by a user with another umask."""
    source = copied(tmp_path / "elsewhere")
    for file in source.folder.rglob("*"):
        file.chmod(0o777 if file.is_dir() else 0o660)
        os.utime(file, (EPOCH + 10**7,) * 2)
    umask = os.umask(0o077)
    try:
        build(source, tmp_path / "dist")
    finally:
        os.umask(umask)

    again = _contents(tmp_path / "dist")
    assert again == _contents(dist)
    kinds = (".whl", ".tar.gz", ".tgz", ".cdx.json", "SHA256SUMS")
    assert all(any(name.endswith(kind) for name in again) for kind in kinds)
    assert len(again) == len(kinds)


def test_the_sdist_gives_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path], check=True)
    (folder,) = tmp_path.iterdir()
    assert {"CHANGELOG.md", "LICENSE", "README.md", "constraints.txt", "pyproject.toml"} <= {
        file.name for file in folder.iterdir()
    }
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"],
        cwd=folder,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)},
        capture_output=True,
        check=True,
    )
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_sums_are_those_of_the_files(dist: Path) -> None:
    argv = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    checked = subprocess.run(argv, cwd=dist, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": OK") == len(list(dist.iterdir())) - 1


def test_the_chart_is_the_folder(dist: Path, source: Source) -> None:
    folder = source.folder / "deploy" / "helm"
    (chart,) = dist.glob("*.tgz")
    with tarfile.open(chart) as archive:
        packed = {name: archive.extractfile(name) for name in archive.getnames()}
        contents = {name: file.read() for name, file in packed.items() if file is not None}
    there = [file for file in (folder / "leader-hints").rglob("*") if file.is_file()]
    assert contents == {str(file.relative_to(folder)): file.read_bytes() for file in there}


def test_a_chart_of_another_version_stops_it(source: Source, tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy")
    chart = copy.folder / "deploy" / "helm" / "leader-hints" / "Chart.yaml"
    chart.write_text(re.sub("appVersion: .*", "appVersion: 9.9.9", chart.read_text()))
    with pytest.raises(ReleaseError, match=re.escape("appVersion is 9.9.9, the release is")):
        build(copy, tmp_path / "dist")


def test_the_sbom_is_valid_and_has_what_the_wheel_needs(dist: Path, source: Source) -> None:
    (file,) = dist.glob("*.cdx.json")
    sbom = json.loads(file.read_text(encoding="utf-8"))
    folder = Path(schema.__file__).with_name("_res")
    resources = (
        Resource.from_contents(json.loads(one.read_text(encoding="utf-8")))
        for one in folder.glob("*.schema.json")
    )
    registry: Registry[Any] = Registry().with_resources(
        (str(resource.id()), resource) for resource in resources
    )
    rules = json.loads((folder / "bom-1.6.SNAPSHOT.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(rules, registry=registry).validate(sbom)

    scopes = {one["name"]: one["scope"] for one in sbom["components"]}
    assert {scopes[name] for name in ("trio", "kio", "pydantic-core", "sortedcontainers")} == {
        "required"
    }
    assert {scopes[name] for name in ("pyspark", "py4j", "numpy")} == {"optional"}
    assert not {"pytest", "ruff", "mypy"} & scopes.keys()
    pinned = (source.folder / "constraints.txt").read_text(encoding="utf-8").lower()
    for one in sbom["components"]:
        assert f"{one['name']}=={one['version']}\n" in pinned.replace("_", "-"), one["name"]
    needs = {one["ref"]: one.get("dependsOn", []) for one in sbom["dependencies"]}
    assert "trio" in needs["kafka-leader-hints"]
    assert "pydantic-core" in needs["pydantic"]


def test_a_package_that_is_not_pinned_stops_it(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy")
    pins = copy.folder / "constraints.txt"
    pins.write_text(re.sub("(?m)^outcome==.*$", "", pins.read_text()))
    with pytest.raises(ReleaseError, match=r"constraints\.txt: outcome$"):
        build_sbom(copy, tmp_path)


def test_only_what_is_committed_goes_into_it(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    (repository / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--date", "@5 +0000"]):
        environment = os.environ | {"GIT_COMMITTER_DATE": f"@{EPOCH} +0000"}
        subprocess.run([*git, *command], cwd=repository, env=environment, check=True)
    (repository / "pyproject.toml").write_text('[project]\nversion = "9"\n')
    (repository / "secret").write_text("x")

    source = export(repository, tmp_path / "out")

    assert (source.version, source.epoch) == ("1.2.3", EPOCH)
    assert [file.name for file in source.folder.iterdir()] == ["pyproject.toml"]


def test_a_folder_that_holds_something_else_is_left_alone(source: Source, tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("x")
    with pytest.raises(ReleaseError, match="holds no release"):
        build(source, tmp_path)
    assert (tmp_path / "diary").read_text() == "x"


def test_the_command_builds_it_from_the_last_commit(tmp_path: Path) -> None:
    out = tmp_path / "dist"
    argv = [sys.executable, "-m", "release", "--no-image", "--out", str(out)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "SHA256SUMS").read_text().splitlines()
