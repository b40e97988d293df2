"""Runs over new files, killed runs, and inputs that are none."""

import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from leader_hints_report.batch import run
from leader_hints_report.errors import PipelineError
from leader_hints_report.journal import events
from leader_hints_report.journal.format import COLUMNS, LINE_SCHEMA
from leader_hints_report.store import folder as folder_module
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.folder import Store
from tests.pipeline.conftest import ZONE
from tests.pipeline.lines import Event, as_text, error, frame, latency, move, success
from tests.pipeline.written import rows_of

#: Two days: an error before midnight, its success behind it.
_MIDNIGHT = datetime(2026, 1, 3, tzinfo=UTC)
_SECONDS = (_MIDNIGHT - datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)).total_seconds()
_FIRST: list[Event] = [
    move(_SECONDS - 0.02, 0, 1, 2, 5),
    error(_SECONDS - 0.01, 1, reason="hold_expired"),
    latency(_SECONDS - 0.005, 2, 3.5),
]
_SECOND: list[Event] = [
    move(_SECONDS + 0.01, 0, 1, 2, 5, sidecar="b"),
    success(_SECONDS + 0.03, 1, sidecar="b"),
    latency(_SECONDS - 0.005, 2, 3.5),  # Delivered once more.
]


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the journal of both days, and ``out``: what one run made of it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "journal").mkdir()
    (folder / "journal" / "a.jsonl").write_text(as_text(_FIRST))
    (folder / "journal" / "b.jsonl").write_text(as_text(_SECOND))
    run(spark, str(folder / "journal"), str(folder / "out"))
    return folder


def _copied(whole: Path, folder: Path) -> Path:
    """A copy of what the run made, to be changed."""
    out = folder / "out"
    shutil.copytree(whole / "out", out)
    return out


def test_what_a_killed_run_left_of_a_table_is_not_written_by_the_next(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    """It was killed when tasks had written their rows, and before the job had moved them."""
    out = _copied(whole, tmp_path)
    for table in (out / "tables").iterdir():
        task = table / "_temporary" / "0" / "task_202601020304056789_0001_m_000000"
        for day in table.glob("day=*"):
            for file in day.rglob("*.parquet"):
                there = task / file.relative_to(table).with_stem(f"{file.stem}-left")
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, there)
    Store(spark, str(out)).refresh(rebuild=True)
    assert rows_of(out) == rows_of(whole / "out")
    assert not [*out.rglob("*-left.*")]


def test_new_files_add_what_they_have_to_the_days_they_touch(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", str(tmp_path / "out")
    journal.mkdir()
    (journal / "a.jsonl").write_text(as_text(_FIRST))
    (journal / "b.jsonl.open").write_text("not finished")
    taken = run(spark, str(journal), out)
    assert (taken.batches, taken.events, [day.day for day in taken.days]) == (1, 3, [2])
    store = Store(spark, out)
    assert [row["recovered"] for row in store.table("recoveries").collect()] == [None]

    (journal / "b.jsonl").write_text(as_text(_SECOND))
    taken = run(spark, str(journal), out)
    assert (taken.batches, taken.events, [day.day for day in taken.days]) == (1, 3, [2, 3])
    (row,) = store.table("recoveries").collect()
    assert (row["day"].day, row["recovery_ms"], row["errors"]) == (2, 40.0, 1)
    (moved,) = store.table("leader_moves").collect()
    assert (moved["day"].day, moved["sidecars"], moved["apart_ms"]) == (2, 2, 30.0)
    assert [row["samples"] for row in store.table("latencies").collect()] == [1]
    assert rows_of(out) == rows_of(whole / "out")


def test_a_killed_run_is_made_good_by_the_next(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    """It left half of its events and no word of its batch, and tables of which some are there."""
    out = _copied(whole, tmp_path)
    store = Store(spark, str(out))
    expected = rows_of(out)
    (batch,) = store.batches
    shutil.rmtree(out / "manifest")
    shutil.rmtree(out / "events" / f"batch={batch.id}" / "part=latency")
    (out / "tables.json").unlink()
    shutil.rmtree(out / "tables" / "latencies")
    run(spark, str(whole / "journal"), str(out))
    assert rows_of(out) == expected


def test_a_hold_over_midnight_of_the_first_day_is_in_the_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(
        as_text([error(_SECONDS + 0.01, 0, hold_ms=30.0), success(_SECONDS + 0.05, 1)])
    )
    taken = run(spark, str(tmp_path), str(tmp_path / "out"))
    assert [day.day for day in taken.days] == [3]
    store = Store(spark, str(tmp_path / "out"))
    (row,) = store.table("recoveries").collect()
    assert (row["day"].day, row["recovery_ms"]) == (2, 70.0)
    assert [row["errors"] for row in store.table("hint_effectiveness").collect()] == [1]


def test_numbers_that_are_lost_while_a_run_was_quiet_for_days_are_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number, (day, seqs) in enumerate(((0, (0, 1)), (5, (4, 6)), (20, (9,)))):
        events = [latency(86_400 * day, seq, 1.0) for seq in seqs]
        (tmp_path / f"{number}.jsonl").write_text(as_text(events))
        run(spark, str(tmp_path), str(tmp_path / "out"))
    store = Store(spark, str(tmp_path / "out"))
    # After more than a week it is not known how far the run had come.
    rows = store.table("journal_runs").orderBy("day").collect()
    assert [row["missing"] for row in rows] == [0, 3, 0]


def test_impossible_values_of_an_earlier_version_end_no_refresh(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    out = _copied(whole, tmp_path)
    store = Store(spark, str(out))
    good = frame(spark, [error(_SECONDS - 0.01, 7), latency(_SECONDS - 0.01, 8, 1.0)])
    impossible = [
        good.withColumn("hold_ms", F.when(F.col("event") == "error", F.lit(1e300))),
        good.withColumn("latency_ms", F.lit(float("nan"))),
        good.withColumn("seq", F.lit(2**63 - 1)),
        *(good.withColumn("day", F.lit(day).cast("date")) for day in ("0001-01-01", "9999-12-31")),
    ]
    for number, stored in enumerate(impossible):
        assert store.take(Batch(f"old-{number}", {}), stored)
    for change in sorted((out / "manifest").glob("*.jsonl"))[1:]:
        # Hadoop's checksum is of what was written.
        (change.parent / f".{change.name}.crc").unlink()
        of_earlier_version = json.loads(change.read_text())
        del of_earlier_version["rules"]
        change.write_text(json.dumps(of_earlier_version))
    Store(spark, str(out)).refresh()
    assert len(store.table("recoveries").collect()) == 1


def test_lines_that_an_earlier_version_did_not_understand_are_read_again(
    spark: SparkSession, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knew neither a column, nor a kind, nor a version, and one line is of nobody's."""
    out = tmp_path / "out"
    journal = tmp_path / "journal"
    shutil.copytree(whole / "journal", journal)
    waited = error(_SECONDS + 50, 9, client_id="waited", settling="settled", reason="hold_expired")
    (journal / "c.jsonl").write_text(as_text([waited]) + '{"version":1,"event":"recov\n')
    run(spark, str(journal), str(tmp_path / "expected"))

    known = {name: of for name, of in COLUMNS.items() if name != "settling"}
    with monkeypatch.context() as earlier:
        earlier.setattr(events, "COLUMNS", known)
        schema = [field for field in LINE_SCHEMA if field.name != "settling"]
        earlier.setattr(events, "LINE_SCHEMA", StructType(schema))
        earlier.setattr(events, "KINDS", ("error",))
        earlier.setattr(folder_module, "FORMAT", "earlier")
        run(spark, str(journal), str(out))
        (journal / "d.jsonl").write_text(
            as_text([success(_SECONDS + 50.5, 10, client_id="waited")])
        )
        earlier.setattr(events, "VERSION", 0)
        assert run(spark, str(journal), str(out)).bad == 1
    store = Store(spark, str(out))
    assert [row["settling"] for row in store.table("recoveries").collect()] == [None, None]

    taken = run(spark, str(journal), str(out))
    assert (taken.batches, [day.day for day in taken.days]) == (0, [2, 3])
    rows = store.table("recoveries").orderBy("first_error").collect()
    assert [(row["settling"], row["recovery_ms"]) for row in rows] == [
        (None, 40.0),
        ("settled", 500.0),
    ]
    assert [row["reason"] for row in store.quarantine().collect()] == ["not_json"]
    run(spark, str(journal), str(tmp_path / "expected"))
    assert rows_of(out) == rows_of(tmp_path / "expected")
    # Their former batches are gone, and are not taken in again.
    assert len(list((out / "events").iterdir())) == 1
    assert run(spark, str(journal), str(out))[:3] == (0, 0, 0)


def test_a_folder_of_an_earlier_version_is_read_as_it_is(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    """There each batch had a file."""
    out = _copied(whole, tmp_path)
    (batch,) = Store(spark, str(out)).batches
    shutil.rmtree(out / "manifest")
    shutil.rmtree(out / "batches")
    (out / "batches").mkdir()
    earlier = {name: of for name, of in asdict(batch).items() if name != "of_day"}
    (out / "batches" / f"{batch.id}.json").write_text(json.dumps(earlier))
    # Also where nobody has opened it yet.
    assert Store(spark, str(out)).batches == [batch]
    assert run(spark, str(whole / "journal"), str(out)) == (0, 0, 0, [], 0)
    assert rows_of(out) == rows_of(whole / "out")
    assert Store(spark, str(out)).batches == [batch]
    # The earlier version reads all that is there now, and ends before it removes any event.
    (refusal,) = (out / "batches").glob("*.json")
    with pytest.raises(TypeError, match="needs_a_newer_version"):
        Batch(**json.loads(refusal.read_text()))


def test_a_rebuild_that_was_killed_is_completed_by_the_next_run(
    spark: SparkSession, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = _copied(whole, tmp_path)

    def killed(*_: Any) -> None:
        shutil.rmtree(out / "tables" / "leader_moves")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_replace_all", killed)
        with pytest.raises(KeyboardInterrupt):
            Store(spark, str(out)).refresh(rebuild=True)
    assert rows_of(out) != rows_of(whole / "out")
    run(spark, str(whole / "journal"), str(out))
    assert rows_of(out) == rows_of(whole / "out")


def test_what_a_killed_run_left_of_other_files_is_removed(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    """More files have come since it was killed, so the next run has another batch."""
    out = tmp_path / "out"
    (batch,) = Store(spark, str(whole / "out")).batches
    torn = out / "events" / "batch=0123456789abcdef0123"
    shutil.copytree(whole / "out" / "events" / f"batch={batch.id}", torn)
    run(spark, str(whole / "journal"), str(out))
    assert not torn.exists()
    assert rows_of(out) == rows_of(whole / "out")


def test_no_answer_depends_on_the_time_zone_of_the_session(
    spark: SparkSession, whole: Path, tmp_path: Path
) -> None:
    """Midnight in UTC is in the afternoon of two different days in these zones."""
    out = tmp_path / "out"
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Apia")
    try:
        run(spark, str(whole / "journal"), str(out))
    finally:
        spark.conf.set("spark.sql.session.timeZone", ZONE)
    assert rows_of(out) == rows_of(whole / "out")
    for made in (out, whole / "out"):
        days = {path.name for path in made.glob("tables/latencies/day=*")}
        assert days == {"day=2026-01-02"}


def test_an_empty_journal_gives_tables_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    run(spark, str(tmp_path), str(tmp_path / "out"))
    assert all(rows == [] for rows in rows_of(tmp_path / "out").values())


@pytest.mark.parametrize("journal", ["absent", "kafka://", "kafka://host:1", "kafka://host:1/a/b"])
def test_a_journal_that_is_none_is_refused(
    spark: SparkSession, journal: str, tmp_path: Path
) -> None:
    where: Any = journal if journal.startswith("kafka") else str(tmp_path / journal)
    with pytest.raises(PipelineError, match=r"no such file|is no kafka"):
        run(spark, where, str(tmp_path / "out"))
