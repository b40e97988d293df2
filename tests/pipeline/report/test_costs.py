"""What a day costs, and what hints and upgrades would gain."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.generator.episodes import made_episodes
from leader_hints_report.generator.fleet import OBSERVE, ON, Fleet
from leader_hints_report.generator.moves import made_moves
from leader_hints_report.report.costs import before_after, cost, hourly, software
from leader_hints_report.report.period import AFTER, BEFORE, Period, Tables
from leader_hints_report.tables import columns

_DAY = date(2026, 3, 29)
_BEGAN = datetime(2026, 3, 29, 1, 30, 0, 0, UTC)


class _Written:
    """Tables that are frames, in place of a folder."""

    def __init__(self, spark: SparkSession, **frames: DataFrame) -> None:
        self._spark, self._frames = spark, frames

    def table(self, name: str) -> DataFrame:
        schema = columns.TABLES[name].schema
        if name not in self._frames:
            return self._spark.range(0).select(
                *(F.lit(None).cast(of.dataType).alias(of.name) for of in schema.fields)
            )
        return self._frames[name]


def _tables(spark: SparkSession, recoveries: DataFrame) -> Tables:
    return Tables(_Written(spark, recoveries=recoveries), Period())  # type: ignore[arg-type]


def _generated(spark: SparkSession, hints: str) -> DataFrame:
    """The true recoveries of a fleet."""
    fleet = Fleet(sidecars=6, hours=20, events=8_000, seed=5, hints=hints)
    episodes = made_episodes(made_moves(spark, fleet), fleet)
    known = {
        "first_error": F.timestamp_micros("start"),
        "recovery_ms": F.col("recovery_us") / 1000,
        "lost_ms": F.col("recovery_us") / 1000,
        # As in lines.
        "hold_ms": F.when(F.col("hinted") | F.col("would_hint"), 3.0).otherwise(0.0),
        "day": F.lit(date(2026, 1, 1)),
    }
    frame = episodes.withColumns(known)
    missing = set(columns.RECOVERIES.schema.fieldNames()) - set(frame.columns)
    return frame.withColumns({name: F.lit(None) for name in missing}).to(columns.RECOVERIES.schema)


def test_the_forecast_comes_true_when_hints_are_turned_on(spark: SparkSession) -> None:
    observed = _generated(spark, OBSERVE)
    tables = _tables(spark, observed)
    (told,) = cost(hourly(tables), tables).collect()
    before, after = (
        frame.agg(F.sum("lost_ms"), F.count_if("hinted")).first()
        for frame in (observed, _generated(spark, ON))
    )
    assert before is not None
    assert after is not None
    saved = before[0] - after[0]
    assert told["days"] == 1
    assert told["reach_day"] == after[1] > 500
    assert told["gain_day_ms"] == pytest.approx(saved, rel=0.1)
    assert told["gain_low_ms"] < saved < told["gain_high_ms"]
    assert (told["hinted"], told["forecast_bare"]) == (0, 0)


def _row(recovery_ms: float | None, minute: int = 0, **more: Any) -> dict[str, Any]:
    values = {
        "client_id": "orders",
        "software": "apache-kafka-java",
        "software_version": "3.9.1",
        "api": "Produce",
        "cluster": "c1",
        "first_error": _BEGAN + timedelta(minutes=minute),
        "recovery_ms": recovery_ms,
        "lost_ms": recovery_ms if recovery_ms is not None else 40.0,
        "errors": 2,
        "hinted": False,
        "would_hint": False,
        "observed": False,
        "hold_ms": 0.0,
        "day": _DAY,
    }
    return values | more


def test_upgrades_are_reckoned_by_clients_of_the_same_cluster_that_have_hints(
    spark: SparkSession,
) -> None:
    old: dict[str, Any] = {"software_version": "2.8.2", "reason": "version_without_field"}
    rows = [_row(20.0, minute, hinted=True, hold_ms=5.0) for minute in range(30)]
    rows += [_row(500.0, minute, reason="hold_expired") for minute in range(10)]
    rows += [_row(200.0, 60 * hour, client_id=f"old-{hour}", **old) for hour in range(4)]
    rows += [_row(None, 0, client_id="old-0", **old)]
    # Of nobody in this cluster is a recovery with a hint known.
    alone = {**old, "cluster": "c2", "software": "sarama", "software_version": "1"}
    rows += [_row(200.0, 0, **alone)]
    # No version of it uses hints on Produce.
    on_fetch = {**old, "software": "kafka-python", "software_version": "2.0.2"}
    rows += [_row(100.0, 0, **on_fetch)]
    names = columns.RECOVERIES.schema.fieldNames()
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in names) for row in rows], columns.RECOVERIES.schema
    )
    tables = _tables(spark, frame)
    hours = hourly(tables).persist()
    newest, oldest, sarama, kafka_python = software(hours, tables).collect()
    (total,) = cost(hours, tables).collect()

    assert (newest["software_version"], newest["cannot"]) == ("3.9.1", 0)
    assert (oldest["episodes"], oldest["cannot"], oldest["unseen"]) == (5, 5, 1)
    assert oldest["clients"] == 4
    assert oldest["lost_day_ms"] == 840.0
    # Three of four episodes that could have a hint had one, and took 20 ms.
    assert oldest["upgrade_day_ms"] == pytest.approx(4 * 0.75 * (200 - 20))
    assert oldest["upgrade_low_ms"] < oldest["upgrade_day_ms"] < oldest["upgrade_high_ms"]
    assert (sarama["software"], sarama["upgrade_day_ms"]) == ("sarama", None)
    assert (kafka_python["cannot"], kafka_python["upgrade_day_ms"]) == (1, None)

    kinds = {name: total[name] for name in ("hinted", "observed", "missed", "cannot")}
    assert kinds == {"hinted": 30, "observed": 0, "missed": 10, "cannot": 7}
    # Each hour is an observation, also those of the day in which there was nothing.
    by_hour = [30 * 20.0 + 10 * 500.0 + 200 + 40 + 200 + 100, 200.0, 200.0, 200.0, *[0.0] * 20]
    mean = sum(by_hour) / 24
    variance = sum((lost - mean) ** 2 for lost in by_hour) / 23 * 24
    assert total["lost_day_ms"] == pytest.approx(sum(by_hour))
    assert total["lost_high_ms"] - total["lost_day_ms"] == pytest.approx(1.96 * variance**0.5)
    assert (total["gain_day_ms"], total["forecast_n"]) == (None, 0)


def test_too_few_recoveries_say_nothing_of_the_time_after_a_hint(spark: SparkSession) -> None:
    rows = [_row(100.0, 0, would_hint=True, observed=True, hold_ms=10.0)]
    rows += [_row(300.0, 0, observed=True, hold_ms=50.0, reason="hold_expired")]
    names = columns.RECOVERIES.schema.fieldNames()
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in names) for row in rows], columns.RECOVERIES.schema
    )
    tables = _tables(spark, frame)
    (total,) = cost(hourly(tables), tables).collect()
    assert (total["gain_day_ms"], total["forecast_n"], total["forecast_bare"]) == (90.0, 1, 1)
    # Of one hour nothing is certain; what would have been held for nothing is a loss at most.
    assert total["gain_low_ms"] == -50.0
    assert total["gain_high_ms"] > 180.0


def test_a_day_before_a_change_is_compared_with_those_from_then_on(spark: SparkSession) -> None:
    later = _DAY + timedelta(days=2)
    rows = [_row(1000.0, 60 * hour) for hour in range(10)]
    rows += [_row(100.0, 0, day=later, first_error=_BEGAN + timedelta(days=2))]
    names = columns.RECOVERIES.schema.fieldNames()
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in names) for row in rows], columns.RECOVERIES.schema
    )
    written = _Written(spark, recoveries=frame)

    def compared(change: date) -> list[Row]:
        return before_after(Tables(written, Period(change=change))).collect()  # type: ignore[arg-type]

    before, after = compared(later)
    counted = ("part", "days", "episodes", "errors")
    assert [before[name] for name in counted] == [BEFORE, 1, 10, 20]
    assert (before["lost_day_ms"], after["part"], after["lost_day_ms"]) == (10_000, AFTER, 100)
    by_hour = [*[1000.0] * 10, *[0.0] * 14]
    variance = sum((lost - sum(by_hour) / 24) ** 2 for lost in by_hour) / 23 * 24
    assert before["lost_high_ms"] - 10_000 == pytest.approx(1.96 * variance**0.5)
    # Without journals before it there is nothing to compare with.
    assert [row["part"] for row in compared(_DAY)] == [AFTER]
