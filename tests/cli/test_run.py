"""`leader-hints run` as a process: how it begins, how it ends, what it says."""

import contextlib
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, clean_environment, leader_hints

_DEADLINE_S = 30


@contextlib.contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [COMMAND, "run", *arguments],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Reading a line has no deadline of its own: a process that says nothing is ended instead.
    watch = threading.Timer(_DEADLINE_S, process.kill)
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def _wait_for_event(process: subprocess.Popen[str], name: str) -> dict[str, Any]:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        event: dict[str, Any] = json.loads(line)
        if event["event"] == name:
            return event
    raise AssertionError(f"no event {name} in {seen}")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A loopback port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(number: signal.Signals, taken_port: int) -> None:
    with _running("--route", f"127.0.0.1:0=127.0.0.1:{taken_port}") as process:
        _wait_for_event(process, "listening")
        process.send_signal(number)
        _, errors = process.communicate(timeout=_DEADLINE_S)

    assert process.returncode == 0
    assert "Traceback" not in errors


def test_it_says_where_it_listens_and_takes_connections_there(taken_port: int) -> None:
    with _running("--route", f"127.0.0.1:0=127.0.0.1:{taken_port}") as process:
        event = _wait_for_event(process, "listening")
        host, _, port = event["listen"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=_DEADLINE_S):
            pass

    assert event["level"] == "info"
    assert event["route"] == "127.0.0.1:0"
    assert event["upstream"] == f"127.0.0.1:{taken_port}"
    assert int(port) > 0


def test_its_first_line_says_what_begins(taken_port: int, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("hints: observe\nworkers: 2\n", encoding="utf-8")
    route = f"127.0.0.1:0=127.0.0.1:{taken_port}"
    with _running("--config", str(file), "--route", route) as process:
        assert process.stderr is not None
        first = process.stderr.readline()

    event = json.loads(first)
    del event["timestamp"]
    assert first.startswith('{"event": "starting", ')
    assert event == {
        "event": "starting",
        "level": "info",
        "version": version("kafka-leader-hints"),
        "hints": "observe",
        "config": str(file),
        "routes": [route],
        "workers": 2,
    }


def test_sighup_says_what_it_had_read_again(taken_port: int) -> None:
    with _running("--route", f"127.0.0.1:0=127.0.0.1:{taken_port}") as process:
        _wait_for_event(process, "listening")
        process.send_signal(signal.SIGHUP)
        event = _wait_for_event(process, "files_reloaded")

    assert (event["tls"], event["refused"]) == (0, 0)


def test_an_address_in_use_ends_it_with_1_and_one_line(taken_port: int) -> None:
    done = leader_hints("run", "--route", f"127.0.0.1:{taken_port}=broker-1:9092")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"leader-hints: cannot listen on 127.0.0.1:{taken_port}: address already in use"
    )
    assert "Traceback" not in done.stderr


def test_an_admin_address_in_use_ends_it_with_1_and_one_line(taken_port: int) -> None:
    done = leader_hints(
        "run", "--route", "127.0.0.1:0=broker-1:9092", "--admin", f"127.0.0.1:{taken_port}"
    )

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"leader-hints: cannot listen on 127.0.0.1:{taken_port}: address already in use"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("journal", "problem"),
    [
        ("kind: files, path: {folder}/none", "journal.path: {folder}/none is not a directory"),
        (
            "kind: topic, bootstrap: 127.0.0.1:9, properties_file: {folder}/none",
            "journal.properties_file: cannot read {folder}/none: No such file",
        ),
    ],
)
def test_a_journal_that_could_never_be_written_ends_it_with_2_and_one_line(
    tmp_path: Path, journal: str, problem: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"journal: {{{journal.format(folder=tmp_path)}}}\n", encoding="utf-8")
    done = leader_hints("run", "--config", str(file), "--route", "127.0.0.1:0=broker-1:9092")

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"leader-hints: {problem.format(folder=tmp_path)}")


def test_a_journal_folder_that_is_not_ours_ends_it_with_2(tmp_path: Path) -> None:
    arguments = ("run", "--route", "127.0.0.1:0=broker-1:9092")
    variables = {"LEADER_HINTS_JOURNAL__KIND": "files", "LEADER_HINTS_JOURNAL__PATH": "/proc/1"}
    done = leader_hints(*arguments, variables=variables)

    assert done.returncode == 2
    assert done.stderr == (
        "leader-hints: journal.path: /proc/1 cannot be written to by this user\n"
    )
