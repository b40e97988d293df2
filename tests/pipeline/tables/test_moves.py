"""Leader moves, clocks and incidents, worked by hand."""

from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.tables.incidents import incidents, named
from leader_hints_report.tables.moves import corrected, leader_moves, sighted, wrong_clocks
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from leader_hints_report.tables.skew import ENOUGH, clock_skew, corrections
from tests.pipeline.lines import BEGIN, Event, error, frame, move, success


def _moves(stored: DataFrame) -> DataFrame:
    epochs = sighted(stored)
    return leader_moves(epochs, wrong_clocks(epochs))


def test_a_move_is_one_however_many_sidecars_saw_it(spark: SparkSession) -> None:
    events = [
        move(0, 1, 1, 2, 5),
        move(0, 1, 1, 2, 5),  # The same line once more.
        move(0.040, 1, 1, 2, 5, sidecar="b"),
        # This one had missed an epoch.
        move(0.100, 1, 3, 2, 5, sidecar="c", epoch_before=2),
        move(1, 2, 2, 2, 6),
    ]
    told = _moves(frame(spark, events)).select(
        "epoch", "epoch_before", "leader_before", "leader", "moved", "sidecars", "apart_ms"
    )
    expected = spark.sql(
        "SELECT * FROM VALUES (5, 4, 1, 2, true, 3, 100D), (6, 5, 2, 2, false, 1, 0D) AS "
        "t(epoch, epoch_before, leader_before, leader, moved, sidecars, apart_ms)"
    )
    assert_df_equality(told, expected, ignore_row_order=True, ignore_nullable=True)


def test_the_same_epoch_an_hour_later_is_that_of_a_recreated_topic(spark: SparkSession) -> None:
    events = [move(s, n, 1, 2, 5) for n, s in enumerate((0, 3600, 7201))]
    events += [move(s + 0.5, n, 1, 2, 5, sidecar="b") for n, s in enumerate((0, 7201))]
    told = _moves(frame(spark, events)).orderBy("first_seen").select("sidecars", "sights")
    began = F.unix_micros(F.lit(BEGIN))
    seen = F.transform("sights", lambda of: F.struct(of["sidecar"], (of["at"] - began) / 1_000_000))
    rows = told.withColumn("sights", seen).collect()
    assert [row["sidecars"] for row in rows] == [2, 2]
    assert [[tuple(of) for of in row["sights"]] for row in rows] == [
        [("a", 0.0), ("b", 0.5)],
        [("a", 7201.0), ("b", 7201.5)],
    ]


def test_a_former_topics_epoch_is_not_the_one_before(spark: SparkSession) -> None:
    """A topic is recreated: one sidecar sees its epochs 0 and 1, the other one only the latter."""
    events = [
        move(0, 1, 1, 3, 0, epoch_before=8),
        move(10, 2, 3, 2, 1),
        move(10.1, 1, 1, 2, 1, sidecar="b", epoch_before=8),
    ]
    told = _moves(frame(spark, events)).orderBy("epoch")
    rows = told.select("epoch", "epoch_before", "leader_before", "leader", "sidecars").collect()
    assert [tuple(row) for row in rows] == [(0, 8, 1, 3, 1), (1, 0, 3, 2, 2)]


def test_a_clock_is_corrected_by_the_moves_that_others_saw_too(spark: SparkSession) -> None:
    """Of three clocks one is 50 ms ahead; sights are late by up to 4 ms."""
    events = [
        move(n + late / 1000 + ahead, n, 1, 2, n, sidecar=sidecar)
        for n in range(ENOUGH)
        for sidecar, late, ahead in (("a", n % 5, 0), ("b", (n + 2) % 5, 0), ("c", 2, 0.050))
    ]
    stored = frame(spark, events)
    moves = _moves(stored)
    skew = clock_skew(moves, stored)
    rows = {row["sidecar"]: row for row in skew.collect()}
    middle = rows["a"]["skew_ms"] + (rows["b"]["skew_ms"] - rows["a"]["skew_ms"]) / 2
    assert rows["c"]["skew_ms"] - middle == pytest.approx(50, abs=4)
    assert all(row["bound_ms"] <= 5 and row["corrected"] for row in rows.values())
    for row in corrected(moves, corrections(skew)).collect():
        assert row["apart_ms"] >= 46
        assert row["apart_corrected_ms"] <= 8


def test_with_few_common_moves_no_clock_is_corrected(spark: SparkSession) -> None:
    events = [
        move(n + ahead, n, 1, 2, n, sidecar=sidecar)
        for n in range(ENOUGH - 1)
        for sidecar, ahead in (("a", 0), ("b", 0.05))
    ]
    stored = frame(spark, events)
    skew = clock_skew(_moves(stored), stored)
    assert [row["corrected"] for row in skew.collect()] == [False, False]
    assert corrections(skew).count() == 0


def _kinds(spark: SparkSession, events: list[Event]) -> list[Any]:
    stored = frame(spark, events)
    nothing = corrections(clock_skew(_moves(stored), stored))
    told = incidents(
        named(_moves(stored)), stored.transform(errors_in_order, nothing).transform(recoveries)
    )
    return told.orderBy("began").collect()


def _of(partition: int, *steps: tuple[float, int, int]) -> list[Event]:
    return [
        move(s, 100 * partition + n, before, leader, n + 1, partition=partition)
        for n, (s, before, leader) in enumerate(steps)
    ]


def test_incidents_are_distinguished_by_their_rules(spark: SparkSession) -> None:
    """Four incidents of one cluster, each an hour after the other."""
    roll = [*_of(0, (0, 1, 2), (40, 2, 1)), *_of(1, (60, 2, 1), (100, 1, 2))]
    reassignment = [*_of(10, (3600, 1, 1), (3601, 1, 3)), *_of(11, (3630, 2, 2), (3631, 2, 3))]
    failure = [*_of(20, (7200, 1, 2)), *_of(21, (7201, 1, 3))]
    offline = _of(30, (10800, 1, -1), (10830, -1, 1))
    drained = [*_of(40, (14400, 1, 2)), *_of(41, (14460, 2, 3)), *_of(42, (14461, 2, 1))]
    single = _of(50, (18000, 1, 2))
    met = [error(7201.5, 0, partition=20, sidecar="b"), error(7202, 1, partition=20, sidecar="b")]
    rows = _kinds(spark, [*roll, *reassignment, *failure, *met, *offline, *drained, *single])
    assert [row["kind"] for row in rows] == [
        "roll", "reassignment", "failure", "failure", "roll", "other",
    ]  # fmt: skip
    assert [row["moves"] for row in rows] == [4, 4, 2, 2, 3, 1]
    assert [row["returned"] for row in rows] == [2, 0, 0, 1, 0, 0]
    assert rows[0]["brokers_left"] == [1, 2]
    assert rows[2]["brokers_joined"] == [2, 3]
    assert rows[1]["kept"] == 2
    # A broker that is down answers nobody: where no error was seen nothing was measured.
    assert [(row["errors"], row["clients"], row["lost_ms"]) for row in rows] == [
        (0, 0, 0.0), (0, 0, 0.0), (2, 1, 500.0), (None, None, None), (0, 0, 0.0), (0, 0, 0.0),
    ]  # fmt: skip


def test_leaders_of_recreated_topics_left_no_broker(spark: SparkSession) -> None:
    """Three, at epochs that were before; an hour later one whose leader goes away and comes back
    at once, and a topic that is recreated meanwhile."""
    recreated = [
        move(n, n, 1, leader, epoch, topic=f"recreated-{n}", epoch_before=5)
        for n, (leader, epoch) in enumerate(((2, 0), (3, 4), (2, 5)))
    ]
    roll = [*_of(1, (3600, 1, 2), (3640, 2, 1))]
    roll += [move(3650, 9, 1, 2, 0, topic="recreated-0", epoch_before=4)]
    rows = _kinds(spark, [*recreated, *roll])
    assert [row["kind"] for row in rows] == ["other", "roll"]
    assert [row["brokers_left"] for row in rows] == [[], [1]]


def test_a_pause_of_five_minutes_parts_incidents(spark: SparkSession) -> None:
    events = [move(s, n, 1, 2, n) for n, s in enumerate((0, 300, 601))]
    assert [row["moves"] for row in _kinds(spark, events)] == [2, 1]


def test_an_incident_has_the_errors_until_a_minute_after_it(spark: SparkSession) -> None:
    events = [
        move(0, 1, 1, 2, 5),
        error(-1, 2),
        success(-0.5, 3),
        error(0.1, 4),
        success(0.2, 5),
        error(50, 6, client_id="late"),
        error(50.1, 7, client_id="late"),
        error(61, 8, client_id="too-late"),
    ]
    (row,) = _kinds(spark, events)
    # Who never recovered lost the time between its errors, at least.
    assert (row["errors"], row["clients"], row["lost_ms"]) == (3, 2, 200.0)


def test_an_incident_has_the_errors_that_came_before_its_move_was_known(
    spark: SparkSession,
) -> None:
    events = [
        move(0, 1, 1, 2, 5),
        # Held until the move was known; the client never came back.
        error(0.001, 2, hold_ms=40.0, hinted=True, leader=2, client_id="held"),
        error(-30, 3, client_id="retries"),
        error(-20, 4, client_id="retries"),
        success(0.5, 5, client_id="retries"),
        # Its success was not seen, so it may have come after the move.
        error(-20, 10, client_id="unseen"),
        error(-40, 11, client_id="unseen before"),
        error(-61, 6, client_id="of another cause"),
        error(-40, 7, client_id="of another cause"),
        error(-20, 8, client_id="of another cause"),
        success(0.5, 9, client_id="of another cause"),
    ]
    (row,) = _kinds(spark, events)
    assert (row["errors"], row["clients"], row["lost_ms"]) == (4, 3, 30_500.0)
