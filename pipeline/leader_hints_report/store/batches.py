"""Batches of stored events, and which of them count, as their log says.

A change of the log is a file of its own with the next number, since not every file system can
append. Readers see all of it, or none. After some changes a file with all batches replaces them:
until it is there they count, and from then on they do not.

Tested in ``tests/pipeline/store/test_manifest.py``.
"""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import BAD_PART
from leader_hints_report.journal.files import File
from leader_hints_report.journal.format import DAYS

#: By which lines are judged now.
RULES: Final = 2
#: Ends the names of files with a change, and of those with all batches.
CHANGE: Final = ".jsonl"
ALL: Final = ".all.jsonl"
#: Of their numbers.
DIGITS: Final = 10
#: How often a reader looks again where files go while it reads them.
_TRIES: Final = 3


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


class LogFiles(Protocol):
    """Where a log is read from: see :class:`leader_hints_report.journal.files.Files`."""

    def matching(self, pattern: str) -> list[File]:
        """The files that a pattern names."""

    def read(self, path: str) -> str:
        """The text of one."""


class Batches:
    """The log of one output folder, as it is read. Several threads may use it.

    :raises PipelineError: from each method, where a change is missing.
    """

    def __init__(self, files: LogFiles, out: str) -> None:
        self._log_files = files
        self._folder = f"{out}/manifest"
        self._lock = threading.RLock()
        self._number = 0
        self._batches: dict[str, Batch] = {}

    @property
    def batches(self) -> list[Batch]:
        """All that are whole, in the order in which they came; some have no slices any more."""
        with self._lock:
            self._read_changes()
            return [*self._batches.values()]

    @property
    def current(self) -> list[Batch]:
        """Those that have events which no other batch replaces."""
        return [batch for batch in self.batches if batch.slices]

    def _read_changes(self) -> None:
        """Read what was added since, also by another process; which may fold it meanwhile."""
        for left in reversed(range(_TRIES)):
            try:
                self._read_once()
            except (Py4JJavaError, OSError, PipelineError):
                if not left:
                    raise
            else:
                return

    def _read_once(self) -> None:
        files = [file.path for file in self._log_files.matching(f"{self._folder}/*{CHANGE}")]
        changes = {number_of(path): path for path in files if not path.endswith(ALL)}
        whole = max((path for path in files if path.endswith(ALL)), default=None)
        if whole is not None and number_of(whole) > self._number:
            self._batches = applied({}, _batches_in(self._log_files.read(whole)))
            self._number = number_of(whole)
        for number in sorted(number for number in changes if number > self._number):
            if number != self._number + 1:
                raise PipelineError(
                    f"{self._folder}/{self._number + 1:0{DIGITS}}{CHANGE} is missing: restore "
                    "it, or read the journal into another folder"
                )
            changed = _batches_in(self._log_files.read(changes[number]))
            self._batches = applied(self._batches, changed)
            self._number = number


def number_of(path: str) -> int:
    """The number of a file of the log."""
    return int(path.rpartition("/")[2].partition(".")[0])


def applied(before: dict[str, Batch], changes: Iterable[Batch]) -> dict[str, Batch]:
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


def _batches_in(text: str) -> list[Batch]:
    return [Batch(**json.loads(line)) for line in text.splitlines()]


def _is_replaced(slice_: list[str], of_day: str | None) -> bool:
    part, day = slice_
    return of_day is None or (part != BAD_PART and day == of_day)
