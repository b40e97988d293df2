"""What the harness does not find is distinguished from what is not there."""

from pathlib import Path

import pytest

from tests.harness.proxyproc import ProxyProcess

_METRICS = "# HELP seen A counter.\n# TYPE seen counter\nseen_total 2.0\n"
_EMPTY = "# HELP seen A counter.\n# TYPE seen counter\n"


@pytest.fixture
def process(tmp_path: Path) -> ProxyProcess:
    """A proxy that is never started."""
    return ProxyProcess([], tmp_path / "proxy.log")


def test_a_metric_that_there_is_not_is_no_zero(
    process: ProxyProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "get", lambda path: _METRICS)
    assert process.metric("seen_total") == 2
    with pytest.raises(AssertionError, match="no metric sen_total"):
        process.metric("sen_total")
    monkeypatch.setattr(process, "get", lambda path: _EMPTY)
    assert process.metric("seen_total") == 0


def test_a_line_that_the_log_cannot_have_is_not_looked_for(process: ProxyProcess) -> None:
    process.log.write_text('{"event": "hint_given", "level": "debug"}\n', encoding="utf-8")
    assert process.events("hint_given")
    assert not process.events("hint_missed")
    with pytest.raises(AssertionError, match="called hints_given"):
        process.events("hints_given")
