"""A process that takes over from another one, as users start the two."""

import contextlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trustme

from tests.cli.commands import leader_hints
from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyError, ProxyProcess
from tests.harness.waiting import until
from tests.net import messages

_SECONDS = 10.0
_ASKED = messages.request(999, 0, 1, b"something")
_ANSWER = messages.response(999, 0, 1, b"its answer")


class _Broker:
    """Answers everything it is asked, on every connection."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> Address:
        host, port = self._listener.getsockname()
        return host, port

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[sock], daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            while sock.recv(len(_ASKED), socket.MSG_WAITALL):
                sock.sendall(_ANSWER)


class _Clients:
    """Threads that connect, ask and leave again and again; ``done``: how often that worked."""

    def __init__(self, listen: Address) -> None:
        self.done = 0
        self.failed: list[Exception] = []
        self._listen = listen
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]

    def __enter__(self) -> "_Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self) -> None:
        """Wait until each has been served again."""
        before = self.done
        until(lambda: self.failed or self.done > before + 20, "clients are served", _SECONDS)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(self._listen, _SECONDS) as sock:
                    assert _ask(sock) == _ANSWER
                self.done += 1
            except (OSError, AssertionError) as error:
                self.failed.append(error)


def _ask(sock: socket.socket) -> bytes:
    sock.settimeout(_SECONDS)
    sock.sendall(_ASKED)
    return sock.recv(len(_ANSWER), socket.MSG_WAITALL)


@pytest.fixture
def broker() -> Iterator[_Broker]:
    made = _Broker()
    yield made
    made.close()


@pytest.fixture
def proxy(broker: _Broker, tmp_path: Path) -> Iterator[ProxyProcess]:
    (port,) = free_ports(1)
    process = ProxyProcess(
        [(("127.0.0.1", port), broker.address)],
        tmp_path / "proxy-0.log",
        hints="off",
    )
    process.environment["LEADER_HINTS_TAKEOVER"] = str(tmp_path / "takeover")
    with process:
        yield process


def _ended(proxy: ProxyProcess) -> bool:
    return proxy.exit_code() is not None


def test_no_connection_is_refused_while_one_process_after_the_other_takes_over(
    proxy: ProxyProcess, tmp_path: Path
) -> None:
    listen = proxy.routes[0][0]
    with contextlib.ExitStack() as processes, _Clients(listen) as clients:
        serving = proxy
        for number in range(1, 4):
            clients.wait_for_more()
            successor = processes.enter_context(serving.successor(tmp_path / f"proxy-{number}.log"))
            until(partial(_ended, serving), "the former one ends")
            assert serving.exit_code() == 0
            assert [line["successor"] for line in serving.events("takeover_begun")] == [
                successor.pid
            ]
            assert [line["predecessor"] for line in successor.events("taken_over")] == [serving.pid]
            serving = successor
        clients.wait_for_more()
    assert clients.failed == []


def test_a_link_goes_on_until_it_rests_and_new_ones_are_the_new_processs(
    proxy: ProxyProcess, tmp_path: Path
) -> None:
    listen = proxy.routes[0][0]
    with socket.create_connection(listen, _SECONDS) as sock:
        assert _ask(sock) == _ANSWER
        # Half of a request: the link is at work.
        sock.sendall(_ASKED[:7])
        until(lambda: proxy.status()["routes"][0]["links_open"] == 1, "it is a link", _SECONDS)
        with proxy.successor(tmp_path / "proxy-1.log") as successor:
            assert successor.status()["routes"][0]["links_open"] == 0
            with socket.create_connection(listen, _SECONDS) as another:
                assert _ask(another) == _ANSWER
                assert successor.status()["routes"][0]["links_open"] == 1
            assert not _ended(proxy)
            sock.sendall(_ASKED[7:])
            assert sock.recv(len(_ANSWER), socket.MSG_WAITALL) == _ANSWER
            assert sock.recv(1) == b""
            until(lambda: _ended(proxy), "the former one ends")
            assert proxy.exit_code() == 0


def test_a_switch_that_ends_when_another_process_has_taken_over_is_refused(
    proxy: ProxyProcess, tmp_path: Path
) -> None:
    """It was answered 200 by a process that was about to end, and the one that serves stayed."""
    listen = proxy.routes[0][0]
    head = f"PUT /routes/127.0.0.1%3A{listen[1]}/hints HTTP/1.1\r\nHost: localhost\r\n"
    with (
        socket.create_connection(listen, _SECONDS) as sock,
        socket.create_connection(proxy.admin_address, _SECONDS) as admin,
    ):
        assert _ask(sock) == _ANSWER
        # The former process stays for the other half.
        sock.sendall(_ASKED[:7])
        admin.sendall(f"{head}Content-Length: 7\r\n\r\n".encode())
        # What connects later is answered later.
        until(lambda: proxy.status()["routes"][0]["links_open"] == 1, "it is a link", _SECONDS)
        with proxy.successor(tmp_path / "proxy-1.log") as successor:
            admin.sendall(b"observe")
            with admin.makefile("rb") as answer:
                said = answer.read()
            assert said.startswith(b"HTTP/1.1 409 ")
            assert b"another process has taken over; ask again" in said
            assert [route["hints"] for route in successor.status()["routes"]] == ["off"]
            assert proxy.events("hints_switched") == []
            sock.sendall(_ASKED[7:])
            until(lambda: _ended(proxy), "the former one ends")


def test_a_client_whose_handshake_is_under_way_is_served_by_the_former_process(
    broker: _Broker, tmp_path: Path
) -> None:
    """It was reset: there was no link yet that the process would have waited for."""
    authority = trustme.CA()
    pem = tmp_path / "proxy.pem"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(pem)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    (port,) = free_ports(1)
    listen = ("127.0.0.1", port)
    tls = {"client_tls": {"mode": "terminate", "certificate": str(pem), "key": str(pem)}}
    proxy = ProxyProcess(
        [(listen, broker.address)], tmp_path / "proxy-0.log", hints="off", security=[tls]
    )
    proxy.environment["LEADER_HINTS_TAKEOVER"] = str(tmp_path / "takeover")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with proxy, socket.create_connection(listen, _SECONDS) as sock:
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        sock.sendall(outgoing.read())
        incoming.write(sock.recv(65_536))
        with proxy.successor(tmp_path / "proxy-1.log"):
            until(lambda: proxy.events("stopping"), "the former one is to end", _SECONDS)
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    session.do_handshake()
                    break
                incoming.write(sock.recv(65_536))
            session.write(_ASKED)
            sock.sendall(outgoing.read())
            assert _decrypted(session, incoming, sock) == _ANSWER
            until(lambda: _ended(proxy), "the former one ends")
            assert proxy.exit_code() == 0


def _decrypted(session: ssl.SSLObject, incoming: ssl.MemoryBIO, sock: socket.socket) -> bytes:
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            return session.read(len(_ANSWER))
        received = sock.recv(65_536)
        assert received
        incoming.write(received)


def test_sigusr2_starts_the_process_that_takes_over(proxy: ProxyProcess, tmp_path: Path) -> None:
    listen = proxy.routes[0][0]
    with _Clients(listen) as clients:
        clients.wait_for_more()
        proxy.signal(signal.SIGUSR2)
        until(lambda: _ended(proxy), "the former one ends")
        assert proxy.exit_code() == 0
        clients.wait_for_more()
    assert clients.failed == []
    # The two write to one log.
    (begun,) = proxy.events("takeover_begun")
    assert [line["predecessor"] for line in proxy.events("taken_over")] == [proxy.pid]
    os.kill(begun["successor"], signal.SIGTERM)
    until(lambda: len(proxy.events("stopped")) == 2, "the new one ends")


def _lose_the_next(proxy: ProxyProcess, file: Path) -> None:
    """Have a process be replaced by one that is killed before it listens."""
    with proxy:
        proxy.signal(signal.SIGUSR2)
        (begun,) = until(lambda: proxy.events("takeover_begun"), "the new one begins")
        # The new process waits for what is in there.
        os.mkfifo(file)
        until(lambda: proxy.events("stopping"), "the former one closes its listeners")
        os.kill(begun["successor"], signal.SIGKILL)
        until(lambda: _ended(proxy), "the former one ends")


def test_a_process_ends_with_an_error_if_the_one_that_took_over_never_listened(
    tmp_path: Path,
) -> None:
    """It ended with exit code 0: nobody served, and no supervisor started it again."""
    file, (port,) = tmp_path / "switch.json", free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # The new process waits for that broker before it takes over.
        proxy = ProxyProcess([(("127.0.0.1", port), silent.getsockname())], tmp_path / "log")
        proxy.environment |= {
            "LEADER_HINTS_SWITCH_FILE": str(file),
            "LEADER_HINTS_TAKEOVER": str(tmp_path / "takeover"),
            "LEADER_HINTS_TOPIC_IDS": "synthesize",
            "LEADER_HINTS_TOPIC_IDS_WAIT_MS": "2000",
        }
        with pytest.raises(ProxyError, match="ended with 1"):
            _lose_the_next(proxy, file)
        # The one that noticed its end as a child may come before or after.
        errors = [line["error"] for line in proxy.events("takeover_failed")]
        assert any("ended before it listened" in error for error in errors)


def test_a_new_process_that_cannot_serve_leaves_the_former_one_alone(
    proxy: ProxyProcess, tmp_path: Path
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    listen, upstream = proxy.routes[0]
    route = f"127.0.0.1:{taken.getsockname()[1]}={upstream[0]}:{upstream[1]}"
    with taken, _Clients(listen) as clients:
        clients.wait_for_more()
        refused = leader_hints(
            *("run", "--hints", "off", "--route", route), variables=proxy.environment
        )
        assert refused.returncode == 1
        assert "address already in use" in refused.stderr
        failed = until(lambda: proxy.events("takeover_failed"), "it is reported", _SECONDS)
        assert [line["error"] for line in failed] == ["the other process has ended"]
        clients.wait_for_more()
    assert clients.failed == []
    assert [path.name for path in tmp_path.glob("takeover*")] == ["takeover"]


def test_sigusr2_without_the_setting_changes_nothing(broker: _Broker, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    listen = ("127.0.0.1", port)
    with (
        ProxyProcess([(listen, broker.address)], tmp_path / "proxy.log", hints="off") as proxy,
        _Clients(listen) as clients,
    ):
        proxy.signal(signal.SIGUSR2)
        (failed,) = until(lambda: proxy.events("takeover_failed"), "it is reported", _SECONDS)
        assert failed["error"] == "SIGUSR2 came, but the setting takeover is not set"
        clients.wait_for_more()
        assert clients.failed == []


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("{}/none/takeover", "cannot listen on {}/none/takeover: no such file or directory"),
        ("{}/file", "cannot listen on {}/file: it is no socket"),
        ("{}/file/takeover", "cannot listen on {}/file/takeover: not a directory"),
    ],
)
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, path: str, error: str) -> None:
    (tmp_path / "file").write_text("precious")
    (port,) = free_ports(1)
    refused = leader_hints(
        *("run", "--hints", "off", "--route", f"127.0.0.1:{port}=127.0.0.1:9"),
        variables={"LEADER_HINTS_TAKEOVER": path.format(tmp_path)},
    )
    assert refused.returncode == 1
    assert error.format(tmp_path) in refused.stderr
    assert "Traceback" not in refused.stderr
    assert (tmp_path / "file").read_text() == "precious"
