"""Runs that are made of raw samples."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.latencies import write_latencies
from leader_hints_report.kip951.run_figures import PERCENTILES
from leader_hints_report.kip951.samples import SCHEMA, SampleError, read_samples, run_figures

_HEADER = "arm,run,sent_ms,latency_ms,bytes"


def test_a_run_worked_out_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    rows = ["a,1,1000,10,1048576", "a,1,2000,30,1048576", "a,1,4980,20,1048576", "a,1,4990,,7"]
    (tmp_path / "a.csv").write_text("\n".join([_HEADER, *rows]) + "\n")
    (run,) = run_figures(read_samples(spark, str(tmp_path)))
    # Three records in four seconds, from 1000 to 4980 + 20; one that was given up.
    assert run.model_dump() == {
        "arm": "a",
        "run": 1,
        "records": 3,
        "failed": 1,
        "records_per_s": 0.75,
        "mb_per_s": 0.75,
        "avg_ms": 20.0,
        "max_ms": 30.0,
        "p50_ms": 20.0,
        "p95_ms": 30.0,
        "p99_ms": 30.0,
        "p999_ms": 30.0,
    }


def test_percentiles_are_those_of_the_tool_whatever_the_form(
    spark: SparkSession, tmp_path: Path
) -> None:
    drawn = random.Random(951)
    latencies = {run: [drawn.randrange(1, 400) for _ in range(997 + run)] for run in (1, 2)}
    (tmp_path / "below").mkdir()
    # One run as the benchmark writes it, one as Parquet.
    write_latencies(
        tmp_path / "below" / "1.csv.gz", "b", 1, [(1.0, value) for value in latencies[1]], 100
    )
    rows = [("b", 2, 1.0, float(value), 100) for value in latencies[2]]
    spark.createDataFrame(rows, SCHEMA).write.parquet(str(tmp_path / "parquet"))

    for run in run_figures(read_samples(spark, str(tmp_path))):
        assert run.run is not None
        ordered = sorted(latencies[run.run])
        assert run.records == len(ordered)
        for name, share in PERCENTILES.items():
            assert getattr(run, name) == ordered[int(share * len(ordered))], name


def _nothing(folder: Path) -> None:
    folder.rmdir()


def _no_samples(folder: Path) -> None:
    (folder / "readme.txt").write_text("nothing")


def _torn(folder: Path) -> None:
    with gzip.open(folder / "a.csv.gz", "wt") as file:
        file.write(f"{_HEADER}\na,1,2,3,4\na,1,zwei,3,4\n")


def _other_order(folder: Path) -> None:
    (folder / "a.csv").write_text("arm,sent_ms,run,latency_ms,bytes\na,1,1,2,3\n")


def _no_number(folder: Path) -> None:
    (folder / "a.csv").write_text(f"{_HEADER}\na,1,2,NaN,4\n")


def _only_failed(folder: Path) -> None:
    (folder / "a.csv").write_text(f"{_HEADER}\na,1,2,,4\n")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "there is no such file or folder"),
        (_no_samples, "no samples"),
        (_torn, "a.csv.gz: a,1,zwei,3,4"),
        (_other_order, "a.csv: arm,sent_ms,run"),
        (_no_number, "a.csv: .*NaN"),
        (_only_failed, "arm 'a', run 1: no record was acknowledged"),
    ],
)
def test_what_is_no_sample_is_refused_and_shown(
    spark: SparkSession, tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path)
    with pytest.raises(SampleError, match=said):
        run_figures(read_samples(spark, str(tmp_path)))
