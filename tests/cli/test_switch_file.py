"""What the kill switch keeps over a restart, if it is to."""

import contextlib
import errno
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leader_hints.app import switch_file
from leader_hints.app.switch_file import SwitchFile, read_switch_file
from leader_hints.core.events import Event, SwitchNotKept
from leader_hints.core.mode import Mode
from leader_hints.errors import ConfigurationError
from tests.cli.commands import leader_hints
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until
from tests.net import messages


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


def test_a_route_that_cannot_be_switched_is_not_kept(tmp_path: Path) -> None:
    """It would stay off once TLS is terminated there, though nobody has switched it."""
    file, ports = tmp_path / "switch.json", free_ports(2)
    routes = [(("127.0.0.1", port), ("127.0.0.1", 9)) for port in ports]
    unread = {"client_tls": {"mode": "pass"}}
    process = ProxyProcess(routes, tmp_path / "one", security=[unread, {}])
    process.environment["LEADER_HINTS_SWITCH_FILE"] = str(file)
    second = f"127.0.0.1:{ports[1]}"
    with process:
        process.switch_hints(second, "observe")
        until(file.exists, "the switch is kept")
    assert json.loads(file.read_text(encoding="utf-8")) == {second: "observe"}


@contextlib.contextmanager
def _replaced(
    folder: Path, file: Path, port: int, meanwhile: Callable[[ProxyProcess], None]
) -> Iterator[ProxyProcess]:
    """Yield a new process that has taken over; ``meanwhile``: done as it begins."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # The new process waits for that broker before it takes over.
        routes = [(("127.0.0.1", port), silent.getsockname())]
        before = ProxyProcess(routes, folder / "before")
        before.environment |= {
            "LEADER_HINTS_SWITCH_FILE": str(file),
            "LEADER_HINTS_TAKEOVER": str(folder / "takeover"),
            "LEADER_HINTS_TOPIC_IDS": "synthesize",
        }

        def work() -> None:
            until(lambda: before.events("takeover_begun"), "the new process begins")
            meanwhile(before)

        working = threading.Thread(target=work)
        with before:
            working.start()
            with before.successor(folder / "after") as after:
                working.join()
                yield after


def test_what_is_switched_while_a_new_process_begins_is_not_lost(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    def switch(before: ProxyProcess) -> None:
        before.switch_hints(f"127.0.0.1:{port}", "off")

    with _replaced(tmp_path, tmp_path / "switch.json", port, switch) as after:
        assert _modes(after) == ["off"]


def test_a_new_process_serves_though_the_file_hangs_when_it_has_taken_over(tmp_path: Path) -> None:
    """It read the file once more before it listened, and nobody else listened by then."""
    (port,) = free_ports(1)
    file = tmp_path / "switch.json"
    file.write_text(json.dumps({f"127.0.0.1:{port}": "observe"}), encoding="utf-8")

    def hang(_: ProxyProcess) -> None:
        file.unlink()
        os.mkfifo(file)

    with _replaced(tmp_path, file, port, hang) as after:
        assert _modes(after) == ["observe"]
        socket.create_connection(("127.0.0.1", port)).close()


def test_what_could_not_be_written_is_the_new_processs_and_so_is_the_file(tmp_path: Path) -> None:
    """The former process went on to try as long as it had links, and undid what the new one was
    switched to by then."""
    (port,) = free_ports(1)
    listen, file = ("127.0.0.1", port), tmp_path / "switch.json"
    name = f"127.0.0.1:{port}"
    with socket.create_server(("127.0.0.1", 0)) as silent, contextlib.ExitStack() as stack:
        before = ProxyProcess([(listen, silent.getsockname())], tmp_path / "before")
        before.environment |= {
            "LEADER_HINTS_SWITCH_FILE": str(file),
            "LEADER_HINTS_TAKEOVER": str(tmp_path / "takeover"),
        }
        stack.enter_context(before)
        # A disk that hangs: to open this for writing waits for a reader.
        slow = file.with_name(f"{file.name}.{before.pid}")
        os.mkfifo(slow)
        before.switch_hints(name, "observe")
        # Half of a request, for which the former process stays.
        link = stack.enter_context(socket.create_connection(listen))
        link.sendall(messages.request(999, 0, 1, b"something")[:7])
        until(lambda: before.status()["routes"][0]["links_open"] == 1, "it is a link")
        after = stack.enter_context(before.successor(tmp_path / "after"))

        assert _modes(after) == ["observe"]
        until(file.exists, "the new one keeps that")
        assert json.loads(file.read_text(encoding="utf-8")) == {name: "observe"}
        after.switch_hints(name, "off")
        until(lambda: json.loads(file.read_text(encoding="utf-8")) == {name: "off"}, "and this")
        assert before.exit_code() is None
        with open(os.open(slow, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0):
            until(lambda: not slow.exists(), "what hung has gone on")
        assert json.loads(file.read_text(encoding="utf-8")) == {name: "off"}


def test_a_process_that_does_not_take_over_leaves_the_file_alone(tmp_path: Path) -> None:
    file, ports = tmp_path / "switch.json", free_ports(2)
    names = [f"127.0.0.1:{port}" for port in ports]
    process = _process(tmp_path, "log", file, ports)
    process.environment |= {
        "LEADER_HINTS_TAKEOVER": str(tmp_path / "takeover"),
        "LEADER_HINTS_TOPIC_IDS": "synthesize",
    }
    kept = dict.fromkeys(names, "off")
    with process, socket.create_server(("127.0.0.1", 0)) as taken:
        for name in names:
            process.switch_hints(name, "off")
        until(lambda: file.exists() and json.loads(file.read_text()) == kept, "both are kept")
        # Another route than these is one that cannot be listened on.
        other = f"127.0.0.1:{taken.getsockname()[1]}"
        routes = ",".join(f"{name}=127.0.0.1:9" for name in (names[1], other))
        done = leader_hints("run", variables=process.environment | {"LEADER_HINTS_ROUTES": routes})
        assert done.returncode == 1
        assert other in done.stderr.splitlines()[-1]
        assert json.loads(file.read_text()) == kept


def test_a_process_that_ends_has_its_last_switch_kept(tmp_path: Path) -> None:
    file, ports = tmp_path / "switch.json", free_ports(1)
    with _process(tmp_path, "log", file, ports) as process:
        # A disk that hangs: to open this for writing waits for a reader.
        slow = file.with_name(f"{file.name}.{process.pid}")
        os.mkfifo(slow)
        process.switch_hints(f"127.0.0.1:{ports[0]}", "off")
        process.signal(signal.SIGTERM)
        until(lambda: process.events("stopping"), "it ends")
        with open(os.open(slow, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as reader:
            written = b""

            def read() -> bool:
                nonlocal written
                written += reader.read() or b""
                return written.endswith(b"\n")

            until(read, "the switch is written")
    assert json.loads(written) == {f"127.0.0.1:{ports[0]}": "off"}


async def test_a_thread_that_the_system_refuses_is_asked_for_again(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise RuntimeError("can't start new thread")

    path, events = tmp_path / "switch.json", list[Event]()
    file = SwitchFile(str(path), events.append)
    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        await file.written()
        nursery.cancel_scope.cancel()
    assert json.loads(path.read_text()) == {"r": "off"}
    assert events == [SwitchNotKept(reason="can't start new thread")]


async def test_a_disk_that_hangs_is_reported_and_left_behind(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    path, events = tmp_path / "switch.json", list[Event]()
    file, slow = SwitchFile(str(path), events.append), tmp_path / f"switch.json.{os.getpid()}"
    # To open it for writing waits for a reader.
    os.mkfifo(slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        await wait_all_tasks_blocked()
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        assert events == [SwitchNotKept(reason="it was not written within 60 s")]
        file.keep({"r": Mode.OBSERVE})
        mock_clock.jump(10)
        await trio.to_thread.run_sync(until, path.exists, "it is written")
        # The task learns of that by a real thread, at any time.
        mock_clock.rate = 1
        await file.written()
        # What hung goes on, and changes nothing any more.
        reader = os.open(slow, os.O_RDONLY | os.O_NONBLOCK)
        await trio.to_thread.run_sync(until, lambda: not slow.exists(), "it has gone on")
        os.close(reader)
        nursery.cancel_scope.cancel()
    assert json.loads(path.read_text()) == {"r": "observe"}


async def test_a_disk_that_hangs_for_long_keeps_few_threads(
    tmp_path: Path, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was one more in each 70 s."""
    began, works = list[int](), threading.Event()

    def hang(*_: object) -> None:
        began.append(1)
        works.wait()

    monkeypatch.setattr(switch_file, "_write", hang)
    file = SwitchFile(str(tmp_path / "switch.json"), list[Event]().append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        for _ in range(4 * 360):
            await wait_all_tasks_blocked()
            mock_clock.jump(10)
        assert 8 < len(began) < 12
        works.set()
        await trio.to_thread.run_sync(until, lambda: not file._hung, "it works again")
        # Though the next attempt was an hour away.
        mock_clock.jump(10)
        mock_clock.rate = 1
        with trio.fail_after(5):
            await file.written()
        nursery.cancel_scope.cancel()


async def test_a_disk_that_fails_after_another_one_hung_is_tried_again_soon(
    tmp_path: Path, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may be mounted in its place, and what hung there hangs for good."""
    began, over = list[int](), threading.Event()

    def fail(*_: object) -> None:
        began.append(1)
        if len(began) <= 5:
            over.wait()
        elif len(began) <= 7:
            raise OSError(errno.ENOSPC, "no space left on device")

    def is_begun(number: int) -> bool:
        return len(began) >= number

    def is_reported(number: int) -> bool:
        return len(events) >= number

    monkeypatch.setattr(switch_file, "_write", fail)
    events = list[Event]()
    file = SwitchFile(str(tmp_path / "switch.json"), events.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        for number in range(1, 9):
            await trio.to_thread.run_sync(until, partial(is_begun, number), "it is tried again")
            if number <= 5:
                mock_clock.jump(60)
            elif number <= 7:
                await trio.to_thread.run_sync(until, partial(is_reported, number), "it failed")
            for _ in range(2 ** (number - 1) if number <= 5 else 1):
                await wait_all_tasks_blocked()
                mock_clock.jump(10)
        over.set()
        nursery.cancel_scope.cancel()


async def test_a_file_that_is_handed_over_is_written_no_more(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    path, events = tmp_path / "folder" / "switch.json", list[Event]()
    file = SwitchFile(str(path), events.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        await trio.to_thread.run_sync(until, lambda: events, "there is no such folder")
        await wait_all_tasks_blocked()
        path.parent.mkdir()
        assert file.hand_over() == {"r": "off"}
        file.keep({"r": Mode.OBSERVE})
        mock_clock.jump(100)
        await wait_all_tasks_blocked()
        assert not nursery.child_tasks
        nursery.cancel_scope.cancel()
    assert [*path.parent.iterdir()] == []


async def test_of_what_is_written_nothing_is_handed_over(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    file = SwitchFile(str(tmp_path / "switch.json"), list[Event]().append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        await file.written()
        assert file.hand_over() is None


async def test_what_is_kept_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that crashes would be left with an empty file, with which no process begins."""
    path, synced = tmp_path / "switch.json", list[tuple[str, bool]]()
    fsync = os.fsync

    def noted(file: int) -> None:
        synced.append((Path(f"/proc/self/fd/{file}").read_text(encoding="utf-8"), path.exists()))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    file = SwitchFile(str(path), list[Event]().append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.run)
        file.keep({"r": Mode.OFF})
        await file.written()
        nursery.cancel_scope.cancel()
    assert synced == [('{"r": "off"}\n', False)]


def test_a_file_that_cannot_be_written_changes_nothing_else(tmp_path: Path) -> None:
    folder, ports = tmp_path / "folder", free_ports(1)
    folder.mkdir()
    with _process(tmp_path, "log", folder / "switch.json", ports) as process:
        folder.rmdir()
        process.switch_hints(f"127.0.0.1:{ports[0]}", "off")
        until(lambda: process.events("switch_not_kept"), "it says so")
        assert process.events("switch_not_kept")[0]["reason"] == "no such file or directory"
        assert _modes(process) == ["off"]


def test_a_path_that_the_system_refuses_is_refused(tmp_path: Path) -> None:
    """An error that is none of the settings ended a new process that had just taken over."""
    folder = tmp_path / ("x" * 300)
    with pytest.raises(ConfigurationError, match=r"cannot read .*: file name too long$"):
        read_switch_file(str(folder / "switch.json"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no json", "is not what the kill switch writes"),
        ("[]", "is not what the kill switch writes"),
        ("[" * 100_000, "is not what the kill switch writes"),
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
