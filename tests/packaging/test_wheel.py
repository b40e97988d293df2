"""The wheel, installed beside what else a user has."""

import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.harness.maven import ROOT
from tests.packaging.installed import Installed

pytestmark = pytest.mark.timeout(600)  # An environment is made for the first test of each Python.

_VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "version"
]

_TEST = """
import sys

import pipeline.theirs
import proxy.theirs

import leader_hints as package


def test_both(leader_hints):
    assert proxy.theirs.WHOSE == pipeline.theirs.WHOSE == "the project's"
    assert leader_hints.bootstrap
    assert "site-packages" in package.__file__
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project whose folders are called as the sources' folders are here."""
    for name in ("proxy", "pipeline"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "theirs.py").write_text('WHOSE = "the project\'s"\n')
    (tmp_path / "test_client.py").write_text(_TEST)
    (tmp_path / "hints.yaml").write_text(
        "routes: [{listen: '127.0.0.1:19092', upstream: '127.0.0.1:9092'}]\n"
    )
    return tmp_path


def test_it_holds_two_typed_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    own = f"kafka_leader_hints-{_VERSION}.dist-info"
    assert {name.partition("/")[0] for name in names} == {
        "leader_hints",
        "leader_hints_report",
        own,
    }
    assert {"leader_hints/py.typed", "leader_hints_report/py.typed"} <= set(names)
    assert {"leader_hints_report/report/page.html.jinja"} <= set(names)
    assert f"{own}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name]


def test_it_runs_in_a_project_with_folders_of_the_same_names(
    installed: Installed, project: Path
) -> None:
    here = {"PYTHONPATH": "."}

    shown = installed.run("leader-hints", "--version", cwd=project, variables=here)
    assert shown.stdout == f"leader-hints {_VERSION}\n", shown.stderr

    checked = installed.run(
        *("leader-hints", "config", "check", "--skip", "ports", "--config", "hints.yaml"),
        cwd=project,
        variables=here,
    )
    assert checked.returncode == 0, checked.stderr
    assert "127.0.0.1:19092" in checked.stdout

    refused = installed.run("leader-hints", "config", "check", cwd=project, variables=here)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_the_plugin_of_pytest_works_there(installed: Installed, project: Path) -> None:
    tested = installed.run(
        *("pytest", "-q", "-p", "no:cacheprovider"), cwd=project, variables={"PYTHONPATH": "."}
    )
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr


def test_it_works_beside_proxy_py(installed: Installed, tmp_path: Path) -> None:
    theirs = installed.run("proxy", "--version", cwd=tmp_path)
    assert theirs.stdout.strip() == "2.4.10", theirs.stderr
    both = "import proxy, leader_hints.app as ours; print(proxy.Proxy.__name__, ours.__name__)"
    imported = installed.run("python", "-c", both, cwd=tmp_path)
    assert imported.stdout == "Proxy leader_hints.app\n", imported.stderr


@pytest.mark.parametrize("command", ["batch --journal=x", "html --tables=x", "kip951 --samples=x"])
def test_the_report_without_its_extra_says_so_in_one_line(
    command: str, installed: Installed, tmp_path: Path
) -> None:
    ended = installed.run("leader-hints-report", *command.split(), "--out=y", cwd=tmp_path)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.endswith("is not installed; pip install 'kafka-leader-hints[pipeline]' installs it")


def test_the_report_explains_itself_without_its_extra(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("leader-hints-report", "--help", cwd=tmp_path).returncode == 0
    published = installed.run("leader-hints-report", "kip951", cwd=tmp_path)
    assert published.returncode == 0, published.stderr
    assert "KIP-951" in published.stdout
