import pytest

from demo.screen import WIDTH, Screen
from demo.summary import summarize
from tests.demo.reports import good_move, good_round, hint_line


def show_everything(screen: Screen) -> None:
    screen.introduce(lag_ms=20.0)
    with screen.round(number=1, rounds=4, hints_on=True):
        screen.move(good_move(hints=(hint_line(hold_ms=12.4), hint_line(hold_ms=3.0))))
        screen.move(good_move(fetch_ms=None))
    screen.summarize(summarize([good_round(False), good_round(True)]))
    screen.passed()
    screen.failed(["traffic went past the proxy: a client connected to [::1]:9."])


def test_plain_lines_where_the_output_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_everything(Screen(plain=False))
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert "partition 0: 1 -> 2   Fetch  120 ms   Produce  100 ms   hint x2, held 12 ms" in shown
    assert "partition 0: 1 -> 2   Fetch    none   Produce  100 ms   no hint" in shown
    assert "[::1]:9" in shown


def test_plain_lines_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any output for a terminal.
    show_everything(Screen(plain=True))
    assert "\x1b" not in capsys.readouterr().out
