"""Hints that clients get and do not use: they count as none."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import NODE_ENDPOINTS_FROM
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from leader_hints_report.tables.uses import ENDPOINTS_FROM, client_uses, with_uses
from tests.pipeline.lines import Event, client, error, frame, success

_NO_CLOCKS = """
    SELECT DATE'2026-01-02' AS day, 'c' AS cluster, map('a', 0L) AS skews, map('a', 1D) AS bounds
"""


def _rows_of(spark: SparkSession, events: list[Event]) -> list[dict[str, Any]]:
    """Recoveries, one for each client id."""
    stored = frame(spark, events)
    met = (
        stored.transform(with_uses, stored.transform(client_uses))
        .transform(errors_in_order, spark.sql(_NO_CLOCKS))
        .transform(recoveries)
    )
    return [row.asDict() for row in met.orderBy("client_id", "first_error").collect()]


def _hint(seq: int, **more: Any) -> Event:
    return error(seq, seq, hinted=True, leader=2, epoch=5, **more)


def test_endpoints_are_where_the_proxy_writes_them() -> None:
    assert NODE_ENDPOINTS_FROM[ApiKey.FETCH] == ENDPOINTS_FROM


@pytest.mark.parametrize(
    ("uses", "api", "version", "observed", "usable"),
    [
        ("none", "Produce", 10, False, False),
        ("unknown", "Fetch", 16, False, False),
        ("unknown", "Produce", 10, True, False),
        ("fetch,produce", "Produce", 10, False, True),
        ("fetch,produce", "Produce", 9, True, True),
        ("fetch,produce", "Fetch", 16, False, True),
        # Without endpoints librdkafka gets a hint in vain; with hints on it would be 16.
        ("fetch,produce", "Fetch", 12, False, False),
        ("fetch,produce", "Fetch", 12, True, True),
        ("produce", "Fetch", 16, True, False),
        ("fetch_without_endpoints", "Fetch", 13, False, True),
        ("fetch_without_endpoints", "Fetch", 16, False, False),
        ("fetch_without_endpoints", "Produce", 10, False, False),
    ],
)
def test_a_hint_counts_where_the_client_uses_it(
    spark: SparkSession, uses: str, api: str, version: int, *, observed: bool, usable: bool
) -> None:
    of = {"api": api, "api_version": version, "observed": observed}
    events = [client(0, 0, uses), _hint(1, **of), _hint(2, **of), success(3, 3, api=api, node=2)]
    (row,) = _rows_of(spark, events)
    counted = {name: row[name] for name in ("hinted", "hints", "would_hint", "would_hints")}
    assert counted == {
        "hinted": usable and not observed,
        "hints": 2 * (usable and not observed),
        "would_hint": usable and observed,
        "would_hints": 2 * (usable and observed),
    }
    assert row["reason"] == (None if usable else "not_usable_by_client")
    assert (row["uses"], row["errors"], row["recovery_ms"]) == (uses, 2, 2000.0)


def test_what_no_hint_could_reach_was_not_missed(spark: SparkSession) -> None:
    reasons = ("hold_expired", "replica", "version_without_field")
    events = [client(0, 0, "none")]
    events += [
        error(n, n, client_id=f"{n}", reason=reason) for n, reason in enumerate(reasons, start=1)
    ]
    assert [row["reason"] for row in _rows_of(spark, events)] == [
        "not_usable_by_client",
        "replica",
        "version_without_field",
    ]


def test_what_is_not_reported_is_as_the_sidecar_says(spark: SparkSession) -> None:
    """Of journals of earlier versions, other versions of the software, or at another sidecar."""
    events = [
        client(0, 0, "none", software_version="2.3.0"),
        client(0, 0, "none", sidecar="b"),
        client(0, 1, "none") | {"uses": None},
        _hint(2),
        error(60, 3, reason="hold_expired"),
    ]
    hint, miss = _rows_of(spark, events)
    assert (hint["hinted"], hint["reason"], hint["uses"]) == (True, None, None)
    assert (miss["hinted"], miss["reason"], miss["uses"]) == (False, "hold_expired", None)
