"""Questions to a folder on this machine, which DuckDB reads as it is stored.

Tested in ``tests/pipeline/query/test_queries.py``.
"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql.types import StructType

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import BAD_PART, STORED
from leader_hints_report.journal.files import File
from leader_hints_report.journal.plain_lines import local
from leader_hints_report.query.answer import Answer
from leader_hints_report.store.batches import RULES, Batch, Batches
from leader_hints_report.tables.columns import TABLES

#: By the names of Spark's types.
_TYPES: Final = {
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMPTZ",
    "date": "DATE",
    "array<int>": "INTEGER[]",
    "array<string>": "VARCHAR[]",
}
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    # Nothing is fetched.
    "autoinstall_known_extensions": False,
}
#: Columns whose values are names of folders.
_OF_EVENTS: Final = ("part", "day")
_OF_TABLES: Final = ("day", "cluster")
_ASKED: Final = "the_question"
_INSTANT: Final = "TIMESTAMP WITH TIME ZONE"


class _LocalFiles:
    """Reads the log of batches."""

    def matching(self, pattern: str) -> list[File]:
        folder, _, name = pattern.rpartition("/")
        return sorted(File(str(path), path.stat().st_size) for path in Path(folder).glob(name))

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")


def ask(folder: str, sql: str, cores: int | None = None) -> Answer | None:
    """Answer a question; ``None``: it is not to a folder that can be read so.

    ``cores``: how many are used at most, ``None``: all.

    :raises PipelineError: the question has a mistake, or a file cannot be read.
    """
    root = os.path.realpath(folder.removeprefix("file:"))
    if local(f"file:{root}") is None or not Path(root, "manifest").is_dir():
        return None
    try:
        batches = Batches(_LocalFiles(), root).current
    except OSError as error:
        raise PipelineError(f"--tables {folder}: {error.filename}: {error.strerror}") from None
    if any(batch.rules != RULES for batch in batches):
        # What an earlier version stored is judged as it is read, by Spark's words.
        return None
    config = _CONFIG | ({} if cores is None else {"threads": cores})
    try:
        with duckdb.connect(config=config) as database:
            database.execute("SET TimeZone = 'UTC'")
            # Spark's name for what DuckDB has too.
            database.execute("CREATE MACRO unix_micros(instant) AS epoch_us(instant)")
            for name, view in _views(root, batches).items():
                database.execute(f"CREATE VIEW {name} AS {view}")
            return _answer(database, sql)
    except duckdb.Error as error:
        raise PipelineError(str(error).partition("\n\n")[0]) from None


def _views(root: str, batches: Sequence[Batch]) -> dict[str, str]:
    good, bad = _slices(root, batches, is_bad=False), _slices(root, batches, is_bad=True)
    tables = {
        name: _rows([f"{root}/tables/{name}/*/*/*.parquet"], table.schema, _OF_TABLES)
        if any(Path(root, "tables", name).glob("*/*/*.parquet"))
        else _nothing(table.schema)
        for name, table in TABLES.items()
    }
    lines = _rows(bad, STORED, _OF_EVENTS) if bad else _nothing(STORED)
    return {
        **tables,
        "events": _rows(good, STORED, _OF_EVENTS) if good else _nothing(STORED),
        "quarantine": f"SELECT source, fault AS reason, line FROM ({lines})",
    }


def _slices(root: str, batches: Sequence[Batch], *, is_bad: bool) -> list[str]:
    """Patterns of the files that count."""
    return [
        f"{root}/events/batch={batch.id}/part={part}/day={day}/*.parquet"
        for batch in batches
        for part, day in batch.slices
        if (part == BAD_PART) == is_bad
    ]


def _rows(files: Sequence[str], schema: StructType, folders: Collection[str]) -> str:
    """The rows of files, with the columns of a schema: older files may lack some. ``folders``: the
    columns whose values are names of folders."""
    listed = ", ".join(f"'{file}'" for file in files)
    types = ", ".join(
        f"'{of.name}': {_TYPES[of.dataType.simpleString()]}"
        for of in schema.fields
        if of.name in folders
    )
    there = (
        f"SELECT * FROM read_parquet([{listed}], union_by_name = true, hive_partitioning = true, "
        f"hive_types = {{{types}}})"
    )
    names = ", ".join(f'"{of.name}"' for of in schema.fields)
    return f"SELECT {names} FROM ({_nothing(schema)} UNION ALL BY NAME {there})"


def _nothing(schema: StructType) -> str:
    columns = ", ".join(
        f'NULL::{_TYPES[of.dataType.simpleString()]} AS "{of.name}"' for of in schema.fields
    )
    return f"SELECT {columns} WHERE false"


def _answer(database: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    # A view is made of a question alone, of whatever form.
    database.execute(f"CREATE VIEW {_ASKED} AS {sql}")
    found = database.table(_ASKED)
    instants = {at for at, of in enumerate(found.types) if str(of) == _INSTANT}
    # DuckDB gives Python instants only with one more package.
    shown = ", ".join(
        f"epoch_us(#{at + 1})" if at in instants else f"#{at + 1}"
        for at in range(len(found.columns))
    )
    return Answer.of(found.columns, instants, found.project(shown).fetchall())
