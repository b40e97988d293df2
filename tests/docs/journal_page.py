"""docs/journal-events.md: the journal's kinds of events and their columns, from the tables."""

from leader_hints.observe.journal_schema import COLUMNS, KIND_MEANINGS, KINDS, Column, Kind

_HEAD = """\
# Journal events

The kinds of events in the [journal](journal.md), and their columns. Programs find the same in
[journal.schema.json](journal.schema.json).

"""
_TAIL = "`make docs` generates this page from the journal's tables.\n"


def page() -> str:
    """The page's text."""
    return _HEAD + _common() + "".join(_section(kind) for kind in KINDS) + _TAIL


def _common() -> str:
    columns = [_row(column, "") for column in COLUMNS if column.always == KINDS]
    return _table("In every event", "", columns)


def _section(kind: Kind) -> str:
    meaning = KIND_MEANINGS[kind]
    own = [
        _row(column, "" if kind in column.always else "where known")
        for column in COLUMNS
        if column.always != KINDS and kind in column.always + column.sometimes
    ]
    return _table(kind, f"{meaning[0].upper()}{meaning[1:]}.\n\n", own)


def _table(heading: str, meaning: str, rows: list[str]) -> str:
    head = f"## {heading}\n\n{meaning}"
    if not rows:
        return head
    return f"{head}| column | type | meaning |\n|---|---|---|\n{''.join(rows)}\n"


def _row(column: Column, when: str) -> str:
    kind = f"{column.type}, {when}" if when else column.type
    return f"| `{column.name}` | {kind} | {column.meaning} |\n"
