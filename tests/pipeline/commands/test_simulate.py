"""`leader-hints-report simulate` as it is called."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from leader_hints_report.cli import cli
from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.document import Forecast
from tests.pipeline.simulation.fleets import SMALL


def _file(folder: Path) -> str:
    file = folder / "fleet.yaml"
    # JSON is YAML.
    file.write_text(json.dumps(SMALL))
    return str(file)


def _output(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["simulate", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def _refused(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["simulate", *arguments])
    assert isinstance(result.exception, PipelineError), result.output
    return str(result.exception)


def test_it_prints_tables_and_writes_json_and_a_page(tmp_path: Path) -> None:
    out, page = tmp_path / "new" / "f.json", tmp_path / "f.html"
    modes = ("--mode", "no-proxy", "--mode", "hints")
    told = _output(
        *("--fleet", _file(tmp_path), *modes, "--seeds", "2", "--change", "batch=5"),
        *("--json", str(out), "--page", str(page)),
    )
    assert "| hints, batch=5 " in told
    # 84 moves, as the file has it and with the change.
    assert "Produce with hints: 168, 0 differ in whether there is a hint" in told
    assert "; Fetch with hints: " in told
    assert "settled" not in told
    forecast = Forecast.model_validate_json(out.read_text())
    assert [arm.arm for arm in forecast.arms] == [
        "no-proxy",
        "hints",
        "no-proxy, batch=5",
        "hints, batch=5",
    ]
    assert page.read_text().startswith("<!doctype html>")


def test_it_searches_a_pause(tmp_path: Path) -> None:
    arguments = ("--fleet", _file(tmp_path), "--mode", "hints", "--seeds", "1", "--pause-for")
    assert "s; the roll then takes" in _output(*arguments, "p99.9=50")
    assert "no pause of up to a day is enough" in _output(*arguments, "p99.9=1")
    assert "give a percentile and ms" in _refused(*arguments, "fast")


@pytest.mark.parametrize("given", ["--json", "--page", "--master"])
def test_a_search_writes_no_file(tmp_path: Path, given: str) -> None:
    file = tmp_path / "out"
    arguments = ("--fleet", _file(tmp_path), "--pause-for", "p99.9=50", given, str(file))
    assert "--pause-for prints a line for each arm" in _refused(*arguments)
    assert not file.exists()


@pytest.mark.parametrize("arguments", [(), ("--fleet", "a", "--journal", "b")])
def test_it_needs_one_source(arguments: tuple[str, ...]) -> None:
    assert _refused(*arguments) == "give either --fleet or --journal"


def test_what_a_journal_cannot_tell_goes_with_one_and_is_checked_first(tmp_path: Path) -> None:
    known = tmp_path / "known.yaml"
    known.write_text("cluster: {brokers: 3}")
    assert "give it with --journal" in _refused("--fleet", _file(tmp_path), "--assume", str(known))
    # There is no such journal; it is not even looked for.
    words = _refused("--journal", str(tmp_path / "none"), "--assume", str(known))
    assert "cluster.brokers: the journal tells it" in words


def test_settings_of_spark_go_with_spark(tmp_path: Path) -> None:
    words = _refused("--fleet", _file(tmp_path), "--conf", "spark.executor.memory=4g")
    assert words == "--conf is for Spark: give it with --master or --journal"


def test_one_file_is_not_written_twice(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = _refused("--fleet", _file(tmp_path), "--json", out, "--page", out)
    assert words == f"--json and --page are both {out}"


def test_mistakes_are_refused_in_a_line(tmp_path: Path) -> None:
    assert "No such file" in _refused("--fleet", str(tmp_path / "none"))
    assert "there is no such setting" in _refused("--fleet", _file(tmp_path), "--change", "a=1")
    modes = ("--mode", "native", "--seeds", "1")
    nowhere = str(Path(_file(tmp_path)) / "x")
    assert nowhere in _refused("--fleet", _file(tmp_path), *modes, "--json", nowhere)
