"""Files of the code that the pages name exist: they move, and pages stay behind."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md"), *_ROOT.glob("deploy/**/*.md")]
#: Paths are written from one of these.
_FOLDERS = (_ROOT, _ROOT / "proxy" / "leader_hints", _ROOT / "pipeline" / "leader_hints_report")
_NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|html|sh|java|go))`")


def test_pages_name_files() -> None:
    assert any(_NAMED.search(page.read_text(encoding="utf-8")) for page in _PAGES)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(_NAMED.findall(page.read_text(encoding="utf-8")))
    missing = {name for name in named if not any((folder / name).exists() for folder in _FOLDERS)}
    assert missing == set()
