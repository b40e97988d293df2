"""Raw samples of the published benchmarks: a small CSV file for each section of a page.

A row is one value: ``comparison`` and ``arm`` say what was measured, ``figure`` is the path to the
value inside the record (``missed/timeout``), with ``[]`` at its end where there are several.
Every table is computed from these rows, so that anybody can compute it again.
"""

import csv
import io
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import TypeAdapter

from tests.harness.maven import ROOT

FOLDER = ROOT / "bench" / "samples"
_HEAD = ("comparison", "arm", "figure", "value")
_SEVERAL = "[]"
#: Where a benchmark's setup is kept, such as the number of its rounds.
_SETUP = "setup", ""

_Record = TypeVar("_Record")

#: The option with which a benchmark computes its section without measuring.
from_samples_option = click.option(
    "--from-samples", is_flag=True, help="Compute the figures from bench/samples; measure nothing."
)


class Samples:
    """The records of one benchmark, by comparison and arm.

    A record is a dataclass of numbers, and of lists, mappings and dataclasses of such; it has at
    least one value.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def add(self, comparison: str, arm: str, record: object) -> None:
        """Keep a record, its numbers rounded to five digits."""
        self._rows[comparison, arm] = [
            (path, f"{value:.5g}" if isinstance(value, float) else str(value))
            for path, value in _flat("", record)
        ]

    def forget(self, comparison: str) -> None:
        """Drop the records of a comparison, which is measured again with other arms perhaps."""
        self._rows = {key: rows for key, rows in self._rows.items() if key[0] != comparison}

    def get(self, kind: type[_Record], comparison: str, arm: str) -> _Record:
        """Return a record as it was kept.

        :raises KeyError: there is none.
        """
        return self._record(kind, self._rows[comparison, arm])

    def add_setup(self, setup: object) -> None:
        """Keep how the benchmark was run, a record as in :meth:`add`."""
        self.add(*_SETUP, setup)

    def setup(self, kind: type[_Record]) -> _Record:
        """Return how the benchmark was run.

        :raises KeyError: that was not kept.
        """
        return self.get(kind, *_SETUP)

    def all(self, kind: type[_Record], comparison: str) -> dict[str, _Record]:
        """Return the records of all arms of a comparison, which may have none."""
        return {
            arm: self._record(kind, rows)
            for (of, arm), rows in self._rows.items()
            if of == comparison
        }

    @staticmethod
    def _record(kind: type[_Record], rows: Iterable[tuple[str, str]]) -> _Record:
        found: dict[str, Any] = {}
        for path, value in rows:
            *parents, name = path.split("/")
            place = found
            for parent in parents:
                place = place.setdefault(parent, {})
            if name.endswith(_SEVERAL):
                place.setdefault(name.removesuffix(_SEVERAL), []).append(value)
            else:
                place[name] = value
        return TypeAdapter(kind).validate_python(found)

    def write(self, name: str, folder: Path = FOLDER) -> None:
        """Write all rows to the file of a section; the same rows give the same bytes."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_HEAD)
        for (comparison, arm), rows in self._rows.items():
            writer.writerows((comparison, arm, *row) for row in rows)
        folder.mkdir(exist_ok=True)
        _file(name, folder).write_bytes(lzma.compress(text.getvalue().encode()))

    @classmethod
    def read(cls, name: str, folder: Path = FOLDER) -> "Samples":
        """Read the file of a section.

        :raises click.ClickException: there is none.
        """
        file, samples = _file(name, folder), cls()
        if not file.exists():
            raise click.ClickException(f"{file} does not exist; measure first: make bench")
        with lzma.open(file, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                comparison, arm, figure, value = (row[column] for column in _HEAD)
                samples._rows.setdefault((comparison, arm), []).append((figure, value))
        return samples


def _file(name: str, folder: Path) -> Path:
    return folder / f"{name}.csv.xz"


def _flat(path: str, value: Any) -> Iterator[tuple[str, int | float]]:
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        for name, of in value.items():
            yield from _flat(f"{path}/{name}" if path else str(name), of)
    elif isinstance(value, list):
        for one in value:
            yield path + _SEVERAL, one
    else:
        yield path, value
