"""Lines that look as sidecars write them, read and stored by DuckDB at a fraction of Spark's work.

Most lines are such. They give the same rows as :func:`leader_hints_report.journal.events.read`, and
what is not certainly such is left to that.

Tested in ``tests/pipeline/journal/test_plain_lines.py``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import (
    BAD_PART,
    LONGEST_LINE,
    NOT_JSON,
    PART_OF,
    REST,
    STORED,
    read,
)
from leader_hints_report.journal.format import (
    ALWAYS,
    COLUMNS,
    DAYS,
    KINDS,
    RANGES,
    REQUIRED,
    SOMETIMES,
    VERSION,
)

#: By the names of Spark's types: those of DuckDB, and how a value of one looks. A number that does
#: not fit in its type is none for DuckDB, and then the line is not plain.
_TYPES: Final = {
    "int": ("INTEGER", "-?(?:0|[1-9][0-9]*)"),
    "bigint": ("BIGINT", "-?(?:0|[1-9][0-9]*)"),
    "double": ("DOUBLE", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"),
    "boolean": ("BOOLEAN", "(?:true|false)"),
    "string": ("VARCHAR", r'"[^"\\\x00-\x1f]*"'),
}
_TIME: Final = (
    r'"time":"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"'
)

#: An object that nothing closes is no JSON to anybody: what a process leaves that was killed as it
#: wrote. Not where Spark would end a line, or keep less of it.
_IS_TORN: Final = (
    f"(line[1] = '{{' AND NOT contains(line, '}}') AND NOT contains(line, chr(13)) "
    f"AND strlen(line) <= {LONGEST_LINE})"
)

#: Where lines that are neither plain nor torn are put, until they are read.
ODD_PART: Final = "odd"
#: How the names of files end that are read so: compressed ones are few.
PLAIN_FILE: Final = ".jsonl"
#: Of local files whose names are no patterns to DuckDB, and need no escapes in a URL.
_LOCAL: Final = re.compile(r"file:(?://)?(/[\w./=@+-]*)", re.ASCII)
#: Bytes of journal in memory at a time, as rows that wait for their part and day to be written:
#: there may be many days. Files of one portion are as large as those of a task of Spark's.
_AT_ONCE: Final = 256_000_000
_ROW_GROUP: Final = 122_880
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "memory_limit": "2GB",
    # Nothing is fetched, and nothing written but rows.
    "autoinstall_known_extensions": False,
    "temp_directory": "",
    "preserve_insertion_order": False,
}


def local(path: str) -> str | None:
    """Where on this machine a file or folder of Spark's is; ``None``: elsewhere, or not surely."""
    found = _LOCAL.fullmatch(path)
    return found[1] if found else None


def store(sizes: Mapping[str, int], folder: str, cores: int) -> list[str]:
    """Write the rows of local files to ``folder``, by part and day; return the files that are there
    and cannot be read so, of which nothing is written.

    ``sizes``: of the files, in bytes. Lines that are neither plain nor torn become rows of
    :data:`ODD_PART` with their ``source``.
    """
    left: list[str] = []
    Path(folder).mkdir(parents=True, exist_ok=True)
    with duckdb.connect(config=_CONFIG | {"threads": cores}) as database:
        database.execute(f"SET partitioned_write_flush_threshold = {_ROW_GROUP}")
        for number, files in enumerate(_portions(sizes)):
            name = f"{number:05}"
            if not _copied(database, files, folder, name):
                # Most often for one file of many: bytes that are no text, or it was removed.
                bad = _unreadable(database, files)
                rest = sorted({*files} - {*bad})
                done = bad and rest and _copied(database, rest, folder, name)
                left += bad if done else files
    return [file for file in left if Path(file).exists()]


def _portions(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The files in portions of about :data:`_AT_ONCE`."""
    portion: list[str] = []
    size = 0
    for file, of in sizes.items():
        if portion and size + of > _AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(file)
        size += of
    if portion:
        yield portion


def read_odd(rows: DataFrame) -> DataFrame:
    """Judge the lines of rows of :data:`ODD_PART`; Spark's lines also end at a carriage return."""
    lines = F.explode(F.split("line", "\\r"))
    return read(rows.select("source", lines.alias("line")))


def _copied(
    database: duckdb.DuckDBPyConnection, files: Sequence[str], folder: str, name: str
) -> bool:
    """Write their rows to files of a name; ``False``, and there are none, where that fails."""
    rows = f"""
        COPY (
            SELECT {ROW} FROM (
                SELECT *, {IS_PLAIN} AS plain FROM (
                    SELECT *, {INSTANT} AS instant
                    FROM (SELECT filename, line, {EVENT} AS event FROM {_lines(files)})
                    WHERE line IS NOT NULL
                )
            )
        ) TO {_literal(folder)} (
            FORMAT parquet, COMPRESSION zstd, PARTITION_BY (part, day), APPEND,
            FILENAME_PATTERN 'part-{name}-{{uuid}}'
        )
        """
    try:
        database.execute(rows)
    except duckdb.Error:
        for torn in Path(folder).glob(f"*/*/part-{name}-*"):
            torn.unlink()
        return False
    return True


def _unreadable(database: duckdb.DuckDBPyConnection, files: Sequence[str]) -> list[str]:
    """The files that have lines of no text, or are not there."""
    try:
        database.execute(f"SELECT count(line) FROM {_lines(files)}").fetchall()
    except duckdb.Error:
        if len(files) == 1:
            return list(files)
        half = len(files) // 2
        return [*_unreadable(database, files[:half]), *_unreadable(database, files[half:])]
    return []


def _looks() -> str:
    """The pattern of a plain line. It has no escapes, so that no quote stands in a text."""
    of_type: dict[str, list[str]] = {}
    for name, of in COLUMNS.items():
        if name != "time":
            of_type.setdefault(_TYPES[of.simpleString()][1], []).append(name)
    members = [f'"(?:{"|".join(names)})":{value}' for value, names in of_type.items()]
    member = f"(?:{'|'.join([_TIME, *members])})"
    return rf"\{{{member}(?:,{member})*\}}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_plain() -> str:
    """Whether ``line``, parsed as ``event`` of an ``instant``, is a good line of which nothing need
    be kept.

    Only the columns that its kind may have are asked for.
    """
    # A text that begins with a colon counts as a name too: then the line is not plain.
    names = "strlen(line) - strlen(replace(line, '\":', '\"'))"
    of_kinds = " ".join(f"WHEN {_literal(kind)} THEN {_names_of(kind)}" for kind in KINDS)
    first, last = DAYS
    conditions = [
        # A name that comes twice, and a value that does not fit, are one column less.
        f"{names} = CASE event.event {of_kinds} END",
        *_are_good(ALWAYS, ()),
        f"event.version <= {VERSION}",
        f"instant BETWEEN TIMESTAMPTZ '{first}T00:00:00Z' AND "
        f"TIMESTAMPTZ '{last}T23:59:59.999999Z'",
    ]
    return f"coalesce({' AND '.join(f'({one})' for one in conditions)}, false)"


def _names_of(kind: str) -> str:
    """How many names a good line of a kind has; null: it is none."""
    needed, sometimes = REQUIRED.get(kind, ()), SOMETIMES.get(kind, ())
    present = (f"(event.{name} IS NOT NULL)::INT" for name in sometimes)
    count = " + ".join([str(len(ALWAYS) + len(needed)), *present])
    good = " AND ".join(["true", *_are_good(needed, sometimes)])
    return f"CASE WHEN {good} THEN {count} END"


def _are_good(needed: Sequence[str], sometimes: Sequence[str]) -> list[str]:
    """Conditions: what is needed is there, and what is there is in its range."""
    there = [f"event.{name} IS NOT NULL" for name in needed]
    ranges = {name: RANGES[name] for name in (*needed, *sometimes) if name in RANGES}
    return there + [
        f"coalesce(event.{name} BETWEEN {least} AND {most}, true)"
        for name, (least, most) in ranges.items()
    ]


def _row() -> str:
    """The columns of a stored row, from ``event`` and its ``instant`` where it is ``plain``, else
    ``line`` itself."""
    parts = " ".join(f"WHEN {_literal(kind)} THEN '{part}'" for kind, part in PART_OF.items())
    columns = {name: f"event.{name}" for name in COLUMNS} | {
        "time": "instant",
        "source": "CASE WHEN NOT plain THEN 'file:' || filename END",
        "line": "CASE WHEN NOT plain THEN line END",
        "fault": f"CASE WHEN NOT plain AND {_IS_TORN} THEN '{NOT_JSON}' END",
        "part": f"CASE WHEN plain THEN CASE event.event {parts} ELSE '{REST}' END "
        f"WHEN {_IS_TORN} THEN '{BAD_PART}' ELSE '{ODD_PART}' END",
        "day": "TRY_CAST(event.time[1:10] AS DATE)",
    }
    return ", ".join(f'{columns[name]} AS "{name}"' for name in STORED.names)


def _parsed() -> str:
    """``event``, a struct of all columns; null where ``line`` does not look plain: what is not JSON
    would end the query."""
    columns = ",".join(f'"{name}":"{_TYPES[of.simpleString()][0]}"' for name, of in COLUMNS.items())
    looks = f"regexp_full_match(line, {_literal(_looks())})"
    return f"CASE WHEN {looks} THEN from_json(line, '{{{columns}}}') END"


EVENT: Final = _parsed()
INSTANT: Final = "TRY_CAST(event.time AS TIMESTAMPTZ)"
IS_PLAIN: Final = _is_plain()
ROW: Final = _row()


def _lines(files: Sequence[str]) -> str:
    listed = ", ".join(map(_literal, files))
    # Lines are one column: JSON has no such delimiter, and a file that has it cannot be read so.
    return (
        f"read_csv([{listed}], columns = {{'line': 'VARCHAR'}}, auto_detect = false, "
        "header = false, delim = '\x01', new_line = '\\n', quote = '', escape = '', "
        "filename = true, hive_partitioning = false)"
    )
