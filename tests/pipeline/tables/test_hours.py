"""Brokers by hours, worked by hand."""

from pyspark.sql import SparkSession

from leader_hints_report.tables.hours import broker_hours
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from tests.pipeline.lines import error, frame, success

_NOTHING = """
    SELECT DATE'2026-01-02' AS day, 'c' AS cluster, map('a', 0L) AS skews, map('a', 1D) AS bounds
"""
_MOVE = """
    SELECT DATE'2026-01-02' AS day, 'c' AS cluster, 1 AS leader_before, 2 AS leader, true AS moved,
        TIMESTAMP'2026-01-02 03:04:05Z' AS first_seen
"""
#: From the beginning to the next full hour, 4 o'clock in UTC.
_TO_FOUR_S = 3355


def test_each_broker_is_charged_for_its_own_errors(spark: SparkSession) -> None:
    before = error(_TO_FOUR_S - 1, 1, node=1)
    stored = frame(
        spark,
        [
            before,
            before,  # It came twice.
            error(_TO_FOUR_S + 2, 1, sidecar="b", node=2, hinted=True),
            error(_TO_FOUR_S + 5, 2, node=1),
            success(_TO_FOUR_S + 5.5, 2, sidecar="b", node=2),
            # Who is not seen again lost the time to the last error.
            error(_TO_FOUR_S + 100, 3, sidecar="b", node=2, hinted=True, observed=True),
            error(_TO_FOUR_S + 107, 3, node=3),
            error(_TO_FOUR_S + 200, 4, node=3),
        ],
    )
    nothing = spark.sql(_NOTHING).limit(0)
    moves = spark.sql(_MOVE)
    errors = errors_in_order(stored, nothing)
    rows = broker_hours(moves, errors).orderBy("node", "hour").collect()
    names = ("node", "hour", "left", "joined", "errors", "hints", "lost_ms")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 3, 1, 0, 1, 0, 3000.0),
        (1, 4, 0, 0, 1, 0, 500.0),
        (2, 3, 0, 1, 0, 0, 0.0),
        (2, 4, 0, 0, 2, 1, 10_000.0),
        (3, 4, 0, 0, 2, 0, 0.0),
    ]
    lost = sum(row["lost_ms"] for row in recoveries(errors).collect())
    assert lost == sum(row["lost_ms"] for row in rows)
