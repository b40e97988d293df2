"""What crosses racks a day, against what was written."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.report import listings
from leader_hints_report.report.gathering import gather
from leader_hints_report.report.listings import Numbers
from leader_hints_report.report.period import Period
from leader_hints_report.tables import columns

_DAYS = [date(2026, 1, day) for day in (1, 2, 3, 4)]
_CHANGE = _DAYS[2]


def _read(day: date, client: str, same: int, crossing: int, avoidable: int = 0) -> dict[str, Any]:
    return {
        "day": day,
        "cluster": "c",
        "topic": "t",
        "client_id": client,
        "rack": "x",
        "same_bytes": same,
        "crossing_bytes": crossing,
        "avoidable_bytes": avoidable,
        "named": 1,
        "returned": 0,
    }


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """Tables of four days; from the third one on consumers read in their rack."""
    reads = [
        _read(_DAYS[0], "a", 0, 4_000_000_000, 3_000_000_000),
        _read(_DAYS[1], "a", 0, 2_000_000_000, 1_000_000_000),
        _read(_DAYS[1], "b", 0, 1_000_000_000),
        _read(_DAYS[2], "a", 3_000_000_000, 1_000_000_000),
    ]
    runs = [{"day": day, "cluster": "c", "sidecar": "s", "run": "r"} for day in _DAYS]
    for table, rows in ((columns.RACK_READS, reads), (columns.JOURNAL_RUNS, runs)):
        names = [column.name for column in table.all_columns]
        frame = spark.createDataFrame(
            [tuple(row.get(name) for name in names) for row in rows], table.schema
        )
        frame.write.partitionBy("day", "cluster").parquet(str(tmp_path / "tables" / table.name))
    return tmp_path


def _gathered(
    spark: SparkSession, folder: Path, period: Period, price: float | None = None
) -> Numbers:
    return gather(spark, str(folder), lambda _: None, period, price)


def test_without_a_price_and_a_change_there_are_none(spark: SparkSession, folder: Path) -> None:
    numbers = _gathered(spark, folder, Period())
    (whole,) = numbers.rows(listings.RACKS_A_DAY)
    assert whole == {
        "part": "all",
        "days": 4,
        "read_bytes": 2_750_000_000,
        "crossing_bytes": 2_000_000_000,
        "crossing_share": 0.727,
        "crossing_price": None,
        "avoidable_bytes": 1_000_000_000,
        "avoidable_price": None,
    }
    first, second = numbers.rows(listings.RACKS)
    assert (first["client_id"], first["crossing_bytes"], first["named"]) == ("a", 7_000_000_000, 3)
    assert (first["before_bytes"], first["after_bytes"]) == (None, None)
    assert (second["client_id"], second["crossing_price"]) == ("b", None)
    assert numbers.price_per_gb is None


def test_before_and_after_a_change_with_a_price(spark: SparkSession, folder: Path) -> None:
    numbers = _gathered(spark, folder, Period(change=_CHANGE), 0.02)
    assert numbers.price_per_gb == 0.02
    whole, before, after = numbers.rows(listings.RACKS_A_DAY)
    assert [row["part"] for row in (whole, before, after)] == ["all", "before", "after"]
    assert (before["days"], before["crossing_bytes"], before["crossing_price"]) == (
        2,
        3_500_000_000,
        0.07,
    )
    assert (before["avoidable_bytes"], before["avoidable_price"]) == (2_000_000_000, 0.04)
    assert (after["crossing_bytes"], after["crossing_price"]) == (500_000_000, 0.01)
    assert (after["crossing_share"], after["avoidable_bytes"]) == (0.25, 0)
    first, second = numbers.rows(listings.RACKS)
    assert (first["before_bytes"], first["after_bytes"]) == (3_000_000_000, 500_000_000)
    assert (first["crossing_price"], first["avoidable_price"]) == (0.14, 0.08)
    assert (second["before_bytes"], second["after_bytes"]) == (500_000_000, 0)


def test_days_without_journals_are_neither(spark: SparkSession, folder: Path) -> None:
    numbers = _gathered(spark, folder, Period(first=_DAYS[2], change=date(2026, 1, 9)), 0.02)
    assert [row["part"] for row in numbers.rows(listings.RACKS_A_DAY)] == ["all", "before"]
    (row,) = numbers.rows(listings.RACKS)
    assert (row["before_bytes"], row["after_bytes"]) == (500_000_000, None)
