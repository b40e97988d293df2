"""docs/troubleshooting.md says what to do about each bad log line, and explains each reason."""

import re

from leader_hints.core.hints.miss_reason import MissReason, Settling
from leader_hints.observe.event_log import LINES, name_of
from tests.docs.pages import DOCS


def _first_column(heading: str) -> list[str]:
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"\n## {heading}\n")
    return re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], flags=re.MULTILINE)


def test_it_says_what_to_do_about_each_warning_and_error() -> None:
    bad = {name_of(event) for event, line in LINES.items() if line.level in ("warning", "error")}

    rows = _first_column("Log lines")

    assert sorted(rows) == sorted(bad)


def test_it_explains_each_reason_why_an_error_got_no_hint() -> None:
    assert sorted(_first_column("Why an error got no hint")) == sorted(MissReason)
    assert sorted(_first_column("Why an error was not settled")) == sorted(Settling)
