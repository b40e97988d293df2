"""What comes out of the pipeline's tables."""

import math
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.report import listings
from leader_hints_report.report.gathering import gather
from leader_hints_report.report.listings import Numbers
from leader_hints_report.report.period import Period
from leader_hints_report.tables import columns

_DAY = date(2026, 3, 29)  # Clocks are put forward in Europe: what is in UTC does not care.
_BEGAN = datetime(2026, 3, 29, 1, 30, 0, 250_000, UTC)


def _recovery(recovery_ms: float | None, *, hinted: bool, **more: Any) -> dict[str, Any]:
    values = {
        "client_id": "orders",
        "software": "apache-kafka-java",
        "software_version": "3.9.1",
        "api": "Produce",
        "topic": "t",
        "errors": 2,
        "hints": int(hinted),
        "hinted": hinted,
        "recovery_ms": recovery_ms,
        "cluster": "c1",
    }
    return values | more


_Write = Callable[[columns.Table, list[dict[str, Any]]], None]


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> _Write:
    """Writes rows of a table, as the pipeline does; what is not given is absent."""

    def write(table: columns.Table, rows: list[dict[str, Any]]) -> None:
        names = [column.name for column in table.all_columns]
        whole = [{"day": _DAY, "cluster": "c1"} | row for row in rows]
        assert all(row.keys() <= set(names) for row in whole)
        frame = spark.createDataFrame(
            [tuple(row.get(name) for name in names) for row in whole], table.schema
        )
        frame.write.partitionBy("day", "cluster").parquet(str(tmp_path / "tables" / table.name))

    return write


def _gather(spark: SparkSession, folder: Path) -> Numbers:
    return gather(spark, str(folder), lambda _: None)


def test_no_folder_is_an_error_and_an_empty_one_is_empty(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=r"nowhere: there is no such folder; give .*batch"):
        _gather(spark, tmp_path / "nowhere")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(PipelineError, match="file: there is no such folder"):
        _gather(spark, file)
    found = _gather(spark, tmp_path)
    assert found.empty
    assert found.listings.keys() == {listing.name for listing in listings.LISTINGS}


def test_a_table_that_cannot_be_read_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "tables" / columns.RECOVERIES.name / "day=2026-03-29" / "cluster=c1"
    table.mkdir(parents=True)
    (table / "part-0.parquet").write_bytes(b"half of a file")
    with pytest.raises(PipelineError, match=r"a file of a table cannot be read; .*--rebuild"):
        _gather(spark, tmp_path)


def test_errors_that_waited_for_metadata_by_what_came_of_it(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    settled = [
        _recovery(ms, hinted=False, settling="settled", observed=False) for ms in (10.0, 20.0, 90.0)
    ]
    late = _recovery(200.0, hinted=False, settling="metadata_behind", observed=False)
    other_day = [late | {"day": _DAY + timedelta(days=days)} for days in (-1, 1)]
    other = _recovery(1e6, hinted=False, observed=False)
    write(columns.RECOVERIES, [*settled, late, *other_day, other])
    found = gather(spark, str(tmp_path), lambda _: None, Period(_DAY, _DAY))
    assert (found.first_day, found.last_day) == ("2026-03-29", "2026-03-29")
    first, second = found.rows(listings.SETTLED)
    assert (first["settling"], first["episodes"], first["lost_ms"]) == ("metadata_behind", 1, 200.0)
    assert (second["settling"], second["episodes"], second["errors"]) == ("settled", 3, 6)
    assert (second["p50_ms"], second["p95_ms"]) == (20.0, 90.0)


def test_recoveries_by_hint_client_topic_and_cluster(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    with_hint = [_recovery(float(number), hinted=True) for number in range(1, 21)]
    without = [_recovery(100.0, hinted=False) for _ in range(20)]
    in_incident = {"first_error": _BEGAN + timedelta(seconds=1), "lost_ms": 7.0, "node_from": 3}
    other = [
        _recovery(7.0, hinted=False, topic="u", cluster="c2", api="Fetch", **in_incident),
        _recovery(None, hinted=False, topic="u", cluster="c2", api="Fetch"),
    ]
    write(columns.RECOVERIES, with_hint + without + other)
    write(
        columns.HINT_EFFECTIVENESS,
        [
            {
                "software": "apache-kafka-java",
                "software_version": "3.9.1",
                "api": "Produce",
                "topic": topic,
                "errors": 40,
                "given": 10,
                "would_give": 0,
                "episodes": 20,
                "hinted": 10,
                "used": 9,
            }
            for topic in ("t", "v")
        ],
    )
    incident = {"cluster": "c2", "incident": "c2@1", "began": _BEGAN, "ended": _BEGAN}
    write(columns.INCIDENTS, [incident, incident | {"cluster": "c1", "incident": "c1@1"}])
    reasons = ("hold_expired", "replica", "version_without_field", "observed")
    write(columns.HINT_MISSES, [{"reason": reason, "lost_ms": 1.0} for reason in reasons])
    found = _gather(spark, tmp_path)

    assert {row["reason"]: row["kind"] for row in found.rows(listings.MISSES)} == {
        "hold_expired": "missed",
        "replica": "could take none",
        "version_without_field": "could take none",
        "observed": "observed",
    }
    parts = [
        (row["cluster"], row["began"], row["part"], row["name"], row["errors"], row["lost_ms"])
        for row in found.rows(listings.INCIDENT_PARTS)
    ]
    of = ("c2", "2026-03-29T01:30:00.250Z")
    assert parts == [
        (*of, "topic", "u", 2, 7.0),
        (*of, "client", "orders (apache-kafka-java 3.9.1)", 2, 7.0),
        (*of, "broker", "3", 2, 7.0),
    ]

    unseen, without_hint, hinted = found.rows(listings.RECOVERY)
    assert (unseen["api"], unseen["episodes"], unseen["unseen"]) == ("Fetch", 2, 1)
    assert (without_hint["hinted"], without_hint["p50_ms"]) == (False, 100.0)
    assert hinted == {
        "api": "Produce",
        "hinted": True,
        "episodes": 20,
        "unseen": 0,
        "mean_ms": 10.5,
        "p50_ms": 10.0,
        "p90_ms": 18.0,
        "p99_ms": 20.0,
        "p999_ms": 20.0,
        "max_ms": 20.0,
        "lost_ms": 210.0,
    }
    curve = [
        (row["percent"], row["recovery_ms"]) for row in found.rows(listings.CURVE) if row["hinted"]
    ]
    assert len(curve) == 101
    assert (curve[0], curve[25], curve[100]) == ((0, 1.0), (25, 5.0), (100, 20.0))

    (client,) = found.rows(listings.COVERAGE)
    assert (client["errors"], client["given"], client["used"]) == (80, 20, 18)
    assert (client["with_n"], client["with_mean_ms"]) == (20, 10.5)
    assert (client["without_n"], client["without_p50_ms"]) == (20, 100.0)
    # Nothing was observed, so there is nothing to compare with.
    assert (client["observed_n"], client["saved_ms"], client["saved_low_ms"]) == (0, None, None)

    assert [
        (row["cluster"], row["topic"], row["lost_ms"]) for row in found.rows(listings.TOPICS)
    ] == [
        ("c1", "t", 2210.0),
        ("c2", "u", 7.0),
    ]
    # Both clusters are there, although no move of theirs was seen.
    assert [
        (row["cluster"], row["errors"], row["epochs"]) for row in found.rows(listings.CLUSTERS)
    ] == [
        ("c1", 80, None),
        ("c2", 4, None),
    ]


def test_what_hints_saved_is_by_recoveries_that_would_have_had_one(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    """Two clusters can be compared with themselves. In one elections are slow, and mostly observed:
    all recoveries together would say that hints cost time."""
    draw = random.Random(3)
    rows: list[dict[str, Any]] = []
    samples: dict[tuple[str, bool], list[tuple[int, float]]] = defaultdict(list)
    sizes = {("fast", True): 60, ("fast", False): 25, ("slow", True): 22, ("slow", False): 90}
    for (cluster, hinted), count in sizes.items():
        for stretch in range(count // 2):
            together = draw.uniform(0, 50)  # One election delays all that it moves.
            for second in (1, 8):
                base = {"fast": 20.0, "slow": 900.0}[cluster] + (0 if hinted else 70)
                took = base + together + draw.uniform(0, 10)
                samples[cluster, hinted].append((stretch, took))
                began = _BEGAN.replace(microsecond=0) + timedelta(seconds=10 * stretch + second)
                more: dict[str, Any] = {"would_hint": not hinted, "first_error": began}
                rows.append(_recovery(took, hinted=hinted, cluster=cluster, **more))
    # These had slow elections, no success, no second kind in their cluster, or one stretch only.
    no: dict[str, Any] = {"first_error": _BEGAN, "would_hint": False}
    rows += [_recovery(30_000.0, hinted=False, cluster="slow", **no) for _ in range(50)]
    rows += [_recovery(None, hinted=True, cluster="slow", **no)]
    rows += [_recovery(1.0, hinted=True, cluster="alone", **no) for _ in range(50)]
    burst: dict[str, Any] = {"cluster": "burst", "first_error": _BEGAN}
    rows += [_recovery(1.0, hinted=True, would_hint=False, **burst) for _ in range(50)]
    rows += [_recovery(9e6, hinted=False, would_hint=True, **burst) for _ in range(50)]
    write(columns.RECOVERIES, rows)
    version = {"software": "apache-kafka-java", "software_version": "3.9.1", "api": "Produce"}
    write(columns.HINT_EFFECTIVENESS, [version | {"errors": 1}])

    saved = variance = 0.0
    for cluster in ("fast", "slow"):
        (with_, with_error), (without, without_error) = (
            _mean_and_variance(samples[cluster, hinted]) for hinted in (True, False)
        )
        count = len(samples[cluster, True])
        saved += count * (without - with_)
        variance += count**2 * (with_error + without_error)
    (client,) = _gather(spark, tmp_path).rows(listings.COVERAGE)
    wide = 1.96 * math.sqrt(variance)
    assert client["saved_ms"] == pytest.approx(saved)
    assert client["saved_low_ms"] == pytest.approx(saved - wide)
    assert client["saved_high_ms"] == pytest.approx(saved + wide)
    truth = 70.0 * (60 + 22)
    assert saved - wide < truth < saved + wide
    assert client["observed_n"] == 24 + 90 + 50


def _mean_and_variance(sample: list[tuple[int, float]]) -> tuple[float, float]:
    """The mean of times, and the variance of that mean: those of a stretch are one observation."""
    mean = sum(took for _, took in sample) / len(sample)
    off: dict[int, float] = defaultdict(float)
    for stretch, took in sample:
        off[stretch] += took - mean
    groups = len(off)
    return mean, sum(x * x for x in off.values()) * groups / (groups - 1) / len(sample) ** 2


def test_gaps_that_an_earlier_version_stored_under_another_name_count(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    earlier = {"sidecar": "a", "run": "1", "told": 3}
    now = {"sidecar": "a", "run": "2", "told": 2, "reported": 2}
    write(columns.JOURNAL_RUNS, [earlier, now])
    (row,) = _gather(spark, tmp_path).rows(listings.JOURNALS)
    assert (row["runs"], row["reported"], row["told"]) == (2, 5, 5)


def test_clients_and_which_of_them_are_raised(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    uses = {
        "apache-kafka-java": ("fetch,produce", "fetch,produce"),
        "my-service": ("unknown", "fetch,produce"),
        "sarama": ("unknown", None),
        "other": (None,),
    }
    write(
        columns.RECOVERIES,
        [
            _recovery(5.0, hinted=False, software=name, uses=one, first_error=_BEGAN)
            for name, all_ in uses.items()
            for one in all_
        ],
    )
    client = {"client_id": "x", "software": "sarama", "lost_ms": 1.0}
    write(columns.CLIENTS_WITHOUT_HINTS, [client | {"uses": one} for one in ("none", None)])
    found = _gather(spark, tmp_path)
    told = {row["software"]: (row["uses"], row["raised"]) for row in found.rows(listings.SOFTWARE)}
    assert told == {
        "apache-kafka-java": ("fetch,produce", "yes"),
        "my-service": ("fetch,produce; unknown", "in part"),
        "sarama": ("unknown", "no"),
        "other": ("", ""),
    }
    assert [row["uses"] for row in found.rows(listings.CLIENTS)] == ["none"]


def test_moves_incidents_hours_and_more_clients_than_a_listing_takes(
    spark: SparkSession, tmp_path: Path, write: _Write
) -> None:
    write(
        columns.LEADER_MOVES,
        [
            {"moved": moved, "sidecars": sidecars, "apart_corrected_ms": apart, "day": day}
            for moved, sidecars, apart, day in (
                (True, 2, 1.0, _DAY),
                (False, 3, 2.0, _DAY),
                (True, 1, 9.0, _DAY + timedelta(days=1)),
            )
        ],
    )
    write(
        columns.INCIDENTS,
        [
            {
                "kind": "roll",
                "incident": "c1@1",
                "began": _BEGAN,
                "ended": _BEGAN + timedelta(seconds=3),
                "seconds": 3.0,
                "lost_ms": None,
                "brokers_left": [1, 2],
            },
            {
                "kind": "failure",
                "incident": "c1@2",
                "began": _BEGAN + timedelta(hours=1),
                "ended": _BEGAN + timedelta(hours=1),
                "seconds": float("nan"),
                "lost_ms": 0.1 + 0.2,
            },
        ],
    )
    write(
        columns.BROKER_HOURS,
        [
            {"node": 1, "hour": 3, "errors": 2, "lost_ms": 4.0, "day": day}
            for day in (_DAY, _DAY + timedelta(days=1))
        ],
    )
    write(
        columns.CLIENTS_WITHOUT_HINTS,
        [
            {"client_id": f"{number}", "lost_ms": float(number), "episodes": 1}
            for number in range(51)
        ],
    )
    found = _gather(spark, tmp_path)

    (cluster,) = found.rows(listings.CLUSTERS)
    assert cluster == {
        "cluster": "c1",
        "first_day": "2026-03-29",
        "last_day": "2026-03-30",
        "epochs": 3,
        "moved": 2,
        "sidecars": 3,
        "apart_p50_ms": 2.0,
        "episodes": None,
        "errors": None,
        "hints": None,
        "lost_ms": None,
    }
    incidents = found.rows(listings.INCIDENTS)
    assert [(row["kind"], row["began"]) for row in incidents] == [
        ("failure", "2026-03-29T02:30:00.250Z"),
        ("roll", "2026-03-29T01:30:00.250Z"),
    ]
    # JSON has no NaN, and nobody reads a femtosecond.
    assert [(row["seconds"], row["lost_ms"]) for row in incidents] == [(None, 0.3), (3.0, None)]
    assert [row["brokers_left"] for row in incidents] == [None, "1, 2"]
    assert [(row["day"], row["moved"], row["incidents"]) for row in found.rows(listings.DAYS)] == [
        ("2026-03-30", 1, None),
        ("2026-03-29", 1, 2),
    ]
    assert [(row["day"], row["hour"], row["lost_ms"]) for row in found.rows(listings.HOURS)] == [
        ("2026-03-30", 3, 4.0),
        ("2026-03-29", 3, 4.0),
    ]
    (hour,) = found.rows(listings.BROKER_HOURS)
    assert (hour["node"], hour["hour"], hour["errors"], hour["lost_ms"]) == (1, 3, 4, 8.0)

    assert found.listings["clients_without_hints"].more
    clients = [row["client_id"] for row in found.rows(listings.CLIENTS)]
    assert clients == [f"{number}" for number in range(50, 0, -1)]
