"""Names of the code in docstrings, comments and pages exist: code moves, and words stay behind."""

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

_ROOT = Path(__file__).parents[2]
_SOURCES = [_ROOT / "proxy" / "leader_hints", _ROOT / "pipeline" / "leader_hints_report"]
_CODE = [
    file
    for folder in (*_SOURCES, *(_ROOT / name for name in ("bench", "demo", "release", "tests")))
    for file in sorted(folder.rglob("*.py"))
    if file != Path(__file__)
]
_PAGES = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md"), *_ROOT.glob("deploy/**/*.md")]
#: In quotes, as :class:`...` or ``...``; the pages' own code uses the fixture `leader_hints`.
_NAME = re.compile(r"`(leader_hints(?:_report)?(?:\.\w+)+)(?:\(\))?`")
#: As docstrings of folders say it: core/cluster, net/metadata/hold_timer.
_LAYERS = "apis|app|check|conformance|core|faults|local|mock|net|observe|settings|wire"
_PLACE = re.compile(rf"(?<![\w./-])((?:{_LAYERS})(?:/[a-z_0-9]+)+)(?![\w/]|\.[a-z])")


def _missing_names(text: str) -> Iterator[str]:
    for name in _NAME.findall(text):
        try:
            resolve_name(name)
        except (AttributeError, ImportError):
            yield name


def _missing_places(text: str) -> Iterator[str]:
    for place in _PLACE.findall(text):
        path = _SOURCES[0] / place
        if not path.is_dir() and not path.with_suffix(".py").is_file():
            yield place


@pytest.mark.parametrize("file", [*_CODE, *_PAGES], ids=lambda file: str(file.relative_to(_ROOT)))
def test_what_a_text_refers_to_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert {*_missing_names(text)} == set()


@pytest.mark.parametrize("file", _CODE, ids=lambda file: str(file.relative_to(_ROOT)))
def test_places_that_code_names_exist(file: Path) -> None:
    assert {*_missing_places(file.read_text(encoding="utf-8"))} == set()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see :class:`leader_hints.settings.Gone`", {"leader_hints.settings.Gone"}),
        ("``leader_hints.gone``", {"leader_hints.gone"}),
        ("`leader_hints.settings.hold.HoldSettings`", set()),
    ],
)
def test_a_name_that_is_gone_is_found(text: str, missing: set[str]) -> None:
    assert {*_missing_names(text)} == missing


def test_a_place_that_is_gone_is_found() -> None:
    text = "in core/gone, core/link and net/metadata/hold_timer"
    assert {*_missing_places(text)} == {"core/gone"}
