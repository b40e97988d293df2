"""`leader-hints-report kip951` as it is called."""

import json
from pathlib import Path

from click.testing import CliRunner
from pyspark.sql import SparkSession

from bench.latencies import write_latencies
from leader_hints_report.cli import cli
from leader_hints_report.kip951.document import Document


def test_without_samples_it_prints_what_was_published() -> None:
    result = CliRunner().invoke(cli, ["kip951"])
    assert result.exit_code == 0
    assert "| rejected alternative | average |" in result.output
    assert "| 88 % | 87.2 % | differs |" in result.output


def test_what_make_bench_keeps_is_compared_and_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    for number, (arm, latency) in enumerate((("hints on", 5.0), ("hints off", 20.0))):
        file = tmp_path / "samples" / f"{number}-1.csv.gz"
        write_latencies(file, arm, 1, [(1.0, latency), (2.0, latency)], 100)
    out = tmp_path / "out"
    result = CliRunner().invoke(
        cli, ["kip951", "--samples", str(tmp_path / "samples"), "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "## Own samples: change of the averages against hints off" in result.output
    document = Document.model_validate_json((out / "kip951.json").read_text())
    assert document.measured is not None
    assert document.measured.changes[0].percent["p99_ms"] == -75.0
    assert json.loads((out / "kip951.json").read_text())["measured"]["runs"][0]["arm"] == (
        "hints off"
    )
    assert (out / "kip951-runs.csv").read_text().count("\nmeasured,") == 4
