"""Recoveries: worked by hand, and held against a reader that goes through the events one by one."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from leader_hints_report.tables.hints import hint_effectiveness
from leader_hints_report.tables.recoveries import PATIENCE_S, errors_in_order, recoveries
from tests.pipeline.lines import BEGIN, Event, error, frame, success

_CORRECTIONS = """
    SELECT DATE'2026-01-02' AS day, 'c' AS cluster,
        map('a', 0L, 'b', -100000L) AS skews, map('a', 1D, 'b', 2.5D) AS bounds
"""


def _recoveries(events: DataFrame, corrections: DataFrame) -> DataFrame:
    return events.transform(errors_in_order, corrections).transform(recoveries)


def _rows_of(spark: SparkSession, events: list[Event]) -> list[dict[str, Any]]:
    nothing = spark.sql(_CORRECTIONS).limit(0)
    rows = _recoveries(frame(spark, events), nothing).orderBy("client_id", "first_error")
    return [row.asDict() for row in rows.collect()]


def test_a_recovery_at_another_sidecar_ends_the_errors(spark: SparkSession) -> None:
    (row,) = _rows_of(
        spark,
        [
            error(0.010, 1, hold_ms=10.0, hinted=True, leader=2, epoch=5, node=1, epoch_before=4),
            success(0.050, 7, sidecar="b", node=2, epoch=5),
        ],
    )
    assert (row["errors"], row["hints"], row["hinted"], row["used"]) == (1, 1, True, True)
    # The hold is part of what the client waited for.
    assert row["recovery_ms"] == 50.0
    assert (row["sidecar_from"], row["sidecar_to"]) == ("a", "b")
    assert (row["node_from"], row["node_to"]) == (1, 2)
    assert (row["epoch_before"], row["epoch"]) == (4, 5)
    assert row["uncertain_ms"] is None  # Nothing is known of the two clocks.
    assert row["day"] == BEGIN.date()


def test_a_hint_that_was_not_enough_was_not_used(spark: SparkSession) -> None:
    (row,) = _rows_of(
        spark,
        [
            error(0, 1, hinted=True, leader=2, node=1),
            error(0.02, 1, sidecar="b", node=2, reason="hold_expired"),
            success(0.05, 2, sidecar="b", node=2),
        ],
    )
    assert (row["errors"], row["hints"], row["hinted"], row["used"]) == (2, 1, True, False)


def test_a_hint_that_was_only_counted_is_none(spark: SparkSession) -> None:
    (row,) = _rows_of(spark, [error(0, 1, hinted=True, observed=True, leader=2), success(0.05, 2)])
    assert (row["hints"], row["hinted"], row["would_hint"], row["used"]) == (0, False, True, False)
    assert row["uncertain_ms"] == 0


def test_hints_that_would_have_been_given_are_as_many_as_errors(spark: SparkSession) -> None:
    observed = [error(n, n, hinted=True, observed=True, leader=2) for n in range(9)]
    other = [error(0, 20, client_id="other", observed=True, reason="hold_expired")]
    stored = frame(spark, [*observed, success(9, 9), *other])
    met = _recoveries(stored, spark.sql(_CORRECTIONS).limit(0))
    assert [row["would_hints"] for row in met.orderBy("client_id").collect()] == [9, 0]
    (row,) = hint_effectiveness(met).collect()
    assert (row["errors"], row["given"], row["would_give"], row["episodes"]) == (10, 0, 9, 2)


def test_what_came_of_an_error_that_waited_is_of_the_first_one(spark: SparkSession) -> None:
    waited, later = _rows_of(
        spark,
        [
            error(0.05, 1, settling="settled", reason="not_usable_by_client", hold_ms=50.0),
            error(0.06, 2, settling="link_hold_spent", reason="not_usable_by_client"),
            success(0.08, 3),
            error(1, 4, client_id="later", observed=True, settling="metadata_behind"),
        ],
    )
    assert (waited["settling"], waited["observed"], waited["recovery_ms"]) == ("settled", False, 80)
    assert (later["settling"], later["observed"]) == ("metadata_behind", True)


def test_clocks_are_corrected_before_events_are_put_in_order(spark: SparkSession) -> None:
    """The clock of ``b`` is 100 ms behind: its success seems to come before the error."""
    known = spark.sql(_CORRECTIONS)
    events = [error(0, 1), success(-0.060, 1, sidecar="b")]
    (row,) = _recoveries(frame(spark, events), known).collect()
    assert row["recovery_ms"] == 40.0
    assert row["uncertain_ms"] == 3.5


def test_a_success_that_seems_to_come_before_its_error_ends_it(spark: SparkSession) -> None:
    """The clock of ``b`` is 20 ms behind, and nothing is known of that."""
    events = [
        error(0.003, 1, hold_ms=3.0, hinted=True, leader=2, epoch=5, node=1),
        success(-0.010, 1, sidecar="b", epoch=5, node=2),
        # A Fetch without a hint names the epoch before.
        error(0, 2, client_id="fetch", epoch_before=4),
        success(-0.010, 2, sidecar="b", client_id="fetch", epoch=6),
        # The sidecar of the hinted leader does not know the epoch yet.
        error(0, 3, client_id="early", hinted=True, leader=2, epoch=5, node=1),
        success(-0.010, 7, sidecar="b", client_id="early", epoch=4, node=2),
    ]
    # These came before their errors: by the epoch, by a second, by the same clock, or nobody knows.
    for number, (seconds, epoch, sidecar) in enumerate(
        ((-0.010, 4, "b"), (-1.1, 5, "b"), (-0.010, 5, "a"), (-0.010, None, "b"))
    ):
        client = f"none-{number}"
        events += [
            error(0, 10 + number, client_id=client, hinted=True, leader=2, epoch=5),
            success(seconds, 3 + number, client_id=client, sidecar=sidecar, epoch=epoch),
        ]
    rows = {row["client_id"]: row for row in _rows_of(spark, events)}
    assert (rows["app"]["recovery_ms"], rows["app"]["used"]) == (3.0, True)
    assert rows["app"]["uncertain_ms"] is None
    assert rows["fetch"]["recovery_ms"] == rows["early"]["recovery_ms"] == 0.0
    assert [rows[f"none-{number}"]["recovery_ms"] for number in range(4)] == [None] * 4


def test_a_success_of_another_client_of_the_same_id_stays_where_it_is(spark: SparkSession) -> None:
    events = [
        error(0, 1, hinted=True, leader=2, epoch=5),
        success(0.05, 1, sidecar="b", epoch=5),
        error(0.5, 2, hinted=True, leader=2, epoch=5),
        success(0.55, 2, sidecar="b", epoch=5),
    ]
    assert [row["recovery_ms"] for row in _rows_of(spark, events)] == [50.0, 50.0]


def test_a_client_that_comes_without_an_error_did_not_recover(spark: SparkSession) -> None:
    assert _rows_of(spark, [success(0, 1), success(1, 2), success(2, 3)]) == []


def test_who_is_not_seen_again_did_not_recover(spark: SparkSession) -> None:
    (row,) = _rows_of(spark, [error(0, 1), error(1, 2)])
    assert (row["errors"], row["recovered"], row["recovery_ms"]) == (2, None, None)
    # It was without its leader for at least so long.
    assert row["lost_ms"] == 1000.0


def test_clients_apis_and_partitions_are_apart(spark: SparkSession) -> None:
    rows = _rows_of(
        spark,
        [
            error(0, 1),
            success(0.1, 2, client_id="other"),
            success(0.1, 3, api="Fetch"),
            success(0.1, 4, partition=1),
            success(0.1, 5, topic="u"),
            success(0.1, 6, cluster="d"),
        ],
    )
    assert [row["recovered"] for row in rows] == [None]


def _reference(events: list[Event]) -> list[tuple[float, int, int, float | None]]:
    """(start, errors, hints, recovery) of each episode of one client, one event at a time.

    Times in whole seconds, so that all of them are exact.
    """
    unique = {(one["run"], one["seq"]): one for one in events}
    order = sorted(
        unique.values(),
        key=lambda one: (one["time"], one["event"] == "recovery", one["run"], one["seq"]),
    )
    episodes: list[tuple[float, int, int, float | None]] = []
    start: float | None = None
    last = 0.0
    errors = hints = 0
    for one in order:
        now = one["_s"]
        if start is not None and now - last > PATIENCE_S:
            episodes.append((start, errors, hints, None))
            start = None
        if one["event"] == "error":
            if start is None:
                start, errors, hints = now, 0, 0
            errors += 1
            hints += one["hinted"] and not one["observed"]
            last = now
        elif start is not None:
            episodes.append((start, errors, hints, (now - start) * 1000))
            start = None
    if start is not None:
        episodes.append((start, errors, hints, None))
    return episodes


_STEP = st.tuples(
    st.sampled_from([0, 1, 1, 2, PATIENCE_S, PATIENCE_S + 1]),
    st.booleans(),
    st.sampled_from(["a", "b"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
)


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(_STEP, max_size=12), min_size=25, max_size=40), st.randoms())
def test_any_order_and_any_repetition_gives_what_one_pass_gives(
    spark: SparkSession, clients: list[list[Any]], random: Any
) -> None:
    """Many clients in one example, since a job of Spark costs more than the rows in it."""
    events: list[Event] = []
    expected = {}
    for number, steps in enumerate(clients):
        now, own = 0, []
        for seq, (pause, is_error, sidecar, hinted, observed, copies) in enumerate(steps):
            now += pause
            of = {"client_id": f"app-{number}", "_s": now, "hinted": hinted, "sidecar": sidecar}
            one = error(now, seq, observed=observed, **of) if is_error else success(now, seq, **of)
            own += [one] * copies
        expected[f"app-{number}"] = _reference(own)
        events += own
    random.shuffle(events)
    found: dict[str, list[tuple[float, int, int, float | None]]] = {name: [] for name in expected}
    for row in _rows_of(spark, events):
        start = row["first_error"].astimezone(BEGIN.tzinfo).timestamp() - BEGIN.timestamp()
        found[row["client_id"]].append((start, row["errors"], row["hints"], row["recovery_ms"]))
    assert found == expected
