"""SIGHUP: what a running process takes of changed settings, and what it refuses."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, LogLine, ProxyProcess
from tests.harness.waiting import until


class _Process(ProxyProcess):
    """`run` with a file alone, which a test changes."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] = {},
        upstream: tuple[str, int] = ("127.0.0.1", 9),
    ) -> None:
        super().__init__([], folder / "log")
        self._file = folder / "settings.yaml"
        self._route = {
            "name": "r",
            "listen": f"127.0.0.1:{free_ports(1)[0]}",
            "upstream": ":".join(map(str, upstream)),
        }
        self._listeners = 1
        self.environment = {"LEADER_HINTS_STUCK_MS": "60000", **environment}
        self._argv = [
            *(sys.executable, "-m", "leader_hints.cli.main", "run", "--config", str(self._file)),
            *("--admin", f"127.0.0.1:{self._admin}", "--log-format", "json"),
        ]
        self.write()

    def write(self, **settings: Any) -> None:
        """Write the file, with these settings beside the route."""
        text = yaml.safe_dump({"routes": [self._route], **settings})
        self._file.write_text(text, encoding="utf-8")

    def after(self, event: str, **settings: Any) -> LogLine:
        """Write the file, send SIGHUP, and return the line of that event."""
        self.write(**settings)
        before = len(self.events(event))
        self.signal(signal.SIGHUP)
        until(lambda: len(self.events(event)) > before, event)
        return self.events(event)[-1]

    def hints(self) -> str:
        """What the route does about hints."""
        found: str = self.status()["routes"][0]["hints"]
        return found


@pytest.fixture
def process(tmp_path: Path) -> Iterator[_Process]:
    """A process in front of no broker."""
    with _Process(tmp_path) as made:
        yield made


def test_settings_that_are_safe_are_taken(process: _Process) -> None:
    line = process.after("settings_reloaded", hints="observe", log={"levels": {"hints": "debug"}})
    assert line["keys"] == ["hints", "log.levels.hints"]
    assert process.hints() == "observe"
    assert process.after("settings_reloaded", hints="observe")["keys"] == ["log.levels.hints"]
    assert process.after("settings_reloaded", hints="observe")["keys"] == []


def test_settings_that_are_not_safe_are_refused_with_their_keys(process: _Process) -> None:
    line = process.after("settings_refused", hints="off", hold={"deadline_ms": 7}, drain_ms=5)
    assert line["keys"] == ["drain_ms", "hold.deadline_ms"]
    assert line["level"] == "warning"
    # All or nothing.
    assert process.hints() == "on"


def test_a_file_that_is_not_allowed_changes_nothing(process: _Process) -> None:
    line = process.after("settings_refused", hints="loud")
    assert line["keys"] == []
    assert 'hints is "loud"; allowed: on, observe, off' in line["reason"]
    assert process.hints() == "on"
    assert process.after("settings_reloaded", hints="off")["keys"] == ["hints"]
    assert process.hints() == "off"


def test_an_admin_token_whose_reading_hangs_is_read_again_after_the_signal(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("right\n")
    with _Process(tmp_path, {"LEADER_HINTS_ADMIN_TOKEN": f"file:{token}"}) as process:
        (route,) = process.status()["routes"]
        # A disk that hangs: to open this for reading waits for a writer.
        token.unlink()
        os.mkfifo(token)
        with pytest.raises(TimeoutError):
            process.switch_hints(route["name"], "off", token="right", seconds=0.5)
        token.unlink()
        token.write_text("right\n")
        process.after("settings_reloaded")
        process.switch_hints(route["name"], "off", token="right")
        assert process.hints() == "off"


@pytest.mark.parametrize(("settings", "switch"), [("off", None), ("observe", "off")])
def test_what_is_read_again_while_another_process_takes_over_counts_there_too(
    tmp_path: Path, settings: Hints, switch: Hints | None
) -> None:
    """The other one had read the settings before: hints that were switched off came back."""
    environment = {
        "LEADER_HINTS_TAKEOVER": str(tmp_path / "takeover"),
        "LEADER_HINTS_SWITCH_FILE": str(tmp_path / "switches"),
        # The new process waits for its broker before it takes over.
        "LEADER_HINTS_TOPIC_IDS": "synthesize",
        "LEADER_HINTS_TOPIC_IDS_WAIT_MS": "2000",
    }
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        _Process(tmp_path, environment, silent.getsockname()) as process,
    ):
        process.signal(signal.SIGUSR2)
        (begun,) = until(lambda: process.events("takeover_begun"), "the new process begins")
        process.after("settings_reloaded", hints=settings)
        if switch:
            process.switch_hints("r", switch)
        until(lambda: process.events("taken_over"), "the new process takes over")
        until(lambda: len(process.events("listening")) == 2, "it serves")
        assert process.hints() == (switch or settings)
        if switch:
            assert json.loads((tmp_path / "switches").read_text()) == {"r": switch}
        os.kill(begun["successor"], signal.SIGTERM)
        until(lambda: len(process.events("stopped")) == 2, "both end")
