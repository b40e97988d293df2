"""The commands on a cluster of Spark's own: a master, two workers, and one of them killed."""

import json
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from leader_hints_report.batch import run
from leader_hints_report.store.folder import Store
from tests.harness.waiting import until
from tests.pipeline.commands_apart import report_running
from tests.pipeline.lines import Event, as_text, error, latency, move, success
from tests.pipeline.standalone import SETTINGS, standalone_cluster
from tests.pipeline.written import rows_of

_COMMAND_S = 600
_CONF = [f"--conf={name}={value}" for name, value in SETTINGS.items()]


def _events(begin: float) -> list[Event]:
    """Clients that meet errors at one sidecar and recover at another."""
    seq = int(begin)
    return [
        one
        for n in range(10)
        for one in (
            move(begin + n, seq + 3 * n, 1, 2, seq + n),
            error(begin + n + 0.1, seq + 3 * n + 1, client_id=f"app-{n}"),
            latency(begin + n, seq + 3 * n + 2, 1.0 + n),
            success(begin + n + 0.3, seq + n, sidecar="b", client_id=f"app-{n}"),
        )
    ]


def _batches(out: Path) -> int:
    """How many batches the tables are made of; 0 while they are being made."""
    try:
        return len(json.loads((out / "tables.json").read_text()))
    except (FileNotFoundError, ValueError):
        return 0


def test_batch_and_stream_give_the_same_on_a_cluster_that_loses_a_worker(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal, expected = tmp_path / "journal", tmp_path / "expected"
    streamed, in_batch, log = tmp_path / "streamed", tmp_path / "batch", tmp_path / "log"
    journal.mkdir()
    (journal / "0.jsonl").write_text(as_text(_events(0)))
    with standalone_cluster(tmp_path, 2) as cluster:
        flags = (f"--journal={journal}", *_CONF)
        every = ("--every=0", "--refresh=1")
        with report_running(
            "stream", streamed, *flags, *every, master=cluster.master, log=log
        ) as process:

            def wait(condition: Callable[[], bool], what: str) -> None:
                until(lambda: condition() or process.poll() is not None, what, _COMMAND_S)
                assert process.poll() is None, log.read_text(errors="replace")[-3000:]

            wait(lambda: any(streamed.glob("events/*")), "the first events are being written")
            cluster.kill_worker()
            new = journal / "1.new"
            new.write_text(as_text(_events(3600)))
            new.rename(journal / "1.jsonl")
            run(spark, str(journal), str(expected))
            wait(lambda: _batches(streamed) == 2, "tables are made of both files")
        with report_running("batch", in_batch, *flags, master=cluster.master, log=log) as process:
            assert process.wait(_COMMAND_S) == 0, log.read_text(errors="replace")[-3000:]
    assert rows_of(in_batch) == rows_of(streamed) == rows_of(expected)
    assert len(Store(spark, str(in_batch)).table("recoveries").collect()) == 20


def test_a_batch_run_that_loses_a_worker_gives_what_an_undisturbed_one_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal, expected, out = (tmp_path / name for name in ("journal", "expected", "out"))
    log = tmp_path / "log"
    journal.mkdir()
    for hour in range(3):
        (journal / f"{hour}.jsonl").write_text(as_text(_events(3600 * hour)))
    run(spark, str(journal), str(expected))
    with standalone_cluster(tmp_path, 2) as cluster:
        flags = (f"--journal={journal}", *_CONF)
        with report_running("batch", out, *flags, master=cluster.master, log=log) as process:
            # What it has cached and shuffled is lost with it.
            until(lambda: any(out.glob("tables/*")), "the first table is being made", _COMMAND_S)
            cluster.kill_worker()
            assert process.poll() is None
            assert process.wait(_COMMAND_S) == 0, log.read_text(errors="replace")[-3000:]
    assert "Lost executor" in log.read_text(errors="replace")
    assert rows_of(out) == rows_of(expected)
    assert len(Store(spark, str(out)).table("recoveries").collect()) == 30
