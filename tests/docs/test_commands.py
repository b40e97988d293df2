"""Commands that the pages give exist, with their flags."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from leader_hints.cli.main import cli
from leader_hints_report.cli import cli as report_cli

_ROOT = Path(__file__).parents[2]
#: The changelog names former commands, too.
_PAGES = [
    _ROOT / "README.md",
    _ROOT / "CONTRIBUTING.md",
    *_ROOT.glob("docs/**/*.md"),
    *_ROOT.glob("deploy/**/*.md"),
]
_COMMANDS: Final[dict[str, click.Command]] = {
    "leader-hints": cli,
    "leader-hints-report": report_cli,
}
#: In a block of the shell, also behind a folder or an image of the same name; or between backticks.
_BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"`(leader-hints(?:-report)? [^`]+)`")
#: The last one of a line: docker's own arguments name an image before it.
_CALL = re.compile(r"(?:^|.*[\s/;&(])(leader-hints(?:-report)? [^|;&#>)]*)")


def _calls(page: str) -> Iterator[str]:
    for block in _BLOCK.findall(page):
        for line in block.replace("\\\n", " ").splitlines():
            yield from _CALL.findall(line)
    yield from (" ".join(call.split()) for call in _QUOTED.findall(page))


def _unknown(call: str) -> list[str]:
    """Return the words of a call that its command does not have."""
    # What follows -- is a client's command.
    name, *words = shlex.split(call.partition(" -- ")[0])
    command, flags = _COMMANDS[name], {"--help", "--version"}
    for number, word in enumerate(words):
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(click.Context(command), word)
            if found is None:
                # A first word that is no command is prose behind the name.
                return [word] if number else []
            command = found
        flags |= {
            flag for option in command.params for flag in (*option.opts, *option.secondary_opts)
        }
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in flags]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_commands_that_a_page_gives_exist(page: Path) -> None:
    calls = [*_calls(page.read_text(encoding="utf-8"))]
    assert {call: unknown for call in calls if (unknown := _unknown(call))} == {}


def test_calls_are_found_on_pages() -> None:
    found = [call for page in _PAGES for call in _calls(page.read_text(encoding="utf-8"))]
    assert {call.split()[0] for call in found} == {*_COMMANDS}


@pytest.mark.parametrize(
    ("call", "unknown"),
    [
        ("leader-hints run --route a=b", []),
        ("leader-hints run --rout a=b", ["--rout"]),
        ("leader-hints config chek", ["chek"]),
        ("leader-hints conformance -- client --own-flag", []),
    ],
)
def test_a_flag_that_is_gone_is_found(call: str, unknown: list[str]) -> None:
    assert _unknown(call) == unknown
