"""Sections of a Markdown page, each written by one benchmark and left alone by the others."""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NoReturn

import click

from bench.samples import Samples
from bench.statistics import interval, ratio_interval

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
    page.write_text(with_section(page, page.read_text(), name, text))


def with_section(page: Path, whole: str, name: str, text: str, by: str = "make bench") -> str:
    """Return the ``whole`` text of a page with another one in a section. ``by``: what writes it.

    :raises ValueError: the page does not have that section once.
    """
    begin, end = f"<!-- {name}: written by {by} -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    replaced, count = pattern.subn(lambda _: f"{begin}\n\n{text}\n\n{end}", whole)
    if count != 1:
        raise ValueError(f"{page} must have the section {name!r} once, but has it {count} times")
    return replaced


def target_table(verdicts: Iterable[Verdict], what: str = "figure") -> str:
    """Return a table of all targets, and whether each is met."""
    rows = [[*texts, "yes" if met else "no"] for *texts, met in verdicts]
    return table([what, "measured", "target", "met"], rows)


def with_interval(values: Sequence[float], digits: int) -> str:
    """Return a median and its 95 % interval."""
    low, high = interval(values)
    return f"{median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def judge_ratio(
    name: str,
    above: Sequence[float],
    below: Sequence[float],
    *,
    most: float | None = None,
    least: float | None = None,
) -> Verdict:
    """Compare two medians: their ratio, its 95 % interval, and whether it is within a target."""
    ratio = median(above) / median(below)
    low, high = ratio_interval(above, below)
    text = f"{ratio:.2f} ({low:.2f} to {high:.2f})"
    if least is not None:
        return name, text, f"at least {least}", ratio >= least
    assert most is not None
    return name, text, f"at most {most}", ratio <= most


def finish(
    page: Path, name: str, text: str, samples: Samples, verdicts: Iterable[Verdict], *, write: bool
) -> NoReturn:
    """Print a section, write it and its samples if asked to, and end: with 1 on a missed target."""
    click.echo(text)
    if write:
        samples.write(name)
        write_section(page, name, text)
    sys.exit(0 if all(met for *_, met in verdicts) else 1)
