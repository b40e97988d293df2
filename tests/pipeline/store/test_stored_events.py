"""Events of many batches are put into fewer files, and none of them is lost or doubled."""

import shutil
from collections import Counter
from contextlib import nullcontext
from datetime import date
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.journal.files import Files
from leader_hints_report.store import folder as folder_module
from leader_hints_report.store import stored_events as stored_module
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.folder import Store
from tests.pipeline.lines import Event, frame, latency, success
from tests.pipeline.store.mortal import Killed, MortalFiles

_A_DAY_S = 86_400
_DAYS = [date(2026, 1, day) for day in (2, 3)]
_BATCHES = 3


@pytest.fixture(autouse=True)
def _three_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_module, "MANY", _BATCHES)
    monkeypatch.setattr(stored_module, "FEW", _BATCHES - 1)


@pytest.fixture(scope="module")
def streamed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three micro-batches, each with events of two days, and a line that is none."""
    out = tmp_path_factory.mktemp("streamed")
    for number in range(_BATCHES):
        _take(Store(spark, str(out)), spark, number)
    return out


def _take(store: Store, spark: SparkSession, number: int) -> None:
    lines: list[Event | str] = [
        latency(number, 10 * number, 1.0),
        success(number, 10 * number + 1),
        latency(_A_DAY_S + number, 10 * number + 2, 1.0),
        "{",
    ]
    store.take(Batch(f"events-{number:09}", {"stream": "events"}), frame(spark, lines))


def _rows(store: Store) -> Counter[tuple[str, str, int]]:
    rows = store.events().select("day", "part", "seq").collect()
    return Counter((str(day), part, seq) for day, part, seq in rows)


def _refresh(store: Store, today: date) -> None:
    """Without tables: they would be made of the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_module, "planned", lambda *_: nullcontext({}))
        store.refresh(today=today)


def _files_of(out: Path, day: date) -> int:
    return len(list(out.glob(f"events/*/part=*/day={day}")))


@pytest.mark.parametrize("behind", [0, 40])
def test_a_day_of_many_batches_is_put_together(
    spark: SparkSession, streamed: Path, tmp_path: Path, behind: int
) -> None:
    """Both while it lasts, and when it is over."""
    out = tmp_path / "out"
    shutil.copytree(streamed, out)
    store = Store(spark, str(out))
    before = _rows(store)
    today = date.fromordinal(_DAYS[1].toordinal() + behind)
    _refresh(store, today)
    assert _rows(store) == before
    assert [_files_of(out, day) for day in _DAYS] == [2, 1]
    # Bad lines stay where they are.
    assert store.quarantine().count() == _BATCHES
    assert _rows(Store(spark, str(out))) == before
    # A late batch makes an open day no worse, and a day that is over is put together again.
    for number in (3, 4):
        _take(store, spark, number)
    _refresh(store, today)
    assert _files_of(out, _DAYS[1]) == (1 if behind else 3)
    assert sum(_rows(store).values()) == sum(before.values()) + 2 * 3


def test_what_is_put_together_is_there_once_wherever_a_run_is_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_module, "MANY", 2)
    whole, day = tmp_path / "whole", _DAYS[0]
    for number in range(2):
        lines = [latency(number, 10 * number, 1.0), success(number, 10 * number + 1)]
        Store(spark, str(whole)).take(Batch(f"files-{number}", {}), frame(spark, lines))
    with Store(spark, str(whole)).opened():
        before = _rows(Store(spark, str(whole)))
    # The first six changes are those of tables.json.
    for left in count(6):
        out = tmp_path / str(left)
        shutil.copytree(whole, out)
        with monkeypatch.context() as patch:
            patch.setattr(folder_module, "Files", partial(MortalFiles, left=left))
            try:
                _refresh(Store(spark, str(out)), day)
                break
            except Killed:
                pass
        next_run = Store(spark, str(out))
        assert _rows(next_run) == before
        with next_run.opened():
            _refresh(next_run, day)
        assert _rows(next_run) == before
        # Nothing is left that does not count.
        assert (_files_of(out, day), len(list(out.glob("events/*")))) == (2, 1)
    assert left > 14


def test_events_count_only_once_their_batch_is_in_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "Files", partial(MortalFiles, left=0))
        with pytest.raises(Killed):
            _take(Store(spark, str(out)), spark, 0)
    assert Files(spark).matching(f"{out}/events/*")
    store = Store(spark, str(out))
    assert not _rows(store)
    with store.opened():
        assert not Files(spark).matching(f"{out}/events/*")
        _take(store, spark, 0)
    assert sum(_rows(store).values()) == 3
