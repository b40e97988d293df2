"""Where the command begins: its signals before anything is imported, and its streams."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from leader_hints.cli import entry
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.harness.waiting import until

_SECONDS = 30.0


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The handler of SIGTERM at each run of the command line, which does nothing."""
    seen: list[object] = []
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(
        "leader_hints.cli.main.main", lambda: seen.append(signal.getsignal(signal.SIGTERM))
    )
    yield seen
    signal.signal(signal.SIGTERM, before)


def test_process_1_of_a_container_ends_by_sigterm_while_it_imports(
    ran: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(os, "_exit", codes.append)
    entry.main()
    assert len(ran) == 1
    signal.raise_signal(signal.SIGTERM)
    assert codes == [0]


def test_elsewhere_sigterm_is_left_as_it_is(ran: list[object]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    entry.main()
    assert ran == [before]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR2])
def test_a_signal_to_read_again_or_to_hand_over_ends_no_proxy_that_begins(
    number: signal.Signals,
) -> None:
    """Python's imports take half a second: configuration management may well send one then."""
    begin = (
        "import signal, sys; from leader_hints.cli.entry import main; import leader_hints.cli; "
        "hold = lambda: (print(flush=True), sys.stdin.readline()); "
        "sys.modules['leader_hints.cli.main'] = type(sys)('main'); "
        "sys.modules['leader_hints.cli.main'].main = hold; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", begin, "run"],
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        process.stdin.close()
        assert process.wait(_SECONDS) == 0


def test_without_standard_streams_clients_are_served() -> None:
    """As some supervisors start a daemon. No socket gets the number of a stream."""
    (port,) = free_ports(1)
    command = "import sys; from leader_hints.cli.entry import main; main()"
    with socket.create_server(("127.0.0.1", 0)) as broker:
        upstream = broker.getsockname()[1]
        route = f"--route=127.0.0.1:{port}=127.0.0.1:{upstream}"
        process = subprocess.Popen(
            [sys.executable, "-c", command, "run", route, "--hints=off"],
            env=os.environ | {"PYTHONPATH": PYTHONPATH},
            preexec_fn=lambda: os.closerange(0, 3),
        )
        try:
            client = until(lambda: _connected(process, port), "it listens", _SECONDS)
            with client, broker.accept()[0] as link:
                client.sendall(b"through")
                assert link.recv(7) == b"through"
            streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
            assert streams == [os.devnull] * 3
            process.terminate()
            assert process.wait(_SECONDS) == 0
        finally:
            process.kill()
            process.wait()


def _connected(process: "subprocess.Popen[bytes]", port: int) -> socket.socket | None:
    assert process.poll() is None, "it has ended"
    with contextlib.suppress(ConnectionRefusedError):
        return socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)
    return None
