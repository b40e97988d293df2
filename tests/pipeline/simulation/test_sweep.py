"""Sweeps: here, and on Spark with the same figures."""

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arms import Mode, arms
from leader_hints_report.simulation.sweep import sweep, sweep_on_spark
from tests.pipeline.simulation.fleets import small


def test_spark_gives_the_same_figures(spark: SparkSession) -> None:
    made = arms(small(), (Mode.NO_PROXY, Mode.HINTS), ("pause_s=600",))
    assert sweep_on_spark(spark, small(), made, [1, 2]) == sweep(made, [1, 2])


def test_an_event_that_cannot_happen_is_refused_in_a_line_on_spark_too(
    spark: SparkSession,
) -> None:
    fleet = small(event={"kind": "rolling_restart", "batch": 1, "batch_pause_s": 100})
    with pytest.raises(PipelineError, match="with batches of 1, 100 s apart, a broker takes"):
        sweep_on_spark(spark, fleet, arms(fleet, (Mode.NO_PROXY,), ()), [1])


def test_each_simulation_is_reported() -> None:
    lines: list[str] = []
    sweep(arms(small(), (Mode.HINTS,), ()), [1, 2], lines.append)
    assert lines == ["Simulating hints, seed 1", "Simulating hints, seed 2"]
