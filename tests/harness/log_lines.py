"""The names that lines of the proxy's log can have."""

import re

from tests.harness.maven import ROOT

_PAGE = ROOT / "docs" / "events.md"
#: As the page has them, which a test holds to the code.
LOG_LINES = frozenset(re.findall(r"^## (\w+)$", _PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def check_name(name: str) -> None:
    """Raise AssertionError for a name that no line can have: to look for it would prove nothing."""
    assert name in LOG_LINES, f"no line of the log is called {name}"
