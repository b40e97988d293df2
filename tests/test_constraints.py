"""The pinned versions: `make demo` and `make test` set up all on whatever Python we promise."""

import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

_ROOT = Path(__file__).parents[1]
_INSTALLED = sorted(distributions(), key=lambda one: one.name)


def _oldest_python() -> str:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['requires-python'].removeprefix('>=')}.0"


@pytest.mark.parametrize("installed", _INSTALLED, ids=lambda one: one.name)
def test_what_is_installed_takes_the_oldest_python(installed: Distribution) -> None:
    """Debian 12 has 3.11.2, and a pinned tool of the documentation wanted 3.11.5."""
    needs = installed.metadata["Requires-Python"] or ""
    assert _oldest_python() in SpecifierSet(needs)
