"""The log of batches: which stored events count, and what they are made of.

A change is a file of its own with the next number, since not every file system can append. Readers
see all of it, or none. After some changes a file with all batches replaces them: until it is there
they count, and from then on they do not, so a run may be killed at any point of that.

Tested in ``tests/pipeline/store/test_manifest.py``.
"""

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import BAD_PART
from leader_hints_report.journal.files import Files
from leader_hints_report.journal.format import DAYS

#: Changes that are read one by one; more are put together.
FOLD: Final = 100
#: How often a reader looks again where files go while it reads them.
_TRIES: Final = 3
_CHANGE: Final = ".jsonl"
_ALL: Final = ".all.jsonl"
_DIGITS: Final = 10
#: Versions before this log read each ``.json`` of ``batches``, and would remove all events whose
#: batch is not there. This one they cannot read: they end with its words, and remove nothing.
_REFUSAL: Final = "needs-newer-version.json"
_REFUSAL_TEXT: Final = '{"this_folder_needs_a_newer_version_of_kafka_leader_hints": true}'


@dataclass(frozen=True)
class Batch:
    """``inputs``: what it is made of, as its source says. ``slices``: pairs of part and day, those
    that no other batch replaces. ``rules``: by which its lines were judged; those of version 0.1
    without a look at ranges. ``replaces``: ids of batches whose events it has, read again, or in
    fewer files; ``of_day``: only of their events of that day."""

    id: str
    inputs: dict[str, Any]
    slices: list[list[str]] = field(default_factory=list)
    rules: int = 1
    replaces: list[str] = field(default_factory=list)
    of_day: str | None = None

    @property
    def days(self) -> set[date]:
        """The days that it has events of; not those that a line can no longer be of."""
        first, last = (day.isoformat() for day in DAYS)
        return {
            date.fromisoformat(day)
            for part, day in self.slices
            if part != BAD_PART and first <= day <= last
        }


class Manifest:
    """The log of one output folder. Several threads may use it: a stream adds batches while tables
    are made.

    :raises PipelineError: from each method, where a change is missing.
    """

    def __init__(self, session: SparkSession, files: Files, out: str) -> None:
        self._session, self._files = session, files
        self._folder = f"{out}/manifest"
        self._earlier = f"{out}/batches"
        self._lock = threading.RLock()
        self._number = 0
        self._batches: dict[str, Batch] = {}

    @property
    def batches(self) -> list[Batch]:
        """All that are whole, in the order in which they came; some have no slices any more."""
        with self._lock:
            self._read_changes()
            if self._number:
                return [*self._batches.values()]
            return list(_applied({}, self._of_earlier_version()).values())

    @property
    def current(self) -> list[Batch]:
        """Those that have events which no other batch replaces."""
        return [batch for batch in self.batches if batch.slices]

    def add(self, *batches: Batch) -> None:
        """Have batches count from now on, in place of those that they replace: all or none."""
        with self._lock:
            self._read_changes()
            path = f"{self._folder}/{self._number + 1:0{_DIGITS}}{_CHANGE}"
            self._files.write(path, _text(batches))
            self._number += 1
            self._batches = _applied(self._batches, batches)
            if self._number % FOLD == 0:
                self._fold()

    def upgrade(self) -> None:
        """Take over the log of an earlier version, and keep such versions from this folder.

        Killed at any point, the next run completes it: batches that are known stay as they are.
        """
        earlier = self._of_earlier_version()
        with self._lock:
            self._read_changes()
            new = [batch for batch in earlier if batch.id not in self._batches]
            if new:
                self.add(*new)
        if not self._files.exists(f"{self._earlier}/{_REFUSAL}"):
            self._files.write(f"{self._earlier}/{_REFUSAL}", _REFUSAL_TEXT)
        for path in self._files_of_earlier_version():
            self._files.remove(path)

    def _read_changes(self) -> None:
        """Read what was added since, also by another process; which may fold it meanwhile."""
        for left in reversed(range(_TRIES)):
            try:
                self._read_once()
            except (Py4JJavaError, PipelineError):
                if not left:
                    raise
            else:
                return

    def _read_once(self) -> None:
        files = [file.path for file in self._files.matching(f"{self._folder}/*{_CHANGE}")]
        changes = {_number_of(path): path for path in files if not path.endswith(_ALL)}
        whole = max((path for path in files if path.endswith(_ALL)), default=None)
        if whole is not None and _number_of(whole) > self._number:
            self._batches = _applied({}, _batches_in(self._files.read(whole)))
            self._number = _number_of(whole)
        for number in sorted(number for number in changes if number > self._number):
            if number != self._number + 1:
                raise PipelineError(
                    f"{self._folder}/{self._number + 1:0{_DIGITS}}{_CHANGE} is missing: restore "
                    "it, or read the journal into another folder"
                )
            changed = _batches_in(self._files.read(changes[number]))
            self._batches = _applied(self._batches, changed)
            self._number = number

    def _fold(self) -> None:
        """Write all batches to one file, and remove what it replaces."""
        self._batches = _without_spent(self._batches)
        path = f"{self._folder}/{self._number:0{_DIGITS}}{_ALL}"
        self._files.write(path, _text(self._batches.values()))
        for file in self._files.matching(f"{self._folder}/*{_CHANGE}"):
            # As numbers, since a name may have another scheme.
            is_it = file.path.endswith(_ALL) and _number_of(file.path) == self._number
            if not is_it:
                self._files.remove(file.path)

    def _of_earlier_version(self) -> list[Batch]:
        """The batches of a log where each had a file: thousands where a stream wrote it."""
        if not self._files_of_earlier_version():
            return []
        text = self._session.read.option("pathGlobFilter", "*.json")
        rows = text.text(self._earlier, wholetext=True).collect()
        texts = sorted(row["value"] for row in rows if row["value"] != _REFUSAL_TEXT)
        return [Batch(**json.loads(one)) for one in texts]

    def _files_of_earlier_version(self) -> list[str]:
        found = [file.path for file in self._files.matching(f"{self._earlier}/*.json")]
        return [path for path in found if not path.endswith(f"/{_REFUSAL}")]


def _number_of(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


def _text(batches: Iterable[Batch]) -> str:
    return "".join(json.dumps(asdict(batch)) + "\n" for batch in batches)


def _batches_in(text: str) -> list[Batch]:
    return [Batch(**json.loads(line)) for line in text.splitlines()]


def _applied(before: dict[str, Batch], changes: Iterable[Batch]) -> dict[str, Batch]:
    """The batches after some changes. A batch that is replaced is still known: its inputs are not
    taken in again."""
    batches = {**before, **{batch.id: batch for batch in changes}}
    for batch in changes:
        for id_ in batch.replaces:
            replaced = batches.get(id_)
            if replaced is not None and id_ != batch.id:
                left = [s for s in replaced.slices if not _is_replaced(s, batch.of_day)]
                batches[id_] = replace(replaced, slices=left)
    return batches


def _is_replaced(slice_: list[str], of_day: str | None) -> bool:
    part, day = slice_
    return of_day is None or (part != BAD_PART and day == of_day)


def _without_spent(batches: dict[str, Batch]) -> dict[str, Batch]:
    """All but those without events that cannot come again: a stream repeats its newest micro-batch
    alone, and what was compacted is made of events that are stored."""
    of_streams = [id_ for id_, batch in batches.items() if "stream" in batch.inputs]
    # Numbers have leading zeros: the largest of each query stays.
    newest = {id_.rpartition("-")[0]: id_ for id_ in sorted(of_streams)}.values()
    kept = {*newest, *(id_ for id_, batch in batches.items() if "files" in batch.inputs)}
    return {id_: batch for id_, batch in batches.items() if batch.slices or id_ in kept}
