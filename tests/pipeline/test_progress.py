"""What a command says of its steps: on a terminal, and nowhere else."""

import sys

import pytest

from leader_hints_report.progress import steps


@pytest.mark.parametrize(
    ("terminal", "shown"), [(True, "leader-hints-report: tables\n"), (False, "")]
)
def test_a_step_is_named_on_a_terminal_alone(
    terminal: bool,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with steps() as told:
        told("tables")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", shown)
