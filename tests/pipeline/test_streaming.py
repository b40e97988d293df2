"""A stream gives the tables of a batch run, whatever the order and wherever it was stopped."""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.batch import run
from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import OPEN_PART, OVER, STORED
from leader_hints_report.journal.sources import stream
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.folder import Store
from leader_hints_report.streaming import begin, keep_fresh
from tests.pipeline.commands_apart import report_killed
from tests.pipeline.lines import Event, as_text, error, frame, latency, move, success
from tests.pipeline.written import rows_of


class _Killed(Exception):
    """Stands for the end of the process at a place that matters."""


class _MortalStore(Store):
    """Ends before or behind the storing of a batch, by a list of chances."""

    def __init__(self, spark: SparkSession, out: str, fates: list[str]) -> None:
        super().__init__(spark, out)
        self._fates = fates

    def take(self, batch: Batch, stored: DataFrame) -> bool:
        fate = self._fates.pop() if self._fates else "live"
        if fate == "before":
            raise _Killed
        took = super().take(batch, stored)
        if fate == "behind":
            raise _Killed
        return took


def _met(count: int) -> list[Event]:
    """Clients that meet errors at one sidecar and recover at another, in some minutes."""
    events = []
    for n in range(count):
        start = n * 7.0
        client: Event = {"client_id": f"app-{n % 5}", "partition": n % 3}
        events += [
            move(start, 10 * n, 1, 2, n, partition=n % 3),
            error(start + 0.1, 10 * n + 1, **client),
            error(start + 0.2, 10 * n + 2, **client),
            success(start + 0.3, 10 * n, sidecar="b", **client),
            latency(start, 10 * n + 1, 0.5 + n, sidecar="b"),
        ]
    return events


def _write(journal: Path, number: int, events: list[Event]) -> None:
    """Files of a larger number are newer."""
    journal.mkdir(exist_ok=True)
    file = journal / f"{number}.jsonl"
    file.write_text(as_text(events))
    os.utime(file, (number, number))


def _stream(spark: SparkSession, store: Store, journal: Path, at_once: int | None = None) -> None:
    """Take in all that is there, without making tables."""
    query = begin(store, stream(spark, str(journal), {}, at_once), None)
    try:
        query.awaitTermination()
    finally:
        query.stop()


_ARRIVAL = st.tuples(
    st.integers(0, 600),
    st.integers(0, 600),
    st.sampled_from(["error", "error", "success", "latency"]),
    st.sampled_from(["app-1", "app-2", "app-3"]),
    st.sampled_from(["a", "b"]),
)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_ARRIVAL, min_size=30, max_size=60), st.integers(2, 4), st.booleans())
def test_what_comes_is_stored_once_whatever_its_order(
    spark: SparkSession, arrivals: list[tuple[Any, ...]], files: int, twice: bool
) -> None:
    """Tables are made by the code of batch runs; so the same rows give the same tables."""
    kinds: dict[str, Callable[..., Event]] = {
        "error": error,
        "success": success,
        "latency": lambda s, seq, **of: latency(s, seq, 1.5, **of),
    }
    events = [
        (seconds + delay, kinds[kind](seconds, seq, client_id=client, sidecar=sidecar))
        for seq, (seconds, delay, kind, client, sidecar) in enumerate(arrivals)
    ]
    if twice:
        events += events[:5]
    # A stable order: what comes at the same time comes as drawn.
    in_order = [event for _, event in sorted(events, key=lambda pair: pair[0])]
    share = -(-len(in_order) // files)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        for number in range(files):
            _write(journal, number, in_order[number * share : (number + 1) * share])
        store = Store(spark, f"{folder}/out")
        _stream(spark, store, journal, at_once=1)
        stored = _counted(store.events())
    assert stored == _counted(frame(spark, in_order))


def _counted(rows: DataFrame) -> Counter[tuple[Any, ...]]:
    """Rows and how often each is there."""
    return Counter(tuple(row) for row in rows.select(*STORED.fieldNames()).collect())


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """What clients met, in any order, some of it delivered twice."""
    events = _met(30)
    random.Random(5).shuffle(events)
    return events + random.Random(6).sample(events, 20)


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, events: list[Event], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """The tables that a batch run makes of these events."""
    folder = tmp_path_factory.mktemp("batch")
    _write(folder / "journal", 0, events)
    run(spark, str(folder / "journal"), str(folder / "out"))
    rows = rows_of(folder / "out")
    assert len(rows["recoveries"]) == 30
    return rows


def test_a_stream_that_fails_around_each_storing_gives_what_a_batch_gives(
    spark: SparkSession, events: list[Event], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", str(tmp_path / "out")
    # From the last to the first: each file fails before it is stored, and behind it.
    fates = ["live", "before", "behind", "live", "behind", "before"]
    deaths = 0
    for number, part in enumerate([events[:70], events[70:]]):
        _write(journal, number, part)
        for _ in range(len(fates) + 1):
            try:
                store = _MortalStore(spark, out, fates)
                query = begin(store, stream(spark, str(journal), {}), None)
                keep_fresh(store, query, float("inf"))
                break
            except PipelineError as stopped:
                if "FOREACH_BATCH_USER_FUNCTION" not in str(stopped):
                    raise
                deaths += 1
        else:
            pytest.fail("the stream did not end by itself")
    assert deaths == 4
    assert fates == []
    assert rows_of(out) == expected


def test_a_process_that_is_killed_at_any_point_loses_and_doubles_nothing(
    spark: SparkSession, events: list[Event], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    _write(journal, 0, events)
    # What is killed at each step of a change is in store/test_stored_events.py.
    report_killed(
        "stream", out, random.Random(8).randrange(20, 80), f"--journal={journal}", "--once"
    )
    store = Store(spark, str(out))
    query = begin(store, stream(spark, str(journal), {}), None)
    keep_fresh(store, query, float("inf"))
    assert rows_of(out) == expected


def test_a_file_that_goes_before_a_retry_does_not_end_the_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Collectors remove files; what was in it is missing by its numbers."""
    journal, out = tmp_path / "journal", str(tmp_path / "out")
    _write(journal, 0, [latency(0, 0, 1.0), latency(1, 1, 1.0)])
    _write(journal, 1, [latency(2, 2, 1.0)])
    mortal = _MortalStore(spark, out, ["before"])
    query = begin(mortal, stream(spark, str(journal), {}), None)
    with pytest.raises(PipelineError, match="FOREACH_BATCH_USER_FUNCTION"):
        keep_fresh(mortal, query, float("inf"))
    (journal / "1.jsonl").unlink()
    _write(journal, 2, [latency(3, 3, 1.0)])
    store = Store(spark, out)
    keep_fresh(store, begin(store, stream(spark, str(journal), {}), None), float("inf"))
    (of_run,) = store.table("journal_runs").collect()
    assert (of_run["events"], of_run["missing"]) == (3, 1)


@pytest.mark.parametrize("skip_lost", [True, False])
def test_a_topic_whose_records_are_gone_ends_the_stream_unless_told_otherwise(
    spark: SparkSession, skip_lost: bool
) -> None:
    """Asks for Spark's option alone: the connector is not here."""
    reader = Mock()
    reader.option.return_value = reader
    session = Mock(readStream=Mock(format=Mock(return_value=reader)))
    stream(session, "kafka://host:1/topic", {}, skip_lost=skip_lost)
    assert call("failOnDataLoss", not skip_lost) in reader.option.mock_calls


def test_a_client_that_fails_for_an_hour_is_in_the_tables_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is never quiet for the half minute that ends an episode."""
    journal, store = tmp_path / "journal", Store(spark, str(tmp_path / "out"))
    _write(journal, 0, [error(20.0 * n, n, node=1) for n in range(180)])
    _stream(spark, store, journal)
    store.refresh()
    (met,) = store.table("recoveries").collect()
    assert (met["errors"], met["recovery_ms"], met["lost_ms"]) == (180, None, 179 * 20_000.0)

    # However late the rest comes, it is in the tables.
    _write(journal, 1, [success(20.0 * 180, 180), latency(86_400, 181, 1.0)])
    _write(journal, 2, [error(-20, 182, node=1)])
    _stream(spark, store, journal, at_once=1)
    store.refresh()
    (met,) = store.table("recoveries").collect()
    assert (met["errors"], met["recovery_ms"], met["lost_ms"]) == (181, *[181 * 20_000.0] * 2)
    for name in ("hint_misses", "broker_hours"):
        assert sum(row["lost_ms"] for row in store.table(name).collect()) == 181 * 20_000.0


def test_what_a_stream_of_an_earlier_version_stored_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It stored errors and successes as they came, and again when they were complete."""
    store = Store(spark, str(tmp_path / "out"))
    came = frame(spark, [error(0, 0), success(1, 1), error(100, 2)])
    complete = frame(spark, [error(0, 0), success(1, 1)])
    for number, (rows, part) in enumerate(((came, OPEN_PART), (complete, OVER))):
        store.take(Batch(f"old-{number}", {}), rows.withColumn("part", F.lit(part)))
    store.refresh()
    met = store.table("recoveries").orderBy("first_error").collect()
    assert [row["recovery_ms"] for row in met] == [1000.0, None]
    (of_run,) = store.table("journal_runs").collect()
    assert (of_run["events"], of_run["duplicates"]) == (3, 0)


@pytest.mark.parametrize("journal", ["absent", "kafka://host:1"])
def test_a_journal_that_is_none_is_refused(
    spark: SparkSession, journal: str, tmp_path: Path
) -> None:
    where = journal if journal.startswith("kafka") else str(tmp_path / journal)
    with pytest.raises(PipelineError, match=r"no such file|is no kafka"):
        stream(spark, where, {})
