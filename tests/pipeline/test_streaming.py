"""A stream gives the tables of a batch run, whatever the order and wherever it was stopped."""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from leader_hints_report.batch import run
from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import ENCOUNTER, OPEN_PART, OVER, STORED
from leader_hints_report.journal.sources import stream
from leader_hints_report.store import Batch, Store
from leader_hints_report.streaming import begin, keep_fresh
from tests.pipeline.commands_apart import report_killed
from tests.pipeline.lines import BEGIN, Event, as_text, error, frame, latency, move, success
from tests.pipeline.written import rows_of

_LATE_S = 300.0
#: Moves the watermark on behind all others.
_END = latency(3600, 999, 1.0, sidecar="b")


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


def _stream(
    spark: SparkSession, store: Store, journal: Path, at_once: int | None = None
) -> list[StreamingQuery]:
    """Take in all that is there, without making tables."""
    queries = begin(store, stream(spark, str(journal), {}, at_once), _LATE_S, None)
    try:
        for query in queries:
            query.awaitTermination()
    finally:
        for query in queries:
            query.stop()
    return queries


def _dropped(queries: list[StreamingQuery]) -> int:
    return sum(
        of["numRowsDroppedByWatermark"]
        for query in queries
        for progress in query.recentProgress
        for of in progress["stateOperators"]
    )


_ARRIVAL = st.tuples(
    st.integers(0, 600),
    st.integers(0, int(_LATE_S)),
    st.sampled_from(["error", "error", "success", "latency"]),
    st.sampled_from(["app-1", "app-2", "app-3"]),
    st.sampled_from(["a", "b"]),
)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_ARRIVAL, min_size=30, max_size=60), st.integers(2, 4), st.booleans())
def test_what_comes_within_the_watermark_is_stored_once_whatever_its_order(
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
        _write(journal, files, [_END])
        store = Store(spark, f"{folder}/out")
        assert _dropped(_stream(spark, store, journal, at_once=1)) == 0
        told = _counted(store.events())
    expected = _counted(frame(spark, [*in_order, _END]))
    met = Counter({row[1:]: count for row, count in expected.items() if row[0] == ENCOUNTER})
    assert _of_part(told, OVER) == _of_part(told, OPEN_PART) == met
    others = Counter({row: count for row, count in expected.items() if row[0] != ENCOUNTER})
    assert Counter({r: c for r, c in told.items() if r[0] not in (OVER, OPEN_PART)}) == others


def _counted(rows: DataFrame) -> Counter[tuple[Any, ...]]:
    """Rows and how often each is there; its part comes first."""
    names = ["part", *(name for name in STORED.fieldNames() if name != "part")]
    return Counter(tuple(row) for row in rows.select(*names).collect())


def _of_part(rows: Counter[tuple[Any, ...]], part: str) -> Counter[tuple[Any, ...]]:
    return Counter({row[1:]: count for row, count in rows.items() if row[0] == part})


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
    _write(folder / "journal", 0, [*events, _END])
    run(spark, str(folder / "journal"), str(folder / "out"))
    rows = rows_of(folder / "out")
    assert len(rows["recoveries"]) == 30
    return rows


def test_a_stream_that_fails_around_each_storing_gives_what_a_batch_gives(
    spark: SparkSession, events: list[Event], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", str(tmp_path / "out")
    fates = ["before", "behind", "live", "behind", "before", "live"]
    deaths = 0
    for number, part in enumerate([events[:70], [*events[70:], _END]]):
        _write(journal, number, part)
        for _ in range(len(fates) + 1):
            try:
                store = _MortalStore(spark, out, fates)
                queries = begin(store, stream(spark, str(journal), {}), _LATE_S, None)
                keep_fresh(store, queries, float("inf"))
                break
            except PipelineError as stopped:
                if "FOREACH_BATCH_USER_FUNCTION" not in str(stopped):
                    raise
                deaths += 1
        else:
            pytest.fail("the stream did not end by itself")
    assert deaths >= 2
    assert fates == []
    assert rows_of(out) == expected


def test_a_process_that_is_killed_at_any_point_loses_and_doubles_nothing(
    spark: SparkSession, events: list[Event], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal", tmp_path / "out"
    _write(journal, 0, [*events, _END])
    chance = random.Random(8)
    left = 0
    for _ in range(2):
        left += chance.randrange(5, 60)
        report_killed("stream", out, left, f"--journal={journal}", f"--late={_LATE_S}", "--once")
    store = Store(spark, str(out))
    queries = begin(store, stream(spark, str(journal), {}), _LATE_S, None)
    keep_fresh(store, queries, float("inf"))
    assert rows_of(out) == expected


def test_what_is_not_over_is_not_told_and_what_is_late_is_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    journal, store = tmp_path / "journal", Store(spark, str(tmp_path / "out"))

    def over() -> set[tuple[str, int]]:
        rows = store.events().where(f"part = '{OVER}'").collect()
        return {(row["event"], row["seq"]) for row in rows}

    # It says that it is an error, and lacks what each event has.
    none = {name: value for name, value in error(0, 9).items() if name != "run"}
    _write(journal, 0, [error(0, 1), none, latency(200, 2, 1.0)])
    _stream(spark, store, journal)
    assert over() == set()
    _write(journal, 1, [success(20, 3), latency(400, 4, 1.0)])
    _stream(spark, store, journal)
    assert over() == {("error", 1), ("recovery", 3)}

    # Later by more than is waited for: it is in the journal, but no recovery is reported again.
    _write(journal, 2, [error(10, 0), latency(400, 5, 1.0)])
    behind: list[int] = []
    queries = begin(store, stream(spark, str(journal), {}), _LATE_S, None)
    keep_fresh(store, queries, float("inf"), behind.append)
    assert behind == [1]
    (met,) = store.table("recoveries").collect()
    assert (met["errors"], met["recovery_ms"]) == (1, 20_000.0)
    (of_run,) = store.table("journal_runs").collect()
    assert (of_run["events"], of_run["missing"], of_run["duplicates"]) == (6, 0, 0)


def test_a_clock_that_is_far_ahead_makes_nothing_late(spark: SparkSession, tmp_path: Path) -> None:
    now = (datetime.now(UTC) - BEGIN).total_seconds()
    journal = tmp_path / "journal"
    _write(journal, 0, [latency(now + 86_400, 1, 1.0, sidecar="b")])
    _write(journal, 1, [error(now - _LATE_S / 2, 1)])
    queries = _stream(spark, Store(spark, str(tmp_path / "out")), journal, at_once=1)
    assert _dropped(queries) == 0


@pytest.mark.parametrize("journal", ["absent", "kafka://host:1"])
def test_a_journal_that_is_none_is_refused(
    spark: SparkSession, journal: str, tmp_path: Path
) -> None:
    where = journal if journal.startswith("kafka") else str(tmp_path / journal)
    with pytest.raises(PipelineError, match=r"no such file|is no kafka"):
        stream(spark, where, {})
