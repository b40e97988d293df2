"""Clocks of sidecars, worked by hand."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from leader_hints_report.tables.moves import leader_moves, sighted, wrong_clocks
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from leader_hints_report.tables.skew import clock_skew, corrections
from tests.pipeline.lines import Event, error, frame, move, success


def _moves(stored: DataFrame) -> DataFrame:
    epochs = sighted(stored)
    return leader_moves(epochs, wrong_clocks(epochs))


def _clocks(spark: SparkSession, events: list[Event]) -> dict[str, Any]:
    stored = frame(spark, events)
    rows = clock_skew(_moves(stored), stored).collect()
    return {row["sidecar"]: row for row in rows}


def _recovery(
    number: int, seconds: float, took: float, one: str, other: str, clocks: dict[str, float],
    *, epoch: int | None = None,
) -> list[Event]:  # fmt: skip
    """A client that is refused at one sidecar, by a hint, and served at another."""
    epoch = number + 1 if epoch is None else epoch
    at_one, at_other = seconds + clocks.get(one, 0), seconds + took + clocks.get(other, 0)
    return [
        error(at_one, 2 * number, sidecar=one, hinted=True, leader=2, epoch=epoch),
        success(at_other, 2 * number + 1, sidecar=other, epoch=epoch),
    ]


def test_one_poll_is_one_sight_however_many_partitions_it_is_about(spark: SparkSession) -> None:
    """Clocks are right; sidecars learn of the move at their next polls, and nothing is held."""
    events = []
    for partition in range(12):
        of: dict[str, Any] = {"partition": partition}
        events += [
            move(late, partition, 1, 2, 5, sidecar=sidecar, **of)
            for sidecar, late in (("a", 0.01), ("b", 17), ("c", 41))
        ]
        events += [error(0, 20 + partition, **of), success(0.2, 20 + partition, sidecar="b", **of)]
    stored = frame(spark, events)
    skew = clock_skew(_moves(stored), stored)
    assert not any(row["corrected"] for row in skew.collect())
    met = stored.transform(errors_in_order, corrections(skew)).transform(recoveries).collect()
    assert [row["recovery_ms"] for row in met] == [pytest.approx(200)] * 12


def test_polls_are_no_error_of_a_clock(spark: SparkSession) -> None:
    """One of them always learns of a move by an error, the others up to a minute later."""
    events = [
        move(120 * n + late, n, 1, 2, n, sidecar=sidecar)
        for n in range(20)
        for sidecar, late in (("a", 0.0), ("b", (n * 17) % 60), ("c", (n * 29 + 7) % 60))
    ]
    rows = _clocks(spark, events)
    for row in rows.values():
        assert row["skew_ms"] == 0
        assert row["corrected"]
        assert row["bound_ms"] > 20_000


def test_errors_and_successes_compare_clocks_where_sights_are_late(spark: SparkSession) -> None:
    """Three clocks, 0.3 s ahead, right, and 0.2 s behind: recoveries take 5 ms and more."""
    clocks = {"a": 0.3, "c": -0.2}
    ways = (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"))
    events = []
    for n in range(40):
        one, other = ways[n % 4]
        events += _recovery(n, 10.0 * n, 0.005 + 0.01 * (n % 5), one, other, clocks)
        events += [
            move(10.0 * n + late + clocks.get(sidecar, 0), n, 1, 2, n, sidecar=sidecar)
            for sidecar, late in (("a", 0), ("b", n % 7), ("c", n % 5))
        ]
    rows = _clocks(spark, events)
    for one in rows:
        for other in rows:
            skew = rows[one]["skew_ms"] - rows[other]["skew_ms"]
            bound = rows[one]["bound_ms"] + rows[other]["bound_ms"]
            truth = 1000 * (clocks.get(one, 0) - clocks.get(other, 0))
            assert skew == pytest.approx(truth, abs=min(bound, 40))
    assert all(row["corrected"] and row["bound_ms"] < 30 for row in rows.values())


def test_a_clock_that_is_put_back_is_known_as_well_as_it_can_be(spark: SparkSession) -> None:
    """It is right in the first half, and then a second behind: wrong by half a second in each."""
    events = []
    for n in range(40):
        one, other = (("a", "b"), ("b", "a"))[n % 2]
        events += _recovery(n, 10.0 * n, 0.02, one, other, {"b": -1.0 if n >= 20 else 0.0})
    rows = _clocks(spark, events)
    skew = rows["b"]["skew_ms"] - rows["a"]["skew_ms"]
    bound = rows["a"]["bound_ms"] + rows["b"]["bound_ms"]
    for truth in (0, -1000):
        assert skew == pytest.approx(truth, abs=bound)


def test_a_clock_that_is_put_back_by_minutes_is_known_for_the_longer_part(
    spark: SparkSession,
) -> None:
    events = []
    for n in range(40):
        one, other = (("a", "b"), ("b", "a"))[n % 2]
        events += _recovery(n, 10.0 * n, 0.02, one, other, {"b": -100.0 if n >= 30 else 0.0})
    rows = _clocks(spark, events)
    assert abs(rows["b"]["skew_ms"] - rows["a"]["skew_ms"]) < 20
    assert rows["a"]["bound_ms"] + rows["b"]["bound_ms"] < 50


def test_a_clock_that_is_put_back_says_nothing_of_others(spark: SparkSession) -> None:
    """Of three clocks one is right at first, and then a second behind."""
    ways = (("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("c", "b"), ("a", "c"))
    events = []
    for n in range(60):
        back = n >= 36
        # Then leaders leave one broker only.
        way = ("a", "bc"[n % 2]) if back else ways[n % 6]
        events += _recovery(n, 10.0 * n, 0.02, *way, {"c": -1.0 if back else 0.0})
    rows = _clocks(spark, events)
    assert abs(rows["a"]["skew_ms"] - rows["b"]["skew_ms"]) < 20


def test_wrong_pairs_are_few_and_change_nothing(spark: SparkSession) -> None:
    """Two processes share a client id: one is served long before the other is refused."""
    events = []
    for n in range(40):
        one, other = (("a", "b"), ("b", "a"))[n % 2]
        events += _recovery(n, 100.0 * n, -30 if n in (5, 6) else 0.01, one, other, {})
    rows = _clocks(spark, events)
    assert abs(rows["a"]["skew_ms"] - rows["b"]["skew_ms"]) < 20
    assert rows["a"]["bound_ms"] + rows["b"]["bound_ms"] < 40


def test_topics_that_are_recreated_say_nothing_of_clocks(spark: SparkSession) -> None:
    """A third of the epochs is reached once more ten minutes later."""
    events = []
    for n in range(40):
        one, other = (("a", "b"), ("b", "a"))[n % 2]
        events += _recovery(n, 10.0 * n, 0.02, one, other, {})
        if n % 6 < 2:
            events += _recovery(100 + n, 10.0 * n + 600, 0.02, one, other, {}, epoch=n + 1)
    rows = _clocks(spark, events)
    assert abs(rows["a"]["skew_ms"] - rows["b"]["skew_ms"]) < 20
    assert rows["a"]["bound_ms"] + rows["b"]["bound_ms"] < 50


def test_a_clock_that_is_hours_ahead_makes_no_second_move(spark: SparkSession) -> None:
    ahead = 7205.0
    events = [
        move(60 * n + late / 1000 + (ahead if sidecar == "c" else 0), n, 1, 2, n, sidecar=sidecar)
        for n in range(12)
        for sidecar, late in (("a", n % 5), ("b", (n + 2) % 5), ("c", 3))
    ]
    # A topic that was recreated two hours later is another one all the same.
    recreated = [
        move(start + late, 900 + n, 1, 2, 50, sidecar=sidecar, topic="recreated")
        for n, start in enumerate((0, 7200))
        for sidecar, late in (("a", 0), ("b", 0.002), ("c", ahead))
    ]
    stored = frame(spark, events + recreated)
    moves = _moves(stored)
    rows = moves.collect()
    assert [row["sidecars"] for row in rows] == [3] * 14
    skew = {row["sidecar"]: row["skew_ms"] for row in clock_skew(moves, stored).collect()}
    assert skew["c"] - skew["a"] == pytest.approx(1000 * ahead, abs=10)
