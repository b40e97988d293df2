"""Events as they are stored: written batch by batch, read by days, and put into fewer files.

Tested in ``tests/pipeline/store/test_stored_events.py``.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

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
from leader_hints_report.journal.files import File, Files
from leader_hints_report.journal.format import FORMAT
from leader_hints_report.journal.plain_lines import ODD_PART, PLAIN_FILE, local, read_odd
from leader_hints_report.journal.plain_lines import store as store_plain
from leader_hints_report.journal.sources import read_files
from leader_hints_report.store.batches import RULES, Batch
from leader_hints_report.store.manifest import Manifest

#: From so many batches on that came to a day, these are put together: each has some files.
MANY: Final = 64
#: A day that is over has no more than so many.
FEW: Final = 8
#: Events of the day before may still be on their way.
_OVER: Final = timedelta(days=2)
#: Whether a part and day of a batch is wanted.
_Wanted = Callable[[Batch, str, str], bool]


class StoredEvents:
    """The events of an output folder."""

    def __init__(self, session: SparkSession, files: Files, out: str, manifest: Manifest) -> None:
        self._session, self._files, self._manifest = session, files, manifest
        self._root = f"{out}/events"

    def take(self, batch: Batch, stored: DataFrame) -> None:
        """Write the rows of a batch, and have them count. Without rows nothing is left behind."""
        stored.write.mode("overwrite").partitionBy("part", "day").parquet(self._folder(batch))
        self._have_counted(batch)

    def take_files(self, batch: Batch, files: list[File]) -> None:
        """Write the lines of files as the rows of a batch, as :meth:`take` does.

        On one machine DuckDB reads those of local files; Spark reads what it leaves.
        """
        folder = self._folder(batch)
        self._files.remove(folder)
        left = self._store_plain(files, folder)
        rows = [read_files(self._session, left)] if left else []
        odd = f"{folder}/part={ODD_PART}"
        if self._files.exists(odd):
            rows.append(read_odd(self._session.read.schema(STORED).parquet(odd)))
        for some in rows:
            some.write.mode("append").partitionBy("part", "day").parquet(folder)
        self._files.remove(odd)
        self._have_counted(batch)

    def _store_plain(self, files: list[File], folder: str) -> list[File]:
        """Have DuckDB write what it can; return the files that are left."""
        context = self._session.sparkContext
        to = local(folder)
        if to is None or not (context.master or "").startswith("local"):
            return files
        plain = {
            path: file.size
            for file in files
            if file.path.endswith(PLAIN_FILE) and (path := local(file.path)) is not None
        }
        if not plain:
            return files
        done = plain.keys() - {*store_plain(plain, to, context.defaultParallelism)}
        return [file for file in files if local(file.path) not in done]

    def _folder(self, batch: Batch) -> str:
        return f"{self._root}/batch={batch.id}"

    def _have_counted(self, batch: Batch) -> None:
        folder = self._folder(batch)
        found = self._files.matching(f"{folder}/part=*/day=*")
        slices = [[part, day] for _, part, day in map(_slice_of, found)]
        if slices:
            self._manifest.add(replace(batch, slices=slices, rules=RULES))
        else:
            self._files.remove(folder)

    def remove_torn(self) -> None:
        """Remove events that do not count: what a killed run left, and what was replaced.

        Where an input has changed since, no batch would write over them.
        """
        counts = {(batch.id, *of) for batch in self._manifest.current for of in batch.slices}
        for found in self._files.matching(f"{self._root}/batch=*/part=*/day=*"):
            if _slice_of(found) not in counts:
                self._files.remove(found.path)
        batches = {f"batch={id_}" for id_, *_ in counts}
        for found in self._files.matching(f"{self._root}/batch=*"):
            if found.path.rpartition("/")[2] not in batches:
                self._files.remove(found.path)

    def not_understood(self) -> list[str]:
        """The ids of batches with lines of which more may be understood now."""
        paths = self._slices(lambda *_: True)
        if not paths:
            return []
        of_batch = F.regexp_extract("_metadata.file_path", "/batch=([^/]+)/", 1)
        lines = to_read_again(self._read(paths))
        return sorted(row[0] for row in lines.select(of_batch).distinct().collect())

    def read_again(self, ids: list[str]) -> None:
        """Replace batches by one that has all of their events, with what is understood now.

        They themselves are still known, so none of their inputs is taken in once more.
        """
        stored = self._stored(lambda batch, *_: batch.id in ids)
        batch = Batch(f"again-{_digest([FORMAT, ids])}", {"format": FORMAT}, replaces=ids)
        self.take(batch, read_again(stored))
        self.remove_torn()

    def to_compact(self, batches: Collection[Batch], today: date) -> list[Batch]:
        """What would replace events of days that are in too many batches; ``batches``: of which
        tables are made."""
        of_days: defaultdict[date, list[Batch]] = defaultdict(list)
        for batch in batches:
            # What was judged by former rules is looked at again each time that it is read.
            for day in batch.days if batch.rules == RULES else ():
                of_days[day].append(batch)
        due = []
        for day, there in sorted(of_days.items()):
            small = [batch for batch in there if batch.of_day is None]
            if day <= today - _OVER and len(there) > FEW:
                due.append(_compacted(day, there))
            elif len(small) >= MANY:
                due.append(_compacted(day, small))
        return due

    def compact(self, batch: Batch) -> None:
        """Write events of a day to few files, which count from then on in place of the others.

        ``batch``: of :meth:`to_compact`. Killed at any point, the next run removes what does not
        count.
        """
        ids = set(batch.replaces)

        def is_of_day(of: Batch, part: str, day: str) -> bool:
            return of.id in ids and part != BAD_PART and day == batch.of_day

        replaced = self._slices(is_of_day)
        self.take(batch, self._read(replaced).hint("rebalance", "part"))
        for folder in replaced:
            self._files.remove(folder)
        left = {one.id for one in self._manifest.current}
        for id_ in ids - left:
            self._files.remove(f"{self._root}/batch={id_}")

    def counted(self, batches: Iterable[str]) -> tuple[int, int]:
        """How many events some batches have, and how many lines in quarantine."""
        stored = self._read([f"{self._root}/batch={batch}" for batch in batches])
        is_bad = F.col("part") == BAD_PART
        row = stored.select(F.count_if(~is_bad), F.count_if(is_bad)).first()
        return (row[0], row[1]) if row else (0, 0)

    def of_days(self, days: Iterable[date] | None = None) -> DataFrame:
        """The events of some days, or of all."""
        wanted = None if days is None else {day.isoformat() for day in days}
        return self._stored(
            lambda _, part, day: part != BAD_PART and (wanted is None or day in wanted)
        )

    def quarantine(self) -> DataFrame:
        """All lines that were not understood."""
        return quarantined(self._read(self._slices(lambda _, part, __: part == BAD_PART)))

    def _stored(self, wanted: _Wanted) -> DataFrame:
        """The rows that are wanted; not those whose values an earlier version did not look at."""

        def of(*, judged: bool) -> list[str]:
            return self._slices(
                lambda batch, part, day: (
                    wanted(batch, part, day) and (batch.rules == RULES) == judged
                )
            )

        stored, earlier = self._read(of(judged=True)), of(judged=False)
        return stored.unionAll(self._read(earlier).where(possible(F.col))) if earlier else stored

    def _slices(self, wanted: _Wanted) -> list[str]:
        """The folders that are wanted."""
        return [
            f"{self._root}/batch={batch.id}/part={part}/day={day}"
            for batch in self._manifest.current
            for part, day in batch.slices
            if wanted(batch, part, day)
        ]

    def _read(self, paths: list[str]) -> DataFrame:
        reader = self._session.read.schema(STORED).option("basePath", self._root)
        return reader.parquet(*paths) if paths else empty(self._session, STORED)


def empty(session: SparkSession, schema: StructType) -> DataFrame:
    """No rows; createDataFrame would start Python workers for them."""
    nothing = session.range(0)
    return nothing.select(*(F.lit(None).cast(of.dataType).alias(of.name) for of in schema.fields))


def _compacted(day: date, batches: list[Batch]) -> Batch:
    ids = sorted(batch.id for batch in batches)
    return Batch(f"{day}-{_digest(ids)}", {}, replaces=ids, of_day=day.isoformat())


def _slice_of(folder: File) -> tuple[str, str, str]:
    """Batch, part and day of a folder of events."""
    batch, part, day = (name.partition("=")[2] for name in folder.path.split("/")[-3:])
    return batch, part, day


def _digest(of: object) -> str:
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:20]
