"""The command itself; none of this starts Spark."""

import sys

import pytest
from click.testing import CliRunner

from leader_hints_report.cli import cli, main


@pytest.mark.parametrize("name", ["batch", "generate", "stream"])
def test_each_command_is_found_and_explains_itself(name: str) -> None:
    assert name in CliRunner().invoke(cli, ["--help"]).output
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "--master" in result.output


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
