"""A process that is told to end, that is full, and that is short of descriptors."""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness import processes
from tests.harness.connection import Address
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.harness.proxyproc import Hints, ProxyProcess
from tests.harness.waiting import never, until
from tests.net import messages

_SECONDS = 10.0
_ASKED = messages.request(999, 0, 1, b"something")
_ANSWER = messages.response(999, 0, 1, b"its answer")


class _Broker:
    """Takes connections and says what the test says."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_SECONDS)

    @property
    def address(self) -> Address:
        host, port = self._listener.getsockname()
        return host, port

    def accept(self) -> socket.socket:
        sock, _ = self._listener.accept()
        sock.settimeout(_SECONDS)
        return sock

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def broker() -> Iterator[_Broker]:
    made = _Broker()
    yield made
    made.close()


def _settings(folder: Path, settings: Mapping[str, Any]) -> Path:
    file = folder / "settings.yaml"
    # The subscription comes once, and not again when it is sent away.
    pauses = {"reconnect_min_ms": 60000, "reconnect_max_ms": 60000}
    file.write_text(yaml.safe_dump({"subscription": pauses, **settings}))
    return file


@contextlib.contextmanager
def _proxy(broker: _Broker, folder: Path, settings: Mapping[str, Any]) -> Iterator[ProxyProcess]:
    file = _settings(folder, settings)
    (port,) = free_ports(1)
    route = (("127.0.0.1", port), broker.address)
    hints: Hints = settings.get("hints", "on")
    proxy = ProxyProcess(
        [route], folder / "proxy.log", hints=hints, arguments=["--config", str(file)]
    )
    with proxy:
        if settings.get("hints") != "off":
            broker.accept().close()
        yield proxy


def _connect(proxy: ProxyProcess) -> socket.socket:
    ((listen, _),) = proxy.routes
    sock = socket.create_connection(listen, _SECONDS)
    sock.settimeout(_SECONDS)
    return sock


def _at_work(proxy: ProxyProcess, broker: _Broker) -> tuple[socket.socket, socket.socket]:
    """A client that awaits an answer, and its broker's end."""
    client = _connect(proxy)
    client.sendall(_ASKED)
    behind = broker.accept()
    assert behind.recv(len(_ASKED), socket.MSG_WAITALL) == _ASKED
    return client, behind


def _refused(proxy: ProxyProcess) -> bool:
    try:
        _connect(proxy).close()
    except ConnectionRefusedError:
        return True
    return False


def _ended(proxy: ProxyProcess) -> bool:
    return proxy.exit_code() is not None


def test_sigterm_lets_requests_finish_and_takes_no_connection(
    broker: _Broker, tmp_path: Path
) -> None:
    with _proxy(broker, tmp_path, {"drain_ms": 600000}) as proxy:
        client, behind = _at_work(proxy, broker)
        resting, _end = _connect(proxy), broker.accept()
        until(lambda: proxy.status()["routes"][0]["links_open"] == 2, "both are links", _SECONDS)
        proxy.signal(signal.SIGTERM)
        until(lambda: _refused(proxy), "no connection is taken", _SECONDS)
        # It has had no answer yet: franz-go would take an end for TLS, and give up.
        with pytest.raises(ConnectionResetError):
            resting.recv(1)
        with pytest.raises(urllib.error.HTTPError) as unready:
            proxy.get("/readyz")
        assert json.loads(unready.value.read())["not_ready"] == {_name(proxy): "stopping"}
        assert proxy.get("/livez") == "alive\n"
        behind.sendall(_ANSWER)
        assert client.recv(len(_ANSWER), socket.MSG_WAITALL) == _ANSWER
        assert client.recv(1) == b""
        until(lambda: _ended(proxy), "it ends by itself", _SECONDS)
        assert proxy.exit_code() == 0
        (stopping,), (stopped,) = proxy.events("stopping"), proxy.events("stopped")
        assert (stopping["links"], stopped["links"]) == (2, 0)


def test_a_client_that_always_has_a_request_under_way_loses_none_that_a_broker_has(
    broker: _Broker, tmp_path: Path
) -> None:
    """After a third of the time no further one is taken, so what is under way gets its answers."""
    with _proxy(broker, tmp_path, {"drain_ms": 9000}) as proxy:
        client, behind = _at_work(proxy, broker)
        proxy.signal(signal.SIGTERM)
        behind.settimeout(1.0)
        asked = 1
        with contextlib.suppress(TimeoutError):
            while True:
                client.sendall(_ASKED)
                assert behind.recv(len(_ASKED), socket.MSG_WAITALL) == _ASKED
                asked += 1
                behind.sendall(_ANSWER)
        assert asked > 1
        behind.sendall(_ANSWER)
        for _ in range(asked):
            assert client.recv(len(_ANSWER), socket.MSG_WAITALL) == _ANSWER
        assert behind.recv(1) == b""
        until(lambda: _ended(proxy), "it ends by itself", _SECONDS)
        assert [line["links"] for line in proxy.events("stopped")] == [0]


@pytest.mark.parametrize("twice", [False, True])
def test_who_does_not_finish_is_closed_at_the_deadline_or_at_a_second_signal(
    twice: bool, broker: _Broker, tmp_path: Path
) -> None:
    with _proxy(broker, tmp_path, {"drain_ms": 600000 if twice else 300}) as proxy:
        client, _ = _at_work(proxy, broker)
        proxy.signal(signal.SIGTERM)
        until(lambda: proxy.events("stopping"), "it has begun to stop", _SECONDS)
        if twice:
            never(lambda: _ended(proxy), "it waits", 0.3)
            proxy.signal(signal.SIGTERM)
        until(lambda: _ended(proxy), "it ends", _SECONDS)
        assert proxy.exit_code() == 0
        # Without any answer it is reset: after an end franz-go gives up.
        with pytest.raises(ConnectionResetError):
            client.recv(1)


@pytest.mark.parametrize("other", [signal.SIGHUP, signal.SIGINT], ids=lambda signal: signal.name)
def test_a_signal_that_comes_while_it_ends_does_not_kill_it(
    other: signal.Signals, broker: _Broker, tmp_path: Path
) -> None:
    """systemd sends SIGHUP behind SIGTERM (SendSIGHUP=yes), and a terminal that closes does."""
    with _proxy(broker, tmp_path, {"hints": "off"}) as proxy:
        for number in (signal.SIGTERM, other):
            os.kill(proxy.pid, number)
        until(lambda: _ended(proxy), "it ends", _SECONDS)
        assert proxy.exit_code() == 0
        assert proxy.events("stopped")


@pytest.mark.parametrize("limit", ["connections", "connections_per_route"])
def test_connections_beyond_the_limit_are_closed_and_counted(
    limit: str, broker: _Broker, tmp_path: Path
) -> None:
    with _proxy(broker, tmp_path, {"limits": {limit: 2}, "hints": "off"}) as proxy:
        first, _second = _connect(proxy), _connect(proxy)
        ends = [broker.accept(), broker.accept()]
        for _ in range(5):
            with pytest.raises(ConnectionResetError):
                _connect(proxy).recv(1)
        assert proxy.metric("leader_hints_limits_reached_total", limit=limit) == 5
        told = proxy.events("limit_reached")
        assert [line["limit"] for line in told] == [limit] * 3  # The others are summed up.
        first.close()
        ends[0].close()  # As brokers do when a client has gone; before, the link stays.
        until(lambda: proxy.metric("leader_hints_links_open") == 1, "the first has gone", _SECONDS)
        third = _connect(proxy)
        third.sendall(b"x" * 20)
        assert broker.accept().recv(20, socket.MSG_WAITALL) == b"x" * 20
        for end in ends:
            end.close()


def test_without_descriptors_connections_wait_and_the_log_stays_small(
    broker: _Broker, tmp_path: Path
) -> None:
    with _proxy(broker, tmp_path, {"hints": "off"}) as proxy:
        allowed = resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)
        # Lower than any that may be given back meanwhile.
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (4, allowed[1]))
        client = _connect(proxy)
        client.sendall(_ASKED)
        until(lambda: proxy.events("accept_failed"), "it is reported", _SECONDS)
        before = processes.cpu_seconds(proxy.pid)
        never(lambda: len(proxy.lines()) > 20, "the log is small", 1.0)
        assert processes.cpu_seconds(proxy.pid) - before < 0.5, "it is busy with nothing"
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, allowed)
        behind = broker.accept()
        assert behind.recv(len(_ASKED), socket.MSG_WAITALL) == _ASKED
        assert len(proxy.events("accept_failed")) == 1
        proxy.expect_errors()


def test_fewer_descriptors_than_connections_is_a_warning_with_figures(
    broker: _Broker, tmp_path: Path
) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with _proxy(broker, tmp_path, {"limits": {"connections": 1000000}}) as proxy:
        (told,) = proxy.events("descriptors_short")
        assert told["level"] == "warning"
        assert told["allowed"] == hard
        assert told["needed"] > 2_000_000
        assert told["connections"] == (hard - 256) // 2
        assert resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE)[0] == hard


def test_a_full_disk_for_the_log_stops_nothing(broker: _Broker, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    route = f"127.0.0.1:{port}=127.0.0.1:{broker.address[1]}"
    command = ["run", "--route", route, "--config", str(_settings(tmp_path, {}))]
    child = processes.start(
        [sys.executable, "-m", "leader_hints.cli.main", *command],
        output=Path("/dev/full"),
        environment={"PYTHONPATH": PYTHONPATH},
    )
    try:
        until(lambda: _connects(port), "it listens", _SECONDS)
        for _ in ("subscription", "client"):
            broker.accept().close()
        # Each is logged, until the log has had enough of it.
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), _SECONDS) as nonsense:
                nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
                nonsense.settimeout(_SECONDS)
                assert nonsense.recv(1) == b""
            broker.accept().close()
        with socket.create_connection(("127.0.0.1", port), _SECONDS) as client:
            client.sendall(_ASKED)
            behind = broker.accept()
            assert behind.recv(len(_ASKED), socket.MSG_WAITALL) == _ASKED
            behind.sendall(_ANSWER)
            assert client.recv(len(_ANSWER), socket.MSG_WAITALL) == _ANSWER
            behind.close()
    finally:
        code = processes.end(child, _SECONDS)
    assert code == 0


def _connects(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), _SECONDS).close()
        return True
    return False


def _name(proxy: ProxyProcess) -> str:
    ((listen, _),) = proxy.routes
    return f"{listen[0]}:{listen[1]}"


def test_a_journal_whose_open_file_was_removed_is_whole_and_the_end_is_a_clean_one(
    broker: _Broker, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    kept = {"kind": "files", "path": str(journal)}
    with _proxy(broker, tmp_path, {"hints": "off", "journal": kept}) as proxy:
        until(lambda: _stored(journal, ".open"), "a file is begun", _SECONDS)
        for file in journal.glob("*.open"):
            file.unlink()
        proxy.signal(signal.SIGTERM)
        until(lambda: _ended(proxy), "it ends", _SECONDS)
        assert proxy.exit_code() == 0
        assert proxy.events("journal_abandoned") == []
    (file,) = journal.iterdir()
    assert file.name.endswith(".jsonl")
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert (lines[0]["event"], lines[-1]["event"]) == ("start", "stop")


def _stored(folder: Path, end: str) -> bool:
    return any(file.stat().st_size for file in folder.glob(f"*{end}"))


def test_no_request_to_the_admin_server_ends_the_process(broker: _Broker, tmp_path: Path) -> None:
    with _proxy(broker, tmp_path, {"hints": "off"}) as proxy:
        url = f"{proxy.admin}/routes/{_name(proxy)}/hints"
        for origin in ("http://[", "http://[x]:1", "http://evil.example"):
            put = urllib.request.Request(url, b"on", {"Origin": origin}, method="PUT")
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(put, timeout=_SECONDS)
        assert proxy.get("/livez") == "alive\n"
        assert proxy.status()["routes"][0]["hints"] == "off"
        client, behind = _at_work(proxy, broker)
        client.close()
        behind.close()
