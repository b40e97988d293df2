"""What a question was answered, and how that is written.

Tested in ``tests/pipeline/query/test_answer.py``.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from leader_hints_report.text import escape, to_csv

_APART: Final = "  "
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    """``columns``: their names; ``rows``: a value for each. Instants are text in UTC, as in the
    journal: 2026-01-02T03:04:05.000006Z."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @classmethod
    def of(
        cls, columns: Sequence[str], instants: Collection[int], rows: Sequence[Sequence[Any]]
    ) -> "Answer":
        """``instants``: the places of those columns that are microseconds since 1970."""
        if not instants:
            return cls(columns, rows)
        return cls(
            columns,
            [
                tuple(_instant(of) if at in instants else of for at, of in enumerate(row))
                for row in rows
            ],
        )


def _instant(micros: int | None) -> str | None:
    if micros is None:
        return None
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def to_table(answer: Answer) -> str:
    """Write columns one under another. Text is escaped; an absent value is left empty."""
    cells = [[*map(escape, answer.columns)], *([_shown(of) for of in row] for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numbers = [
        bool(column) and all(isinstance(of, int | float | Decimal | None) for of in column)
        for column in _columns(answer)
    ]
    cells.insert(1, ["-" * width for width in widths])
    return "".join(
        _APART.join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        + "\n"
        for row in cells
    )


def to_comma_separated(answer: Answer) -> str:
    """Write CSV, which a spreadsheet takes for text where it is text."""
    return to_csv(answer.columns, [[_flat(of) for of in row] for row in answer.rows])


def to_json(answer: Answer) -> str:
    """Write an object for each row. A number that JSON has not, such as NaN, is null."""
    rows = [
        {name: _plain(of) for name, of in zip(answer.columns, row, strict=True)}
        for row in answer.rows
    ]
    return "[" + ",".join(f"\n{json.dumps(row, ensure_ascii=False)}" for row in rows) + "\n]\n"


#: By the name of the format.
FORMATS: Final[Mapping[str, Callable[[Answer], str]]] = {
    "table": to_table,
    "csv": to_comma_separated,
    "json": to_json,
}


def _columns(answer: Answer) -> list[tuple[object, ...]]:
    return [*zip(*answer.rows, strict=True)] if answer.rows else [() for _ in answer.columns]


def _shown(value: object) -> str:
    flat = _flat(value)
    return "" if flat is None else escape(str(flat))


def _flat(value: object) -> object:
    """A value as one cell."""
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, str | int | float) else json.dumps(plain)


def _plain(value: object) -> object:
    """A value in words of JSON."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    if isinstance(value, dict):
        return {str(name): _plain(of) for name, of in value.items()}
    return str(value)
