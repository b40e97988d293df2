"""The log of batches, as runs write it: which stored events count, and what they are made of.

A run may be killed at any point: see :mod:`leader_hints_report.store.batches` for what counts then.

Tested in ``tests/pipeline/store/test_manifest.py``.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from pyspark.sql import SparkSession

from leader_hints_report.journal.files import Files
from leader_hints_report.store.batches import (
    ALL,
    CHANGE,
    DIGITS,
    Batch,
    Batches,
    applied,
    number_of,
)

#: Changes that are read one by one; more are put together.
FOLD: Final = 100
#: Versions before this log read each ``.json`` of ``batches``, and would remove all events whose
#: batch is not there. This one they cannot read: they end with its words, and remove nothing.
_REFUSAL: Final = "needs-newer-version.json"
_REFUSAL_TEXT: Final = '{"this_folder_needs_a_newer_version_of_kafka_leader_hints": true}'


class Manifest(Batches):
    """The log of one output folder. A stream adds batches while tables are made."""

    def __init__(self, session: SparkSession, files: Files, out: str) -> None:
        super().__init__(files, out)
        self._session, self._files = session, files
        self._earlier = f"{out}/batches"

    @property
    def batches(self) -> list[Batch]:
        """All that are whole, also by the log of an earlier version."""
        known = super().batches
        if self._number:
            return known
        return list(applied({}, self._of_earlier_version()).values())

    def add(self, *batches: Batch) -> None:
        """Have batches count from now on, in place of those that they replace: all or none."""
        with self._lock:
            self._read_changes()
            path = f"{self._folder}/{self._number + 1:0{DIGITS}}{CHANGE}"
            self._files.write(path, _text(batches))
            self._number += 1
            self._batches = applied(self._batches, batches)
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

    def _fold(self) -> None:
        """Write all batches to one file, and remove what it replaces."""
        self._batches = _without_spent(self._batches)
        path = f"{self._folder}/{self._number:0{DIGITS}}{ALL}"
        self._files.write(path, _text(self._batches.values()))
        for file in self._files.matching(f"{self._folder}/*{CHANGE}"):
            # As numbers, since a name may have another scheme.
            is_it = file.path.endswith(ALL) and number_of(file.path) == self._number
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


def _text(batches: Iterable[Batch]) -> str:
    return "".join(json.dumps(asdict(batch)) + "\n" for batch in batches)


def _without_spent(batches: dict[str, Batch]) -> dict[str, Batch]:
    """All but those without events that cannot come again: a stream repeats its newest micro-batch
    alone, and what was compacted is made of events that are stored."""
    of_streams = [id_ for id_, batch in batches.items() if "stream" in batch.inputs]
    # Numbers have leading zeros: the largest of each query stays.
    newest = {id_.rpartition("-")[0]: id_ for id_ in sorted(of_streams)}.values()
    kept = {*newest, *(id_ for id_, batch in batches.items() if "files" in batch.inputs)}
    return {id_: batch for id_, batch in batches.items() if batch.slices or id_ in kept}
