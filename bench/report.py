"""Sections of a Markdown page, each written by one benchmark and left alone by the others."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are right-aligned."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def write_section(page: Path, name: str, text: str) -> None:
    """Replace what stands between the markers of section ``name``.

    :raises ValueError: the page has no such section.
    """
    begin, end = f"<!-- {name}: written by make bench -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    replaced, count = pattern.subn(lambda _: f"{begin}\n\n{text}\n\n{end}", page.read_text())
    if count != 1:
        raise ValueError(f"{page} must have the section {name!r} once, but has it {count} times")
    page.write_text(replaced)
