"""An output folder: opened by one run at a time, and tables made of what is stored there.

Tested in ``tests/pipeline/store/test_folder.py``.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import File, Files
from leader_hints_report.journal.format import FORMAT
from leader_hints_report.lock import locked
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.manifest import Manifest
from leader_hints_report.store.stored_events import StoredEvents, empty
from leader_hints_report.tables.columns import JOURNAL_RUNS, LEADER_MOVES, RECOVERIES, TABLES
from leader_hints_report.tables.plan import planned, typed

#: Tables that are written at the same time: what one has for a single core to do, or for the
#: driver, leaves room for others.
_AT_ONCE: Final = 3
#: Their rows are moved once more, so that each day and cluster has files of a suitable size. The
#: others have few rows, which were put together when they were grouped.
_LARGE: Final = (LEADER_MOVES.name, RECOVERIES.name)
_ONE_DAY: Final = timedelta(days=1)
#: So many days a run may be quiet and its numbers still go on from the last one that is known.
_QUIET_DAYS: Final = 7


class Store:
    """An output folder. ``on_step``: is called with a word for each step that takes time, by the
    thread that does it: some tables are made at the same time."""

    def __init__(
        self, session: SparkSession, out: str, on_step: Callable[[str], None] = lambda _: None
    ) -> None:
        self._session = session
        self._files = Files(session)
        self._out = self._files.whole(out)
        self._on_step = on_step
        self._manifest = Manifest(session, self._files, self._out)
        self._events = StoredEvents(session, self._files, self._out, self._manifest)

    def checkpoint(self, name: str) -> str:
        """Where a query on streams keeps how far it is."""
        return f"{self._out}/checkpoints/{name}"

    def checkpoint_id(self, name: str) -> str:
        """What Spark calls the checkpoint of a query that was begun: no other has the same."""
        text = self._files.read(f"{self.checkpoint(name)}/metadata")
        return str(json.loads(text)["id"])

    @property
    def batches(self) -> list[Batch]:
        """All that are whole, also those that others replace."""
        return self._manifest.batches

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Have the folder for this run alone, in order: without what a killed run left, and with
        all events that this version understands.

        :raises PipelineError: another run uses it, or a part of the log of batches is missing.
        """
        with locked(self._files, f"{self._out}/lock"):
            self._manifest.upgrade()
            self._events.remove_torn()
            self._read_again()
            yield

    def take(self, batch: Batch, stored: DataFrame) -> bool:
        """Store a batch, once and whole; one that is whole is left as it is: ``False``.

        ``stored``: rows from :func:`leader_hints_report.journal.events.read`. Without rows nothing
        is left behind.
        """
        if self._is_known(batch):
            return False
        self._on_step("events")
        self._events.take(batch, stored)
        return True

    def take_files(self, batch: Batch, files: list[File]) -> bool:
        """Store the lines of files as a batch, as :meth:`take` does."""
        if self._is_known(batch):
            return False
        self._on_step("events")
        self._events.take_files(batch, files)
        return True

    def _is_known(self, batch: Batch) -> bool:
        return any(known.id == batch.id for known in self._manifest.batches)

    def _read_again(self) -> None:
        """After an upgrade, read lines again of which an earlier version did not understand all."""
        path = f"{self._out}/format"
        if self._files.exists(path) and self._files.read(path) == FORMAT:
            return
        ids = self._events.not_understood()
        if ids:
            self._on_step("lines that an earlier version did not understand")
            self._events.read_again(ids)
        self._files.write(path, FORMAT)

    def counted(self, batches: Iterable[str]) -> tuple[int, int]:
        """How many events some batches have, and how many lines in quarantine."""
        return self._events.counted(batches)

    def events(self, days: Iterable[date] | None = None) -> DataFrame:
        """The events of some days, or of all."""
        return self._events.of_days(days)

    def quarantine(self) -> DataFrame:
        """All lines that were not understood."""
        return self._events.quarantine()

    def refresh(self, *, rebuild: bool = False, today: date | None = None) -> list[date]:
        """Make the tables of the days of all batches since the last refresh; return these days.

        Then put events of days together that are in many batches. ``rebuild``: the tables of all
        days. ``today``: the day in UTC by which days are over; ``None``: of the clock.
        """
        batches = self._manifest.current
        if rebuild:
            # Should this run be killed, the next one makes them all.
            self._put_done([])
        done = set(self._done())
        there = {day for batch in batches for day in batch.days}
        touched = {day for batch in batches if batch.id not in done for day in batch.days}
        # Also a day without events: what is held over midnight began on the day before.
        days = sorted(_around(touched))
        if days:
            loaded = _around(days)
            earlier = {day - step * _ONE_DAY for day in loaded for step in range(_QUIET_DAYS + 1)}
            other_runs = self._table_of(JOURNAL_RUNS.name, earlier - loaded)
            self._on_step("what several tables need")
            with planned(self.events(loaded), other_runs) as tables:
                self._replace_all(tables, days)
        ids = [batch.id for batch in batches]
        self._put_done(ids)
        for batch in self._events.to_compact(batches, today or datetime.now(UTC).date()):
            self._on_step("events in fewer files")
            # First: the events are those that the tables are made of, whichever batch has them.
            ids.append(batch.id)
            self._put_done(ids)
            self._events.compact(batch)
        return [day for day in days if day in there]

    def table(self, name: str) -> DataFrame:
        """A table as it was written; without rows where nothing was."""
        return read_table(self._session, self._out, name)

    def _table_of(self, name: str, days: Iterable[date]) -> DataFrame:
        """The rows of a table that are there of some days."""
        root = f"{self._out}/tables/{name}"
        schema = TABLES[name].schema
        found = self._files.matching(f"{root}/day=*")
        there = {folder.path.rpartition("=")[2] for folder in found}
        paths = [f"{root}/day={day}" for day in sorted(days) if day.isoformat() in there]
        reader = self._session.read.schema(schema).option("basePath", root)
        return reader.parquet(*paths) if paths else empty(self._session, schema)

    def _done(self) -> list[str]:
        path = f"{self._out}/tables.json"
        if not self._files.exists(path):
            return []
        done: list[str] = json.loads(self._files.read(path))
        return done

    def _put_done(self, ids: Iterable[str]) -> None:
        self._files.write(f"{self._out}/tables.json", json.dumps(sorted(ids)))

    def _replace_all(self, tables: Iterable[tuple[str, DataFrame]], days: list[date]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            written = [pool.submit(self._replace, name, table, days) for name, table in tables]
            for one in written:
                one.result()

    def _replace(self, name: str, table: DataFrame, days: list[date]) -> None:
        """Write a table's rows of ``days`` in place of those that are there."""
        self._on_step(name)
        for day in days:
            self._files.remove(f"{self._out}/tables/{name}/day={day}")
        rows = typed(name, table).where(F.col("day").isin(days))
        if name in _LARGE:
            rows = rows.hint("rebalance", "day", "cluster")
        path = f"{self._out}/tables/{name}"
        # What tasks of a run had written that was killed then would be taken for this one's.
        self._files.remove(f"{path}/_temporary")
        rows.write.mode("append").partitionBy("day", "cluster").parquet(path)


def require_folder(session: SparkSession, folder: str) -> None:
    """See that there is a folder that a command is to read.

    :raises PipelineError: there is none.
    """
    if not Files(session).is_folder(folder):
        raise PipelineError(
            f"--tables {folder}: there is no such folder; give what was --out of "
            "`leader-hints-report batch`"
        )


def read_table(session: SparkSession, out: str, name: str) -> DataFrame:
    """A table of an output folder; without rows where nothing was written.

    :raises KeyError: there is no table of that name.
    """
    schema = TABLES[name].schema
    path = f"{out}/tables/{name}"
    if not Files(session).exists(path):
        return empty(session, schema)
    return session.read.schema(schema).parquet(path)


def _around(days: Iterable[date]) -> set[date]:
    return {day + step for day in days for step in (-_ONE_DAY, timedelta(), _ONE_DAY)}
