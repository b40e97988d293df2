"""Which run has a folder, and which one is refused."""

import json
import os
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from leader_hints_report import lock
from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import Files
from leader_hints_report.lock import locked
from tests.harness import processes


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "BEAT_S", 0.1)
    monkeypatch.setattr(lock, "PATIENCE_S", 10.0)


def _left(path: Path, **says: object) -> None:
    path.write_text(json.dumps({"run": "r", "machine": "m", "process": 1, "since": "s", **says}))


def test_a_second_run_is_refused_and_names_the_first(spark: SparkSession, tmp_path: Path) -> None:
    files, path = Files(spark), str(tmp_path / "lock")
    told = rf"used by another run.* process {os.getpid()} on"
    with locked(files, path):
        with pytest.raises(PipelineError, match=told), locked(files, path):
            pass
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()
    with locked(files, path):
        pass


def test_of_two_that_begin_together_one_has_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look before either has written."""
    files, path = Files(spark), str(tmp_path / "lock")
    together, ended = threading.Barrier(2), threading.Event()
    seen, told = lock._read, threading.local()

    def read(files: Files, path: str) -> object:
        found = seen(files, path)
        if not hasattr(told, "looked"):
            told.looked = True
            together.wait()
        return found

    monkeypatch.setattr(lock, "_read", read)
    had: list[str] = []

    def take(name: str) -> None:
        try:
            with locked(files, path):
                had.append(name)
                ended.wait(10)
        except PipelineError:
            had.append("refused")
            ended.set()

    threads = [threading.Thread(target=take, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "refused" in had
    assert len(set(had)) == 2


def test_what_a_killed_process_of_this_machine_left_is_taken_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 600.0)
    process = processes.start(["true"])
    process.wait()
    _left(tmp_path / "lock", machine=lock._machine(), process=process.pid)
    with locked(Files(spark), str(tmp_path / "lock")):
        pass


@pytest.mark.parametrize("text", ["", json.dumps({"run": "r", "machine": "m", "process": 1})])
def test_what_no_run_writes_any_more_is_taken_after_a_while(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.3)
    (tmp_path / "lock").write_text(text)
    with locked(Files(spark), str(tmp_path / "lock")):
        pass


def test_a_run_leaves_alone_what_another_one_has_now(spark: SparkSession, tmp_path: Path) -> None:
    """It was suspended for longer than the other one waited."""
    with locked(Files(spark), str(tmp_path / "lock")):
        (tmp_path / ".lock.crc").unlink()
        _left(tmp_path / "lock")
    assert json.loads((tmp_path / "lock").read_text())["run"] == "r"
