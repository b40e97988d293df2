"""Errors and successes of routes whose broker was not known yet."""

from typing import Any

from pyspark.sql import SparkSession

from leader_hints_report.journal.events import ENCOUNTER
from leader_hints_report.journal.runs import words
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from leader_hints_report.tables.routes import completed, learned_later
from tests.pipeline.lines import Event, error, frame, move, success


def _met(spark: SparkSession, events: list[Event]) -> list[dict[str, Any]]:
    # Kept, as what is read from files is: Spark takes long to plan for what made it.
    stored = frame(spark, events).persist()
    encounters = stored.where(stored["part"] == ENCOUNTER)
    later = learned_later(encounters, words(stored)).persist()
    whole = completed(encounters, later)
    nothing = spark.sql(
        "SELECT DATE'2026-01-02' AS day, 'c' AS cluster, map('a', 0L) AS skews, "
        "map('a', 1D) AS bounds"
    ).limit(0)
    return [
        row.asDict()
        for row in whole.transform(errors_in_order, nothing)
        .transform(recoveries)
        .orderBy("client_id")
        .collect()
    ]


def _early(seconds: float, seq: int, **more: Any) -> Event:
    """An error of a sidecar that does not know its broker yet."""
    return error(seconds, seq, **more) | {"cluster": None}


def test_an_error_without_cluster_meets_the_success_that_names_it(spark: SparkSession) -> None:
    rows = _met(
        spark,
        [
            # A later error of the same route says where it leads.
            _early(0, 0, client_id="by-route"),
            error(60, 1, client_id="later", node=3, cluster="d"),
            success(0.05, 0, sidecar="b", client_id="by-route", cluster="d"),
            # Of this run only a move is known, and of that all routes are of one cluster.
            _early(0, 0, sidecar="e", client_id="by-run"),
            move(9, 1, 1, 2, 5, sidecar="e"),
            success(0.05, 2, sidecar="b", client_id="by-run"),
        ],
    )
    told = {row["client_id"]: row for row in rows}
    assert told["by-route"]["recovery_ms"] == told["by-run"]["recovery_ms"] == 50.0
    assert (told["by-route"]["cluster"], told["by-run"]["cluster"]) == ("d", "c")
    assert (told["by-route"]["node_from"], told["by-run"]["node_from"]) == (3, None)


def test_what_is_not_known_for_certain_stays_unknown(spark: SparkSession) -> None:
    rows = _met(
        spark,
        [
            # The run has routes to two clusters, and this one never told.
            _early(0, 0, client_id="two", route="other"),
            error(1, 1, client_id="c", cluster="c"),
            error(2, 2, client_id="d", cluster="d", route="second"),
            _early(0, 0, sidecar="b", client_id="none"),
        ],
    )
    told = {row["client_id"]: row["cluster"] for row in rows}
    assert told == {"two": "unknown", "c": "c", "d": "d", "none": "unknown"}
