"""The output folder: stored events, batch by batch, and the tables made from them.

    events/batch=ID/part=latency/day=2026-01-02/*.parquet; lines that were none under part=bad
    checkpoints/NAME          how far a query on streams is
    batches/ID.json           the batch is whole: what it was made of, and which days it has
    tables.json               the batches that the tables are made of
    format                    by which format all lines were read, as far as they were understood
    lock                      a run uses the folder
    tables/NAME/day=2026-01-02/cluster=ID/*.parquet

A batch's id follows from its inputs. It counts once its file in ``batches`` is there, which is
written last; what a killed run left is written over by the next one. So each input is taken in
once, whenever a run ends. Tables are rebuilt for the days of new batches, the day before and the
day after, since what begins on one day may end on the next.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from leader_hints_report.journal.events import (
    BAD_PART,
    STORED,
    possible,
    quarantined,
    read_again,
    to_read_again,
)
from leader_hints_report.journal.files import Files
from leader_hints_report.journal.format import DAYS, FORMAT
from leader_hints_report.lock import locked
from leader_hints_report.tables.columns import JOURNAL_RUNS, RECOVERIES, TABLES
from leader_hints_report.tables.plan import Derive, answers, typed

#: Tables that are written at the same time: what one has for a single core to do, or for the
#: driver, leaves room for others.
_AT_ONCE: Final = 3
_ONE_DAY: Final = timedelta(days=1)
#: By which lines are judged now.
_RULES: Final = 2
#: So many days a run may be quiet and its numbers still go on from the last one that is known.
_QUIET_DAYS: Final = 7


@dataclass(frozen=True)
class Batch:
    """``inputs``: what it is made of, as its source says. ``slices``: pairs of part and day.
    ``rules``: by which its lines were judged; those of version 0.1 without a look at ranges.
    ``replaces``: ids of batches whose events it has, read again."""

    id: str
    inputs: dict[str, Any]
    slices: list[list[str]] = field(default_factory=list)
    rules: int = 1
    replaces: list[str] = field(default_factory=list)

    @property
    def days(self) -> set[date]:
        """The days that it has events of; not those that a line can no longer be of."""
        first, last = (day.isoformat() for day in DAYS)
        return {
            date.fromisoformat(day)
            for part, day in self.slices
            if part != BAD_PART and first <= day <= last
        }


#: Whether a part and day of a batch is wanted.
_Wanted = Callable[[Batch, str, str], bool]


class Store:
    """An output folder. ``told``: is called with a word for each step that takes time, by the
    thread that does it: some tables are made at the same time.

    Large because what is stored, which of it counts, and the tables made of it change together.
    """

    def __init__(
        self, session: SparkSession, out: str, told: Callable[[str], None] = lambda _: None
    ) -> None:
        self._session = session
        self._files = Files(session)
        self._out = self._files.whole(out)
        self._told = told
        self._known: dict[str, Batch] = {}

    def checkpoint(self, name: str) -> str:
        """Where a query on streams keeps how far it is."""
        return f"{self._out}/checkpoints/{name}"

    def checkpoint_id(self, name: str) -> str:
        """What Spark calls the checkpoint of a query that was begun: no other has the same."""
        text = self._files.read(f"{self.checkpoint(name)}/metadata")
        return str(json.loads(text)["id"])

    @property
    def batches(self) -> list[Batch]:
        """All that are whole."""
        folder = f"{self._out}/batches"
        if not self._files.exists(folder):
            return []
        files = [f.path for f in self._files.found(folder) if f.path.endswith(".json")]
        # A stream leaves many, and none of them ever changes.
        for path in files:
            if path not in self._known:
                self._known[path] = Batch(**json.loads(self._files.read(path)))
        return [self._known[path] for path in files]

    @property
    def _current(self) -> list[Batch]:
        """Those that no other one replaces."""
        batches = self.batches
        replaced = {id_ for batch in batches for id_ in batch.replaces}
        return [batch for batch in batches if batch.id not in replaced]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Have the folder for this run alone, in order: without what a killed run left, and with
        all events that this version understands.

        :raises PipelineError: another run uses it.
        """
        with locked(self._files, f"{self._out}/lock"):
            self._remove_torn()
            self._read_again()
            yield

    def take(self, batch: Batch, stored: DataFrame) -> bool:
        """Store a batch, once and whole; one that is whole is left as it is: ``False``.

        ``stored``: rows from :func:`leader_hints_report.journal.events.read`. Without rows nothing
        is left behind.
        """
        whole = f"{self._out}/batches/{batch.id}.json"
        if self._files.exists(whole):
            return False
        self._told("events")
        path = f"{self._out}/events/batch={batch.id}"
        stored.write.mode("overwrite").partitionBy("part", "day").parquet(path)
        folders = self._files.folders(f"{path}/part=*/day=*")
        slices = [[name.partition("=")[2] for name in at.split("/")[-2:]] for at in folders]
        if slices:
            judged = replace(batch, slices=slices, rules=_RULES)
            self._files.write(whole, json.dumps(asdict(judged)))
        else:
            self._files.remove(path)
        return True

    def _remove_torn(self) -> None:
        """Remove events that a killed run left of a batch which is not whole, or was replaced.

        Where an input has changed since, no batch would write over them.
        """
        whole = {batch.id for batch in self._current}
        for folder in self._files.folders(f"{self._out}/events/batch=*"):
            name = folder.rpartition("/")[2]
            if name.removeprefix("batch=") not in whole:
                self._files.remove(f"{self._out}/events/{name}")

    def _read_again(self) -> None:
        """After an upgrade, read lines again of which an earlier version did not understand all.

        Their batches are replaced by one that has all of their events. They themselves are still
        known, so none of their inputs is taken in once more.
        """
        path = f"{self._out}/format"
        if self._files.exists(path) and self._files.read(path) == FORMAT:
            return
        found = self._not_understood()
        if found:
            self._told("lines that an earlier version did not understand")
            stored = self._stored(lambda batch, *_: batch.id in found)
            ids = sorted(found)
            digest = hashlib.sha256(json.dumps([FORMAT, ids]).encode()).hexdigest()[:20]
            batch = Batch(f"again-{digest}", {"format": FORMAT}, replaces=ids)
            self.take(batch, read_again(stored))
            self._remove_torn()
        self._files.write(path, FORMAT)

    def _not_understood(self) -> set[str]:
        """The ids of batches with lines of which more may be understood now."""
        paths = self._slices(lambda *_: True)
        if not paths:
            return set()
        of_batch = F.regexp_extract("_metadata.file_path", "/batch=([^/]+)/", 1)
        lines = to_read_again(self._read(paths))
        return {row[0] for row in lines.select(of_batch).distinct().collect()}

    def counted(self, batches: Iterable[str]) -> tuple[int, int]:
        """How many events some batches have, and how many lines in quarantine."""
        stored = self._read([f"{self._out}/events/batch={batch}" for batch in batches])
        is_bad = F.col("part") == BAD_PART
        row = stored.select(F.count_if(~is_bad), F.count_if(is_bad)).first()
        return (row[0], row[1]) if row else (0, 0)

    def events(self, days: Iterable[date] | None = None) -> DataFrame:
        """The events of some days, or of all."""
        wanted = None if days is None else {day.isoformat() for day in days}
        return self._stored(
            lambda _, part, day: part != BAD_PART and (wanted is None or day in wanted)
        )

    def _stored(self, wanted: _Wanted) -> DataFrame:
        """The rows that are wanted; not those whose values an earlier version did not look at."""

        def of(*, judged: bool) -> list[str]:
            return self._slices(
                lambda batch, part, day: (
                    wanted(batch, part, day) and (batch.rules == _RULES) == judged
                )
            )

        stored, earlier = self._read(of(judged=True)), of(judged=False)
        return stored.unionAll(self._read(earlier).where(possible(F.col))) if earlier else stored

    def quarantine(self) -> DataFrame:
        """All lines that were not understood."""
        return quarantined(self._read(self._slices(lambda _, part, __: part == BAD_PART)))

    def _slices(self, wanted: _Wanted) -> list[str]:
        """The folders that are wanted."""
        return [
            f"{self._out}/events/batch={batch.id}/part={part}/day={day}"
            for batch in self._current
            for part, day in batch.slices
            if wanted(batch, part, day)
        ]

    def _read(self, paths: list[str]) -> DataFrame:
        reader = self._session.read.schema(STORED).option("basePath", f"{self._out}/events")
        return reader.parquet(*paths) if paths else _empty(self._session, STORED)

    def refresh(self, *, rebuild: bool = False) -> list[date]:
        """Make the tables of the days of all batches since the last refresh; return these days.

        ``rebuild``: of all days.
        """
        batches = self._current
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
            with answers(self.events(loaded), other_runs) as (tables, derived):
                self._replace_all(tables, derived, days)
        self._put_done(batches)
        return [day for day in days if day in there]

    def table(self, name: str) -> DataFrame:
        """A table as it was written; without rows where nothing was."""
        return read_table(self._session, self._out, name)

    def _table_of(self, name: str, days: Iterable[date]) -> DataFrame:
        """The rows of a table that are there of some days."""
        root = f"{self._out}/tables/{name}"
        schema = TABLES[name].schema
        there = {folder.rpartition("=")[2] for folder in self._files.folders(f"{root}/day=*")}
        paths = [f"{root}/day={day}" for day in sorted(days) if day.isoformat() in there]
        reader = self._session.read.schema(schema).option("basePath", root)
        return reader.parquet(*paths) if paths else _empty(self._session, schema)

    def _done(self) -> list[str]:
        path = f"{self._out}/tables.json"
        if not self._files.exists(path):
            return []
        done: list[str] = json.loads(self._files.read(path))
        return done

    def _put_done(self, batches: list[Batch]) -> None:
        text = json.dumps(sorted(batch.id for batch in batches))
        self._files.write(f"{self._out}/tables.json", text)

    def _replace_all(
        self, tables: dict[str, DataFrame], derived: dict[str, Derive], days: list[date]
    ) -> None:
        """Write tables, and those made from recoveries as soon as these are written."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            made = {
                name: pool.submit(self._replace, name, table, days)
                for name, table in tables.items()
            }
            made[RECOVERIES.name].result()
            met = self._table_of(RECOVERIES.name, _around(days))

            def derive(name: str) -> None:
                # Here, since a plan takes a while to be put together.
                self._replace(name, derived[name](met), days)

            made |= {name: pool.submit(derive, name) for name in derived}
            for one in made.values():
                one.result()

    def _replace(self, name: str, table: DataFrame, days: list[date]) -> None:
        """Write a table's rows of ``days`` in place of those that are there."""
        self._told(name)
        for day in days:
            self._files.remove(f"{self._out}/tables/{name}/day={day}")
        (
            typed(name, table)
            .where(F.col("day").isin(days))
            .hint("rebalance", "day", "cluster")
            .write.mode("append")
            .partitionBy("day", "cluster")
            .parquet(f"{self._out}/tables/{name}")
        )


def read_table(session: SparkSession, out: str, name: str) -> DataFrame:
    """A table of an output folder; without rows where nothing was written.

    :raises KeyError: there is no table of that name.
    """
    schema = TABLES[name].schema
    path = f"{out}/tables/{name}"
    if not Files(session).exists(path):
        return _empty(session, schema)
    return session.read.schema(schema).parquet(path)


def _around(days: Iterable[date]) -> set[date]:
    return {day + step for day in days for step in (-_ONE_DAY, timedelta(), _ONE_DAY)}


def _empty(session: SparkSession, schema: StructType) -> DataFrame:
    """No rows; createDataFrame would start Python workers for them."""
    nothing = session.range(0)
    return nothing.select(*(F.lit(None).cast(of.dataType).alias(of.name) for of in schema.fields))
