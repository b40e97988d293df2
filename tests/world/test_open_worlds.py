"""The list of worlds that are known to break a rule hides nothing else, and gets shorter."""

import sys

import pytest

from tests.world import __main__ as command
from tests.world import workers
from tests.world.open_worlds import OPEN
from tests.world.rules import RULES


@pytest.mark.parametrize(
    ("listed", "broken", "code"),
    [("", "", 0), ("", "one", 1), ("one", "one", 0), ("one", "another", 1), ("one", "", 1)],
)
def test_only_the_listed_rule_may_break(
    monkeypatch: pytest.MonkeyPatch, listed: str, broken: str, code: int
) -> None:
    monkeypatch.setattr(workers, "_first_broken", lambda seed: broken if seed == 1 else "")
    monkeypatch.setattr(command, "OPEN", {1: listed} if listed else {})
    monkeypatch.setattr(sys, "argv", ["tests.world", "--seeds", "3", "--brief", "--known"])
    assert command.main() == code


def test_without_the_option_a_listed_world_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_first_broken", lambda seed: "one" if seed == 1 else "")
    monkeypatch.setattr(command, "OPEN", {1: "one"})
    monkeypatch.setattr(sys, "argv", ["tests.world", "--seeds", "3", "--brief"])
    assert command.main() == 1


def test_rules_of_the_list_exist() -> None:
    assert set(OPEN.values()) <= {rule.__name__ for rule in RULES}
