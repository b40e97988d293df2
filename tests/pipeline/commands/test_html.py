"""`leader-hints-report html` as it is called."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from leader_hints_report.cli import cli
from leader_hints_report.errors import PipelineError
from leader_hints_report.kip951.document import make_document
from tests.pipeline.kip951.runs import make_run


def test_of_an_empty_folder_the_page_says_so_and_own_samples_are_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "tables").mkdir()
    kip951 = tmp_path / "kip951.json"
    kip951.write_text(make_document([make_run("of our own", 1, 2.0)]).model_dump_json())
    page = tmp_path / "report.html"
    arguments = ["--tables", str(tmp_path / "tables"), "--out", str(page), "--kip951", str(kip951)]
    result = CliRunner().invoke(cli, ["html", *arguments])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        str(page),
        str(tmp_path / "report.json"),
        str(tmp_path / "report-csv"),
    ]
    assert 'id="empty"' in page.read_text("utf-8")
    assert "of our own" in page.read_text("utf-8")
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["kip951"]["measured"]["runs"][0]["arm"] == "of our own"


def test_a_file_that_kip951_did_not_write_is_refused_before_spark_starts(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"a": 1}')
    arguments = ["--tables", "none", "--out", str(tmp_path / "r.html"), "--kip951", str(wrong)]
    result = CliRunner().invoke(cli, ["html", *arguments])
    assert isinstance(result.exception, PipelineError)
    assert str(result.exception).startswith(f"--kip951 {wrong}: ")
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--from", "2026-02-01", "--to", "2026-01-31"],
            "--to 2026-01-31 is before --from 2026-02-01",
        ),
        (
            ["--from", "2026-02-01", "--compare", "2026-02-01"],
            "--compare 2026-02-01 has no day before it: see --from",
        ),
        (
            ["--to", "2026-01-31", "--compare", "2026-02-01"],
            "--to 2026-01-31 is before --compare 2026-02-01",
        ),
        (["--from", "yesterday"], "'yesterday' does not match the format '%Y-%m-%d'"),
    ],
)
def test_days_that_cannot_be_are_refused_before_spark_starts(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "r.html")
    result = CliRunner().invoke(cli, ["html", "--tables", "none", "--out", out, *arguments])
    assert result.exit_code != 0
    assert words in f"{result.output}{result.exception}"


def test_a_page_that_cannot_be_written_is_named_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "r.html"
    result = CliRunner().invoke(cli, ["html", "--tables", "none", "--out", str(out)])
    assert isinstance(result.exception, PipelineError)
    assert str(result.exception) == f"--out {out}: {tmp_path / 'file'}: File exists"
