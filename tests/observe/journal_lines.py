"""Checks lines of the journal: against the published schema, and their numbers."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema

from leader_hints.observe.journal_schema import COLUMNS

PUBLISHED = Path(__file__).parents[2] / "docs" / "journal.schema.json"
_VALIDATOR = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text(encoding="utf-8")))

Line = dict[str, Any]


def checked(line: bytes) -> Line:
    """Return a line read, after it was held against the schema.

    The schema lets unknown columns pass, for versions to come. What is written has none.
    """
    assert line.isascii()
    assert all(byte >= 0x20 and byte != 0x7F for byte in line)
    read: Line = json.loads(line)
    _VALIDATOR.validate(read)
    kinds = {column.name: (*column.always, *column.sometimes) for column in COLUMNS}
    for name in read:
        assert read["event"] in kinds[name], f"{name} in {read}"
    return read


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of one run by number: each once, and missing ones only where a gap is."""
    run = sorted(lines, key=lambda line: line["seq"])
    assert len({line["run"] for line in run}) <= 1
    numbers = {line["seq"] for line in run}
    assert len(numbers) == len(run), "a number stands twice"
    for gap in (line for line in run if line["event"] == "gap"):
        dropped = range(gap["first_seq"], gap["last_seq"] + 1)
        assert len(dropped) == gap["dropped"]
        assert not numbers & set(dropped)
        numbers |= set(dropped)
    assert numbers == set(range(len(numbers)))
    return run
