"""The table of findings: every one can be made, says what to do, and is provoked by a test."""

import re
from pathlib import Path

import pytest

from leader_hints.check.findings import TABLE, Severity, finding

_REAL = Path(__file__).parents[1] / "real" / "test_doctor.py"
_RULES = Path(__file__).parents[2] / "proxy" / "leader_hints" / "check"


@pytest.mark.parametrize("code", TABLE)
def test_a_finding_says_what_and_what_to_do(code: str) -> None:
    entry = TABLE[code]
    words = {word: word.upper() for word in re.findall(r"{(\w+)}", entry.text + entry.remedy)}

    made = finding(code, "r", **words)

    assert (made.code, made.severity, made.route) == (code, entry.severity, "r")
    for word in words.values():
        assert word in made.text + made.remedy
    assert entry.meaning.endswith(".")
    assert bool(made.remedy) is (made.severity is not Severity.FINE)


def test_braces_in_what_came_from_the_network_stay() -> None:
    made = finding("upstream_not_kafka", upstream="{x}", reason="{0} {y!r}")

    assert "{x}" in made.text
    assert "{0} {y!r}" in made.text


@pytest.mark.parametrize("code", TABLE)
def test_a_finding_is_made_and_a_test_provokes_it_on_real_brokers(code: str) -> None:
    rules = "".join(file.read_text(encoding="utf-8") for file in _RULES.glob("*rules.py"))
    assert f'"{code}"' in rules
    assert f'"{code}"' in _REAL.read_text(encoding="utf-8")
