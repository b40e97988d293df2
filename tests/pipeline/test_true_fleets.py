"""Tables of random fleets against what is true of them: clocks, midnight, restarts, lost lines."""

from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from leader_hints_report.batch import run
from leader_hints_report.store import Store
from leader_hints_report.tables.columns import TABLES
from tests.pipeline.lines import as_text
from tests.pipeline.true_fleets import Fleet, make_true_fleet

#: A clock that drifts is known no better than by what it drifts in the time that is compared.
_DRIFT_MS = 25.0


@pytest.mark.parametrize(("seed", "poll_s", "hours_ahead"), [(7, 60.0, False), (4, 5.0, True)])
def test_tables_say_what_is_true(
    spark: SparkSession, tmp_path: Path, seed: int, poll_s: float, hours_ahead: bool
) -> None:
    fleet = make_true_fleet(seed, poll_s, hours_ahead=hours_ahead)
    journal, whole, parts = tmp_path / "journal", str(tmp_path / "whole"), str(tmp_path / "parts")
    journal.mkdir()
    for number, lines in enumerate(fleet.files):
        (journal / f"{number}.jsonl").write_text(as_text(lines))
        if number == 0:
            run(spark, str(journal), parts)
    run(spark, str(journal), parts)
    run(spark, str(journal), whole)
    store = Store(spark, whole)
    _hold_moves(store, fleet)
    _hold_clocks(store, fleet)
    _hold_recoveries(store, fleet)
    _hold_hours(store, fleet)
    _hold_runs(store, fleet)
    assert _all_rows(Store(spark, parts)) == _all_rows(store)


def _hold_moves(store: Store, fleet: Fleet) -> None:
    moves = store.table("leader_moves").collect()
    seen = {(row["partition"], row["epoch"]): row["sidecars"] for row in moves}
    assert len(moves) == len(seen)
    assert seen == {key: len(sidecars) for key, sidecars in fleet.sights.items()}
    incidents = store.table("incidents").orderBy("began").collect()
    assert {row["kind"] for row in incidents} == {"roll"}
    for row, (count, least, most) in zip(incidents, fleet.incidents, strict=True):
        assert row["moves"] == count
        assert least <= row["errors"] <= most


def _hold_clocks(store: Store, fleet: Fleet) -> None:
    by_day: dict[date, dict[str, Row]] = defaultdict(dict)
    for row in store.table("clock_skew").collect():
        if row["corrected"] and row["sidecar"] in fleet.clocks:
            by_day[row["day"]][row["sidecar"]] = row
    assert any(len(rows) > 1 for rows in by_day.values())
    for rows in by_day.values():
        for one in rows.values():
            for other in rows.values():
                truth = 1000 * (fleet.clocks[one["sidecar"]] - fleet.clocks[other["sidecar"]])
                bound = one["bound_ms"] + other["bound_ms"]
                assert one["skew_ms"] - other["skew_ms"] == pytest.approx(truth, abs=bound)


def _hold_recoveries(store: Store, fleet: Fleet) -> None:
    told = defaultdict(list)
    for row in store.table("recoveries").orderBy("first_error").collect():
        told[row["client_id"], row["partition"]].append(row)
    assert told.keys() == {key for key, episodes in fleet.episodes.items() if episodes}
    for key, rows in told.items():
        for row, truth in zip(rows, fleet.episodes[key], strict=True):
            assert (row["errors"], row["hints"]) == (truth.errors, truth.hints), (row, truth)
            assert (row["recovery_ms"] is None) == (truth.recovery_ms is None), (row, truth)
            if truth.recovery_ms is not None and row["uncertain_ms"] is not None:
                drift = 0 if {row["sidecar_from"], row["sidecar_to"]} <= set(fleet.clocks) else 1
                bound = row["uncertain_ms"] + drift * _DRIFT_MS + 0.01
                assert row["recovery_ms"] == pytest.approx(truth.recovery_ms, abs=bound), row


def _hold_hours(store: Store, fleet: Fleet) -> None:
    rows = store.table("broker_hours").where("errors > 0").collect()
    told = {(row["node"], _hour_since_1970(row)): row for row in rows}
    assert told.keys() == fleet.hours.keys()
    within = max(row["bound_ms"] or 0.0 for row in store.table("clock_skew").collect())
    for key, truth in fleet.hours.items():
        row = told[key]
        assert (row["errors"], row["hints"]) == (truth.errors, truth.hints), row
        bound = truth.errors * (2 * within + _DRIFT_MS)
        assert row["lost_ms"] == pytest.approx(truth.lost_ms, abs=bound), row


def _hour_since_1970(row: Row) -> int:
    return int((row["day"] - date(1970, 1, 1)).days * 24 + row["hour"])


def _hold_runs(store: Store, fleet: Fleet) -> None:
    missing: dict[str, int] = defaultdict(int)
    reported: dict[str, int] = defaultdict(int)
    for row in store.table("journal_runs").collect():
        missing[row["run"]] += row["missing"]
        reported[row["run"]] += row["told"]
    assert missing == fleet.missing
    assert reported == fleet.reported


def _all_rows(store: Store) -> dict[str, list[str]]:
    """All tables, sums to the microsecond: the order in which they are added up is any."""
    return {
        name: sorted(str([_plain(value) for value in row]) for row in store.table(name).collect())
        for name in TABLES
    }


def _plain(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
