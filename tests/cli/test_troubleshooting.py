"""docs/troubleshooting.md explains each finding as the table has it."""

import re
from pathlib import Path

import pytest

from leader_hints.check.findings import TABLE, Severity

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_SEVERITIES = {
    Severity.PROBLEM: "problem",
    Severity.ADVICE: "advice",
    Severity.FINE: "fine",
}


def section(code: str) -> str:
    """What the page has to say of a finding."""
    entry = TABLE[code]
    parts = [
        f"### {code}",
        f"{_SEVERITIES[entry.severity].capitalize()}: *{_for_people(entry.text)}*",
        entry.meaning,
    ]
    if entry.remedy:
        parts.append(f"**Remedy:** {_for_people(entry.remedy)}")
    return "\n\n".join(parts)


def _for_people(text: str) -> str:
    return re.sub(r"{(\w+)}", lambda word: word[1].upper(), text)


def _sections() -> dict[str, str]:
    _, *sections = re.split(r"^(?=### )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    # A heading of a higher level ends the section before it.
    bodies = (re.split(r"^#{1,2} ", text, flags=re.MULTILINE)[0].strip() for text in sections)
    return {body.splitlines()[0].removeprefix("### "): body for body in bodies}


def test_it_has_the_findings_of_the_table_in_their_order() -> None:
    assert list(_sections()) == list(TABLE)


@pytest.mark.parametrize("code", TABLE)
def test_it_explains_a_finding_as_the_table_does(code: str) -> None:
    assert _sections()[code] == section(code)
