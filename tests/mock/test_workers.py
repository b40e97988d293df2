"""Two worker processes, as one from outside, before the mock cluster."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.harness.connection import Address
from tests.harness.proxyproc import ProxyError, ProxyProcess
from tests.harness.waiting import until
from tests.mock.journals import file_lines
from tests.mock.moving import Scene, open_scene
from tests.net import messages
from tests.observe.journal_lines import in_order

_SECONDS = 60.0
_WORKERS = (1, 2)
_LINKS = 40


class _Client:
    """A connection that asks for versions, as any broker allows."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=_SECONDS)

    def is_served(self) -> bool:
        """Whether an answer comes."""
        try:
            self._socket.sendall(messages.api_versions_request(7))
            return bool(self._socket.recv(65536))
        except OSError:
            return False

    def close(self) -> None:
        """End it."""
        self._socket.close()


@contextmanager
def _scene(folder: Path) -> Iterator[tuple[Scene, Path]]:
    """A scene with two workers, and the folder of its journal."""
    journal, file = folder / "journal", folder / "settings.yaml"
    journal.mkdir()
    settings = {
        "workers": 2,
        "journal": {"kind": "files", "path": str(journal), "sidecar": "car", "flush_ms": 30_000},
        "hold": {"deadline_ms": 2000, "link_ms_per_second": 1000},
    }
    file.write_text(yaml.safe_dump(settings))
    with open_scene(folder, arguments=["--config", str(file)]) as scene:
        yield scene, journal


def _processes(proxy: ProxyProcess) -> dict[int, int]:
    """The present process of each worker."""
    return {line["worker"]: line["process"] for line in proxy.events("worker_began")}


@contextmanager
def _clients(proxy: ProxyProcess, count: int) -> Iterator[list[_Client]]:
    (address, _) = proxy.routes[0]
    with ExitStack() as stack:
        clients = [_Client(address) for _ in range(count)]
        for client in clients:
            stack.callback(client.close)
        assert all(client.is_served() for client in clients)
        yield clients


def _move_with_many(scene: Scene, producers: int) -> None:
    """Have many producers meet a moved leader, each on links of its own."""
    for number in range(producers):
        with scene.another_producer(client_id=f"p{number}"):
            scene.produce_on_the_move()


def test_both_workers_give_hints_and_one_process_reports_them(tmp_path: Path) -> None:
    with _scene(tmp_path) as (scene, journal):
        _move_with_many(scene, 4)
        given = scene.proxy.events("hint_given")
        by_worker = Counter(line["worker"] for line in given)
        assert {*by_worker} == {*_WORKERS}
        assert scene.proxy.metric("leader_hints_hints_given_total") == len(given)
        assert scene.proxy.metric("leader_hints_workers") == len(_WORKERS)
        assert scene.proxy.metric("leader_hints_worker_ends_total") == 0
        assert {line["worker"] for line in scene.proxy.events("client_seen")} == {*_WORKERS}
        recovered = scene.proxy.events("recovered")
        assert any(line["hinted"] and line["recovery_ms"] > 0 for line in recovered)
        status = scene.proxy.status()
        assert sum(route["hints_given"] for route in status["routes"]) == len(given)
        assert status["slots"]
    errors = [line for line in in_order(file_lines(journal)) if line["event"] == "error"]
    assert sum(line["hinted"] for line in errors) == len(given)
    assert {line["link"] % 2 + 1 for line in errors} == {*_WORKERS}


def test_a_worker_that_is_killed_costs_its_own_links_alone(tmp_path: Path) -> None:
    with _scene(tmp_path) as (scene, journal):
        proxy = scene.proxy
        proxy.expect_errors()
        with _clients(proxy, _LINKS) as clients:
            before = proxy.metric("leader_hints_requests_total")
            opened = proxy.metric("leader_hints_links_total")
            cpu = proxy.metric("process_cpu_seconds_total")
            os.kill(_processes(proxy)[1], signal.SIGKILL)
            (ended,) = until(lambda: proxy.events("worker_ended"), "its end is reported", _SECONDS)
            assert (ended["worker"], ended["reason"]) == (1, "signal 9")
            left = [client for client in clients if client.is_served()]
            # The producer's own links are spread as well.
            assert abs(len(left) - _LINKS / 2) <= 3
            assert ended["links"] >= _LINKS - len(left)
            assert proxy.metric("leader_hints_requests_total") >= before + len(left)
            assert proxy.metric("leader_hints_links_total") >= opened
            assert proxy.metric("process_cpu_seconds_total") >= cpu
            assert proxy.metric("leader_hints_worker_ends_total") == 1
            until(
                lambda: proxy.metric("leader_hints_workers") == len(_WORKERS),
                "it is started again",
                _SECONDS,
            )
            # It gets the next clients, until it has as many as the other one.
            with _clients(proxy, _LINKS // 4):
                _move_with_many(scene, 3)
            assert all(client.is_served() for client in left)
        hinted = {line["worker"] for line in proxy.events("hint_given")}
        assert 1 in hinted
        given = proxy.metric("leader_hints_hints_given_total")
    run = in_order(file_lines(journal))
    assert [line["event"] for line in run if line["event"] == "gap"] == []
    assert sum(line["event"] == "error" and line["hinted"] for line in run) == given


def test_links_are_spread_evenly(tmp_path: Path) -> None:
    with _scene(tmp_path) as (scene, _), _clients(scene.proxy, 200) as clients:
        os.kill(_processes(scene.proxy)[2], signal.SIGKILL)
        scene.proxy.expect_errors()
        until(lambda: scene.proxy.events("worker_ended"), "its end is reported", _SECONDS)
        left = sum(client.is_served() for client in clients)
        assert 0.8 <= 2 * left / len(clients) <= 1.2


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_process(tmp_path: Path, stop: signal.Signals) -> None:
    with _scene(tmp_path) as (scene, journal):
        processes = _processes(scene.proxy)
        with _clients(scene.proxy, 4):
            for number in (scene.proxy.pid, *processes.values()):
                # As a service manager does, which signals all processes.
                os.kill(number, stop)
            until(lambda: scene.proxy.exit_code() is not None, "it ends", _SECONDS)
        assert scene.proxy.exit_code() == 0
        assert scene.proxy.events("stopped")
        assert not scene.proxy.events("worker_ended")
        _await_end(processes)
    assert in_order(file_lines(journal))[-1]["event"] == "stop"


def test_workers_end_when_their_process_is_killed(tmp_path: Path) -> None:
    with pytest.raises(ProxyError, match="ended with -9"):
        _kill_and_await_end(tmp_path)


def _kill_and_await_end(folder: Path) -> None:
    """Raises ProxyError, since the proxy has not ended in order."""
    with _scene(folder) as (scene, _):
        processes = _processes(scene.proxy)
        assert {*processes} == {*_WORKERS}
        os.kill(scene.proxy.pid, signal.SIGKILL)
        _await_end(processes)


def _await_end(processes: dict[int, int]) -> None:
    for number in processes.values():
        until(partial(_has_ended, number), f"process {number} ends", _SECONDS)


def _has_ended(number: int) -> bool:
    try:
        os.kill(number, 0)
        status = Path(f"/proc/{number}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True
    # One that nobody waits for any more has ended as well.
    return status.rpartition(")")[2].split()[0] == "Z"
