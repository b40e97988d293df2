"""The pinned versions: `make demo` and `make test` set up all on whatever Python we promise."""

import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.specifiers import SpecifierSet

_ROOT = Path(__file__).parents[1]
_INSTALLED = [*distributions()]


def _oldest_python() -> str:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['requires-python'].removeprefix('>=')}.0"


def test_what_is_installed_takes_the_oldest_python() -> None:
    """Debian 12 has 3.11.2, and a pinned tool of the documentation wanted 3.11.5."""
    oldest = _oldest_python()
    needs = {one.name: one.metadata["Requires-Python"] or "" for one in _INSTALLED}
    assert {name: of for name, of in needs.items() if oldest not in SpecifierSet(of)} == {}
