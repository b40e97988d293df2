"""What the kill switch keeps over a restart, if it is to."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import leader_hints
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until


def _process(folder: Path, log: str, file: Path, ports: list[int]) -> ProxyProcess:
    routes = [(("127.0.0.1", port), ("127.0.0.1", 9)) for port in ports]
    process = ProxyProcess(routes, folder / log)
    process.environment["LEADER_HINTS_SWITCH_FILE"] = str(file)
    return process


def _modes(process: ProxyProcess) -> list[str]:
    return [route["hints"] for route in process.status()["routes"]]


def test_a_switch_survives_a_restart_until_it_is_set_back(tmp_path: Path) -> None:
    file, ports = tmp_path / "switch.json", free_ports(2)
    first = f"127.0.0.1:{ports[0]}"
    with _process(tmp_path, "one", file, ports) as process:
        assert _modes(process) == ["on", "on"]
        process.switch_hints(first, "observe")
        until(file.exists, "the switch is kept")
    assert json.loads(file.read_text(encoding="utf-8")) == {first: "observe"}
    with _process(tmp_path, "two", file, ports) as process:
        assert _modes(process) == ["observe", "on"]
        (line,) = process.events("hints_switched")
        assert (line["route"], line["before"], line["hints"]) == (first, "on", "observe")
        process.switch_hints(first, "on")
        until(lambda: json.loads(file.read_text(encoding="utf-8")) == {}, "nothing is kept")
    with _process(tmp_path, "three", file, ports) as process:
        assert _modes(process) == ["on", "on"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", file.name, "three", "two"]


def test_a_file_that_cannot_be_written_changes_nothing_else(tmp_path: Path) -> None:
    folder, ports = tmp_path / "folder", free_ports(1)
    folder.mkdir()
    with _process(tmp_path, "log", folder / "switch.json", ports) as process:
        folder.rmdir()
        process.switch_hints(f"127.0.0.1:{ports[0]}", "off")
        until(lambda: process.events("switch_not_kept"), "it says so")
        assert process.events("switch_not_kept")[0]["reason"] == "no such file or directory"
        assert _modes(process) == ["off"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "is not what the kill switch writes"),
        ("[]", "is not what the kill switch writes"),
        ('{"r": "loud"}', "is not what the kill switch writes"),
        (None, "is no directory that can be written to"),
    ],
)
@pytest.mark.parametrize("command", [("run",), ("config", "check")], ids=" ".join)
def test_another_file_is_refused(
    tmp_path: Path, text: str | None, reason: str, command: tuple[str, ...]
) -> None:
    file = tmp_path / "switch.json" if text is not None else tmp_path / "none" / "switch.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    route = ("--route", "127.0.0.1:0=127.0.0.1:9")
    done = leader_hints(*command, *route, variables={"LEADER_HINTS_SWITCH_FILE": str(file)})

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert reason in done.stderr.splitlines()[-1]
    assert text is None or file.read_text(encoding="utf-8") == text
