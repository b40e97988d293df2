"""The command itself; none of this starts Spark."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from leader_hints_report.cli import EXTRA, cli, main
from tests.harness.maven import PYTHONPATH

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["batch", "generate", "query", "stream"])
def test_each_command_is_found_and_explains_itself(name: str) -> None:
    assert name in CliRunner().invoke(cli, ["--help"]).output
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "--master" in result.output


def test_the_former_name_of_rebuild_is_read_and_not_shown() -> None:
    shown = CliRunner().invoke(cli, ["batch", "--help"]).output
    bad = ("batch", "--journal=x", "--out=y", "--kafka", "secret")

    assert "--rebuild" in shown
    assert "--anew" not in shown
    for flag in ("--rebuild", "--anew"):
        assert "No such option" not in CliRunner().invoke(cli, [*bad, flag]).output


def test_a_command_that_is_none_is_bad_use() -> None:
    assert CliRunner().invoke(cli, ["bath"]).exit_code == 2


def test_a_setting_without_a_value_is_bad_use_and_is_not_repeated() -> None:
    result = CliRunner().invoke(cli, ["batch", "--journal=x", "--out=y", "--kafka", "secret"])
    assert result.exit_code == 2
    assert "NAME=VALUE" in result.output
    assert "secret" not in result.output


def test_an_operators_mistake_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "batch", "--journal=kafka://host:9092", "--out=y"])
    with pytest.raises(SystemExit, match="1"):
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == ("leader-hints-report: kafka://host:9092 is no kafka://HOST:PORT,.../TOPIC")


def test_the_packages_of_the_extra_are_known() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(one).name for one in project["optional-dependencies"]["pipeline"]} == EXTRA


def _fails(environment: dict[str, str], folder: Path) -> list[str]:
    """The lines that a command of its own process says as it fails."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "leader_hints_report.cli", "batch"),
            *(f"--journal={folder}/journal", f"--out={folder}/out"),
        ],
        env=environment | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    return ended.stderr.splitlines()


def test_without_java_it_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    assert _fails(environment | {"PATH": str(tmp_path)}, tmp_path) == [
        "leader-hints-report: no java on the PATH; install Java 17 or newer, or set JAVA_HOME"
    ]
    assert _fails(environment | {"JAVA_HOME": str(tmp_path)}, tmp_path) == [
        f"leader-hints-report: JAVA_HOME is {tmp_path}, and has no bin/java; install Java 17 or "
        "newer, or set JAVA_HOME"
    ]


def test_a_java_that_does_not_start_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho too old >&2\nexit 1\n")
    java.chmod(0o755)

    assert _fails(os.environ | {"JAVA_HOME": str(tmp_path)}, tmp_path) == [
        f"leader-hints-report: Spark does not start with {java}: too old; it needs Java 17 or "
        "newer, and working --master and --conf"
    ]
