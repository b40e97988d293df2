"""Tables of random fleets against what is true of them: clocks, midnight, restarts, lost lines,
recreated topics.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from leader_hints_report.batch import run
from leader_hints_report.store.folder import Store
from leader_hints_report.tables.columns import TABLES
from tests.pipeline.lines import BEGIN, as_text
from tests.pipeline.true_fleets import Episode, Fleet, make_true_fleet

#: A clock that drifts is known no better than by what it drifts in the time that is compared.
_DRIFT_MS = 25.0

#: By the names of tables.
Told = Mapping[str, Sequence[Row]]


#: Seeds of fleets whose journals are read together, seconds from one poll of their sidecars to the
#: next, and whether clocks may be hours ahead.
_FLEETS = [((7, 10, 26, 27), 60.0, False), ((4, 9, 19), 5.0, True)]
#: So many of those that ``--fleets`` names are read together.
_TOGETHER = 4


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have ``--fleets FIRST:END`` try fleets of more seeds, both ways."""
    if "seeds" not in metafunc.fixturenames:
        return
    fleets, more = list(_FLEETS), metafunc.config.getoption("--fleets")
    if more:
        first, end = map(int, more.split(":"))
        for begin in range(first, end, _TOGETHER):
            some = (*range(begin, min(begin + _TOGETHER, end)),)
            fleets += [(some, 60.0, False), (some, 5.0, True)]
    metafunc.parametrize(("seeds", "poll_s", "hours_ahead"), fleets)


def test_tables_say_what_is_true(
    spark: SparkSession, tmp_path: Path, seeds: tuple[int, ...], poll_s: float, hours_ahead: bool
) -> None:
    fleets = [make_true_fleet(seed, poll_s, hours_ahead=hours_ahead) for seed in seeds]
    journal, whole, parts = tmp_path / "journal", str(tmp_path / "whole"), str(tmp_path / "parts")
    journal.mkdir()
    for number, files in enumerate(zip(*(fleet.files for fleet in fleets), strict=True)):
        (journal / f"{number}.jsonl").write_text("".join(map(as_text, files)))
        if number == 0:
            run(spark, str(journal), parts)
    run(spark, str(journal), parts)
    run(spark, str(journal), whole)
    tables = _all_rows(Store(spark, whole))
    by_cluster: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name, rows in tables.items():
        for row in rows:
            by_cluster[row["cluster"]][name].append(row)
    assert by_cluster.keys() == {fleet.cluster for fleet in fleets}
    for fleet in fleets:
        told = by_cluster[fleet.cluster]
        for hold in (_hold_moves, _hold_clocks, _hold_recoveries, _hold_hours, _hold_runs):
            hold(told, fleet)
    assert _as_text(_all_rows(Store(spark, parts))) == _as_text(tables)


def _hold_moves(told: Told, fleet: Fleet) -> None:
    rows = sorted(
        told["leader_moves"], key=lambda row: (row["partition"], row["epoch"], row["first_seen"])
    )
    moves = sorted(fleet.moves, key=lambda one: (one.partition, one.epoch, one.at))
    for row, one in zip(rows, moves, strict=True):
        seen = row["partition"], row["epoch"], row["sidecars"]
        assert seen == (one.partition, one.epoch, one.sidecars), (row, one)
        # Topics that had the same epoch within an hour are one move, which is of one of them.
        change = row["epoch_before"], row["leader_before"], row["leader"]
        assert change in one.changes, (row, one)
    incidents = sorted(told["incidents"], key=lambda row: row["began"])
    for row, truth in zip(incidents, fleet.incidents, strict=True):
        assert (row["kind"], row["moves"]) == (truth.kind, truth.moves), (row, truth)
        assert truth.least <= row["errors"] <= truth.most, (row, truth)


def _hold_clocks(told: Told, fleet: Fleet) -> None:
    by_day: dict[date, dict[str, Row]] = defaultdict(dict)
    for row in told["clock_skew"]:
        if row["corrected"]:
            by_day[row["day"]][row["sidecar"]] = row
    assert any(len(rows) > 1 for rows in by_day.values())
    for day, rows in by_day.items():
        clocks = {name: of for name in rows if (of := fleet.clock(name, day)) is not None}
        for one, (ahead, stepped) in clocks.items():
            for other, (other_ahead, other_stepped) in clocks.items():
                truth = 1000 * (ahead - other_ahead)
                bound = rows[one]["bound_ms"] + rows[other]["bound_ms"]
                # Half of a step if recoveries show it on both sides, else all of it.
                bound += 1000 * (stepped + other_stepped) * (one != other)
                skew = rows[one]["skew_ms"] - rows[other]["skew_ms"]
                assert skew == pytest.approx(truth, abs=bound), (rows[one], rows[other])


def _hold_recoveries(told: Told, fleet: Fleet) -> None:
    by_client = defaultdict(list)
    for row in sorted(told["recoveries"], key=lambda row: row["first_error"]):
        by_client[row["client_id"], row["partition"]].append(row)
    assert by_client.keys() == {key for key, episodes in fleet.episodes.items() if episodes}
    for key, rows in by_client.items():
        parts = _parts(rows, fleet.episodes[key])
        assert all(parts), (rows, fleet.episodes[key])
        for part, truth in zip(parts, fleet.episodes[key], strict=True):
            errors, hints = (sum(row[name] for row in part) for name in ("errors", "hints"))
            assert (errors, hints) == (truth.errors, truth.hints), (part, truth)
            recovered = sum(row["recovery_ms"] is not None for row in part)
            # A success that seems to come before an error may end nothing, or only some of them.
            if not truth.clear:
                assert recovered <= 1, (part, truth)
                continue
            (row,) = part
            assert recovered == (truth.recovery_ms is not None), (row, truth)
            if truth.recovery_ms is not None and row["uncertain_ms"] is not None:
                bound = row["uncertain_ms"] + _changes_ms(fleet, row) + 0.01
                assert row["recovery_ms"] == pytest.approx(truth.recovery_ms, abs=bound), row


def _parts(rows: Sequence[Row], episodes: Sequence[Episode]) -> list[list[Row]]:
    """Rows of a client and partition, by the episodes that they are of: the nearest in time."""
    parts: list[list[Row]] = [[] for _ in episodes]
    for row in rows:
        at = (row["first_error"].astimezone(UTC) - BEGIN).total_seconds()
        distances = [max(one.at - at, at - one.over, 0.0) for one in episodes]
        parts[distances.index(min(distances))].append(row)
    return parts


def _changes_ms(fleet: Fleet, row: Row) -> float:
    """By how much a recovery may be wrong because clocks do not stay as they are."""
    clocks = [fleet.clock(row[name], row["day"]) for name in ("sidecar_from", "sidecar_to")]
    stepped_ms = sum(1000 * stepped for _, stepped in filter(None, {*clocks}))
    return stepped_ms + _DRIFT_MS * (None in clocks)


def _hold_hours(told: Told, fleet: Fleet) -> None:
    rows = {
        (row["node"], _hour_since_1970(row)): row
        for row in told["broker_hours"]
        if row["errors"] > 0
    }
    assert rows.keys() == fleet.hours.keys()
    within = max(row["bound_ms"] or 0.0 for row in told["clock_skew"])
    for key, truth in fleet.hours.items():
        row = rows[key]
        assert (row["errors"], row["hints"]) == (truth.errors, truth.hints), row
        bound = truth.errors * (2 * within + _DRIFT_MS + 1000 * fleet.largest_step)
        assert row["lost_ms"] == pytest.approx(truth.lost_ms, abs=bound), row


def _hour_since_1970(row: Row) -> int:
    return int((row["day"] - date(1970, 1, 1)).days * 24 + row["hour"])


def _hold_runs(told: Told, fleet: Fleet) -> None:
    missing: dict[str, int] = defaultdict(int)
    reported: dict[str, int] = defaultdict(int)
    for row in told["journal_runs"]:
        missing[row["run"]] += row["missing"]
        reported[row["run"]] += row["reported"]
    assert missing == fleet.missing
    assert reported == fleet.reported


def _all_rows(store: Store) -> dict[str, list[Row]]:
    return {name: store.table(name).collect() for name in TABLES}


def _as_text(tables: Told) -> dict[str, list[str]]:
    """All tables, sums to the microsecond: the order in which they are added up is any."""
    return {
        name: sorted(str([_plain(value) for value in row]) for row in rows)
        for name, rows in tables.items()
    }


def _plain(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
