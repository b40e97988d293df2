"""The benchmarks' names: what is written beside the figures is what `make bench` takes."""

import re
import shlex
from pathlib import Path

import click

from bench.__main__ import benchmarks

_ROOT = Path(__file__).parents[2]
_WRITTEN = re.compile(r'make bench WHAT=(\w+)(?: ARGS="([^"]*)")?')


def _written() -> list[tuple[str, str]]:
    """Name and arguments of each command in the pages."""
    pages = [_ROOT / "CONTRIBUTING.md", *_ROOT.glob("docs/**/*.md")]
    return [one for page in pages for one in _WRITTEN.findall(page.read_text(encoding="utf-8"))]


def test_every_benchmark_is_written_of_and_none_other() -> None:
    assert {name for name, _ in _written()} == set(benchmarks.commands)


def test_the_arguments_that_are_written_are_understood() -> None:
    given = {(name, arguments) for name, arguments in _written() if arguments}
    assert given
    for name, arguments in given:
        # Raises where an option or its value is none.
        benchmarks.commands[name].make_context(name, shlex.split(arguments))


def test_pages_name_no_other_way() -> None:
    for page in _ROOT.glob("docs/**/*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"make bench-|python -m bench\b", text), page


def test_each_says_in_a_line_what_it_measures() -> None:
    for name, command in benchmarks.commands.items():
        assert isinstance(command, click.Command)
        assert command.get_short_help_str(200), name
