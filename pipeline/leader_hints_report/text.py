"""Text that came from the network or from files of others, made fit to be shown."""

import csv
import io
from collections.abc import Iterable
from typing import Final

#: What spreadsheets take for the beginning of a formula.
_FORMULA: Final = ("=", "+", "-", "@")


def escape(text: str) -> str:
    """The text with each backslash and each character that does not print as a Python escape.

    Two different texts stay different. Letters of every script stay as they are.
    """
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode()
        for char in text
    )


def shorten(text: str, length: int) -> str:
    """The text, escaped, or its beginning and an ellipsis where it has more characters."""
    shown = escape(text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def to_csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV. Text is escaped, and begins with an apostrophe where a spreadsheet would
    take it for a formula. None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = escape(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
