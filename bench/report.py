"""Sections of a Markdown page, each written by one benchmark and left alone by the others."""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import click

from bench.samples import Samples

#: What was measured, the figure, its target, and whether that is met.
Verdict = tuple[str, str, str, bool]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are right-aligned."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def write_section(page: Path, name: str, text: str) -> None:
    """Replace the text between the markers of section ``name``.

    :raises ValueError: the page has no such section.
    """
    begin, end = f"<!-- {name}: written by make bench -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    replaced, count = pattern.subn(lambda _: f"{begin}\n\n{text}\n\n{end}", page.read_text())
    if count != 1:
        raise ValueError(f"{page} must have the section {name!r} once, but has it {count} times")
    page.write_text(replaced)


def target_table(verdicts: Iterable[Verdict], what: str = "figure") -> str:
    """Return a table of all targets, and whether each is met."""
    rows = [[*texts, "yes" if met else "no"] for *texts, met in verdicts]
    return table([what, "measured", "target", "met"], rows)


def finish(
    page: Path, name: str, text: str, samples: Samples, verdicts: Iterable[Verdict], *, write: bool
) -> NoReturn:
    """Print a section, write it and its samples if asked to, and end: with 1 on a missed target."""
    click.echo(text)
    if write:
        samples.write(name)
        write_section(page, name, text)
    sys.exit(0 if all(met for *_, met in verdicts) else 1)
