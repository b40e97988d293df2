import json
from pathlib import Path

from leader_hints.observe import journal_schema
from leader_hints_report.journal.format import (
    ALWAYS,
    COLUMNS,
    KINDS,
    REQUIRED,
    SOMETIMES,
    VERSION,
)

_PUBLISHED = Path(__file__).parents[3] / "docs" / "journal.schema.json"
_TYPES = {
    "string": {"string"},
    "int": {"integer"},
    "bigint": {"integer"},
    "boolean": {"boolean"},
    "double": {"number"},
}


def test_the_columns_are_those_of_the_published_schema() -> None:
    schema = json.loads(_PUBLISHED.read_text(encoding="utf-8"))
    published = {name: of["type"] for name, of in schema["properties"].items()}
    assert list(COLUMNS) == list(published)
    for name, of in COLUMNS.items():
        assert published[name] in _TYPES[of.simpleString()], name
    assert schema["properties"]["version"]["const"] == VERSION


def test_what_each_kind_needs_is_as_published() -> None:
    schema = json.loads(_PUBLISHED.read_text(encoding="utf-8"))
    assert list(ALWAYS) == schema["required"]
    published = {
        one["if"]["properties"]["event"]["const"]: tuple(one["then"]["required"])
        for one in schema["allOf"]
    }
    assert published == REQUIRED


def test_what_each_kind_has_sometimes_is_what_sidecars_write() -> None:
    written = {
        kind: tuple(one.name for one in journal_schema.COLUMNS if kind in one.sometimes)
        for kind in journal_schema.KINDS
    }
    assert {*KINDS} == {*written}
    for kind, names in written.items():
        assert {*SOMETIMES.get(kind, ())} == {*names}, kind
