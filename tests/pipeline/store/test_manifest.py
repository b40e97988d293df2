"""The log of batches: what counts, wherever a run was killed."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import File, Files
from leader_hints_report.store import manifest as manifest_module
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.manifest import Manifest
from tests.pipeline.store.mortal import Killed, MortalFiles

_DAY = "2026-01-02"


@pytest.fixture(autouse=True)
def _folds_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_module, "FOLD", 3)


def _batch(number: int, *days: str) -> Batch:
    slices = [["move", day] for day in days or (_DAY,)]
    return Batch(f"files-{number}", {"files": {f"{number}.jsonl": 1}}, slices, 2)


def _manifest(spark: SparkSession, out: Path, files: Files | None = None) -> Manifest:
    return Manifest(spark, files or Files(spark), str(out))


def _ids(batches: list[Batch]) -> list[str]:
    return [batch.id for batch in batches]


def test_what_is_added_counts_once_wherever_a_run_is_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = [f"files-{number}" for number in range(5)]
    for left in range(100):
        out, added = tmp_path / str(left), 0
        mortal = _manifest(spark, out, MortalFiles(spark, left))
        try:
            for number in range(5):
                mortal.add(_batch(number))
                added += 1
        except Killed:
            pass
        found = _ids(_manifest(spark, out).batches)
        # That of the add that was killed counts as a whole, or not at all.
        assert found in (expected[:added], expected[: added + 1])
        again = _manifest(spark, out)
        for number in range(len(found), 5):
            again.add(_batch(number))
        assert _ids(_manifest(spark, out).batches) == expected
        if added == 5:
            break
    assert left > 15
    assert len(list((out / "manifest").glob("*.jsonl"))) == 3


def test_a_batch_replaces_others_or_their_events_of_a_day(
    spark: SparkSession, tmp_path: Path
) -> None:
    manifest = _manifest(spark, tmp_path)
    manifest.add(_batch(0), _batch(1, _DAY, "2026-01-03"), _batch(2))
    slices = [["move", _DAY]]
    manifest.add(Batch("day", {}, slices, 2, ["files-0", "files-1"], _DAY))
    for read in (manifest, _manifest(spark, tmp_path)):
        left = {batch.id: batch.slices for batch in read.current}
        assert left == {"files-1": [["move", "2026-01-03"]], "files-2": slices, "day": slices}
        # Their inputs are still known.
        assert _ids(read.batches) == ["files-0", "files-1", "files-2", "day"]
    manifest.add(Batch("again", {"format": "new"}, slices, 2, ["day", "files-1"]))
    assert _ids(_manifest(spark, tmp_path).current) == ["files-2", "again"]


def test_batches_that_cannot_come_again_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """A stream repeats its newest micro-batch only; a file may be listed again at any time."""
    manifest = _manifest(spark, tmp_path)
    streamed = [Batch(f"events-{n:09}", {"stream": "events"}, [["move", _DAY]], 2) for n in (1, 2)]
    manifest.add(_batch(0), *streamed)
    ids = _ids(manifest.batches)
    manifest.add(Batch("day", {}, [["move", _DAY]], 2, ids, _DAY))
    manifest.add(_batch(1))
    for read in (manifest, _manifest(spark, tmp_path)):
        assert _ids(read.batches) == ["files-0", "events-000000002", "day", "files-1"]


def test_a_log_that_lacks_a_change_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    manifest = _manifest(spark, tmp_path)
    manifest.add(_batch(0))
    manifest.add(_batch(1))
    (tmp_path / "manifest" / "0000000001.jsonl").unlink()
    with pytest.raises(PipelineError, match=r"0000000001\.jsonl is missing: restore it"):
        _ = _manifest(spark, tmp_path).batches


def test_a_reader_looks_again_where_changes_are_put_together_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = _manifest(spark, tmp_path)
    writer.add(_batch(0))
    writer.add(_batch(1))

    class Slow(Files):
        looks = 0

        def matching(self, pattern: str) -> list[File]:
            found = super().matching(pattern)
            self.looks += 1
            if self.looks == 1:
                writer.add(_batch(2))
            return found

    slow = Slow(spark)
    assert _ids(_manifest(spark, tmp_path, slow).batches) == ["files-0", "files-1", "files-2"]
    assert slow.looks == 2
